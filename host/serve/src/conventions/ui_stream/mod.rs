//! The UI message stream of the AI SDK: what `useChat` of `@ai-sdk/react` reads, and what it sends.
//!
//! A turn is one message of the assistant. Where it waits for a person the stream ends, because `useChat` sends an answer only then; the
//! request with the answer gets the rest of the same message.

mod chunk;
mod post;

use chat::BlockKind;

pub(crate) use self::chunk::Chunk;
use self::chunk::{Descriptor, Metadata, TextPart, Tool, ToolMetadata};
pub(crate) use self::post::Request;
use super::Act;
use super::act::{Aside, Called, Ended, Ending, Finished, Part};
use super::calls::Open;

/// What follows the last chunk.
pub(crate) const DONE: &str = "[DONE]";

/// Makes the chunks of a turn.
#[derive(Debug)]
pub(crate) struct UiStream {
    is_step_open: bool,
    /// What the step has besides its answer, which goes with it when the step is reset.
    others: Vec<Chunk>,
}

impl UiStream {
    /// Begins a stream, also one that continues the message of the turn.
    pub(crate) fn begin(turn: u32, chunks: &mut Vec<Chunk>) -> Self {
        chunks.push(Chunk::Start { message_id: format!("turn-{turn}") });
        Self { is_step_open: false, others: Vec::new() }
    }

    /// Adds the chunks of an act.
    pub(crate) fn take(&mut self, act: Act, chunks: &mut Vec<Chunk>) {
        match act {
            // The client has sent it.
            Act::Said(_) => {}
            Act::Steered(said) => {
                let parts = vec![TextPart { r#type: "text", text: said.text }];
                self.other(Chunk::SteeringMessage { id: said.id, parts }, chunks);
            }
            Act::StepStarted => self.start_step(chunks),
            Act::PartStarted(part) => chunks.push(started(part)),
            Act::PartGrew(part, delta) => chunks.push(grew(part, delta)),
            Act::PartEnded(part) => chunks.push(ended(part)),
            Act::Voided => {
                chunks.push(Chunk::ResetStep);
                chunks.extend(self.others.iter().cloned());
            }
            Act::Left => {
                self.finish_step(chunks);
                self.start_step(chunks);
            }
            Act::Called(called) => chunks.extend(shown(called)),
            Act::Asked(asked) => chunks.push(Chunk::ToolApprovalRequest {
                approval_id: asked.question,
                tool_call_id: asked.call,
                reason: asked.reason,
                approval_descriptor: Descriptor {
                    preview: asked.preview,
                    always: asked.always,
                    expires_ms: asked.expires_ms,
                },
            }),
            Act::Answered(answered) => chunks.push(Chunk::ToolApprovalResponse {
                approval_id: answered.question,
                approved: answered.is_approved,
                reason: answered.reason,
            }),
            Act::Ended(ended) => chunks.push(over(ended)),
            Act::StepFinished => self.finish_step(chunks),
            Act::Aside(aside) => self.other(data(aside), chunks),
            Act::Finished(finished) => finish(*finished, chunks),
        }
    }

    /// Ends the stream where the turn waits for a person.
    pub(crate) fn pause(&mut self, chunks: &mut Vec<Chunk>) {
        self.finish_step(chunks);
        chunks.push(Chunk::Finish { finish_reason: "tool-calls", message_metadata: None });
    }

    /// The end of a stream that has no other.
    pub(crate) fn failed(why: &str) -> [Chunk; 1] {
        [Chunk::Error { error_text: why.to_owned() }]
    }

    /// Whether the stream of a turn that waits for this ends: a limit has no place in the convention, and is decided elsewhere.
    pub(crate) fn pauses(open: &[Open]) -> bool {
        open.iter().any(|open| matches!(open, Open::Question(_)))
    }

    fn other(&mut self, chunk: Chunk, chunks: &mut Vec<Chunk>) {
        if self.is_step_open {
            self.others.push(chunk.clone());
        }
        chunks.push(chunk);
    }

    fn start_step(&mut self, chunks: &mut Vec<Chunk>) {
        self.is_step_open = true;
        chunks.push(Chunk::StartStep);
    }

    fn finish_step(&mut self, chunks: &mut Vec<Chunk>) {
        self.others.clear();
        if std::mem::take(&mut self.is_step_open) {
            chunks.push(Chunk::FinishStep);
        }
    }
}

fn started(Part { id, kind }: Part) -> Chunk {
    if kind == BlockKind::Reasoning { Chunk::ReasoningStart { id } } else { Chunk::TextStart { id } }
}

fn grew(Part { id, kind }: Part, delta: String) -> Chunk {
    if kind == BlockKind::Reasoning { Chunk::ReasoningDelta { id, delta } } else { Chunk::TextDelta { id, delta } }
}

fn ended(Part { id, kind }: Part) -> Chunk {
    if kind == BlockKind::Reasoning { Chunk::ReasoningEnd { id } } else { Chunk::TextEnd { id } }
}

/// A call whose arguments were not shown is one with its end.
fn shown(Called { call: tool_call_id, tool: tool_name, input }: Called) -> Option<Chunk> {
    let tool = Tool::OURS;
    Some(match input {
        Some(input) => Chunk::ToolInputAvailable { tool_call_id, tool_name, input, tool },
        None => {
            let (input, error_text) = (serde_json::Value::Null, Ending::NotRun.text().to_owned());
            Chunk::ToolInputError { tool_call_id, tool_name, input, error_text, tool }
        }
    })
}

fn over(Ended { call: tool_call_id, result, diff, duration_ms, waited_ms }: Ended) -> Chunk {
    let (tool, tool_metadata) = (Tool::OURS, ToolMetadata { diff, duration_ms, waited_ms });
    match result {
        Ending::Done(output) => Chunk::ToolOutputAvailable { tool_call_id, output, tool_metadata, tool },
        Ending::Denied => Chunk::ToolOutputDenied { tool_call_id },
        failed => {
            let error_text = failed.text().to_owned();
            Chunk::ToolOutputError { tool_call_id, error_text, tool_metadata, tool }
        }
    }
}

fn data(Aside { id, name, payload: data }: Aside) -> Chunk {
    Chunk::Data { r#type: format!("data-tidegate-{}", name.replace('_', "-")), id, data }
}

fn finish(finished: Finished, chunks: &mut Vec<Chunk>) {
    let Finished { turn, status, error, is_cut_off, usage, cost, model } = finished;
    let metadata = Metadata { turn, status, model, usage: (&usage).into(), cost };
    let finish_reason = match &*metadata.status {
        "completed" if is_cut_off => "length",
        "completed" => "stop",
        "cancelled" => "interrupted",
        "stopped_by_rule" => "content-filter",
        _ => "error",
    };
    match finish_reason {
        "interrupted" => chunks.push(Chunk::Abort { reason: error }),
        // A client reads nothing after an error.
        "error" => {
            chunks.push(Chunk::MessageMetadata { message_metadata: metadata.clone() });
            chunks.push(Chunk::Error { error_text: error.unwrap_or_else(|| metadata.status.clone()) });
        }
        _ => {}
    }
    chunks.push(Chunk::Finish { finish_reason, message_metadata: Some(metadata) });
}
