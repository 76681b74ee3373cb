//! The calls that are sent to a client, as it reads them.

use flow::StreamKind;
use serde_json::{Value, json};
use wire::Wire;

use super::or_none;
use crate::dialect::{self, Message};
use crate::frame::Frame;
use crate::received::Received;
use crate::requests::canonical;

/// The calls of a stream, from the frame with the first of them on.
#[derive(Debug)]
pub(super) struct Sent {
    received: Received,
    message: Box<dyn Message>,
    /// A frame repeats arguments that differ from those of all calls.
    is_wrong: bool,
}

impl Sent {
    pub(super) fn new(wire: Wire) -> Self {
        Self { received: Received::new(wire, true), message: dialect::message(wire, ""), is_wrong: false }
    }

    /// Takes a frame that is sent. `expected`: the arguments of all calls.
    pub(super) fn push<'a>(&mut self, frame: &Frame, expected: impl Iterator<Item = &'a str>) {
        self.received.push(&frame.raw);
        let repeated = repeated(&*self.message, frame);
        if !repeated.is_empty() {
            let expected: Vec<String> = expected.map(read).collect();
            self.is_wrong |= repeated.iter().any(|given| !expected.contains(&read(given)));
        }
    }

    /// Returns whether the calls are those with these arguments.
    pub(super) fn are<'a>(self, expected: impl Iterator<Item = &'a str>) -> bool {
        !self.is_wrong && calls(self.received.finish().blocks).eq(expected.map(read))
    }

    /// Checks an answer that arrived as one body.
    pub(super) fn whole<'a>(wire: Wire, body: &[u8], expected: impl Iterator<Item = &'a str>) -> bool {
        let mut received = Received::new(wire, false);
        received.push(body);
        calls(received.finish().blocks).eq(expected.map(read))
    }
}

fn read(arguments: &str) -> String {
    canonical(or_none(arguments))
}

fn calls(blocks: Vec<(StreamKind, String)>) -> impl Iterator<Item = String> {
    blocks.into_iter().filter(|(kind, _)| kind.is_tool()).map(|(_, given)| read(&given))
}

/// Returns complete arguments in a frame of the Responses API, which repeats them up to four times: its clients use any of them.
fn repeated(message: &dyn Message, frame: &Frame) -> Vec<String> {
    let Some(data) = &frame.data else { return Vec::new() };
    let of = |output: &Value| calls(message.blocks(&json!({"output": output}))).collect();
    match frame.kind() {
        "response.function_call_arguments.done" => data["arguments"].as_str().map(str::to_owned).into_iter().collect(),
        "response.custom_tool_call_input.done" => vec![json!({"input": data["input"]}).to_string()],
        "response.output_item.done" => of(&json!([data["item"]])),
        kind if kind.starts_with("response.") => of(&data["response"]["output"]),
        _ => Vec::new(),
    }
}
