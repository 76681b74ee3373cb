//! The callbacks of contract 0.1.0, those around calls of tools left out: what goes in, the way into the guest, what comes out.

use std::future::Future;

use flow::ports::TtsrEvent;
use flow::{
    Action, CallbackKind, Called, InputAnswer, Message, ModelOutput, OutputAnswer, OutputMode, Reasons, StreamKind,
    Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, TextStream,
};
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};

use super::bindings::exports::tidegate::extension as exports;
use super::bindings::tidegate::extension::types::{self, AttributeParam, Failure, ToolCallParam, Usage};
use super::convert::{moment, small};
use super::{Calls, answers, convert};
use crate::failure::Fault;
use crate::guest::Guest;
use crate::limits;

/// One call of one callback, or of a tool.
pub(crate) trait Call: Send {
    /// What the turn gets.
    type Answer: Send + Reasons;

    /// What is called, for reports and limits.
    fn called(&self) -> Called;

    /// The turn it belongs to, where it can outlive it.
    fn turn(&self) -> Option<u32> {
        None
    }

    /// Calls the guest's export and converts its answer.
    fn run(self, calls: &Calls, store: &mut Store<Guest>) -> impl Future<Output = Result<Self::Answer, Fault>> + Send;
}

/// A call of `on-input-messages` with borrowed messages.
pub(crate) struct InputMessages<'a>(pub(crate) &'a [Message]);

/// A call of `on-plain-text` with one unit and its position.
pub(crate) struct PlainText<'a>(pub(crate) &'a str, pub(crate) &'a TextPlace);

/// A call of `on-tag` with one section and its position.
pub(crate) struct TagSection<'a>(pub(crate) &'a Tag, pub(crate) &'a TagPlace);

/// A call of `on-llm-output` with the accepted answer.
pub(crate) struct LlmOutput<'a>(pub(crate) &'a ModelOutput, pub(crate) OutputMode);

/// A call of `ttsr-triggered` with the matches of one stream.
pub(crate) struct TtsrTriggered<'a>(pub(crate) &'a TtsrEvent);

impl Call for InputMessages<'_> {
    type Answer = InputAnswer;

    fn called(&self) -> Called {
        CallbackKind::InputMessages.into()
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<InputAnswer, Fault> {
        let func = calls.input.as_ref().ok_or(Fault::Missing)?.func_on_input_messages();
        let borrowed = convert::Borrowed::new(self.0);
        let (parts, attributes) = (borrowed.parts(), borrowed.attributes());
        let messages = convert::messages(self.0, &parts, &attributes);
        let (answer,) = enter(store, func, (messages.as_slice(),)).await?;
        let answer = returned(answer, answers::input_size, most(store))?;
        Ok(answers::input(answer, self.0, &store.data().plugin.id))
    }
}

impl Call for PlainText<'_> {
    type Answer = TextAnswer;

    fn called(&self) -> Called {
        CallbackKind::PlainText.into()
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<TextAnswer, Fault> {
        let func = calls.text.as_ref().ok_or(Fault::Missing)?.func_on_plain_text();
        let inside = names(&self.1.inside);
        let TextPlace { at, stream, unit, .. } = *self.1;
        let stream = match stream {
            TextStream::Answer => types::TextStreamParam::Answer,
            TextStream::Thinking => types::TextStreamParam::Thinking,
        };
        let place =
            exports::on_plain_text::TextPlace { at: moment(at), stream, unit, inside: &inside, attributes: &[] };
        let (answer,) = enter(store, func, (self.0, place)).await?;
        Ok(answers::text(returned(answer, answers::text_size, most(store))?))
    }
}

impl Call for TagSection<'_> {
    type Answer = TagAnswer;

    fn called(&self) -> Called {
        CallbackKind::Tag.into()
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<TagAnswer, Fault> {
        let func = calls.tag.as_ref().ok_or(Fault::Missing)?.func_on_tag();
        let Self(tag, place) = self;
        let pairs: Vec<AttributeParam<'_>> = tag.attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let inside = names(&place.inside);
        let tag = exports::on_tag::Tag { name: &tag.name, pairs: &pairs, content: &tag.content, attributes: &[] };
        let place = exports::on_tag::TagPlace { at: moment(place.at), inside: &inside, attributes: &[] };
        let (answer,) = enter(store, func, (tag, place)).await?;
        Ok(answers::tag(returned(answer, answers::tag_size, most(store))?))
    }
}

impl Call for LlmOutput<'_> {
    type Answer = OutputAnswer;

    fn called(&self) -> Called {
        CallbackKind::LlmOutput.into()
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<OutputAnswer, Fault> {
        let func = calls.output.as_ref().ok_or(Fault::Missing)?.func_on_llm_output();
        let Self(output, mode) = self;
        let tool_calls: Vec<ToolCallParam<'_>> = output.tool_calls.iter().map(convert::tool_call).collect();
        let output = exports::on_llm_output::LlmOutput {
            at: moment(output.at),
            text: &output.text,
            tool_calls: &tool_calls,
            stop: convert::stop(&output.stop),
            usage: usage(output.usage),
            attributes: &[],
        };
        let (answer,) = enter(store, func, (output,)).await?;
        Ok(answers::output(returned(answer, answers::output_size, most(store))?, mode))
    }
}

impl Call for TtsrTriggered<'_> {
    type Answer = ();

    fn called(&self) -> Called {
        CallbackKind::TtsrTriggered.into()
    }

    fn turn(&self) -> Option<u32> {
        Some(self.0.place.turn)
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<(), Fault> {
        let func = calls.ttsr.as_ref().ok_or(Fault::Missing)?.func_ttsr_triggered();
        let matches: Vec<_> = self.0.matches.iter().map(rule_match).collect();
        let event = exports::ttsr_triggered::TtsrEvent {
            matches: &matches,
            action: rule_action(self.0.action),
            at: moment(self.0.place),
            attributes: &[],
        };
        let (answer,) = enter(store, func, (event,)).await?;
        returned(answer, |()| 0, most(store))
    }
}

/// Calls `migrate` with the `state_version` that wrote the state.
pub(crate) async fn migrate(calls: &Calls, store: &mut Store<Guest>, from: u32) -> Result<(), Fault> {
    let func = calls.migration.as_ref().ok_or(Fault::Missing)?.func_migrate();
    let (answer,) = enter(store, func, (from,)).await?;
    returned(answer, |()| 0, most(store))
}

/// Bytes that one callback may return.
pub(super) fn most(store: &Store<Guest>) -> usize {
    store.data().plugin.limits.returned_bytes
}

fn usage(usage: flow::Usage) -> Usage<'static> {
    Usage {
        input: usage.input.map(small),
        output: usage.output.map(small),
        cache_read: usage.cache_read.map(small),
        cache_write: usage.cache_write.map(small),
        attributes: &[],
    }
}

fn names(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn rule_match(found: &flow::RuleMatch) -> exports::ttsr_triggered::RuleMatch<'_> {
    use exports::ttsr_triggered::RuleStream;
    let evidence = &found.evidence;
    exports::ttsr_triggered::RuleMatch {
        rule: &found.rule,
        pattern: &evidence.pattern,
        stream: match &found.stream {
            StreamKind::Text => RuleStream::Text,
            StreamKind::Thinking => RuleStream::Thinking,
            StreamKind::Tool { name, .. } => RuleStream::Tool(name),
        },
        text: &evidence.text,
        start: small(evidence.start),
        end: small(evidence.end),
        line: evidence.line,
        path: evidence.path.as_deref(),
        field: evidence.field.as_deref(),
        attributes: &[],
    }
}

fn rule_action(action: Action) -> exports::ttsr_triggered::RuleAction<'static> {
    use exports::ttsr_triggered::RuleAction as Theirs;
    match action {
        Action::Pass => Theirs::Pass,
        Action::Remind => Theirs::Remind,
        Action::Interrupt => Theirs::Interrupt,
        Action::Block => Theirs::Block,
        Action::Stop => Theirs::Stop,
    }
}

/// Enters the guest: on the caller's stack where the call may, else on a stack of its own that gives way to other tasks
/// at every tick.
pub(super) async fn enter<P, R>(store: &mut Store<Guest>, func: TypedFunc<P, R>, params: P) -> Result<R, Fault>
where
    P: ComponentNamedList + Lower + Send + Sync,
    R: ComponentNamedList + Lift + Send + Sync + 'static,
{
    let called = if store.data().inline() {
        func.call(store, params)
    } else {
        // The engine's future is large, and most calls are made without one: in a box it leaves theirs small.
        Box::pin(func.call_async(store, params)).await
    };
    called.map_err(Fault::Engine)
}

/// The guest's answer, if it gave one of at most `max` bytes.
pub(super) fn returned<A>(answer: Result<A, Failure>, size: impl Fn(&A) -> usize, max: usize) -> Result<A, Fault> {
    let answer =
        answer.map_err(|failure| Fault::Returned(limits::cut(&failure.message, limits::MESSAGE_BYTES).to_owned()))?;
    let bytes = size(&answer);
    if bytes > max { Err(Fault::Size { bytes, max }) } else { Ok(answer) }
}
