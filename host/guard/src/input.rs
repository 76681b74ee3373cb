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
/// input, and is asked also where another one has ended the chain.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn run(caller: &Caller, messages: Vec<Message>) -> Result<Input, CallFailure> {
    through(caller, &caller.chains.input, messages).await
}

/// Runs the chain of the extensions that get whole requests, over texts that are not input.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn beyond(caller: &Caller, messages: Vec<Message>) -> Result<Input, CallFailure> {
    through(caller, &caller.chains.requests, messages).await
}

/// The answer with which an extension has ended the chain.
struct Ended {
    by: usize,
    what: &'static str,
    /// The reply in the model's place.
    reply: Option<String>,
}

async fn through(caller: &Caller, chain: &[usize], mut messages: Vec<Message>) -> Result<Input, CallFailure> {
    let kind = CallbackKind::InputMessages;
    let mut ended: Option<Ended> = None;
    for (at, &plugin) in chain.iter().enumerate() {
        // The input stays in the conversation and goes to the model now or later: extensions that fail closed check it even after the end
        // of the chain.
        if let Some(ended) = ended.as_ref().filter(|_| !caller.fails_closed(plugin, kind)) {
            caller.skip(&[plugin], kind, ended.by, ended.what);
            continue;
        }
        let call = caller.extensions.input_messages(plugin, &messages);
        match caller.ask(plugin, kind, call).await? {
            Asked::Nothing | Asked::Answer(InputAnswer::Pass | InputAnswer::Ignored(_)) => {}
            Asked::Answer(InputAnswer::Replace(new)) => messages = new,
            Asked::Answer(InputAnswer::Finish(new)) => {
                messages = new.unwrap_or(messages);
                ended.get_or_insert(Ended { by: plugin, what: "finished the input", reply: None });
            }
            Asked::Answer(InputAnswer::Reply(text)) => {
                ended = Some(Ended { by: plugin, what: "answered the input", reply: Some(text) });
            }
            Asked::Answer(InputAnswer::Reject(reason)) => {
                caller.skip(&chain[at + 1..], kind, plugin, "rejected the input");
                return Ok(Input::Reject { by: caller.id(plugin), reason });
            }
            Asked::Closed(why) => {
                caller.skip(&chain[at + 1..], kind, plugin, "did not check the input");
                return Ok(unchecked(caller, plugin, &messages, &why));
            }
        }
    }
    Ok(match ended {
        Some(Ended { by, reply: Some(text), .. }) => Input::Reply { messages, by: caller.id(by), text },
        _ => Input::Ask(messages),
    })
}

/// Rejects input that an extension that fails closed has not checked.
fn unchecked(caller: &Caller, plugin: usize, messages: &[Message], why: &str) -> Input {
    let by = caller.id(plugin);
    let bytes = messages.iter().map(|message| message.plain_text().len()).sum();
    caller.withhold(plugin, CallbackKind::InputMessages, bytes, why.to_owned());
    Input::Reject { reason: format!("{by} did not check the input, so it was not sent: {why}"), by }
}
