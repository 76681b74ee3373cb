//! The answer as the client has received it, read from the bytes that were sent to it.

use flow::{Delta, StopReason, StreamKind, Usage};
use serde_json::Value;
use wire::{AnswerDecoder, SseDecoder, TooLarge, Wire};

use crate::dialect::{self, Message};
use crate::frame::Frame;

/// An answer as its client has it.
#[derive(Debug)]
pub struct Received {
    /// The state that is specific to its wire format.
    message: Box<dyn Message>,
    reading: Reading,
    answer: Answer,
}

#[derive(Debug)]
enum Reading {
    Stream(Box<(SseDecoder, AnswerDecoder)>),
    Whole(Vec<u8>),
    /// The answer could not be read to its end.
    Broken,
}

/// The content of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Its blocks, in order, each with its text; the text of a call is its arguments.
    pub blocks: Vec<(StreamKind, String)>,
    /// The tokens, as counted by its provider.
    pub usage: Usage,
    /// The reason why it ended; `None` if it has not.
    pub stop: Option<StopReason>,
    /// The model, as its provider names it.
    pub model: Option<String>,
    /// The id that its provider has given it.
    pub id: Option<String>,
}

impl Answer {
    /// Returns the concatenated text of its text blocks.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter(|(kind, _)| *kind == StreamKind::Text);
        texts.map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the ids of its calls.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|(kind, _)| match kind {
            StreamKind::Tool { call, .. } => Some(call.as_str()),
            _ => None,
        })
    }
}

impl Received {
    /// Creates the state before anything was received.
    pub fn new(wire: Wire, is_stream: bool) -> Self {
        let reading = match is_stream {
            true => Reading::Stream(Box::new((SseDecoder::new(), AnswerDecoder::new(wire)))),
            false => Reading::Whole(Vec::new()),
        };
        Self { message: dialect::message(wire, ""), reading, answer: Answer::default() }
    }

    /// Takes bytes that were sent to the client.
    pub fn push(&mut self, bytes: &[u8]) {
        let read = match &mut self.reading {
            Reading::Broken => return,
            Reading::Whole(body) => {
                body.extend_from_slice(bytes);
                return;
            }
            Reading::Stream(reading) => {
                let (sse, decoder) = &mut **reading;
                let (answer, message) = (&mut self.answer, &mut *self.message);
                sse.push_frames(bytes, |frame| -> Result<(), TooLarge> {
                    answer.read(frame, message, decoder);
                    Ok(())
                })
            }
        };
        if read.is_err() {
            self.reading = Reading::Broken;
        }
    }

    /// Ends the answer and returns it.
    pub fn finish(mut self) -> Answer {
        match self.reading {
            Reading::Stream(reading) => {
                let (sse, mut decoder) = *reading;
                let (answer, message) = (&mut self.answer, &mut *self.message);
                let _torn = sse.finish_frames(|frame| -> Result<(), TooLarge> {
                    answer.read(frame, message, &mut decoder);
                    Ok(())
                });
                let _refused = decoder.finish();
                answer.take(std::iter::from_fn(|| decoder.next_delta()));
            }
            Reading::Whole(body) => {
                if let Ok(value) = wire::json(std::str::from_utf8(&body).unwrap_or_default()) {
                    let text = |value: &Value| value.as_str().map(str::to_owned);
                    (self.answer.id, self.answer.model) = (text(&value["id"]), text(&value["model"]));
                    self.answer.blocks = self.message.blocks(&value);
                    self.answer.usage = usage(&value["usage"]);
                    self.answer.stop = Some(StopReason::EndTurn);
                }
            }
            Reading::Broken => {}
        }
        self.answer
    }
}

impl Answer {
    fn read(&mut self, frame: &wire::Frame<'_>, message: &mut dyn Message, decoder: &mut AnswerDecoder) {
        // The data of most frames is decoded once, by the decoder.
        let decoded =
            (self.id.is_none() || !message.reads_raw(frame.raw)).then(|| Frame::new(frame.raw, frame.event.as_ref()));
        if let (None, Some(data)) = (&self.id, decoded.as_ref().and_then(|frame| frame.data.as_ref())) {
            let ids = [&data["response"]["id"], &data["message"]["id"], &data["id"]];
            self.id = ids.into_iter().find_map(Value::as_str).map(str::to_owned);
        }
        let read = decoded.and_then(|frame| message.for_rules(&frame));
        // The client reads as much as it can of an answer that the decoder refuses.
        let _refused = decoder.push(read.as_deref().unwrap_or(frame.raw));
        self.take(std::iter::from_fn(|| decoder.next_delta()));
    }

    fn take(&mut self, deltas: impl Iterator<Item = Delta>) {
        for delta in deltas {
            match delta {
                Delta::Start { model } => {
                    self.blocks.clear();
                    self.model = model.or(self.model.take());
                }
                Delta::BlockStart { kind, .. } => self.blocks.push((kind, String::new())),
                Delta::Piece { block, text } => {
                    if let Some((_, own)) = self.blocks.get_mut(block as usize) {
                        own.push_str(&text);
                    }
                }
                Delta::Usage(newer) => self.usage.update(newer),
                Delta::Stop { reason } => self.stop = Some(reason),
                Delta::Signature { .. } | Delta::BlockEnd { .. } => {}
            }
        }
    }
}

fn usage(value: &Value) -> Usage {
    let number = |names: &[&str]| names.iter().find_map(|name| value[*name].as_u64());
    Usage {
        input: number(&["input_tokens", "prompt_tokens"]),
        output: number(&["output_tokens", "completion_tokens"]),
        cache_read: number(&["cache_read_input_tokens"]),
        cache_write: number(&["cache_creation_input_tokens"]),
    }
}
