//! The OpenAI Responses wire format, as OpenAI and llama.cpp speak it.
//!
//! Items are found by `item_id` first and by `output_index` where a server leaves the id out, and every index may be
//! absent: llama.cpp sends none, and names a call's item by its `call_id`.

mod item;
mod request;
mod wire;

use flow::{ModelError, StopReason, StreamKind};
use serde::{Deserialize, Serialize};

use self::item::{Item, ItemKind};
pub(crate) use self::request::encode;
use self::wire::{Event, Finished, Response, WireItem};
use crate::decode::{Answer, ended_without, is_done, misplaced, parse};
use crate::failure;
use crate::loose::Text;
use crate::sse::SseEvent;
use crate::surrogates;

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    items: Vec<Item>,
    called: bool,
    refused: bool,
}

/// What goes back with a stretch of reasoning: the signature of a thinking block of this wire format.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Sealed {
    pub(crate) id: String,
    pub(crate) encrypted_content: String,
}

impl Decode {
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if is_done(event) {
            return Ok(());
        }
        let mut wire: Event<'_> = parse(event)?;
        let delta = std::mem::take(&mut wire.delta);
        let kind = if wire.kind.is_empty() { event.name.as_ref() } else { wire.kind.as_str() };
        match kind {
            "response.created" => {
                // A second one: a gateway retried, and everything received before is void.
                if !self.items.is_empty() {
                    *self = Self::default();
                    answer.start(wire.response.model.given().map(str::to_owned));
                }
                start(&wire.response, answer);
            }
            "response.in_progress" | "response.queued" => start(&wire.response, answer),
            "response.output_item.added" => drop(self.added(&wire.item, wire.output_index.0, answer)),
            "response.output_text.delta" => self.part(ItemKind::Message, &wire, delta, answer)?,
            "response.output_text.done" => self.whole_part(ItemKind::Message, &wire, &wire.text, answer),
            "response.refusal.delta" => {
                self.refused = true;
                self.part(ItemKind::Message, &wire, delta, answer)?;
            }
            "response.refusal.done" => {
                self.refused |= !wire.refusal.is_empty();
                self.whole_part(ItemKind::Message, &wire, &wire.refusal, answer);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.part(ItemKind::Reasoning, &wire, delta, answer)?;
            }
            "response.reasoning_summary_text.done" | "response.reasoning_text.done" => {
                self.whole_part(ItemKind::Reasoning, &wire, &wire.text, answer);
            }
            "response.content_part.done" if wire.whole.kind.as_str() != "reasoning_text" => {
                self.refused |= !wire.whole.refusal.is_empty();
                let text = if wire.whole.refusal.is_empty() { &wire.whole.text } else { &wire.whole.refusal };
                self.whole_part(ItemKind::Message, &wire, text, answer);
            }
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                self.whole_part(ItemKind::Reasoning, &wire, &wire.whole.text, answer);
            }
            "response.function_call_arguments.delta" => self.part(ItemKind::Call, &wire, delta, answer)?,
            "response.function_call_arguments.done" => {
                self.whole_part(ItemKind::Call, &wire, &wire.arguments, answer);
            }
            "response.output_item.done" => self.done(&wire, answer),
            "response.completed" | "response.incomplete" => {
                start(&wire.response, answer);
                self.fill_in(&event.data, answer)?;
                self.begin_nameless(answer);
                self.complete(&wire.response, answer);
            }
            "response.failed" | "error" => return Err(failure::in_stream(&event.data)),
            _ => {}
        }
        Ok(())
    }

    /// The stream ended without one of the three events that end an answer.
    pub(crate) fn finish(&mut self, _: &mut Answer) -> Result<(), ModelError> {
        Err(ended_without("response.completed"))
    }

    fn added(&mut self, item: &WireItem<'_>, index: Option<u64>, answer: &mut Answer) -> usize {
        let new = Item::new(item.kind(), item.id.as_str(), item.call_id.as_str(), index);
        if new.kind == ItemKind::Unknown {
            answer.passed_over(|| format!("output items of type {:?}", item.kind.as_str()));
        }
        let at = self.push(new, answer);
        self.items[at].name(item.name.as_str(), item.call_id.as_str(), answer);
        at
    }

    fn push(&mut self, mut new: Item, answer: &mut Answer) -> usize {
        self.called |= new.kind == ItemKind::Call;
        // A stretch of reasoning may be nothing but its encrypted content; a message's parts begin by themselves.
        if new.kind == ItemKind::Reasoning {
            new.block = Some(answer.begin(StreamKind::Thinking));
        }
        let more = new.id.len() + new.call_id.len();
        self.items.push(new);
        answer.keeps(self.items.len(), more);
        self.items.len() - 1
    }

    /// The item that received more content: one that was announced, one that continues after its end, or a new one.
    /// Arguments of an item that is passed over belong to none; text is text whatever it is in.
    fn item_for(&mut self, kind: ItemKind, wire: &Event<'_>, answer: &mut Answer) -> Result<Option<usize>, ModelError> {
        if let Some(at) = self.position(kind, wire) {
            return Ok(Some(at));
        }
        let mut named = self.items.iter().filter(|item| item.is_named_by(wire));
        if kind == ItemKind::Call && named.any(|item| item.kind == ItemKind::Unknown) {
            return Ok(None);
        }
        let known = self.items.iter().rposition(|item| item.kind == kind && item.is_named_by(wire));
        match known.map(|at| &mut self.items[at]) {
            Some(item) if kind == ItemKind::Call => Err(misplaced(format_args!(
                "received arguments for tool call {:?} after its `response.output_item.done`",
                item.call_id
            ))),
            Some(item) => {
                item.done = false;
                Ok(known)
            }
            None => {
                let new = Item::new(kind, wire.item_id.as_str(), "", wire.output_index.0);
                Ok(Some(self.push(new, answer)))
            }
        }
    }

    /// More of an item.
    fn part(
        &mut self,
        kind: ItemKind,
        wire: &Event<'_>,
        delta: Text<'_>,
        answer: &mut Answer,
    ) -> Result<(), ModelError> {
        if delta.is_empty() {
            return Ok(());
        }
        if let Some(at) = self.item_for(kind, wire, answer)? {
            let item = &mut self.items[at];
            item.numbered &= wire.part().is_some();
            item.give(wire.part().unwrap_or(0), delta, answer);
        }
        Ok(())
    }

    /// The end of a part that repeats it whole: what of it was not streamed is taken. An item that has ended has had it.
    fn whole_part(&mut self, kind: ItemKind, wire: &Event<'_>, text: &Text<'_>, answer: &mut Answer) {
        let at = self.position(kind, wire).or_else(|| {
            let new = || Item::new(kind, wire.item_id.as_str(), "", wire.output_index.0);
            let other = |item: &Item| item.kind == ItemKind::Unknown && kind != ItemKind::Call;
            let known = self.items.iter().any(|item| item.is_named_by(wire) && !other(item));
            (!known && !text.is_empty()).then(|| self.push(new(), answer))
        });
        if let Some(at) = at {
            let item = &mut self.items[at];
            item.numbered &= wire.part().is_some();
            item.name(wire.name.as_str(), "", answer);
            item.give_rest(wire.part().unwrap_or(0), text.as_str(), answer);
        }
    }

    fn done(&mut self, wire: &Event<'_>, answer: &mut Answer) {
        let kind = wire.item.kind();
        if kind == ItemKind::Unknown {
            if !self.items.iter().any(|item| item.is_named_by(wire)) {
                self.added(&wire.item, wire.output_index.0, answer);
            }
            return;
        }
        // It may come whole, without having been announced; one that comes twice has been taken.
        let at = self.position(kind, wire);
        if at.is_none() && self.items.iter().any(|item| item.kind == kind && item.has_id_of(&wire.item)) {
            return;
        }
        let at = at.unwrap_or_else(|| self.added(&wire.item, wire.output_index.0, answer));
        self.finish_item(at, &wire.item, answer);
    }

    /// A call without a name is a mistake of the model, which reads about it in the result.
    fn begin_nameless(&mut self, answer: &mut Answer) {
        for item in &mut self.items {
            if item.kind == ItemKind::Call && !item.done && item.block.is_none() {
                item.begin_call("", answer);
            }
        }
    }

    /// Takes what the finished item contains in addition to its streamed content, and ends it.
    fn finish_item(&mut self, at: usize, whole: &WireItem<'_>, answer: &mut Answer) {
        let item = &mut self.items[at];
        item.name(whole.name.as_str(), whole.call_id.as_str(), answer);
        self.refused |= item.fill(whole, answer);
        if item.kind == ItemKind::Call && item.block.is_none() && !item.done {
            return; // the end of the answer may name it
        }
        item.done = true;
        let Some(block) = item.block.take() else { return };
        if item.kind == ItemKind::Reasoning && !whole.encrypted_content.is_empty() {
            let id = whole.id.given().unwrap_or(&item.id).to_owned();
            let sealed = Sealed { id, encrypted_content: whole.encrypted_content.as_str().to_owned() };
            // Two texts always become JSON.
            answer.signature(block, serde_json::to_string(&sealed).unwrap_or_default(), !item.streamed());
        }
        answer.end(block);
    }

    /// The end of the answer repeats all of its items. Content that was not streamed is taken, and nothing twice: an
    /// item is new only if there are more of its kind than were streamed, since some servers give other ids in the
    /// end.
    fn fill_in(&mut self, data: &str, answer: &mut Answer) -> Result<(), ModelError> {
        let output = match surrogates::from_str::<Finished<'_>>(data) {
            Ok(finished) => finished.response.output,
            // A shape that we do not know takes nothing away from what was streamed.
            Err(_) if !self.items.is_empty() => return Ok(()),
            Err(cause) => {
                let message = format!("cannot read the output of the finished answer: {cause}");
                return Err(ModelError::of_kind(flow::FailureKind::Unsupported, message));
            }
        };
        let mut told: Vec<bool> = vec![false; self.items.len()];
        let known: Vec<Option<usize>> = output.iter().map(|item| self.told_as(item, &mut told)).collect();
        for (item, known) in output.iter().zip(known) {
            let mut in_order = || {
                let at = (0..told.len()).find(|at| !told[*at] && self.items[*at].kind == item.kind())?;
                told[at] = true;
                Some(at)
            };
            let at = match known.or_else(&mut in_order) {
                _ if item.kind() == ItemKind::Unknown => continue,
                Some(at) => at,
                None => self.added(item, None, answer),
            };
            // A call or a stretch of reasoning that has ended stays as it is.
            if !self.items[at].done || self.items[at].kind == ItemKind::Message {
                self.finish_item(at, item, answer);
            }
        }
        Ok(())
    }

    /// The known item with the same id.
    fn told_as(&self, item: &WireItem<'_>, told: &mut [bool]) -> Option<usize> {
        let same = |at: &usize| {
            let known = &self.items[*at];
            let id = item.id.given().is_some_and(|id| known.id == id);
            known.kind == item.kind() && (id || item.call_id.given().is_some_and(|id| known.call_id == id))
        };
        let at = (0..told.len()).filter(|at| !told[*at]).find(same)?;
        told[at] = true;
        Some(at)
    }

    fn complete(&mut self, response: &Response<'_>, answer: &mut Answer) {
        answer.usage((&response.usage).into());
        answer.stop(match response.incomplete_details.reason.as_str() {
            "max_output_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            "" if self.called => StopReason::ToolUse,
            "" if self.refused => StopReason::Refusal,
            "" => StopReason::EndTurn,
            other => StopReason::Other(other.to_owned()),
        });
    }

    /// The item that an event refers to: by id, else by index, else the latest open one of its kind.
    fn position(&self, kind: ItemKind, wire: &Event<'_>) -> Option<usize> {
        let named = |id: &str| {
            let same = |item: &Item| !item.done && item.kind == kind && (item.id == id || item.call_id == id);
            self.items.iter().rposition(same)
        };
        for id in [wire.item_id.given(), wire.item.id.given(), wire.item.call_id.given()].into_iter().flatten() {
            if let Some(at) = named(id) {
                return Some(at);
            }
        }
        if let Some(index) = wire.output_index.0 {
            return self.items.iter().rposition(|item| !item.done && item.kind == kind && item.index == Some(index));
        }
        // One that is named otherwise is another one; in their `done` events some servers give items other ids.
        let anonymous = wire.item_id.is_empty() && wire.item.id.is_empty() && wire.item.call_id.is_empty();
        let fits = |item: &Item| item.index.is_none() && (wire.item_id.is_empty() || item.id.is_empty());
        self.items.iter().rposition(|item| !item.done && item.kind == kind && (anonymous || fits(item)))
    }
}

fn start(response: &Response<'_>, answer: &mut Answer) {
    if !answer.is_started() {
        answer.start(response.model.given().map(str::to_owned));
    }
}
