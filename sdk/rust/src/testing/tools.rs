//! Calls of the tools that an extension provides.

use serde_json::Value;

use super::Harness;
use crate::{
    AskedCall, CallAnswer, Exported, GivenResult, OnToolCall, OnToolResult, Result, ResultAnswer, Tool, ToolAnswer,
    ToolCall, ToolProvider, host,
};

/// The limit of a result where the operator sets nothing else, in KiB.
const OUTPUT_KIB: usize = 64;

/// The result of a call of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolRun {
    /// What the model gets.
    pub answer: ToolAnswer,
    /// What the tool reported while it ran.
    pub progress: Vec<String>,
    /// The numbers of [`progress_at`](crate::progress_at) among it, as far as they are from 0 to 100.
    pub percents: Vec<f64>,
}

impl<E: Exported + ToolProvider> Harness<E> {
    /// The tools as the host gets them when it loads the plugin.
    ///
    /// # Panics
    /// The host would refuse one of them: its name, its description or its schema is not valid, or the manifest does not request
    /// the power `provide-tools`. The schema is checked as far as JSON and `"type": "object"`.
    #[track_caller]
    pub fn tools(&mut self) -> Vec<Tool> {
        self.host.granted("provide-tools");
        let tools = self.call(|extension| Ok(host::registering(|| extension.tools())));
        let tools = tools.unwrap_or_else(|error| panic!("the tools cannot be listed: {error}"));
        assert!((1..=64).contains(&tools.len()), "{} tools; the host takes 1 to 64", tools.len());
        for (at, tool) in tools.iter().enumerate() {
            if let Err(why) = check(tool) {
                panic!("the host refuses the tool {:?}: {why}", tool.name);
            }
            let is_new = tools.iter().take(at).all(|other| other.name != tool.name);
            assert!(is_new, "the host refuses the tool {:?}: it is listed twice", tool.name);
        }
        tools
    }

    /// Calls a tool with these arguments: a string of JSON, or a `serde_json::Value`. As in the host, the writes of a call that is
    /// rejected or fails are undone. The arguments are not checked against the schema.
    ///
    /// # Errors
    /// The extension's own failure, or the result is larger than the limit.
    ///
    /// # Panics
    /// As [`Harness::tools`]; or there is no tool of this name.
    #[track_caller]
    pub fn call_tool(&mut self, name: &str, arguments: impl std::fmt::Display) -> Result<ToolRun> {
        let tools = self.tools();
        assert!(tools.iter().any(|tool| tool.name == name), "there is no tool `{name}`");
        let call = ToolCall::new("call-1", name, arguments.to_string());
        let before = self.host.state.clone();
        self.host.progress = Some(Vec::new());
        let max = self.tool_bytes();
        let answer = self.call(|extension| {
            let answer = match extension.call(&call) {
                Err(error) if error.rejects() => ToolAnswer::Rejected(error.into_message()),
                answer => answer?,
            };
            let (ToolAnswer::Text(text) | ToolAnswer::Rejected(text)) = &answer;
            if text.len() > max {
                crate::bail!("returned {} bytes, the limit is {max}", text.len());
            }
            Ok(answer)
        });
        let reported = self.host.progress.take().unwrap_or_default();
        let percents = reported.iter().filter_map(|(percent, _)| *percent).collect();
        let progress = reported.into_iter().map(|(_, line)| line).collect();
        let answer = answer?;
        if matches!(answer, ToolAnswer::Rejected(_)) && self.host.state != before {
            self.host.state = before;
            self.restart();
        }
        Ok(ToolRun { answer, progress, percents })
    }

    fn tool_bytes(&self) -> usize {
        let wanted = self.manifest.as_ref().and_then(|manifest| manifest.limits.tool_output_kib);
        wanted.map_or(OUTPUT_KIB, |wanted| wanted.min(OUTPUT_KIB)) << 10
    }
}

impl<E: Exported + OnToolCall> Harness<E> {
    /// Calls `on_tool_call`.
    ///
    /// # Errors
    /// The callback's own.
    pub fn tool_call(&mut self, call: &AskedCall) -> Result<CallAnswer> {
        self.call(|extension| extension.on_tool_call(call))
    }
}

impl<E: Exported + OnToolResult> Harness<E> {
    /// Calls `on_tool_result`.
    ///
    /// # Errors
    /// The callback's own.
    pub fn tool_result(&mut self, result: &GivenResult) -> Result<ResultAnswer> {
        self.call(|extension| extension.on_tool_result(result))
    }
}

fn check(tool: &Tool) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=64).contains(&tool.name.len()) || !tool.name.chars().all(fits) {
        return Err("a name has 1 to 64 ASCII letters, digits, `_` and `-`".to_owned());
    }
    if tool.description.trim().is_empty() || tool.description.len() > 4 << 10 {
        return Err("its description must have 1 byte to 4 KiB".to_owned());
    }
    let schema: Value =
        serde_json::from_str(&tool.parameters).map_err(|error| format!("`parameters` is not valid JSON: {error}"))?;
    match schema["type"].as_str() {
        Some("object") => Ok(()),
        _ => Err("`parameters` must be the schema of an object: write `\"type\": \"object\"`".to_owned()),
    }
}
