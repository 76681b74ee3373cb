//! Checks a host before anybody relies on it: the provider answers, plugins load, every registered callback can be
//! called, every rule can fire.

use std::sync::Arc;

use flow::{
    Action, EventKind, Evidence, FailureCause, Message, ModelOutput, Place, RuleMatch, SessionId, StopReason,
    StreamKind, Tag, TagPattern, TagPlace, TextPlace, Usage,
};
use rules::{Bucket, RuleState};
use turn::ports::{EventSink, ExtensionHost, Extensions, SessionInfo, SessionView, TtsrEvent};

use crate::{Host, assemble};

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// It works, and somebody should look.
    Warning,
    /// It does not work.
    Bad,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was checked: `provider`, `plugin ID`, `callback ID NAME`, `rule NAME`.
    pub what: String,
    /// What was found.
    pub health: Health,
    /// In words, with what to do where it is not good.
    pub detail: String,
}

impl Host {
    /// Runs all checks. The provider is asked for its models (no tokens are spent); callbacks are called in a session of
    /// their own with small samples, so that real sessions are not touched.
    pub async fn doctor(&self) -> Vec<Check> {
        let mut checks = vec![self.check_provider().await];
        let loaded = self.loaded();
        let extensions = loaded.extensions.open(SessionId::new("doctor"), Arc::new(Nothing), Arc::new(Nothing));
        let registrations = loaded.extensions.registrations();
        for plugin in loaded.plugins() {
            let what = format!("plugin {}", plugin.id);
            let names: Vec<&str> = plugin.callbacks.iter().map(|(callback, _)| callback.as_str()).collect();
            let callbacks = if names.is_empty() { "no callbacks".to_owned() } else { names.join(", ") };
            let detail = format!("{}: {callbacks}; {} rules, {} prompts", plugin.version, plugin.rules, plugin.prompts);
            checks.push(Check { what, health: Health::Good, detail });
        }
        for (index, one) in registrations.iter().enumerate() {
            for (callback, _) in &one.callbacks {
                let what = format!("callback {} {}", one.plugin, callback.kind().as_str());
                checks.push(check_callback(&*extensions, index, callback, what).await);
            }
        }
        loaded.extensions.forget(&SessionId::new("doctor"));
        let offered: Vec<String> = loaded.tools.specs().into_iter().map(|tool| tool.name).collect();
        checks.extend(loaded.rules.rules().filter(|info| info.rule.bucket == Bucket::Stream).map(|info| {
            let what = format!("rule {}", info.rule.name);
            let idle = assemble::idle(info.rule, &offered);
            let (health, detail) = match (info.state, idle) {
                (RuleState::Active, Some(why)) => (Health::Warning, format!("cannot fire: {why}")),
                (RuleState::Active, None) => (Health::Good, format!("watches {}", info.scopes.join(", "))),
                (RuleState::Disabled(why), _) => (Health::Good, format!("switched off: {why}")),
                (RuleState::Shadowed(by), _) => (Health::Warning, format!("not used: {by}")),
                (RuleState::Unreachable(why), _) => (Health::Bad, format!("can never fire: {why}")),
            };
            Check { what, health, detail }
        }));
        let warning = |one: &config::Diagnostic| Check {
            what: "setup".into(),
            health: if one.severity == config::Severity::Error { Health::Bad } else { Health::Warning },
            detail: in_one_line(one),
        };
        checks.extend(loaded.warnings().iter().map(warning));
        checks
    }

    async fn check_provider(&self) -> Check {
        let what = "provider".to_owned();
        match providers::check(&self.provider).await {
            Ok(detail) => Check { what, health: Health::Good, detail },
            Err(error) => Check { what, health: Health::Bad, detail: error.to_string() },
        }
    }
}

/// A diagnostic with its place and what to do, for a list of checks.
fn in_one_line(one: &config::Diagnostic) -> String {
    let place = one.place.as_ref().map(|(place, _)| format!(" ({})", place.line())).unwrap_or_default();
    let help = one.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{}{place}{help}", one.message)
}

/// What an operator can do about a failure of this kind; `None` where only the plugin's author can.
pub fn remedy(cause: FailureCause) -> Option<&'static str> {
    match cause {
        FailureCause::Timeout => {
            Some("`callback_ms`, `text_ms` and `turn_ms` under `[plugin.limits]` give it more time")
        }
        FailureCause::Memory => Some("`memory_mib` under `[plugin.limits]` gives it more"),
        FailureCause::Size => Some("`output_kib` under `[plugin.limits]` lets it give back more"),
        _ => None,
    }
}

/// Calls one callback with a small sample. An answer of any kind is good: it can be called.
async fn check_callback(extensions: &dyn Extensions, plugin: usize, callback: &flow::Callback, what: String) -> Check {
    let failed = match callback {
        flow::Callback::InputMessages => extensions.input_messages(plugin, &[Message::user("ping")]).await.err(),
        flow::Callback::PlainText(_) => extensions.plain_text(plugin, "ping\n", &TextPlace::default()).await.err(),
        flow::Callback::Tag(patterns) => {
            extensions.tag(plugin, &sample_tag(patterns), &TagPlace::default()).await.err()
        }
        flow::Callback::LlmOutput(_) => extensions.llm_output(plugin, &sample_output()).await.err(),
        flow::Callback::TtsrTriggered => extensions.ttsr_triggered(plugin, &sample_event()).await.err(),
    };
    match failed {
        None => Check { what, health: Health::Good, detail: "called, and it answered".into() },
        Some(failure) => {
            let help = remedy(failure.cause).map(|help| format!("; {help}")).unwrap_or_default();
            Check { what, health: Health::Bad, detail: format!("{failure}{help}") }
        }
    }
}

fn sample_tag(patterns: &[TagPattern]) -> Tag {
    let name = match patterns.first() {
        Some(TagPattern::Exact(name)) => name.clone(),
        Some(TagPattern::Prefix(prefix)) => format!("{prefix}x"),
        None => "x".to_owned(),
    };
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    Tag { name, attributes: Vec::new(), open, content: "ping".into(), close }
}

fn sample_output() -> ModelOutput {
    ModelOutput { text: "ping".into(), tool_calls: Vec::new(), stop: StopReason::EndTurn, usage: Usage::default() }
}

fn sample_event() -> TtsrEvent {
    let evidence =
        Evidence { pattern: "ping".into(), text: "ping".into(), start: 0, end: 4, line: 1, field: None, path: None };
    let found = RuleMatch { rule: "doctor-sample".into(), stream: StreamKind::Text, evidence };
    TtsrEvent { matches: vec![found], action: Action::Pass, place: Place { turn: 1, step: 1, attempt: 1 } }
}

/// A session in which nothing has happened and nobody listens.
struct Nothing;

impl EventSink for Nothing {
    fn emit(&self, _: EventKind) {}
}

impl SessionView for Nothing {
    fn info(&self) -> SessionInfo {
        let (provider, model, workspace) = (String::new(), String::new(), String::new());
        SessionInfo { id: SessionId::new("doctor"), place: Place::default(), provider, model, workspace }
    }

    fn history(&self, _: usize, _: usize) -> Vec<Arc<Message>> {
        Vec::new()
    }

    fn tools(&self) -> Vec<flow::ToolSpec> {
        Vec::new()
    }
}
