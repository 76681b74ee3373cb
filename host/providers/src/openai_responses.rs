//! The OpenAI Responses wire format, as OpenAI and llama.cpp speak it.
//!
//! Items are found by `item_id` first and by `output_index` where a server leaves the id out, and every index may be
//! absent: llama.cpp sends none, and names a call's item by its `call_id`.

mod request;

use flow::{BlockId, BlockKind, CallId, ModelError, StopReason, Usage};
use serde::{Deserialize, Serialize};

pub(crate) use self::request::encode;
use crate::decode::{Answer, ended_without, is_done, misplaced, parse};
use crate::failure;
use crate::loose::{Number, Text, or_default};
use crate::sse::SseEvent;
use crate::surrogates::{self, Half};

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    items: Vec<Item>,
    called: bool,
    refused: bool,
}

/// An output item: an answer's message, a stretch of reasoning, or a call.
#[derive(Debug)]
struct Item {
    id: String,
    call_id: String,
    index: Option<u64>,
    kind: ItemKind,
    /// The block under way. A message has one for each of its parts, the others one in all; a call has none until its
    /// tool is named.
    block: Option<BlockId>,
    /// Arguments of a call that came before its name, and the first half of a character that they end with.
    early: String,
    half: Half,
    /// What was given of its parts, the latest last: what is repeated whole at their end is not taken again.
    parts: Vec<Part>,
    /// Every event told which part it speaks of.
    numbered: bool,
    /// The item has ended, but for what only the end of the answer may bring.
    done: bool,
}

/// What was given of one part of an item.
#[derive(Debug)]
struct Part {
    number: u64,
    len: usize,
    /// Tells whether a text begins with what was given, without keeping it (FNV-1a).
    hash: u64,
}

impl Part {
    fn new(number: u64) -> Self {
        Self { number, len: 0, hash: fnv(0xcbf2_9ce4_8422_2325, "") }
    }

    fn add(&mut self, text: &str) {
        self.len += text.len();
        self.hash = fnv(self.hash, text);
    }

    /// What a whole text has beyond what was given; `None` where it begins otherwise.
    fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (given, rest) = whole.split_at_checked(self.len)?;
        (fnv(Self::new(0).hash, given) == self.hash).then_some(rest)
    }
}

fn fnv(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Item {
    fn new(kind: ItemKind, id: &str, call_id: &str, index: Option<u64>) -> Self {
        Self {
            id: id.to_owned(),
            call_id: call_id.to_owned(),
            index,
            kind,
            block: None,
            early: String::new(),
            half: Half::default(),
            parts: Vec::new(),
            numbered: true,
            done: false,
        }
    }

    fn streamed(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Begins the block of a call whose tool is known now.
    fn name(&mut self, name: &str, call_id: &str, answer: &mut Answer) {
        if self.kind != ItemKind::Call || self.block.is_some() || self.done || name.is_empty() {
            return;
        }
        if self.call_id.is_empty() {
            call_id.clone_into(&mut self.call_id);
        }
        let call = if self.call_id.is_empty() { &self.id } else { &self.call_id };
        let block = answer.begin(BlockKind::Tool { call: CallId::new(call.as_str()), name: name.to_owned() });
        answer.piece(block, std::mem::take(&mut self.early));
        if let Some(half) = answer.half(block) {
            *half = std::mem::take(&mut self.half);
        }
        self.block = Some(block);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
    Call,
    /// Tools that run at the provider, and whatever comes later: passed over.
    Unknown,
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
                // A second one: a gateway asked again, and what came before is void.
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
            "response.function_call_arguments.delta" => self.part(ItemKind::Call, &wire, delta, answer)?,
            "response.function_call_arguments.done" => {
                self.whole_part(ItemKind::Call, &wire, &wire.arguments, answer);
            }
            "response.output_item.done" => self.done(&wire, answer),
            "response.completed" | "response.incomplete" => {
                start(&wire.response, answer);
                self.fill_in(&event.data, answer)?;
                self.all_named()?;
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
            new.block = Some(answer.begin(BlockKind::Thinking));
        }
        let more = new.id.len() + new.call_id.len();
        self.items.push(new);
        answer.keeps(self.items.len(), more);
        self.items.len() - 1
    }

    /// The item that more of it has come for: one that was announced, one that goes on after its end, or a new one. What
    /// belongs to an item that is passed over belongs to none.
    fn item_for(&mut self, kind: ItemKind, wire: &Event<'_>, answer: &mut Answer) -> Result<Option<usize>, ModelError> {
        if let Some(at) = self.position(kind, wire) {
            return Ok(Some(at));
        }
        let known = self.items.iter().rposition(|item| item.is_named_by(wire));
        match known.map(|at| &mut self.items[at]) {
            Some(item) if item.kind == ItemKind::Unknown => Ok(None),
            Some(item) if item.kind == kind && kind == ItemKind::Call => Err(misplaced(format_args!(
                "arguments came for tool call {:?} after its `response.output_item.done`",
                item.call_id
            ))),
            Some(item) if item.kind == kind => {
                item.done = false;
                Ok(known)
            }
            Some(_) | None => {
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
            let known = self.items.iter().any(|item| item.is_named_by(wire));
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

    /// Every call has a tool.
    fn all_named(&self) -> Result<(), ModelError> {
        let nameless = self.items.iter().find(|item| item.kind == ItemKind::Call && !item.done && item.block.is_none());
        match nameless {
            Some(item) => {
                let id = if item.id.is_empty() { &item.call_id } else { &item.id };
                Err(misplaced(format_args!(
                    "arguments of a tool call (item {id:?}) came without an item that names the tool"
                )))
            }
            None => Ok(()),
        }
    }

    /// Takes what the finished item holds beyond what was streamed of it, and ends it.
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

    /// The end of the answer repeats all of its items. What was not told before is taken, and nothing twice: an item is
    /// new only where more of its kind are there than were told, since some servers give other ids in the end.
    fn fill_in(&mut self, data: &str, answer: &mut Answer) -> Result<(), ModelError> {
        let output = match surrogates::from_str::<Finished<'_>>(data) {
            Ok(finished) => finished.response.output,
            // A shape that we do not know takes nothing away from what was streamed.
            Err(_) if !self.items.is_empty() => return Ok(()),
            Err(cause) => {
                let message = format!("cannot read the output of the finished answer: {cause}");
                return Err(ModelError::new(flow::ErrorClass::Permanent, message));
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

    /// Which of the items told so far bears this one's id.
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

    /// The item an event speaks of: by id, else by index, else the latest of its kind that goes on.
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

impl Item {
    /// Whether an event says that it is about this item: by id, or by index where it has no id.
    fn is_named_by(&self, wire: &Event<'_>) -> bool {
        let ids = [wire.item_id.given(), wire.item.id.given(), wire.item.call_id.given()];
        let mut ids = ids.into_iter().flatten().peekable();
        match (ids.peek(), wire.output_index.0) {
            (Some(_), _) => ids.any(|id| self.id == id || self.call_id == id),
            (None, Some(index)) => self.index == Some(index),
            (None, None) => false,
        }
    }

    fn has_id_of(&self, item: &WireItem<'_>) -> bool {
        item.id.given().is_some_and(|id| self.id == id) || item.call_id.given().is_some_and(|id| self.call_id == id)
    }

    /// The block that more of it goes to. A call whose tool is not known has none; reasoning that goes on after its end
    /// and a part of a message begin one.
    fn block(&mut self, answer: &mut Answer) -> Option<BlockId> {
        if self.block.is_none() {
            self.block = match self.kind {
                ItemKind::Message => Some(answer.begin(BlockKind::Text)),
                ItemKind::Reasoning => Some(answer.begin(BlockKind::Thinking)),
                ItemKind::Call | ItemKind::Unknown => None,
            };
        }
        self.block
    }

    /// Gives more of one part.
    fn give(&mut self, number: u64, text: Text<'_>, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        let next_part = self.parts.last().is_some_and(|last| last.number != number);
        if let Some(open) = self.block.filter(|_| next_part) {
            if self.kind == ItemKind::Message {
                answer.end(open);
                self.block = None;
            } else {
                answer.text(open, Text::Whole("\n\n".into())); // summaries are paragraphs
            }
        }
        let at = self.parts.iter().position(|part| part.number == number);
        let mut part = at.map_or_else(|| Part::new(number), |at| self.parts.remove(at));
        let block = self.block(answer);
        let text = match block {
            Some(block) => answer.join(block, text),
            None => self.half.join(text),
        };
        part.add(&text);
        self.parts.push(part);
        answer.keeps(self.parts.len(), 0);
        if let Some(block) = block {
            answer.piece(block, text);
        } else {
            answer.keeps(0, text.len());
            self.early.push_str(&text);
        }
    }

    /// Gives what a whole part has beyond what was given of it; says whether all of it has been given then.
    fn give_rest(&mut self, number: u64, whole: &str, answer: &mut Answer) -> bool {
        let Some(part) = self.parts.iter().find(|part| part.number == number) else {
            // An earlier part than the one under way had its time.
            let later = self.parts.last().is_none_or(|last| last.number < number);
            if later {
                self.give(number, Text::Whole(whole.into()), answer);
            }
            return later;
        };
        let latest = self.parts.last().is_some_and(|last| last.number == number);
        match part.rest_of(whole) {
            Some("") => true,
            Some(rest) if latest => {
                // It contains the whole character whose first half was given.
                match self.block {
                    Some(block) => answer.half(block).into_iter().for_each(Half::forget),
                    None => self.half.forget(),
                }
                self.give(number, Text::Whole(rest.into()), answer);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Gives what the finished item has beyond what was streamed of it; says whether that is a refusal.
    fn fill(&mut self, whole: &WireItem<'_>, answer: &mut Answer) -> bool {
        let parts = match self.kind {
            ItemKind::Call => {
                self.give_rest(0, whole.arguments.as_str(), answer);
                return false;
            }
            // Summary and full text are told by the same numbers: which part was streamed is not known.
            ItemKind::Reasoning if self.streamed() => return false,
            ItemKind::Reasoning if whole.summary.is_empty() => &whole.content,
            ItemKind::Reasoning => &whole.summary,
            ItemKind::Message => &whole.content,
            ItemKind::Unknown => return false,
        };
        let mut refused = false;
        for (number, part) in (0..).zip(parts) {
            let text = part.text.given().unwrap_or(part.refusal.as_str());
            refused |= !part.refusal.is_empty();
            // Where parts are not as they were streamed, their borders are not known.
            if !self.give_rest(number, text, answer) || !self.numbered {
                break;
            }
        }
        refused
    }
}

fn start(response: &Response<'_>, answer: &mut Answer) {
    if !answer.is_started() {
        answer.start(response.model.given().map(str::to_owned));
    }
}

/// Any event: the fields of those we know, side by side.
#[derive(Debug, Default, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    item_id: Text<'a>,
    #[serde(default)]
    output_index: Number,
    #[serde(default)]
    content_index: Number,
    #[serde(default)]
    summary_index: Number,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    item: WireItem<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    response: Response<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct WireItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    call_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default)]
    encrypted_content: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    content: Vec<WirePart<'a>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    summary: Vec<WirePart<'a>>,
}

impl Event<'_> {
    /// The part of its item that it speaks of.
    fn part(&self) -> Option<u64> {
        self.content_index.0.or(self.summary_index.0)
    }
}

impl WireItem<'_> {
    fn kind(&self) -> ItemKind {
        match self.kind.as_str() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Unknown,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default, deserialize_with = "or_default")]
    usage: WireUsage,
    #[serde(borrow, default, deserialize_with = "or_default")]
    incomplete_details: Incomplete<'a>,
}

/// The last event once more, for its output: so an output of another shape does not make the rest of it unreadable.
#[derive(Debug, Deserialize)]
struct Finished<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    response: Output<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Output<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    output: Vec<WireItem<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Number,
    #[serde(default)]
    output_tokens: Number,
    #[serde(default, deserialize_with = "or_default")]
    input_tokens_details: InputDetails,
}

#[derive(Debug, Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Number,
}

impl From<&WireUsage> for Usage {
    fn from(wire: &WireUsage) -> Self {
        Self {
            input: wire.input_tokens.0,
            output: wire.output_tokens.0,
            cache_read: wire.input_tokens_details.cached_tokens.0,
            cache_write: None,
        }
    }
}
