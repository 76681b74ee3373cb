//! Declarations of plugins that have no effect in front of an agent that is not the host's own.

use config::ConfiguredPlugin;
use flow::{Condition, ExtensionPrompt, PluginId};
use rules::{Bucket, Rule};

use crate::diagnostic::{Check, Health};
use crate::plugin::{Loaded, PluginInfo};
use crate::plugins::host_plugin::HostPlugin;

impl Loaded {
    /// Returns the parts of each plugin without effect on the requests of other agents, one phrase for each part. `serves_others`: the agents
    /// work in other folders than the host.
    pub fn gateway_gaps(&self, serves_others: bool) -> Vec<(PluginId, Vec<String>)> {
        let of_plugin = |one: &HostPlugin| {
            let plugin = &one.loaded.plugin;
            let registration = one.loaded.component.as_ref().map(|component| component.registration());
            let tools = registration.map(|one| &*one.tools).unwrap_or_default();
            let tools: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
            let gaps =
                [of_tools(&tools), of_guidance(plugin, &tools), of_rules(plugin), of_workspace(plugin, serves_others)];
            (one.loaded.id().clone(), gaps.into_iter().flatten().collect::<Vec<String>>())
        };
        self.host_plugins.iter().filter(|one| one.enabled).map(of_plugin).filter(|(_, gaps)| !gaps.is_empty()).collect()
    }

    /// Returns the texts that are sent to the models of other agents and were not shown in the workspace yet, and counts them as shown:
    /// those of plugins with additions to the prompt or guidance on tools.
    pub fn take_new_prompts(&self) -> Vec<ExtensionPrompt> {
        let adds = |one: &&HostPlugin| one.enabled && PluginInfo::of(one).adds_to_prompt;
        let plugins = self.host_plugins.iter().filter(adds).map(|one| &*one.loaded);
        let workspace = self.builtin.as_ref().map_or(&*self.wanted.workspace, |tools| tools.workspace());
        self.shared.basis.shown_prompts.take_new(workspace, plugins)
    }
}

/// Checks what of plugins has no effect behind a gateway, if the operator has one.
pub(crate) fn gap_checks(loaded: &Loaded) -> Vec<Check> {
    if loaded.shared.operator.gateway.routes.is_empty() {
        return Vec::new();
    }
    let check = |(id, gaps): (PluginId, Vec<String>)| {
        let detail = format!("in front of other agents: {}", gaps.join("; "));
        Check::new(format!("gateway plugin {id}"), Health::Warning, detail)
    };
    loaded.gateway_gaps(true).into_iter().map(check).collect()
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn of_tools(tools: &[&str]) -> Option<String> {
    (!tools.is_empty()).then(|| format!("the tools that it provides are not offered ({})", quoted(tools)))
}

fn of_guidance(plugin: &ConfiguredPlugin, provided: &[&str]) -> Option<String> {
    let mut names: Vec<&str> = plugin.manifest.guidance.names().filter(|name| provided.contains(name)).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty())
        .then(|| format!("its guidance on {} is left out, unless the agent has such a tool", quoted(&names)))
}

fn of_rules(plugin: &ConfiguredPlugin) -> Option<String> {
    let is_text = |rule: &&Rule| matches!(rule.bucket, Bucket::AlwaysApply | Bucket::Rulebook);
    let names: Vec<&str> = plugin.manifest.rules.iter().filter(is_text).map(|rule| rule.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("rules without a condition are not sent to the model ({})", quoted(&names)))
}

fn of_workspace(plugin: &ConfiguredPlugin, serves_others: bool) -> Option<String> {
    let is_about = |one: &Condition| matches!(one, Condition::ContextMatch(wanted) if wanted.workspace.is_some());
    let mut all = plugin.manifest.prompts.iter().flat_map(|one| &one.when);
    (serves_others && all.any(is_about)).then(|| {
        "conditions on `workspace` compare the folder of the gateway, because those of agents are not known".to_owned()
    })
}
