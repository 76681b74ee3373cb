//! Passes an answer that arrived as one body through the callbacks.

use std::collections::BTreeSet;

use flow::{CallFailure, TextStream};
use guard::attempt::Answer;
use wire::Wire;

use super::pieces::Piece;
use super::{Stage, lane};
use crate::conversation::{Message, Part, message};
use crate::json::{Doc, Edits, Node};
use crate::requests::give;

/// A text of the body.
struct Text<'d> {
    piece: Piece,
    at: &'d Node,
    /// The number of its message, and of its block in the message.
    place: (usize, usize),
    number: lane::Place,
}

/// The outcome for an answer.
#[derive(Debug)]
pub(crate) enum Whole {
    /// The body with the output of callbacks.
    Body(Vec<u8>),
    /// A part of its text cannot be given to callbacks.
    Ungiven,
    /// A call in it cannot be changed.
    Unwritten,
}

impl Stage {
    /// Passes an answer through the callbacks.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn whole(&mut self, body: &[u8], answer: &mut Answer) -> Result<Whole, CallFailure> {
        let Some((doc, root)) = Doc::read(body) else { return Ok(Whole::Ungiven) };
        let messages = messages(self.wire, doc, &root);
        let texts = texts(doc, &messages);
        for one in &texts {
            if one.piece.stream == TextStream::Thinking {
                self.thinking.push(one.number, one.piece.block, &one.piece.text).await?;
                self.thinking.finish().await?;
            } else {
                self.text.push(one.number, one.piece.block, &one.piece.text).await?;
            }
        }
        if !self.text.is_idle() && self.text.both().original != answer.text() {
            return Ok(Whole::Ungiven);
        }
        self.complete(Some(answer)).await?;
        let mut edits = Edits::default();
        let mut empty = BTreeSet::new();
        for Text { piece, at, place, number } in &texts {
            let shown = self.lane(piece.stream).take(*number).unwrap_or_default();
            self.repeats.end(piece, &shown);
            if shown == piece.text {
                continue;
            }
            if shown.is_empty() && self.wire == Wire::Anthropic {
                empty.insert(*place);
                continue;
            }
            edits.text(&at.at, &shown);
            self.without_tokens(&root, &messages[place.0], place.1, &mut edits);
        }
        for (number, message) in messages.iter().enumerate() {
            let blocks = empty.iter().filter(|(of, _)| *of == number).map(|(_, block)| *block).collect();
            if let Some(list) = message.content {
                edits.remove(list, &blocks);
            }
        }
        self.write_calls(doc, &messages, &mut edits);
        let body = if edits.is_empty() { body.to_owned() } else { edits.apply(body) };
        Ok(if self.calls.are_in(self.wire, &body) { Whole::Body(body) } else { Whole::Unwritten })
    }

    /// Calls are matched by position: ids can be missing, or equal for several calls.
    fn write_calls(&self, doc: Doc<'_>, messages: &[Message<'_>], edits: &mut Edits) {
        let mut next = 0;
        for part in messages.iter().flat_map(|one| &one.parts) {
            if let Part::Call(call) = part
                && let Some(at) = self.calls.find(next, &call.arguments(doc))
            {
                next = at + 1;
                if let Some(new) = self.calls.new_arguments(at) {
                    give(call, new, edits);
                }
            }
        }
    }

    /// Removes members that repeat a text token by token.
    fn without_tokens(&self, root: &Node, message: &Message<'_>, block: usize, edits: &mut Edits) {
        let choice = root.get("choices").and_then(|choices| choices.items().first());
        let part = message.content.and_then(|content| content.items().get(block));
        let (holder, none) = if self.wire == Wire::OpenAiChat { (choice, "null") } else { (part, "[]") };
        if let Some(logprobs) = holder.and_then(|holder| holder.get("logprobs")) {
            edits.raw(logprobs.at.clone(), none.to_owned());
        }
    }
}

fn messages<'d>(wire: Wire, doc: Doc<'d>, root: &'d Node) -> Vec<Message<'d>> {
    match wire {
        Wire::Anthropic => vec![message(wire, doc, root)],
        Wire::OpenAiChat => {
            let choice = root.get("choices").and_then(|choices| choices.items().first());
            choice.and_then(|choice| choice.get("message")).map(|one| message(wire, doc, one)).into_iter().collect()
        }
        Wire::OpenAiResponses => {
            let output = root.get("output").map(Node::items).unwrap_or_default();
            output.iter().map(|item| message(wire, doc, item)).collect()
        }
    }
}

fn texts<'d>(doc: Doc<'d>, messages: &[Message<'d>]) -> Vec<Text<'d>> {
    let mut texts = Vec::new();
    for (of, message) in messages.iter().enumerate() {
        for (number, part) in message.parts.iter().enumerate() {
            let (stream, at, block) = match part {
                Part::Text { at, block } => (TextStream::Answer, *at, *block),
                Part::Thinking { at, .. } => (TextStream::Thinking, *at, number),
                Part::Call(_) | Part::Result(_) => continue,
            };
            let text = doc.text(at).unwrap_or_default();
            let place = (of as u64, number as u64);
            let piece = Piece { stream, text, path: String::new(), block: place };
            texts.push(Text { piece, at, place: (of, block), number: (place.0, number) });
        }
    }
    texts
}
