//! `tidegate explain --prompt`: the request that a turn would send, part by part, each with its origin. Nothing is sent.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tidegate::config::StatePlace;
use tidegate::message::Origin;
use tidegate::model::{ErrorClass, Model, ModelError, ModelStream, ProviderKind};
use tidegate::plugin::{Loaded, PluginInfo};
use tidegate::prompt::Prompt;
use tidegate::{BoxFuture, Host, Message, SessionOptions, TurnStatus};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::print::shorten;
use crate::screen::clean::flat;
use crate::screen::table::{self, Cell};
use crate::summary::Summary;
use crate::{open, print, run, say, screen};

/// The columns that a part's text has in the table.
const SHOWN: usize = 60;

/// Prints the request for the first step of a turn with this input. Plugins' `on_input_messages` is called, in a session of its own
/// whose state is in memory.
///
/// JSON is one object, in the order of the request:
/// ```json
/// {"system": [{"origin": "host", "bytes": 12, "text": "…"}],
///  "messages": [{"origin": "user", "role": "user", "hidden": false, "bytes": 5, "text": "…"}],
///  "tools": [{"origin": "built in", "name": "read_file", "bytes": 310, "description": "…", "parameters": {}}],
///  "estimated_tokens": 2100, "context_tokens": 200000}
/// ```
/// `context_tokens` is absent where the size of the model's context is not known.
pub(crate) async fn prompt(common: &Common, input: &str, json: bool) -> Result<Exit, Failure> {
    let input = run::prompts(&[input.to_owned()])?.concat();
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
    let mut troubles = Summary::default();
    while let Some(event) = turn.next().await {
        troubles.take(&event);
    }
    troubles.take_problems(1).iter().for_each(|problem| say::note(format_args!("warning: {problem}")));
    let origins = tool_origins(&session.loaded());
    let context = session.context_tokens();
    let report = turn.report().await;
    let prompt = captured.prompt.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(prompt) = prompt else {
        say::note(format_args!("there is no request for this input: {}", why(&report.status)));
        // As of a turn that a plugin answers, `run` ends well; here nothing was explained.
        return Ok(if report.status == TurnStatus::Completed { Exit::Failed } else { Exit::of(&report.status) });
    };
    if json {
        screen::json(&as_json(&prompt, &origins, context))?;
    } else {
        text(&prompt, &origins)?;
        let tokens = tidegate::prompt::estimated_tokens(&prompt);
        let of =
            context.map(|context| format!(" of {context} that the model takes, with its answer")).unwrap_or_default();
        say::note(format_args!("the request has about {tokens} tokens{of}"));
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

/// The plugin that provides a tool, by the tool's name; the others are built in.
type Origins = BTreeMap<String, String>;

fn tool_origins(loaded: &Loaded) -> Origins {
    let tools = |plugin: PluginInfo| {
        let origin = format!("plugin `{}`", plugin.id);
        plugin.tools.into_iter().map(move |tool| (tool.spec.name, origin.clone()))
    };
    loaded.plugins().into_iter().flat_map(tools).collect()
}

fn origin<'o>(tool: &str, origins: &'o Origins) -> &'o str {
    origins.get(tool).map_or("built in", String::as_str)
}

fn text(prompt: &Prompt, origins: &Origins) -> Result<(), Failure> {
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
        let origin = origin(&tool.name, origins).to_owned();
        rows.push(row(format!("tool {at} ({})", flat(&tool.name)), bytes, origin, &tool.description));
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

fn as_json(prompt: &Prompt, origins: &Origins, context: Option<u64>) -> Value {
    let block = |block: &tidegate::prompt::SystemBlock| json!({"origin": block.origin.to_string(), "bytes": block.text.len(), "text": block.text});
    let message = |message: &Arc<Message>| {
        let text = message.plain_text();
        json!({
            "origin": author(message), "role": message.role.as_str(), "hidden": message.hidden, "bytes": text.len(), "text": text,
        })
    };
    let tool = |tool: &tidegate::tool::ToolSpec| {
        let bytes = tool.description.len() + tool.parameters.to_string().len();
        let origin = origin(&tool.name, origins);
        json!({"origin": origin, "name": tool.name, "bytes": bytes, "description": tool.description, "parameters": tool.parameters})
    };
    let mut request = json!({
        "system": prompt.system.iter().map(block).collect::<Vec<_>>(),
        "messages": prompt.messages.iter().map(message).collect::<Vec<_>>(),
        "tools": prompt.tools.iter().map(tool).collect::<Vec<_>>(),
        "estimated_tokens": tidegate::prompt::estimated_tokens(prompt),
    });
    if let Some(context) = context {
        request["context_tokens"] = json!(context);
    }
    request
}
