//! Calls whose arguments extensions have replaced: the client gets the new arguments in one part, and none of the original ones.

mod items;
mod sent;
mod write;

use std::sync::Arc;

use flow::{CallFailure, ToolCall};
use guard::Caller;
use guard::calls::{self, Refused};
use serde_json::Value;
use wire::Wire;

use self::sent::Sent;
use self::write::Writer;
use crate::frame::Frame;
use crate::requests::canonical;

/// The decisions of extensions about the calls of an answer.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// The calls as the model made them, each with the arguments that it gets instead.
    pub(crate) calls: Vec<(ToolCall, Option<String>)>,
    writer: Writer,
    /// The calls that are sent; `None` if none of them changes.
    sent: Option<Sent>,
}

/// Asks the extensions about calls. Returns the reasons why some must not run.
///
/// # Errors
/// The failure of a `required` extension.
pub(crate) async fn check(caller: &Arc<Caller>, made: Vec<ToolCall>) -> Result<(Decided, Vec<String>), CallFailure> {
    let (mut decided, mut refusals) = (Decided::default(), Vec::new());
    for call in made {
        let checked = calls::check(caller, &call, false).await?;
        match checked.refusal {
            Some(Refused::Denied(reason) | Refused::Invalid(reason)) => {
                refusals.push(format!("Your call of the tool `{}` was {reason}", call.name));
            }
            None if !checked.by.is_empty() && loses_input(&call, &checked.call) => refusals.push(format!(
                "Your call of the tool `{}` was not run: an extension has replaced its input by what is none",
                call.name
            )),
            None => {
                let is_new = canonical(&checked.call.arguments) != canonical(&call.arguments);
                let new = (!checked.by.is_empty() && is_new).then_some(checked.call.arguments);
                decided.calls.push((call, new));
            }
        }
    }
    Ok((decided, refusals))
}

/// Returns whether a call whose input can be one that is not JSON has no input any more.
fn loses_input(before: &ToolCall, after: &ToolCall) -> bool {
    let input = |call: &ToolCall| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        arguments.as_object().is_some_and(|all| all.len() == 1 && all.get("input").is_some_and(Value::is_string))
    };
    input(before) && !input(after)
}

impl Decided {
    fn is_changed(&self) -> bool {
        self.calls.iter().any(|(_, new)| new.is_some())
    }

    /// Returns the arguments with which each call is to be sent.
    fn expected(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|(call, new)| new.as_ref().unwrap_or(&call.arguments).as_str())
    }

    /// Returns the number of the call of a complete answer that is written with these arguments, starting at the call `from`.
    pub(super) fn find(&self, from: usize, arguments: &str) -> Option<usize> {
        let given = canonical(or_none(arguments));
        (from..self.calls.len()).find(|at| canonical(&self.calls[*at].0.arguments) == given)
    }

    pub(super) fn new_arguments(&self, number: usize) -> Option<&str> {
        self.calls.get(number).and_then(|(_, new)| new.as_deref())
    }

    /// Changes a frame of a call. A frame without any content left has no bytes. Returns a frame to insert after it.
    pub(super) fn edit(&mut self, wire: Wire, frame: &mut Frame) -> Option<Frame> {
        if !self.is_changed() {
            return None;
        }
        let new: Vec<Option<&str>> = self.calls.iter().map(|(_, new)| new.as_deref()).collect();
        let added = self.writer.edit(wire, frame, &new);
        let mut sent = self.sent.take().unwrap_or_else(|| Sent::new(wire));
        for frame in std::iter::once(&*frame).chain(&added).filter(|frame| !frame.raw.is_empty()) {
            sent.push(frame, self.expected());
        }
        self.sent = Some(sent);
        added
    }

    /// Returns whether a client reads the calls as decided. The answer ends at a form of calls that is not known here.
    pub(super) fn are_sent(&mut self) -> bool {
        if !self.is_changed() {
            return true;
        }
        let sent = self.sent.take();
        sent.is_some_and(|sent| sent.are(self.expected()))
    }

    /// Does the same as [`Self::are_sent`] for an answer that arrived as one body.
    pub(super) fn are_in(&self, wire: Wire, body: &[u8]) -> bool {
        !self.is_changed() || Sent::whole(wire, body, self.expected())
    }
}

/// Returns the arguments as guard gives them to extensions: `{}` for a call without any.
fn or_none(arguments: &str) -> &str {
    if arguments.trim().is_empty() { "{}" } else { arguments }
}

/// Returns the input of a call that is not JSON.
fn input(arguments: &str) -> Value {
    let mut arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments.get_mut("input").map_or_else(|| Value::from(""), Value::take)
}
