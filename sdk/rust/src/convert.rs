//! Between the contract's generated types and the plain ones of this crate, in a guest only. Everything is moved;
//! nothing is copied but the lists' own slots.

use crate::__guest::base::exports::tidegate::extension::registration as reg;
use crate::__guest::base::tidegate::extension::types;
use crate::__guest::on_input_messages::exports::tidegate::extension::on_input_messages as input;
use crate::__guest::on_llm_output::exports::tidegate::extension::on_llm_output as output;
use crate::__guest::on_plain_text::exports::tidegate::extension::on_plain_text as text;
use crate::__guest::on_tag::exports::tidegate::extension::on_tag as tag;
use crate::__guest::on_tool_call::exports::tidegate::extension::on_tool_call as call;
use crate::__guest::on_tool_result::exports::tidegate::extension::on_tool_result as result;
use crate::__guest::powers::tidegate::extension::{session, state, tools};
use crate::__guest::tool_provider::exports::tidegate::extension::tool_provider as provider;
use crate::__guest::ttsr_triggered::exports::tidegate::extension::ttsr_triggered as ttsr;
use crate::export::Callback;
use crate::{
    AskedCall, Blob, CallAnswer, Content, GivenResult, InputAnswer, KeptText, LlmOutput, Message, Moment, NewResult,
    OnFailure, OutputAnswer, OutputMode, Part, ResultAnswer, ResultStage, Role, RuleAction, RuleMatch, RuleStream,
    SessionInfo, Setting, StateError, StopReason, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, TextStream,
    TextUnit, Tool, ToolCall, ToolInfo, ToolResult, TtsrEvent, Usage,
};

/// Each element converted.
pub(crate) fn list<A, B: From<A>>(from: Vec<A>) -> Vec<B> {
    from.into_iter().map(Into::into).collect()
}

/// An enum of the same cases on both sides, converted in the named directions.
macro_rules! same_cases {
    ($from:ty => $to:ty { $($unit:ident),* $(; $($data:ident),*)? }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                type Source = $from;
                match value {
                    $(Source::$unit => Self::$unit,)*
                    $($(Source::$data(inside) => Self::$data(inside.into()),)*)?
                }
            }
        }
    };
}

same_cases!(types::Role => Role { System, User, Assistant, Tool; Other });
same_cases!(Role => types::Role { System, User, Assistant, Tool; Other });
same_cases!(types::Part => Part { ; Text, Thinking, ToolCall, ToolResult, Blob, Other });
same_cases!(Part => types::Part { ; Text, Thinking, ToolCall, ToolResult, Blob, Other });
same_cases!(types::Content => Content { ; Text, Blob, Other });
same_cases!(Content => types::Content { ; Text, Blob, Other });
same_cases!(types::StopReason => StopReason {
    EndTurn, ToolUse, MaxTokens, StopSequence, Refusal, Pause, ContextFull; Other
});
same_cases!(types::Setting => Setting { ; Text, Number, Boolean, Texts, Json, Other });
same_cases!(types::TextStream => TextStream { Answer, Thinking; Other });
same_cases!(TextStream => types::TextStream { Answer, Thinking; Other });
same_cases!(ttsr::RuleStream => RuleStream { Text, Thinking; Tool, Other });
same_cases!(ttsr::RuleAction => RuleAction { Pass, Remind, Interrupt, Block, Stop; Other });
same_cases!(state::StateError => StateError { ; BadKey, Limit, Unavailable, Other });
same_cases!(TextUnit => reg::TextUnit { Line, Paragraph, Whole });
same_cases!(OutputMode => reg::OutputMode { Observe, Rewrite });
same_cases!(result::ResultStage => ResultStage { Done, Preview; Other });
same_cases!(TextAnswer => text::TextAnswer { Pass; Replace });
same_cases!(TagAnswer => tag::TagAnswer { Keep; Content, Replace });

/// A struct of the same fields on both sides: as they are, then those whose type is converted, then lists.
macro_rules! same_fields {
    ($from:ty => $to:ident { $($same:ident),* $(; $($into:ident),* $(; $($list:ident),*)?)? }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                Self {
                    $($same: value.$same,)*
                    $($($into: value.$into.into(),)*)?
                    $($($($list: list(value.$list),)*)?)?
                }
            }
        }
    };
}

same_fields!(types::ToolCall => ToolCall { id, name, arguments, attributes });
same_fields!(types::Blob => Blob { id, media_type, size, attributes });
same_fields!(types::ToolResult => ToolResult { id, is_error, attributes; ; content });
same_fields!(types::Usage => Usage { input, output, cache_read, cache_write, attributes });
same_fields!(types::Message => Message { id, attributes; role; parts });
same_fields!(types::Moment => Moment { turn, step, attempt });
same_fields!(text::TextPlace => TextPlace { unit, inside, attributes; at, stream });
same_fields!(tag::Tag => Tag { name, pairs, content, attributes });
same_fields!(tag::TagPlace => TagPlace { inside, attributes; at });
same_fields!(output::LlmOutput => LlmOutput { text, attributes; at, stop, usage; tool_calls });
same_fields!(call::AskedCall => AskedCall { edited, attributes; at, call });
same_fields!(result::GivenResult => GivenResult { diff, is_error, attributes; at, call, stage; content });
same_fields!(ttsr::RuleMatch => RuleMatch { rule, pattern, text, start, end, line, path, field, attributes; stream });
same_fields!(ttsr::TtsrEvent => TtsrEvent { attributes; at, action; matches });
same_fields!(tools::ToolInfo => ToolInfo { name, description, parameters, attributes });
same_fields!(session::SessionInfo => SessionInfo {
    extension, id, agent, provider, model, workspace, attributes; at
});

impl From<ToolCall> for types::ToolCall {
    fn from(ToolCall { id, name, arguments, attributes }: ToolCall) -> Self {
        Self { id, name, arguments, attributes }
    }
}

impl From<Tool> for provider::Tool {
    fn from(Tool { name, description, parameters, read_only }: Tool) -> Self {
        Self { name, description, parameters, read_only, attributes: Vec::new() }
    }
}

impl From<ToolResult> for types::ToolResult {
    fn from(ToolResult { id, content, is_error, attributes }: ToolResult) -> Self {
        Self { id, content: list(content), is_error, attributes }
    }
}

impl From<Blob> for types::Blob {
    fn from(Blob { id, media_type, size, attributes }: Blob) -> Self {
        Self { id, media_type, size, attributes }
    }
}

impl From<Message> for types::Message {
    fn from(Message { id, role, parts, attributes }: Message) -> Self {
        Self { id, role: role.into(), parts: list(parts), attributes }
    }
}

impl From<InputAnswer> for input::InputAnswer {
    fn from(answer: InputAnswer) -> Self {
        let change = match answer {
            InputAnswer::Pass => input::InputChange::Pass,
            InputAnswer::Replace(messages) => input::InputChange::Replace(list(messages)),
            InputAnswer::Finish(messages) => input::InputChange::Finish(messages.map(list)),
            InputAnswer::Reply(text) => input::InputChange::Reply(text),
            InputAnswer::Reject(reason) => input::InputChange::Reject(reason),
        };
        Self { change, attributes: Vec::new() }
    }
}

impl From<OutputAnswer> for output::OutputAnswer {
    fn from(answer: OutputAnswer) -> Self {
        let change = answer.replace.map_or(output::OutputChange::Pass, output::OutputChange::Replace);
        Self { change, annotations: annotations(answer.annotations), attributes: Vec::new() }
    }
}

impl From<CallAnswer> for call::CallAnswer {
    fn from(answer: CallAnswer) -> Self {
        let change = match answer {
            CallAnswer::Pass => call::CallChange::Pass,
            CallAnswer::Replace(arguments) => call::CallChange::Replace(arguments),
            CallAnswer::Deny { reason, shown } => {
                call::CallChange::Deny(call::Denial { reason, shown, attributes: Vec::new() })
            }
        };
        Self { change, attributes: Vec::new() }
    }
}

impl From<ResultAnswer> for result::ResultAnswer {
    fn from(answer: ResultAnswer) -> Self {
        let change = match answer.replace {
            None => result::ResultChange::Pass,
            Some(NewResult { content, diff }) => {
                let new = result::NewResult { content: list(content), diff, attributes: Vec::new() };
                result::ResultChange::Replace(new)
            }
        };
        Self { change, annotations: annotations(answer.annotations), attributes: Vec::new() }
    }
}

fn annotations(notes: Vec<(String, String)>) -> Vec<types::Annotation> {
    notes.into_iter().map(|(key, value)| types::Annotation { key, value }).collect()
}

impl From<Callback> for reg::Registered {
    fn from(callback: Callback) -> Self {
        let attributes = Vec::new;
        let whole = matches!(&callback, Callback::InputMessages(options) if options.whole_requests);
        let own = whole.then(|| ("whole-requests".to_owned(), "true".to_owned()));
        let (callback, priority) = match callback {
            Callback::InputMessages(options) => {
                let (on_failure, attributes) = (policy(options.on_failure), attributes());
                (reg::Callback::OnInputMessages(reg::InputOptions { on_failure, attributes }), options.priority)
            }
            Callback::PlainText(options) => {
                let (on_failure, attributes) = (policy(options.on_failure), attributes());
                let (unit, streams, keep) = (options.unit.into(), list(options.streams), kept(options.keep));
                (
                    reg::Callback::OnPlainText(reg::TextOptions { unit, streams, on_failure, keep, attributes }),
                    options.priority,
                )
            }
            Callback::Tag(options) => {
                let (on_failure, attributes) = (policy(options.on_failure), attributes());
                let (patterns, keep) = (options.patterns, kept(options.keep));
                (reg::Callback::OnTag(reg::TagOptions { patterns, on_failure, keep, attributes }), options.priority)
            }
            Callback::LlmOutput(options) => {
                let (on_failure, attributes) = (policy(options.on_failure), attributes());
                let mode = options.mode.into();
                (reg::Callback::OnLlmOutput(reg::OutputOptions { mode, on_failure, attributes }), options.priority)
            }
            Callback::TtsrTriggered(options) => (reg::Callback::TtsrTriggered, options.priority),
            Callback::ToolCall(options) => {
                let (on_failure, keep, attributes) = (policy(options.on_failure), kept(options.keep), attributes());
                (reg::Callback::OnToolCall(reg::CallOptions { on_failure, keep, attributes }), options.priority)
            }
            Callback::ToolResult(options) => {
                let (on_failure, keep, attributes) = (policy(options.on_failure), kept(options.keep), attributes());
                (reg::Callback::OnToolResult(reg::ResultOptions { on_failure, keep, attributes }), options.priority)
            }
        };
        Self { callback, priority: Some(priority), attributes: own.into_iter().collect() }
    }
}

fn policy(policy: OnFailure) -> Option<reg::OnFailure> {
    match policy {
        OnFailure::Unspecified => None,
        OnFailure::Skip => Some(reg::OnFailure::Skip),
        OnFailure::Withhold => Some(reg::OnFailure::Withhold),
        OnFailure::Reject => Some(reg::OnFailure::Reject),
    }
}

fn kept(keep: KeptText) -> Option<reg::KeptText> {
    match keep {
        KeptText::Unspecified => None,
        KeptText::Original => Some(reg::KeptText::Original),
        KeptText::Shown => Some(reg::KeptText::Shown),
    }
}
