//! Reports which stream rules fired in a session: a line in the log for each, counts in state, and a note on every answer
//! that comes after one. The rules themselves are in plugin.toml.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_sdk::prelude::*;
use tidegate_sdk::{RuleAction, RuleStream};

/// State: what fired, by rule.
const FIRED: &str = "fired";
/// The note on an answer: what has fired in this session, by rule.
const NOTE: &str = "team-guard.fired";

/// What a rule did in this session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Fired {
    /// How often it matched.
    times: u32,
    /// How often that stopped an answer, a call or the turn.
    stopped: u32,
    /// Where it matched last: a file, a tool, `text` or `thinking`.
    last: String,
}

#[derive(Default)]
struct TeamGuard;

impl TtsrTriggered for TeamGuard {
    fn ttsr_triggered(&mut self, event: &TtsrEvent) -> Result<()> {
        let stopped = matches!(event.action, RuleAction::Interrupt | RuleAction::Block | RuleAction::Stop);
        let mut fired: BTreeMap<String, Fired> = state::get(FIRED)?.unwrap_or_default();
        for found in &event.matches {
            let place = place(found);
            let line = format!("rule {} fired in {place}, line {}", found.rule, found.line);
            log::write(log::Level::Info, line, &[("rule", &found.rule), ("action", event.action.as_str())]);
            let entry = fired.entry(found.rule.clone()).or_default();
            entry.times = entry.times.saturating_add(1);
            entry.stopped = entry.stopped.saturating_add(u32::from(stopped));
            entry.last = place;
        }
        state::set_with(FIRED, &fired, state::Keep::Session)?;
        Ok(())
    }
}

impl OnLlmOutput for TeamGuard {
    fn on_llm_output(&mut self, _output: &LlmOutput) -> Result<OutputAnswer> {
        match state::get::<BTreeMap<String, Fired>>(FIRED)? {
            Some(fired) if !fired.is_empty() => OutputAnswer::pass().annotate(NOTE, &fired),
            _ => Ok(OutputAnswer::pass()),
        }
    }
}

fn place(found: &RuleMatch) -> String {
    match (&found.path, &found.stream) {
        (Some(path), _) => path.clone(),
        (None, RuleStream::Text) => "text".into(),
        (None, RuleStream::Thinking) => "thinking".into(),
        (None, RuleStream::Tool(tool)) => tool.clone(),
        (None, RuleStream::Other(stream)) => stream.clone(),
        (None, _) => "another stream".into(),
    }
}

tidegate_sdk::export!(TeamGuard: OnLlmOutput, TtsrTriggered);

#[cfg(test)]
mod tests {
    use tidegate_sdk::testing::Harness;

    use super::*;

    fn plugin() -> Harness<TeamGuard> {
        Harness::of_plugin(include_str!("../plugin.toml"))
    }

    fn event(rule: &str, stream: RuleStream, action: RuleAction) -> TtsrEvent {
        TtsrEvent::new(vec![RuleMatch::new(rule, stream, "words")], action)
    }

    #[test]
    fn nothing_fired_is_nothing_noted() {
        let shown = plugin().answer("fine");
        assert_eq!((shown.text.as_str(), shown.output, shown.failures), ("fine", OutputAnswer::pass(), Vec::new()));
    }

    #[test]
    fn what_fired_is_counted_logged_and_noted() {
        let mut harness = plugin();
        let mut in_file = event("rust-no-unwrap", RuleStream::Tool("edit_file".into()), RuleAction::Interrupt);
        in_file.matches[0].path = Some("src/main.rs".into());
        in_file.matches[0].line = 7;
        harness.ttsr_triggered(&in_file).expect("counts");
        harness.restart();
        harness.ttsr_triggered(&event("todo-needs-issue", RuleStream::Text, RuleAction::Remind)).expect("counts");
        harness.ttsr_triggered(&event("rust-no-unwrap", RuleStream::Text, RuleAction::Remind)).expect("counts");

        let fired: BTreeMap<String, Fired> = harness.state(FIRED).expect("kept");
        assert_eq!(fired["rust-no-unwrap"], Fired { times: 2, stopped: 1, last: "text".into() });
        assert_eq!(fired["todo-needs-issue"], Fired { times: 1, stopped: 0, last: "text".into() });
        assert_eq!(harness.log()[0].message, "rule rust-no-unwrap fired in src/main.rs, line 7");

        let shown = harness.answer("done");
        assert_eq!(shown.text, "done");
        let (key, json) = &shown.output.annotations[0];
        assert_eq!(key, NOTE);
        assert!(json.contains("\"rust-no-unwrap\":{\"times\":2,\"stopped\":1"), "{json}");
    }
}
