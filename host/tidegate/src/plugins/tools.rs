//! The tools that the plugins of a session provide: offered, checked against their schemas, and called.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use flow::ports::{BoxFuture, EventSink, ExtensionHost, Extensions, PreparedCall, Progress, SessionView, StateError};
use flow::{
    NoAnswer, Permission, PluginId, Preview, ProvidedTool, Registration, SessionId, ToolCall, ToolOutput, ToolSpec,
};
use sandbox::{Plugin, ToolSchema};

use crate::HostError;
use crate::agents::SPAWN_AGENT;
use crate::session::toolbox::Decisions;

/// The extensions of a session, for its tools, which are made before the session opens them. It keeps nothing alive: the session
/// owns its extensions. Where plugins change, extensions and tools are replaced together, with a cell of their own.
#[derive(Default)]
pub(crate) struct LateExtensions(Mutex<Option<Weak<dyn Extensions>>>);

impl LateExtensions {
    /// Calls go to these extensions from now on.
    pub(crate) fn bind(&self, extensions: &Arc<dyn Extensions>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(extensions));
    }

    fn get(&self) -> Option<Arc<dyn Extensions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }
}

/// A host of extensions that binds those that a session opens or adopts from it.
pub(crate) struct Binding {
    pub(crate) host: Arc<dyn ExtensionHost>,
    pub(crate) late: Arc<LateExtensions>,
}

impl ExtensionHost for Binding {
    fn registrations(&self) -> Arc<[Registration]> {
        self.host.registrations()
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionId,
        view: Arc<dyn SessionView>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>> {
        Box::pin(async move {
            let extensions = self.host.open(session, view, events).await?;
            self.late.bind(&extensions);
            Ok(extensions)
        })
    }

    fn adopt(&self, before: &Arc<dyn Extensions>, unregistered: &[PluginId]) -> Result<Arc<dyn Extensions>, String> {
        let extensions = self.host.adopt(before, unregistered)?;
        self.late.bind(&extensions);
        Ok(extensions)
    }
}

/// A tool that a plugin provides.
#[derive(Debug)]
struct Entry {
    /// The plugin's index among the registrations.
    index: usize,
    plugin: PluginId,
    version: String,
    tool: ProvidedTool,
    schema: Arc<ToolSchema>,
}

/// The tools of some plugins, by name.
#[derive(Debug, Default)]
pub(crate) struct ToolTable {
    order: Vec<String>,
    entries: BTreeMap<String, Entry>,
}

impl ToolTable {
    /// Collects the tools of plugins, which are in the order of their registrations. `own` are the names of the embedder's tools.
    /// Returns those that have a name of their own, and what is wrong with the others.
    pub(crate) fn collect(plugins: &[Plugin], own: &[String]) -> (Self, Vec<HostError>) {
        let (mut table, mut refused) = (Self::default(), Vec::new());
        for (index, plugin) in plugins.iter().enumerate() {
            for tool in plugin.tools() {
                let name = &tool.provided.spec.name;
                if let Some(owner) = table.owner(name, own) {
                    refused.push(HostError::ToolName { plugin: plugin.id().clone(), tool: name.clone(), owner });
                    continue;
                }
                table.order.push(name.clone());
                let (plugin, version) = (plugin.id().clone(), plugin.version().to_owned());
                let (tool, schema) = (tool.provided.clone(), Arc::clone(&tool.schema));
                table.entries.insert(name.clone(), Entry { index, plugin, version, tool, schema });
            }
        }
        (table, refused)
    }

    /// Who has a tool of this name already. Names of built-in tools stay theirs where they are not offered: permissions with
    /// these names are written for them.
    fn owner(&self, name: &str, own: &[String]) -> Option<String> {
        if let Some(other) = self.entries.get(name) {
            return Some(format!("a tool of the plugin `{}`", other.plugin));
        }
        if tools::is_builtin(name) || name == rules::READ_RULE || name == SPAWN_AGENT {
            return Some("a built-in tool".to_owned());
        }
        own.iter().any(|own| own == name).then(|| "a tool of the program that embeds the host".to_owned())
    }

    /// Compiles the schemas that the first calls would wait for. Blocks.
    pub(crate) fn prepare(&self) {
        self.entries.iter().for_each(|(name, entry)| entry.schema.prepare(name));
    }

    /// The definitions, in the order of the plugins.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.order.iter().filter_map(|name| Some(self.entries.get(name)?.tool.spec.clone())).collect()
    }

    /// Each tool with the plugin that provides it.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&str, &PluginId)> {
        self.order.iter().filter_map(|name| Some((name.as_str(), &self.entries.get(name)?.plugin)))
    }

    fn default_permission(name: &str, plugin: &PluginId) -> Permission {
        let set = format!("`{name} = \"allow\"` under [tools.permission]");
        Permission::Ask { reason: format!("`{name}` is a tool of the plugin `{plugin}`; {set} stops the question") }
    }

    /// The permission of a tool of a plugin: the operator's, else that a person is asked.
    pub(crate) fn permission(&self, name: &str, decisions: &Decisions) -> Option<Permission> {
        let entry = self.entries.get(name)?;
        Some(decisions.decide(name, Self::default_permission(name, &entry.plugin)))
    }
}

/// The tools of plugins in one session.
pub(crate) struct PluginTools {
    pub(crate) table: Arc<ToolTable>,
    pub(crate) late: Arc<LateExtensions>,
    pub(crate) decisions: Decisions,
}

impl PluginTools {
    /// The call of a tool; `None` where no plugin provides it.
    pub(crate) fn call<'a>(&'a self, call: &'a ToolCall) -> Option<Box<dyn PreparedCall + 'a>> {
        let entry = self.table.entries.get(&call.name)?;
        let invalid = entry.schema.check(&call.name, &call.arguments).err();
        Some(Box::new(PluginCall { call, entry, invalid, tools: self }))
    }
}

/// A call of a plugin's tool. Its arguments reach the plugin as the model wrote them, which is what was checked and shown.
struct PluginCall<'a> {
    call: &'a ToolCall,
    entry: &'a Entry,
    /// Why the arguments cannot be used.
    invalid: Option<String>,
    tools: &'a PluginTools,
}

impl PluginCall<'_> {
    async fn run(&self, progress: Progress<'_>) -> Result<ToolOutput, String> {
        let Entry { index, plugin, .. } = self.entry;
        let name = &self.call.name;
        // The current span is that of the tool call.
        tracing::Span::current().record("extension", plugin.as_str());
        let Some(extensions) = self.tools.late.get() else {
            return Err(format!("`{name}` was not called: the session of its plugin `{plugin}` is closed."));
        };
        extensions.call_tool(*index, self.call, progress).await.map_err(|no_answer| match no_answer {
            NoAnswer::NotPermitted(why) => {
                format!("`{name}` was not called: its plugin `{plugin}` is not available: {why}. Continue without it.")
            }
            NoAnswer::NoInstance(why) => format!("`{name}` was not called: {why}. Call it again later."),
            NoAnswer::Failed(failure) => format!(
                "`{name}` failed and changed nothing: its plugin `{plugin}` {} ({}). The arguments were valid.",
                failure.message,
                failure.cause.as_str()
            ),
        })
    }
}

impl PreparedCall for PluginCall<'_> {
    /// Nobody is asked about a call that cannot be made.
    fn permission(&self) -> Permission {
        let own = ToolTable::default_permission(&self.call.name, &self.entry.plugin);
        match (self.tools.decisions.decide(&self.call.name, own), &self.invalid) {
            (denied @ Permission::Deny { .. }, _) => denied,
            (_, Some(reason)) => Permission::Deny { reason: reason.clone() },
            (decided, None) => decided,
        }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        let Entry { plugin, version, tool, .. } = self.entry;
        let mut preview = Preview::of_arguments(&self.call.arguments).unwrap_or_default();
        preview.notes.push(format!("It is a tool of the plugin `{plugin}` {version}, which runs in the sandbox."));
        if tool.read_only {
            preview.notes.push("The plugin states that the tool changes nothing.".to_owned());
        }
        Box::pin(std::future::ready(preview))
    }

    /// The plugin alone knows what an argument means: what can be allowed is the tool.
    fn always(&self) -> Option<String> {
        self.tools.decisions.always(&self.call.name, Some(self.call.name.clone()))
    }

    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            // A turn does not run what is denied; whoever does gets the same words.
            let output = match &self.invalid {
                Some(reason) => Err(reason.clone()),
                None => PluginCall::run(self, progress).await,
            };
            output.unwrap_or_else(|content| ToolOutput { content, diff: None, is_error: true })
        })
    }
}
