//! Stage: the messages of one input go through `on_input_messages`, highest priority first.

use flow::{CallFailure, CallbackKind, CallbackOutcome, InputAnswer, Message, PluginId};

use crate::chain::Caller;

/// What became of the input.
#[derive(Debug)]
pub(crate) enum Input {
    /// Ask the model with these.
    Ask(Vec<Message>),
    /// Do not ask the model: this is the answer, by this extension. The messages are what the input had become.
    Reply { messages: Vec<Message>, by: PluginId, text: String },
    /// The turn ends.
    Reject { by: PluginId, reason: String },
}

/// Runs the chain. A failing extension is skipped: the next gets what it was given.
///
/// # Errors
/// The failure of a `required` extension.
pub(crate) async fn run(caller: &Caller, mut messages: Vec<Message>) -> Result<Input, CallFailure> {
    let chain = &caller.chains.input;
    for (at, &plugin) in chain.iter().enumerate() {
        let call = caller.extensions.input_messages(plugin, &messages);
        let answer = caller.ask(plugin, CallbackKind::InputMessages, call, outcome).await?;
        let by = caller.id(plugin);
        match answer {
            None | Some(InputAnswer::Pass | InputAnswer::Ignored(_)) => {}
            Some(InputAnswer::Replace(new)) => messages = new,
            Some(InputAnswer::Finish(new)) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "finished the input");
                return Ok(Input::Ask(new));
            }
            Some(InputAnswer::Reply(text)) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "answered the input");
                return Ok(Input::Reply { messages, by, text });
            }
            Some(InputAnswer::Reject(reason)) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "rejected the input");
                return Ok(Input::Reject { by, reason });
            }
        }
    }
    Ok(Input::Ask(messages))
}

fn outcome(answer: &InputAnswer) -> CallbackOutcome {
    match answer {
        InputAnswer::Pass => CallbackOutcome::Passed,
        InputAnswer::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
        InputAnswer::Replace(_) | InputAnswer::Finish(_) | InputAnswer::Reply(_) | InputAnswer::Reject(_) => {
            CallbackOutcome::Changed
        }
    }
}
