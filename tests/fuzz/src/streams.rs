//! The decoders of the wire formats: every cut gives the same deltas, and they keep what `flow::Delta` promises.

use std::fmt::Write as _;

use flow::Delta;
use wire::{AnswerDecoder, AnswerLimits, Wire};

use crate::mutate::Numbers;

pub(crate) const WORDS: &[&str] = &[
    "\n\n",
    "\r\n",
    "data: ",
    "event: error\n",
    ": comment\n",
    "data: [DONE]\n\n",
    "\u{FEFF}",
    "null",
    "-1",
    "18446744073709551615",
    "[]",
    "{}",
    "\\ud83d",
    "\\ude00",
    "\\ufdd0",
    "\"index\":0,",
    "\"index\":1,",
    "\"type\":\"text_delta\",",
    "\"type\":\"content_block_stop\"",
    "\"type\":\"message_start\"",
    "\"id\":\"c1\",",
    "\"name\":\"read\",",
    "\"tool_calls\":[",
    "\"function_call\":",
    "\"finish_reason\":\"stop\"",
    "\"item_id\":\"m1\",",
    "\"output_index\":0,",
    "response.output_item.added",
    "response.output_text.done",
    "response.completed",
];

/// Small enough to be reached by an input.
const LIMITS: AnswerLimits =
    AnswerLimits { block_bytes: 600, answer_bytes: 900, blocks: 24, calls: 12, wire_bytes: 1 << 16 };

pub(crate) fn anthropic(bytes: &[u8]) {
    run(Wire::Anthropic, bytes);
}

pub(crate) fn openai_chat(bytes: &[u8]) {
    run(Wire::OpenAiChat, bytes);
}

pub(crate) fn openai_responses(bytes: &[u8]) {
    run(Wire::OpenAiResponses, bytes);
}

fn run(wire: Wire, bytes: &[u8]) {
    let whole = decode(wire, [bytes], true);
    assert_eq!(whole, decode(wire, bytes.chunks(1), true), "byte by byte");
    let mut numbers = Numbers::new(bytes.len() as u64);
    let (mut chunks, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(1 + numbers.below(rest.len()));
        chunks.push(chunk);
        rest = more;
    }
    assert_eq!(whole, decode(wire, chunks, true), "in chunks");
    // What was given is never taken back by what follows.
    let cut = numbers.below(bytes.len() + 1);
    let part = decode(wire, [&bytes[..cut]], false);
    assert!(decode(wire, [bytes], false).0.starts_with(&part.0), "cut at {cut}");
}

/// The deltas, each checked against what was before it, and the error.
fn decode<'b>(wire: Wire, chunks: impl IntoIterator<Item = &'b [u8]>, end: bool) -> (String, Option<String>) {
    let mut decoder = AnswerDecoder::with_limits(wire, LIMITS);
    let (mut promises, mut lines, mut failed) = (Promises::default(), String::new(), None);
    for chunk in chunks {
        failed = decoder.push(chunk).err();
        promises.take(&mut decoder, &mut lines);
        if failed.is_some() {
            break;
        }
    }
    if end && failed.is_none() {
        failed = decoder.finish().err();
        promises.take(&mut decoder, &mut lines);
        assert_eq!(failed.is_none(), promises.stopped, "an answer ends with a stop or with an error");
    }
    assert!(failed.is_none() || !promises.stopped, "an error came after the stop");
    (lines, failed.map(|error| error.to_string()))
}

/// What was given so far.
#[derive(Default)]
struct Promises {
    started: bool,
    stopped: bool,
    next: u32,
    open: Vec<u32>,
    calls: Vec<String>,
}

impl Promises {
    fn take(&mut self, decoder: &mut AnswerDecoder, lines: &mut String) {
        while let Some(delta) = decoder.next_delta() {
            assert!(!self.stopped, "{delta:?} came after the stop");
            assert!(self.started || matches!(delta, Delta::Start { .. }), "{delta:?} came before the start");
            match &delta {
                Delta::Start { .. } => *self = Self { started: true, ..Self::default() },
                Delta::BlockStart { block, kind } => {
                    assert_eq!(*block, self.next);
                    self.next += 1;
                    self.open.push(*block);
                    if let flow::StreamKind::Tool { call, .. } = kind {
                        let call = call.as_str().to_owned();
                        assert!(!call.is_empty() && !self.calls.contains(&call), "call {call:?}");
                        self.calls.push(call);
                    }
                }
                Delta::Piece { block, text } => assert!(!text.is_empty() && self.open.contains(block), "{delta:?}"),
                Delta::Signature { block, data, .. } => {
                    assert!(!data.is_empty() && self.open.contains(block), "{delta:?}");
                }
                Delta::BlockEnd { block } => {
                    let at = self.open.iter().position(|open| open == block);
                    self.open.remove(at.unwrap());
                }
                Delta::Usage(usage) => assert_ne!(*usage, flow::Usage::default()),
                Delta::Stop { .. } => {
                    assert!(self.open.is_empty(), "{:?} are open at the stop", self.open);
                    self.stopped = true;
                }
            }
            writeln!(lines, "{delta:?}").unwrap();
        }
    }
}
