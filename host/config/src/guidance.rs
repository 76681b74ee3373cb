//! What plugins say about tools, put together: guidance in the prompt, the order in which tools are offered, and the order in
//! which the calls of one message run. Guidance orders and advises; it never forbids a tool and never makes a call.
//!
//! Where two plugins disagree, the one with the higher `[tools] priority` decides; ties are decided by the order of
//! registration. Each disagreement is a warning that names both.

mod run_order;

use std::cmp::Reverse;

use flow::text::{differs_by_one_letter, nearest};
use flow::{BlockOrigin, PluginId, SystemBlock, ToolCall, ToolSpec};

use crate::{Code, ConfiguredPlugin, Diagnostic, ToolGuidance};

/// The guidance of all plugins of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guidance {
    preferred: Vec<String>,
    avoided: Vec<String>,
    order: Vec<String>,
    /// The plugins that any of it is from, by priority.
    plugins: Vec<PluginId>,
}

/// What one plugin says.
#[derive(Clone, Copy, Debug)]
struct Said<'p> {
    plugin: &'p PluginId,
    guidance: &'p ToolGuidance,
}

/// Guidance under construction, from the highest priority to the lowest.
#[derive(Default)]
struct Merge<'p> {
    /// Preferred tools, and who prefers each.
    preferred: Vec<(&'p str, Said<'p>)>,
    avoided: Vec<(&'p str, Said<'p>)>,
    /// The suggested order of all plugins in one, and who added each tool.
    order: Vec<(&'p str, Said<'p>)>,
    plugins: Vec<PluginId>,
    found: Vec<Diagnostic>,
}

impl Guidance {
    /// Collects what plugins say, who are given in order of registration. A tool that is not among `tools` can be one that an
    /// embedder gives to other sessions: it is left out. The warnings are about such tools, and about disagreements. A name that can
    /// only be meant as one of `builtin` is an error.
    pub fn collect(plugins: &[ConfiguredPlugin], tools: &[ToolSpec], builtin: &[&str]) -> (Self, Vec<Diagnostic>) {
        let said = plugins
            .iter()
            .map(|ConfiguredPlugin { manifest, .. }| Said { plugin: &manifest.id, guidance: &manifest.guidance });
        Self::merge(said.collect(), tools, builtin)
    }

    /// Returns the text of the guidance for an agent that is not the host's own and has tools of these names; `None`: no plugin has
    /// guidance for them.
    pub fn for_client(plugins: &[ConfiguredPlugin], tools: &[String]) -> Option<String> {
        let spec = |name: &String| ToolSpec {
            name: name.clone(),
            description: String::new(),
            parameters: serde_json::Value::Null,
        };
        let (own, _) = Self::collect(plugins, &tools.iter().map(spec).collect::<Vec<_>>(), &[]);
        own.block().map(|block| block.text)
    }

    fn merge(mut all: Vec<Said<'_>>, tools: &[ToolSpec], builtin: &[&str]) -> (Self, Vec<Diagnostic>) {
        let is_known = |name: &str| tools.iter().any(|tool| tool.name == name);
        let mut merge = Merge::default();
        for Said { plugin, guidance } in &all {
            let unknown = guidance.names().filter(|name| !is_known(name));
            merge.found.extend(unknown.map(|name| about_unknown(plugin, name, tools, builtin)));
        }
        // Stable: equal priorities stay in order of registration.
        all.sort_by_key(|said| Reverse(said.guidance.priority));
        for said in all {
            merge.add(said, is_known);
        }
        let names = |list: Vec<(&str, Said<'_>)>| list.into_iter().map(|(name, _)| name.to_owned()).collect();
        let Merge { preferred, avoided, order, plugins, found } = merge;
        (Self { preferred: names(preferred), avoided: names(avoided), order: names(order), plugins }, found)
    }

    /// Returns the guidance as a block of the system prompt; `None` where there is none.
    pub fn block(&self) -> Option<SystemBlock> {
        let line = |what: &str, names: &[String]| {
            if names.is_empty() { None } else { Some(format!("{what}: {}.", names.join(", "))) }
        };
        let lines = [
            line("Prefer these tools where they fit", &self.preferred),
            line("Use these tools only where no other tool works", &self.avoided),
            line("Where several calls are needed, this order works best", &self.order),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        let origin = BlockOrigin::Guidance(self.plugins.clone());
        if lines.is_empty() { None } else { Some(SystemBlock::new(origin, lines.join("\n"))) }
    }

    /// Whether a plugin suggests an order of tools.
    pub fn suggests_order(&self) -> bool {
        !self.order.is_empty()
    }

    /// Sorts the tools as they are offered: preferred ones first and avoided ones last, the others in their own order.
    pub fn offer(&self, mut tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
        let rank = |name: &String| {
            let preferred = self.preferred.iter().position(|one| one == name);
            (self.avoided.contains(name), Reverse(preferred.map(Reverse)))
        };
        tools.sort_by_key(|tool| rank(&tool.name));
        tools
    }

    /// Returns the order in which to run the calls of one message: a permutation of their indexes. Two calls change their order
    /// only where the suggested order contains both tools and neither call depends on the other. Calls depend on each other
    /// if one of them names no path, because it can touch any file; if one names a path that the other names too, or that is
    /// inside or around it; if the name of such a file occurs in another string of the other; and if the arguments of one cannot
    /// be read. `tools` declare which arguments are paths.
    pub fn run_order(&self, calls: &[ToolCall], tools: &[ToolSpec]) -> Vec<usize> {
        run_order::run_order(&self.order, calls, tools)
    }
}

impl<'p> Merge<'p> {
    /// Adds what a plugin says to what those of higher priority said.
    fn add(&mut self, said: Said<'p>, is_known: impl Fn(&str) -> bool) {
        let known =
            |names: &'p [String]| names.iter().map(String::as_str).filter(|name| is_known(name)).collect::<Vec<_>>();
        let ToolGuidance { preferred, avoided, order, .. } = said.guidance;
        let (preferred, avoided, order) = (known(preferred), known(avoided), known(order));
        if !preferred.is_empty() || !avoided.is_empty() || !order.is_empty() {
            self.plugins.push(said.plugin.clone());
        }
        for name in preferred {
            if let Some(other) = find(&self.avoided, name) {
                self.found.push(contradiction(said, &format!("prefers `{name}`"), other, "avoids it"));
            } else if find(&self.preferred, name).is_none() {
                self.preferred.push((name, said));
            }
        }
        for name in avoided {
            if let Some(other) = find(&self.preferred, name) {
                self.found.push(contradiction(said, &format!("avoids `{name}`"), other, "prefers it"));
            } else if find(&self.avoided, name).is_none() {
                self.avoided.push((name, said));
            }
        }
        self.add_order(said, &order);
    }

    /// Adds a suggested order: a tool that is not in the order yet comes directly behind the one before it in the list, or where there
    /// is none, before the one after it. Tools that are in the order stay where they are.
    fn add_order(&mut self, said: Said<'p>, names: &[&'p str]) {
        let place = |order: &[(&str, Said<'_>)], name: &str| order.iter().position(|(known, _)| *known == name);
        let first = names.iter().find_map(|name| place(&self.order, name));
        let mut next = first.unwrap_or(self.order.len());
        let mut before: Option<&str> = None;
        for &name in names {
            match place(&self.order, name) {
                Some(at) if at < next && before.is_some() => {
                    let other = self.order.get(at).map(|(_, other)| *other);
                    let what = format!("suggests `{}` before `{name}`", before.unwrap_or_default());
                    self.found.extend(other.map(|other| contradiction(said, &what, other, "suggests the reverse")));
                    continue;
                }
                Some(at) => next = at + 1,
                None => {
                    self.order.insert(next, (name, said));
                    next += 1;
                }
            }
            before = Some(name);
        }
    }
}

fn find<'p>(list: &[(&str, Said<'p>)], name: &str) -> Option<Said<'p>> {
    list.iter().find(|(known, _)| *known == name).map(|(_, said)| *said)
}

/// The plugin says `what`, another one the opposite; that of the other counts.
fn contradiction(said: Said<'_>, what: &str, other: Said<'_>, opposite: &str) -> Diagnostic {
    let (winner, priority) = (other.plugin, other.guidance.priority);
    let message = format!("{what}, and plugin `{winner}` {opposite}: the guidance of `{winner}` is used");
    let own = said.guidance.priority;
    let reason = if own == priority { "is registered first" } else { "has the higher priority" };
    let help = format!(
        "`{winner}` {reason} ({priority}, this plugin {own}); change `priority` under `[tools]` in one of the manifests"
    );
    Diagnostic::warning(Code::PluginGuidanceConflict, message).about_plugin(said.plugin).help(help)
}

fn about_unknown(plugin: &PluginId, name: &str, tools: &[ToolSpec], builtin: &[&str]) -> Diagnostic {
    if let Some(meant) = misspelt(name, builtin) {
        let message = format!("gives guidance on `{name}`, which is not a tool");
        let help =
            format!("did you mean the built-in tool `{meant}`? Correct the name under `[tools]` of its plugin.toml");
        return Diagnostic::error(Code::PluginUnknownTool, message).about_plugin(plugin).help(help);
    }
    let known = || tools.iter().map(|tool| tool.name.as_str());
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the tools are {}", known().collect::<Vec<_>>().join(", ")),
    };
    let message = format!("gives guidance on `{name}`, which is not a tool of this session");
    Diagnostic::warning(Code::PluginUnknownTool, message).about_plugin(plugin).help(help)
}

/// The built-in tool that a name can only mean: it differs in letter case, in separators and in one letter at most, or names a part of the
/// tool, as in `shell.run`.
fn misspelt<'b>(name: &str, builtin: &[&'b str]) -> Option<&'b str> {
    if builtin.contains(&name) {
        return None;
    }
    let first = name.split(['.', '/', ':']).next().unwrap_or_default();
    builtin.iter().copied().find(|tool| *tool == first || differs_by_one_letter(name, tool))
}

#[cfg(test)]
mod tests;
