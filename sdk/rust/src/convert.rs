//! Between the contract's generated types and the plain ones of this crate, in a guest only. Everything is moved;
//! nothing is copied but the lists' own slots.

use crate::__guest::base::exports::tidegate::extension::registration as reg;
use crate::__guest::base::tidegate::extension::{session, state, tools, types};
use crate::__guest::on_input_messages::exports::tidegate::extension::on_input_messages as input;
use crate::__guest::on_llm_output::exports::tidegate::extension::on_llm_output as output;
use crate::__guest::on_plain_text::exports::tidegate::extension::on_plain_text as text;
use crate::__guest::on_tag::exports::tidegate::extension::on_tag as tag;
use crate::__guest::ttsr_triggered::exports::tidegate::extension::ttsr_triggered as ttsr;
use crate::export::Callback;
use crate::{
    InputAnswer, LlmOutput, Message, OnFailure, OutputAnswer, OutputMode, Part, Registered, Role, RuleAction,
    RuleMatch, RuleStream, SessionInfo, Setting, StateError, StopReason, Tag, TagAnswer, TagPlace, TextAnswer,
    TextPlace, TextUnit, ToolCall, ToolInfo, ToolResult, TtsrEvent, Usage,
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
same_cases!(types::Part => Part { ; Text, Thinking, ToolCall, ToolResult, Other });
same_cases!(Part => types::Part { ; Text, Thinking, ToolCall, ToolResult, Other });
same_cases!(types::StopReason => StopReason { EndTurn, ToolUse, MaxTokens, StopSequence, Refusal; Other });
same_cases!(types::Setting => Setting { ; Text, Number, Boolean, Texts, Other });
same_cases!(ttsr::RuleStream => RuleStream { Text, Thinking; Tool, Other });
same_cases!(ttsr::RuleAction => RuleAction { Pass, Remind, Interrupt, Block, Stop; Other });
same_cases!(state::StateError => StateError { ; BadKey, Limit, Unavailable, Other });
same_cases!(TextUnit => reg::TextUnit { Line, Paragraph, Whole });
same_cases!(OutputMode => reg::OutputMode { Observe, Rewrite });
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
same_fields!(types::ToolResult => ToolResult { id, content, is_error, attributes });
same_fields!(types::Usage => Usage { input, output, attributes });
same_fields!(types::Message => Message { attributes; role; parts });
same_fields!(text::TextPlace => TextPlace { unit, inside, attributes });
same_fields!(tag::Tag => Tag { name, attributes, content });
same_fields!(tag::TagPlace => TagPlace { depth, inside, attributes });
same_fields!(output::LlmOutput => LlmOutput { text, attributes; stop, usage; tool_calls });
same_fields!(ttsr::RuleMatch => RuleMatch { rule, pattern, text, start, end, line, path, field, attributes; stream });
same_fields!(ttsr::TtsrEvent => TtsrEvent { attempt, attributes; action; matches });
same_fields!(tools::ToolInfo => ToolInfo { name, description, parameters, attributes });
same_fields!(session::SessionInfo => SessionInfo {
    extension, id, turn, step, attempt, provider, model, workspace, attributes
});

impl From<ToolCall> for types::ToolCall {
    fn from(ToolCall { id, name, arguments, attributes }: ToolCall) -> Self {
        Self { id, name, arguments, attributes }
    }
}

impl From<ToolResult> for types::ToolResult {
    fn from(ToolResult { id, content, is_error, attributes }: ToolResult) -> Self {
        Self { id, content, is_error, attributes }
    }
}

impl From<Message> for types::Message {
    fn from(Message { role, parts, attributes }: Message) -> Self {
        Self { role: role.into(), parts: list(parts), attributes }
    }
}

impl From<InputAnswer> for input::InputAnswer {
    fn from(answer: InputAnswer) -> Self {
        match answer {
            InputAnswer::Pass => Self::Pass,
            InputAnswer::Replace(messages) => Self::Replace(list(messages)),
            InputAnswer::Finish(messages) => Self::Finish(list(messages)),
            InputAnswer::Reply(text) => Self::Reply(text),
            InputAnswer::Reject(reason) => Self::Reject(reason),
        }
    }
}

impl From<OutputAnswer> for output::OutputAnswer {
    fn from(answer: OutputAnswer) -> Self {
        let change = answer.replace.map_or(output::OutputChange::Pass, output::OutputChange::Replace);
        let annotations =
            answer.annotations.into_iter().map(|(key, value)| output::Annotation { key, value }).collect();
        Self { change, annotations, attributes: Vec::new() }
    }
}

impl From<Registered> for reg::Registered {
    fn from(Registered { callback, priority, on_failure }: Registered) -> Self {
        let callback = match callback {
            Callback::InputMessages => reg::Callback::OnInputMessages,
            Callback::PlainText(unit) => reg::Callback::OnPlainText(unit.into()),
            Callback::Tag(patterns) => reg::Callback::OnTag(patterns),
            Callback::LlmOutput(mode) => reg::Callback::OnLlmOutput(mode.into()),
            Callback::TtsrTriggered => reg::Callback::TtsrTriggered,
        };
        let on_failure = match on_failure {
            OnFailure::Unspecified => None,
            OnFailure::Skip => Some(reg::OnFailure::Skip),
            OnFailure::Withhold => Some(reg::OnFailure::Withhold),
            OnFailure::Reject => Some(reg::OnFailure::Reject),
        };
        Self { callback, priority: Some(priority), on_failure, attributes: Vec::new() }
    }
}
