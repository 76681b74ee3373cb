//! What plugins say about tools: guidance in the prompt, and the order in which tools are offered. Never a fence.

use std::cmp::Reverse;
use std::sync::Arc;

use flow::text::nearest;
use flow::{BlockOrigin, Diagnostic, DiagnosticCode as Code, PluginId, SystemBlock, ToolCall, ToolSpec};
use turn::ports::{PreparedCall, Tools};

/// What all plugins together say.
#[derive(Debug, Default)]
pub(crate) struct Guidance {
    preferred: Vec<String>,
    avoided: Vec<String>,
    order: Vec<String>,
    /// The plugins that said any of it.
    plugins: Vec<PluginId>,
}

impl Guidance {
    /// Collects what plugins say, in order of registration; who speaks first wins where two disagree. A tool that is not there can
    /// be one that an embedder gives to other sessions: it is left out, with a warning in the second list.
    pub(crate) fn collect(plugins: &[config::ConfiguredPlugin], tools: &[ToolSpec]) -> (Self, Vec<Diagnostic>) {
        let mut all = Self::default();
        let mut found = Vec::new();
        for plugin in plugins {
            let said = &plugin.manifest.guidance;
            let is_known = |name: &&String| tools.iter().any(|tool| tool.name == **name);
            let named = || said.preferred.iter().chain(&said.avoided).chain(&said.order);
            found.extend(named().filter(|name| !is_known(name)).map(|name| unknown(&plugin.manifest.id, name, tools)));
            if named().any(|name| is_known(&name)) {
                all.plugins.push(plugin.manifest.id.clone());
            }
            let decided = |name: &String, all: &Self| all.preferred.contains(name) || all.avoided.contains(name);
            for name in said.preferred.iter().filter(is_known) {
                if !decided(name, &all) {
                    all.preferred.push(name.clone());
                }
            }
            for name in said.avoided.iter().filter(is_known) {
                if !decided(name, &all) {
                    all.avoided.push(name.clone());
                }
            }
            for name in said.order.iter().filter(is_known) {
                if !all.order.contains(name) {
                    all.order.push(name.clone());
                }
            }
        }
        (all, found)
    }

    /// The guidance as a block of the system prompt; `None` where there is none.
    pub(crate) fn block(&self) -> Option<SystemBlock> {
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

    /// The tools, preferred first and avoided last, else as they were.
    pub(crate) fn order(&self, mut tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
        let rank = |name: &String| {
            let preferred = self.preferred.iter().position(|one| one == name);
            (self.avoided.contains(name), Reverse(preferred.map(Reverse)))
        };
        tools.sort_by_key(|tool| rank(&tool.name));
        tools
    }
}

fn unknown(plugin: &PluginId, name: &str, tools: &[ToolSpec]) -> Diagnostic {
    let known = || tools.iter().map(|tool| tool.name.as_str());
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the tools are {}", known().collect::<Vec<_>>().join(", ")),
    };
    let message = format!("gives guidance on `{name}`, which is not a tool of this session");
    Diagnostic::warning(Code::PluginUnknownTool, message).about_plugin(plugin).help(help)
}

/// Tools in the order that plugins suggest.
pub(crate) struct Ordered {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) guidance: Arc<Guidance>,
}

impl Tools for Ordered {
    fn specs(&self) -> Vec<ToolSpec> {
        self.guidance.order(self.tools.specs())
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        self.tools.prepare(call)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn guidance_on_a_tool_that_is_not_there_is_left_out_with_a_warning() {
        let manifest = "id = \"a\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\n[tools]\npreferred_tools = [\"grep\"]\ntool_order = [\"grap\", \"grep\"]\n";
        let manifest = config::Manifest::of_source(&flow::SourceFile::new("a/plugin.toml", manifest)).unwrap();
        let plugin = config::ConfiguredPlugin {
            manifest: Arc::new(manifest),
            entry: config::PluginEntry::of_path("a".as_ref()),
            limits: config::Operator::default().limits,
            settings: Default::default(),
        };
        let grep = ToolSpec { name: "grep".into(), description: String::new(), parameters: Default::default() };
        let (guidance, found) = Guidance::collect(&[plugin], &[grep]);
        assert_eq!((guidance.preferred, guidance.order), (vec!["grep".to_owned()], vec!["grep".to_owned()]));
        let [warning] = found.as_slice() else { panic!("{found:?}") };
        let expected =
            "warning[plugin-unknown-tool]: plugin `a`: gives guidance on `grap`, which is not a tool of this session";
        assert!(warning.to_string().starts_with(expected), "{warning}");
        assert_eq!(warning.help.as_deref(), Some("did you mean `grep`?"));
    }

    #[test]
    fn preferred_tools_come_first_and_avoided_last() {
        let tool =
            |name: &str| ToolSpec { name: name.into(), description: String::new(), parameters: Default::default() };
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let guidance = Guidance { preferred: strings(&["d", "b"]), avoided: strings(&["a"]), ..Guidance::default() };
        let names: Vec<String> =
            guidance.order(["a", "b", "c", "d"].map(tool).into()).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["d", "b", "c", "a"]);
        assert!(guidance.block().is_some_and(|block| block.text.contains("d, b") && block.text.contains("only where")));
    }
}
