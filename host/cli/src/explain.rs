//! `tidegate explain --prompt`: the request that a turn would send, part by part, each with its origin. Nothing is sent.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tidegate::{
    BoxFuture, ErrorClass, EventKind, Host, Message, Model, ModelError, ModelStream, Origin, Prompt, ProviderKind,
    SessionOptions, StatePlace, TurnStatus,
};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::print::shorten;
use crate::screen::clean::flat;
use crate::screen::table::{self, Cell};
use crate::{open, print, say, screen};

/// The columns that a part's text has in the table.
const SHOWN: usize = 60;

/// Prints the request for the first step of a turn with this input. Plugins' `on_input_messages` is called, in a session of its own
/// whose state is in memory.
///
/// JSON is one object, in the order of the request:
/// ```json
/// {"system": [{"origin": "host", "bytes": 12, "text": "…"}],
///  "messages": [{"origin": "user", "role": "user", "hidden": false, "bytes": 5, "text": "…"}],
///  "tools": [{"name": "read_file", "bytes": 310, "description": "…", "parameters": {}}]}
/// ```
pub(crate) async fn prompt(common: &Common, input: &str, json: bool) -> Result<Exit, Failure> {
    let mut operator = open::operator(common)?;
    operator.state.place = StatePlace::Memory;
    let name = operator.provider.model.clone().unwrap_or_else(|| "none".to_owned());
    let provider = operator.provider.kind.map_or("none", ProviderKind::as_str);
    let captured = Arc::new(Capture { provider, name, prompt: Mutex::default() });
    let model: Arc<dyn Model> = Arc::<Capture>::clone(&captured);
    let host = Host::builder(operator).max_instances(open::MAX_INSTANCES).model(model).open().await?;
    let session = host.session(SessionOptions::new(&common.workspace)).await?;
    print::warnings(&session.loaded());
    let mut turn = session.prompt(input);
    while let Some(event) = turn.next().await {
        if let EventKind::Notice { message } = &event.kind {
            say::note(format_args!("warning: {message}"));
        }
    }
    let report = turn.report().await;
    let prompt = captured.prompt.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(prompt) = prompt else {
        return Err(Failure::late(format_args!("there is no request for this input: {}", why(&report.status))));
    };
    if json {
        screen::json(&as_json(&prompt))?;
    } else {
        text(&prompt)?;
    }
    Ok(Exit::Completed)
}

/// Why the model is not asked.
fn why(status: &TurnStatus) -> String {
    match status {
        TurnStatus::Rejected { by, reason } => format!("plugin `{by}` rejects it: {reason}"),
        TurnStatus::Failed { message, .. } => message.clone(),
        _ => "a plugin answers it, or drops it".to_owned(),
    }
}

/// A model that keeps the request and answers nothing.
struct Capture {
    provider: &'static str,
    name: String,
    prompt: Mutex<Option<Prompt>>,
}

impl Model for Capture {
    fn provider(&self) -> &str {
        self.provider
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = Some(prompt.clone());
        let error = ModelError::new(ErrorClass::Permanent, "the request is explained, and not sent");
        Box::pin(std::future::ready(Err(error)))
    }
}

fn text(prompt: &Prompt) -> Result<(), Failure> {
    let row = |part: String, bytes: usize, origin: String, text: &str| -> Vec<Cell> {
        vec![part.into(), format!("{bytes:>6}").into(), flat(&origin).into(), shorten(text.trim(), SHOWN).into()]
    };
    let mut rows = Vec::new();
    for (at, block) in (1..).zip(&prompt.system) {
        rows.push(row(format!("system {at}"), block.text.len(), block.origin.to_string(), &block.text));
    }
    for (at, message) in (1..).zip(&prompt.messages) {
        let (text, role) = (message.plain_text(), message.role.as_str());
        let hidden = if message.hidden { ", hidden" } else { "" };
        rows.push(row(format!("message {at} ({role}{hidden})"), text.len(), author(message), &text));
    }
    for (at, tool) in (1..).zip(&prompt.tools) {
        let bytes = tool.description.len() + tool.parameters.to_string().len();
        rows.push(row(format!("tool {at}"), bytes, flat(&tool.name), &tool.description));
    }
    let mut out = screen::out();
    for line in table::lines(&["part", " bytes", "origin", "text"], &rows) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

fn author(message: &Message) -> String {
    match &message.origin {
        Origin::User => "user".to_owned(),
        Origin::Model => "model".to_owned(),
        Origin::Host => "host".to_owned(),
        Origin::Plugin(plugin) => format!("plugin `{plugin}`"),
        Origin::Addition(id) => id.to_string(),
    }
}

fn as_json(prompt: &Prompt) -> Value {
    let block = |block: &tidegate::SystemBlock| json!({"origin": block.origin.to_string(), "bytes": block.text.len(), "text": block.text});
    let message = |message: &Arc<Message>| {
        let text = message.plain_text();
        json!({
            "origin": author(message), "role": message.role.as_str(), "hidden": message.hidden, "bytes": text.len(), "text": text,
        })
    };
    let tool = |tool: &tidegate::ToolSpec| {
        let bytes = tool.description.len() + tool.parameters.to_string().len();
        json!({"name": tool.name, "bytes": bytes, "description": tool.description, "parameters": tool.parameters})
    };
    json!({
        "system": prompt.system.iter().map(block).collect::<Vec<_>>(),
        "messages": prompt.messages.iter().map(message).collect::<Vec<_>>(),
        "tools": prompt.tools.iter().map(tool).collect::<Vec<_>>(),
    })
}
