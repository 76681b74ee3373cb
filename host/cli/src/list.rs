//! `tidegate plugin list`.

use std::io::Write;
use std::mem::ManuallyDrop;

use serde_json::{Map, Value, json};
use tidegate::event::{DecidedBy, KeptText};
use tidegate::plugin::{CallbackKind, Loaded, Manifest, PluginEntry, PluginInfo};
use tidegate::{Host, Operator, PluginId};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{open, print, screen, style};

/// Prints the plugins, and for each callback who is called in which order.
///
/// JSON is one object:
/// ```json
/// {"plugins": [{"id": "notes", "version": "0.1.0", "description": "…", "folder": "plugins/notes", "powers": ["state"],
///    "rules": 0, "prompts": 1, "required": false,
///    "tools": [{"name": "note_list", "read_only": true}],
///    "limits": {"callback_ms": 200, "text_ms": 50, "turn_ms": 2000, "tool_ms": 30000, "memory_mib": 64},
///    "callbacks": [{"callback": "on_tag", "priority": 50, "on_failure": "withhold", "decided_by": "tidegate.toml",
///      "keep": "shown", "keep_decided_by": "registered"}]}],
///  "chains": {"on_tag": [{"id": "notes", "priority": 50}]},
///  "disabled": [{"id": "guard", "folder": "plugins/guard"}]}
/// ```
/// The `id` of a disabled plugin is null where its manifest cannot be read.
pub(crate) async fn plugins(common: &Common, json: bool) -> Result<Exit, Failure> {
    let operator = open::operator(common)?;
    let disabled: Vec<Disabled> = operator.disabled.iter().map(Disabled::of).collect();
    // The program ends after its list: the system frees everything at once, while piece by piece takes as long as loading.
    let host = ManuallyDrop::new(load(common, operator).await?);
    if json {
        screen::json(&as_json(&host, &disabled))?;
    } else {
        text(&host, &disabled)?;
    }
    print::warnings(&host);
    Ok(Exit::Completed)
}

/// A plugin that the operator's file names and switches off.
struct Disabled {
    id: Option<PluginId>,
    folder: String,
}

impl Disabled {
    fn of(entry: &PluginEntry) -> Self {
        let id = Manifest::load(&entry.folder).ok().map(|manifest| manifest.id);
        Self { id, folder: entry.folder.display().to_string() }
    }
}

fn as_json(host: &Loaded, disabled: &[Disabled]) -> Value {
    let plugin = |one: &PluginInfo| {
        let callbacks = one.callbacks.iter().map(|one| {
            let (callback, on_failure) = (one.kind().as_str(), one.on_failure.as_str());
            let (priority, decided_by) = (one.priority, one.decided_by.as_str());
            json!({
                "callback": callback,
                "priority": priority,
                "on_failure": on_failure,
                "decided_by": decided_by,
                "keep": one.keep.as_str(),
                "keep_decided_by": one.keep_by.as_str(),
            })
        });
        let tools = one.tools.iter().map(|one| json!({"name": one.spec.name, "read_only": one.read_only}));
        json!({
            "id": one.id.as_str(),
            "version": one.version,
            "description": one.description,
            "folder": one.folder.display().to_string(),
            "powers": one.powers.iter().map(|(power, _)| power).collect::<Vec<_>>(),
            "required": one.required,
            "rules": one.rules,
            "prompts": one.prompts,
            "limits": {
                "callback_ms": one.limits.callback.as_millis() as u64,
                "text_ms": one.limits.text.as_millis() as u64,
                "turn_ms": one.limits.turn.as_millis() as u64,
                "tool_ms": one.limits.tool.as_millis() as u64,
                "memory_mib": one.limits.memory_bytes >> 20,
            },
            "tools": tools.collect::<Vec<_>>(),
            "callbacks": callbacks.collect::<Vec<_>>(),
        })
    };
    let chain = |callback: CallbackKind| {
        let chain = host.chain(callback).into_iter();
        let chain = chain.map(|(id, priority)| json!({"id": id.as_str(), "priority": priority}));
        (callback.as_str().to_owned(), chain.collect::<Value>())
    };
    let chains: Map<String, Value> = CallbackKind::ALL.into_iter().map(chain).collect();
    let off = disabled.iter().map(|one| json!({"id": one.id.as_ref().map(PluginId::as_str), "folder": one.folder}));
    let plugins: Vec<Value> = host.plugins().iter().map(plugin).collect();
    json!({"plugins": plugins, "chains": chains, "disabled": off.collect::<Vec<_>>()})
}

fn text(host: &Loaded, disabled: &[Disabled]) -> std::io::Result<()> {
    let plugins = host.plugins();
    let mut out = screen::out();
    if plugins.is_empty() && disabled.is_empty() {
        writeln!(out, "no plugins: add `[[plugin]]` entries to tidegate.toml, or give --plugin DIR")?;
    }
    for plugin in &plugins {
        let (name, version) = (style::out(style::STRONG, plugin.id.as_str()), flat(&plugin.version));
        writeln!(out, "{name} {version}  {}", flat(&plugin.description))?;
        let powers: Vec<&str> = plugin.powers.iter().map(|(power, _)| power.as_str()).collect();
        let powers = if powers.is_empty() { "none".to_owned() } else { powers.join(", ") };
        writeln!(out, "  powers: {powers}; stream rules: {}; prompt additions: {}", plugin.rules, plugin.prompts)?;
        if !plugin.tools.is_empty() {
            writeln!(out, "  tools: {}", tools(plugin))?;
        }
        if let Some(policy) = on_failure(plugin) {
            writeln!(out, "  on failure: {policy}")?;
        }
        let shown = kept(plugin);
        if !shown.is_empty() {
            writeln!(out, "  kept in sessions is what the user saw: {}", shown.join(", "))?;
        }
        if !plugin.callbacks.is_empty() || !plugin.tools.is_empty() {
            writeln!(out, "  limits: {}", limits(plugin))?;
        }
        writeln!(out, "  from {}", print::tidy_path(&plugin.folder.display().to_string()))?;
    }
    for one in disabled {
        let name = one.id.as_ref().map_or("a plugin", PluginId::as_str);
        let (name, folder) = (style::out(style::STRONG, name), print::tidy_path(&one.folder));
        writeln!(out, "{name} is disabled\n  from {folder}")?;
    }
    let chains = CallbackKind::ALL.map(|callback| (callback, host.chain(callback)));
    if chains.iter().any(|(_, chain)| !chain.is_empty()) {
        writeln!(out, "\nOrder of calls (priority; the last one decides):")?;
    }
    for (callback, chain) in chains {
        if !chain.is_empty() {
            let names: Vec<String> = chain.iter().map(|(id, priority)| format!("{id} ({priority})")).collect();
            writeln!(out, "  {:<18} {}", callback.as_str(), names.join(" → "))?;
        }
    }
    out.flush()
}

/// The tools that a plugin provides; those that change nothing, as the plugin states, say so.
fn tools(plugin: &PluginInfo) -> String {
    let one = |one: &tidegate::plugin::ProvidedTool| {
        let reads = if one.read_only { " (reads only)" } else { "" };
        format!("{}{reads}", one.spec.name)
    };
    plugin.tools.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What the plugin may use.
fn limits(plugin: &PluginInfo) -> String {
    let of = plugin.limits;
    let (callback, text, turn) = (of.callback.as_millis(), of.text.as_millis(), of.turn.as_millis());
    let memory = of.memory_bytes >> 20;
    let tools =
        if plugin.tools.is_empty() { String::new() } else { format!(", {} ms a tool call", of.tool.as_millis()) };
    format!(
        "{callback} ms a call, {text} ms for a unit of text or a tag, {turn} ms a turn{tools}, {memory} MiB of memory"
    )
}

/// What happens when a callback of the plugin did not do its work, and who decided that. `None` where it has no callback.
fn on_failure(plugin: &PluginInfo) -> Option<String> {
    let one = |one: &tidegate::plugin::Registered| {
        let by = match one.decided_by {
            DecidedBy::Default => String::new(),
            by => format!(" ({})", by.as_str()),
        };
        format!("{} {}{by}", one.kind().as_str(), one.on_failure.as_str())
    };
    let callbacks: Vec<String> = plugin.callbacks.iter().map(one).collect();
    let ends = if plugin.required { "; required: any failure ends the turn" } else { "" };
    (!callbacks.is_empty()).then(|| format!("{}{ends}", callbacks.join(", ")))
}

/// The callbacks that have what the user saw kept, and who decided that.
fn kept(plugin: &PluginInfo) -> Vec<String> {
    let shown = plugin.callbacks.iter().filter(|one| one.keep == KeptText::Shown);
    shown.map(|one| format!("{} ({})", one.kind().as_str(), one.keep_by.as_str())).collect()
}

async fn load(common: &Common, operator: Operator) -> Result<Loaded, Failure> {
    // Each plugin registers in an instance while it is loaded; no session follows.
    let instances = u32::try_from(operator.plugins.len()).unwrap_or(u32::MAX).max(1);
    Ok(Host::builder(operator).max_instances(instances).load(&common.workspace).await?)
}
