//! A guest that does what it is told: every answer, every power, every kind of damage. README.md has the words.

#![forbid(unsafe_code)]

mod damage;
mod script;

use std::collections::BTreeMap;

use script::Outcome;
use tidegate_sdk::prelude::*;

/// Counts its calls, so that a test sees whether it is still the same instance.
pub struct Conformance {
    calls: u32,
    unit: TextUnit,
    streams: Vec<TextStream>,
    tags: Vec<String>,
    mode: OutputMode,
    priority: u8,
    /// Callbacks that fail closed.
    closed: Vec<String>,
    /// Callbacks that run scripts; all where it is empty.
    only: Vec<String>,
    /// The tools, as `NAME|DESCRIPTION|PARAMETERS`.
    tools: Vec<String>,
    /// What happens when the tools are listed.
    list: String,
    /// What callbacks append where no script answers.
    mark: String,
}

impl Extension for Conformance {
    fn new(settings: &Settings) -> Result<Self> {
        let unit = match settings.get_or("unit", String::from("line"))?.as_str() {
            "line" => TextUnit::Line,
            "paragraph" => TextUnit::Paragraph,
            "whole" => TextUnit::Whole,
            other => bail!("setting `unit` must be line, paragraph or whole, and is `{other}`"),
        };
        let mut streams = Vec::new();
        for stream in settings.get_or("streams", Vec::<String>::new())? {
            streams.push(match stream.as_str() {
                "answer" => TextStream::Answer,
                "thinking" => TextStream::Thinking,
                other => TextStream::Other(other.to_owned()),
            });
        }
        let mode = match settings.get_or("mode", String::from("rewrite"))?.as_str() {
            "observe" => OutputMode::Observe,
            "rewrite" => OutputMode::Rewrite,
            other => bail!("setting `mode` must be observe or rewrite, and is `{other}`"),
        };
        let tags = settings.get_or("tags", ["do", "do-*"].map(String::from).to_vec())?;
        let priority = u8::try_from(settings.get_or("priority", 50u32)?)?;
        let start = settings.get_or("start", String::from(""))?;
        script::run(&start, "start", 0)?;
        let names = |key| settings.get_or::<Vec<String>>(key, Vec::new());
        let (closed, only) = (names("closed")?, names("only")?);
        let tools = settings.get_or("tools", vec![RUN.to_owned()])?;
        let list = settings.get_or("listing", String::new())?;
        let mark = settings.get_or("mark", String::new())?;
        Ok(Self { calls: 0, unit, streams, tags, mode, priority, closed, only, tools, list, mark })
    }
}

impl Conformance {
    fn run(&mut self, callback: &str, script: &str, subject: &str) -> Result<Outcome> {
        let is_named = self.only.iter().any(|one| one == callback);
        // Scripts in arguments and results are for the tool `run`, unless they are meant for these.
        if matches!(callback, "on_tool_call" | "on_tool_result") && !is_named {
            return script::run("", subject, self.calls);
        }
        self.calls += 1;
        let acts = self.only.is_empty() || is_named;
        let mut outcome = script::run(if acts { script } else { "" }, subject, self.calls)?;
        if acts && !self.mark.is_empty() && outcome.answer == "pass" && outcome.said.is_none() {
            (outcome.answer, outcome.text) = ("mark".to_owned(), self.mark.clone());
        }
        Ok(outcome)
    }

    fn policy(&self, callback: &str, closed: OnFailure) -> OnFailure {
        if self.closed.iter().any(|one| one == callback) { closed } else { OnFailure::Unspecified }
    }
}

impl OnInputMessages for Conformance {
    fn input_options(&self) -> InputOptions {
        let policy = self.policy("on_input_messages", OnFailure::Reject);
        InputOptions::default().priority(self.priority).on_failure(policy)
    }

    fn on_input_messages(&mut self, messages: Vec<Message>) -> Result<InputAnswer> {
        let script = messages.last().map(Message::text).unwrap_or_default();
        let outcome = self.run("on_input_messages", &script, &format!("{messages:?}"))?;
        let text = |text: String| vec![Message::user(text)];
        Ok(match outcome.answer.as_str() {
            "echo" => InputAnswer::Replace(messages),
            "drop" => InputAnswer::Replace(Vec::new()),
            "replace" | "append" | "mark" => InputAnswer::Replace(text(outcome.over(&script))),
            "finish" if outcome.text.is_empty() => InputAnswer::Finish(None),
            "finish" => InputAnswer::Finish(Some(text(outcome.text))),
            "reply" => InputAnswer::Reply(outcome.text),
            "reject" => InputAnswer::Reject(outcome.text),
            "pass" => match outcome.said {
                Some(said) => InputAnswer::Reply(said),
                None => InputAnswer::Pass,
            },
            other => bail!("`{other}` is no answer to on_input_messages"),
        })
    }
}

impl OnPlainText for Conformance {
    fn text_options(&self) -> TextOptions {
        let policy = self.policy("on_plain_text", OnFailure::Withhold);
        let options = TextOptions::new(self.unit).streams(self.streams.clone());
        options.priority(self.priority).on_failure(policy)
    }

    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer> {
        let outcome = self.run("on_plain_text", text, &format!("{text:?} {place:?}"))?;
        Ok(match outcome.answer.as_str() {
            "replace" | "append" | "mark" => TextAnswer::Replace(outcome.over(text)),
            "drop" => TextAnswer::replace(""),
            "pass" => outcome.said.map_or(TextAnswer::Pass, TextAnswer::Replace),
            other => bail!("`{other}` is no answer to on_plain_text"),
        })
    }
}

impl OnTag for Conformance {
    fn tag_options(&self) -> TagOptions {
        let policy = self.policy("on_tag", OnFailure::Withhold);
        TagOptions::new(self.tags.clone()).priority(self.priority).on_failure(policy)
    }

    fn on_tag(&mut self, tag: &Tag, place: &TagPlace) -> Result<TagAnswer> {
        let outcome = self.run("on_tag", &tag.content, &format!("{tag:?} {place:?}"))?;
        Ok(match outcome.answer.as_str() {
            "replace" | "append" => TagAnswer::Replace(outcome.over(&tag.content)),
            "drop" => TagAnswer::replace(""),
            "content" | "mark" => TagAnswer::Content(outcome.over(&tag.content)),
            "pass" => outcome.said.map_or(TagAnswer::Keep, TagAnswer::Replace),
            other => bail!("`{other}` is no answer to on_tag"),
        })
    }
}

impl OnLlmOutput for Conformance {
    fn output_options(&self) -> OutputOptions {
        let policy = self.policy("on_llm_output", OnFailure::Withhold);
        OutputOptions::new(self.mode).priority(self.priority).on_failure(policy)
    }

    fn on_llm_output(&mut self, output: &LlmOutput) -> Result<OutputAnswer> {
        let outcome = self.run("on_llm_output", &output.text, &format!("{output:?}"))?;
        let mut answer = match outcome.answer.as_str() {
            "replace" | "append" | "mark" => OutputAnswer::replace(outcome.over(&output.text)),
            "drop" => OutputAnswer::replace(""),
            "pass" => outcome.said.map_or_else(OutputAnswer::pass, OutputAnswer::replace),
            other => bail!("`{other}` is no answer to on_llm_output"),
        };
        answer.annotations = outcome.annotations;
        Ok(answer)
    }
}

impl TtsrTriggered for Conformance {
    fn ttsr_options(&self) -> TtsrOptions {
        TtsrOptions::default().priority(self.priority)
    }

    fn ttsr_triggered(&mut self, event: &TtsrEvent) -> Result<()> {
        let script = event.matches.first().map(|found| found.text.clone()).unwrap_or_default();
        let outcome = self.run("ttsr_triggered", &script, &format!("{event:?}"))?;
        if let Some(said) = outcome.said {
            log::info(said);
        }
        Ok(())
    }
}

impl OnToolCall for Conformance {
    fn call_options(&self) -> CallOptions {
        CallOptions::default().priority(self.priority).on_failure(self.policy("on_tool_call", OnFailure::Reject))
    }

    fn on_tool_call(&mut self, call: &AskedCall) -> Result<CallAnswer> {
        let arguments: BTreeMap<String, String> = call.read().unwrap_or_default();
        let script = arguments.into_values().collect::<Vec<_>>().join("\n");
        let outcome = self.run("on_tool_call", &script, &format!("{call:?}"))?;
        Ok(match outcome.answer.as_str() {
            "replace" | "append" | "mark" => {
                let text = outcome.over(&script);
                CallAnswer::replace(BTreeMap::from([("text", text)]))?
            }
            "arguments" => CallAnswer::Replace(outcome.text),
            "drop" => CallAnswer::Replace("{}".to_owned()),
            "reject" => CallAnswer::deny(outcome.text),
            "hide" => CallAnswer::deny_showing("hidden", BTreeMap::from([("text", outcome.text)]))?,
            "pass" => match outcome.said {
                Some(said) => CallAnswer::deny(said),
                None => CallAnswer::Pass,
            },
            other => bail!("`{other}` is no answer to on_tool_call"),
        })
    }
}

impl OnToolResult for Conformance {
    fn result_options(&self) -> ResultOptions {
        ResultOptions::default().priority(self.priority).on_failure(self.policy("on_tool_result", OnFailure::Withhold))
    }

    fn on_tool_result(&mut self, result: &GivenResult) -> Result<ResultAnswer> {
        let script = result.text();
        let outcome = self.run("on_tool_result", &script, &format!("{result:?}"))?;
        let mut answer = match outcome.answer.as_str() {
            "replace" | "append" | "mark" => ResultAnswer::replace(outcome.over(&script)),
            "drop" => ResultAnswer::replace(""),
            "pass" => outcome.said.map_or_else(ResultAnswer::pass, ResultAnswer::replace),
            other => bail!("`{other}` is no answer to on_tool_result"),
        };
        answer.annotations = outcome.annotations;
        Ok(answer)
    }
}

/// The tool where the settings name none.
const RUN: &str =
    r#"run|Runs a script.|{"type": "object", "properties": {"script": {"type": "string"}}, "required": ["script"]}"#;

impl ToolProvider for Conformance {
    fn tools(&self) -> Vec<Tool> {
        script::run(&self.list, "tools", 0).expect("the script of `listing` runs");
        let tool = |text: &String| {
            let mut parts = text.splitn(3, '|');
            let mut part = || parts.next().unwrap_or_default();
            let tool = Tool::new(part(), part(), part());
            if tool.name.starts_with("get") { tool.read_only() } else { tool }
        };
        self.tools.iter().map(tool).collect()
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer> {
        let mut arguments: BTreeMap<String, String> = call.read()?;
        let script = arguments.remove("script").unwrap_or_default();
        let outcome = self.run("tool", &script, &format!("{call:?}"))?;
        Ok(match outcome.answer.as_str() {
            "replace" | "append" | "mark" => ToolAnswer::Text(outcome.over(&script)),
            "reject" => ToolAnswer::Rejected(outcome.text),
            "pass" => ToolAnswer::Text(outcome.said.unwrap_or_default()),
            other => bail!("`{other}` is no answer to a call of a tool"),
        })
    }
}

tidegate_sdk::export!(
    Conformance: OnInputMessages, OnPlainText, OnTag, OnLlmOutput, TtsrTriggered, OnToolCall, OnToolResult, ToolProvider
);

#[cfg(test)]
mod tests;
