//! Stage: the messages of one input go through `on_input_messages`, highest priority first.

use flow::{CallFailure, CallbackKind, InputAnswer, Message, PluginId};

use crate::chain::{Asked, Caller};

/// The result of the input stage.
#[derive(Debug)]
pub enum Input {
    /// Ask the model with these.
    Ask(Vec<Message>),
    /// Do not ask the model: this is the answer, by this extension. The messages are the input after the extensions
    /// before it.
    Reply { messages: Vec<Message>, by: PluginId, text: String },
    /// The turn ends.
    Reject { by: PluginId, reason: String },
}

/// Runs the chain. A failing extension is skipped, and the next gets the same input; one that fails closed rejects the
/// input.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn run(caller: &Caller, messages: Vec<Message>) -> Result<Input, CallFailure> {
    through(caller, &caller.chains.input, messages).await
}

/// Runs the chain of those that get all that leaves with an input, over texts that are none.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn beyond(caller: &Caller, messages: Vec<Message>) -> Result<Input, CallFailure> {
    through(caller, &caller.chains.requests, messages).await
}

async fn through(caller: &Caller, chain: &[usize], mut messages: Vec<Message>) -> Result<Input, CallFailure> {
    for (at, &plugin) in chain.iter().enumerate() {
        let call = caller.extensions.input_messages(plugin, &messages);
        let answer = caller.ask(plugin, CallbackKind::InputMessages, call).await?;
        let by = caller.id(plugin);
        match answer {
            Asked::Nothing | Asked::Answer(InputAnswer::Pass | InputAnswer::Ignored(_)) => {}
            Asked::Answer(InputAnswer::Replace(new)) => messages = new,
            Asked::Answer(InputAnswer::Finish(new)) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "finished the input");
                return Ok(Input::Ask(new.unwrap_or(messages)));
            }
            Asked::Answer(InputAnswer::Reply(text)) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "answered the input");
                return Ok(Input::Reply { messages, by, text });
            }
            Asked::Answer(InputAnswer::Reject(reason)) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "rejected the input");
                return Ok(Input::Reject { by, reason });
            }
            Asked::Closed(why) => {
                caller.skip(&chain[at + 1..], CallbackKind::InputMessages, plugin, "did not check the input");
                let bytes = messages.iter().map(|message| message.plain_text().len()).sum();
                caller.withhold(plugin, CallbackKind::InputMessages, bytes, why.clone());
                return Ok(Input::Reject {
                    reason: format!("{by} did not check the input, so it was not sent: {why}"),
                    by,
                });
            }
        }
    }
    Ok(Input::Ask(messages))
}
