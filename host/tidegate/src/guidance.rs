//! What plugins say about tools: guidance in the prompt, and the order in which tools are offered. Never a fence.

use std::cmp::Reverse;
use std::sync::Arc;

use config::Diagnostics;
use flow::{Diagnostic, DiagnosticCode as Code, ToolCall, ToolSpec};
use turn::ports::{PreparedCall, Tools};

/// What all plugins together say.
#[derive(Debug, Default)]
pub(crate) struct Guidance {
    preferred: Vec<String>,
    avoided: Vec<String>,
    order: Vec<String>,
}

impl Guidance {
    /// Collects what plugins say, in order of registration; who speaks first wins where two disagree.
    ///
    /// # Errors
    /// A name is no tool of this host.
    pub(crate) fn collect(plugins: &[config::Plugin], tools: &[ToolSpec]) -> Result<Self, Diagnostics> {
        let mut all = Self::default();
        let mut found = Vec::new();
        for plugin in plugins {
            let said = &plugin.manifest.guidance;
            for name in said.preferred.iter().chain(&said.avoided).chain(&said.order) {
                if !tools.iter().any(|tool| tool.name == *name) {
                    let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                    let message = format!("gives guidance on `{name}`, which is not a tool of this host");
                    let error = Diagnostic::error(Code::PluginUnknownTool, message).about_plugin(&plugin.manifest.id);
                    found.push(error.help(format!("the tools are {}", known.join(", "))));
                }
            }
            let decided = |name: &String, all: &Self| all.preferred.contains(name) || all.avoided.contains(name);
            for name in &said.preferred {
                if !decided(name, &all) {
                    all.preferred.push(name.clone());
                }
            }
            for name in &said.avoided {
                if !decided(name, &all) {
                    all.avoided.push(name.clone());
                }
            }
            for name in &said.order {
                if !all.order.contains(name) {
                    all.order.push(name.clone());
                }
            }
        }
        if found.is_empty() { Ok(all) } else { Err(Diagnostics(found)) }
    }

    /// The guidance as a block of the system prompt; `None` where there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let line = |what: &str, names: &[String]| {
            if names.is_empty() { None } else { Some(format!("{what}: {}.", names.join(", "))) }
        };
        let lines = [
            line("Prefer these tools where they fit", &self.preferred),
            line("Use these tools only where no other does", &self.avoided),
            line("Where several calls are needed, this order works best", &self.order),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        if lines.is_empty() { None } else { Some(lines.join("\n")) }
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
    fn guidance_on_a_tool_that_does_not_exist_is_an_error() {
        let manifest =
            "id = \"a\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\n[tools]\ntool_order = [\"b\"]\n";
        let manifest = config::Manifest::of_source(&flow::SourceFile::new("a/plugin.toml", manifest)).unwrap();
        let plugin = config::Plugin {
            manifest: Arc::new(manifest),
            entry: config::PluginEntry::of_path("a".as_ref()),
            limits: config::Operator::default().limits,
            settings: Default::default(),
        };
        let error = Guidance::collect(&[plugin], &[]).unwrap_err();
        let expected =
            "error[plugin-unknown-tool]: plugin `a`: gives guidance on `b`, which is not a tool of this host";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn preferred_tools_come_first_and_avoided_last() {
        let tool =
            |name: &str| ToolSpec { name: name.into(), description: String::new(), parameters: Default::default() };
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let guidance = Guidance { preferred: strings(&["d", "b"]), avoided: strings(&["a"]), order: Vec::new() };
        let names: Vec<String> =
            guidance.order(["a", "b", "c", "d"].map(tool).into()).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["d", "b", "c", "a"]);
        assert!(guidance.text().is_some_and(|text| text.contains("d, b") && text.contains("only where")));
    }
}
