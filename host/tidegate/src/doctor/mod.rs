//! Checks a host before anybody relies on it: the provider answers, plugins load, every registered callback can be
//! called, every rule can fire, sessions can be recorded.

pub(crate) mod commands;
pub(crate) mod context;
pub(crate) mod rules;
mod settings;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::{Operator, PluginEntry, Policy, in_one_line};
use flow::ports::{EventSink, Extensions, SessionInfo, SessionView, TtsrEvent};
use flow::{
    Action, AskedCall, CallFailure, CallId, CallbackKind, Called, Diagnostic, DiagnosticCode, EventKind, Evidence,
    FailureCause, GivenResult, Message, ModelOutput, NoAnswer, Permission, PluginId, ResultStage, RuleMatch,
    RunPosition, SessionId, StopReason, StreamKind, Tag, TagPattern, TagPlace, TextPlace, ToolCall, Usage,
};
use providers::ProviderConfig;
use store::TranscriptStore;
use system::SystemClock;

use crate::conversation::gaps::gap_checks;
use crate::doctor::context::context_check;
use crate::doctor::rules::rule_checks;
use crate::doctor::settings::settings_checks;
use crate::host::blocking;
use crate::host::load::{self, Faults, Wanted};
use crate::host::loaded::Loaded;
use crate::host::stored::Stored;
use crate::session::options::new_session_id;
use crate::{Host, HostBuilder, HostError, SessionOptions};

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// It works, with a warning.
    Warning,
    /// It does not work.
    Bad,
}

/// The result of one check of the doctor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Check {
    /// What was checked: `provider`, `plugin ID`, `callback ID NAME`, `rule NAME`.
    pub what: String,
    /// What was found.
    pub health: Health,
    /// The result in words; if it is not good, with what to do about it.
    pub detail: String,
    /// The code of the problem, if it has one.
    pub code: Option<DiagnosticCode>,
    /// It is about a rule that comes with the program. There are many: a front end may count those without a problem.
    pub is_built_in: bool,
}

impl HostBuilder {
    /// Runs all checks for a workspace, whatever is wrong: a plugin that cannot be loaded is reported and left out, and no provider
    /// need be chosen. The documentation of [`Host::doctor`] applies to the rest.
    pub async fn doctor(self, workspace: impl AsRef<Path>) -> Vec<Check> {
        let wanted = Wanted::of(&SessionOptions::new(workspace));
        // Nothing is asked or sent where what everything is to be under is not known.
        let this = match blocking(move || self.under_policy()).await {
            Ok(this) => this,
            Err(error) => return vec![Check::bad(POLICY, &error)],
        };
        let policy = policy_check(this.policy.as_deref(), &this.replaced);
        let disabled = disabled(&this.operator);
        let loading = blocking(move || {
            let provider = this.connects_model.then(|| this.provider());
            let transcripts = this.transcripts().and_then(|store| check_transcripts(store.as_ref()));
            let mut faults = Faults::Note(Vec::new());
            let shared = load::shared(this, &mut faults).map(Arc::new);
            let loaded = shared.and_then(|shared| load::workspace(&shared, &wanted, None, None, &mut faults));
            let noted = if let Faults::Note(noted) = faults { noted } else { Vec::new() };
            Ok((provider, noted, loaded, transcripts))
        });
        let (provider, noted, loaded, transcripts) = match loading.await {
            Ok(loading) => loading,
            Err(error) => return vec![Check::bad("setup", &error)],
        };
        let mut checks: Vec<Check> = policy.into_iter().collect();
        if let Some(provider) = provider {
            checks.push(check_provider(provider.as_ref()).await);
        }
        checks.extend(noted.iter().map(|(what, error)| Check::bad(what, error)));
        checks.extend(disabled);
        match loaded {
            Ok(loaded) => checks.extend(check_loaded(&loaded).await),
            Err(error) => checks.push(Check::bad("setup", &error)),
        }
        checks.extend(transcripts.unwrap_or_else(|error| Some(Check::bad(TRANSCRIPTS, &error))));
        checks
    }
}

impl Host {
    /// Runs all checks for a workspace. The provider is asked for its models (no tokens are spent); callbacks are called in a session
    /// of their own with small samples, so that real sessions are not touched. Rules are reported as they are now.
    pub async fn doctor(&self, workspace: impl AsRef<Path>) -> Vec<Check> {
        let shared = self.live.shared();
        let mut checks: Vec<Check> = policy_check(shared.basis.policy.as_deref(), &[]).into_iter().collect();
        if let Some(provider) = &self.provider {
            checks.push(check_provider(Ok(provider)).await);
        }
        checks.extend(disabled(&self.live.shared().operator));
        match self.loaded(workspace).await {
            Ok(loaded) => checks.extend(check_loaded(&loaded).await),
            Err(error) => checks.push(Check::bad("setup", &error)),
        }
        let transcripts = self.transcripts().cloned();
        let checked = blocking(move || check_transcripts(transcripts.as_ref())).await;
        checks.extend(checked.unwrap_or_else(|error| Some(Check::bad(TRANSCRIPTS, &error))));
        checks
    }
}

/// The check of the policy of the machine.
const POLICY: &str = "policy";

/// What the policy enforces, and which entries of the operator have no effect under it; `None`: there is none.
fn policy_check(policy: Option<&Policy>, replaced: &[PluginEntry]) -> Option<Check> {
    let policy = policy?;
    let detail = format!("{}: {}", policy.file.display(), policy.summary());
    let place = |entry: &PluginEntry| match &entry.place {
        Some(place) => format!("{}:{}", place.file.path.display(), place.line()),
        None => entry.folder.display().to_string(),
    };
    let places: Vec<String> = replaced.iter().map(place).collect();
    Some(match places.is_empty() {
        true => Check::good(POLICY, detail),
        false => {
            let detail = format!("{detail}; entries of plugins without effect under it: {}", places.join(", "));
            Check { health: Health::Warning, ..Check::good(POLICY, detail) }
        }
    })
}

/// Plugins that the operator's file switches off. One that is required is a guard that does not work.
fn disabled(operator: &Operator) -> Vec<Check> {
    let check = |entry: &PluginEntry| {
        let what = format!("plugin {}", entry.folder.strip_prefix(".").unwrap_or(&entry.folder).display());
        if entry.required {
            let detail = "disabled, although it is `required`; remove one of `enabled = false` and `required = true`";
            Check { health: Health::Warning, ..Check::good(what, detail) }
        } else {
            Check::good(what, "disabled: `enabled = false`")
        }
    };
    operator.disabled.iter().map(check).collect()
}

/// The check of the place that sessions are recorded in.
const TRANSCRIPTS: &str = "transcripts";

/// Whether a new session could be recorded; `None`: sessions are not recorded.
///
/// # Errors
/// Their place cannot be written.
fn check_transcripts(store: Option<&TranscriptStore>) -> Result<Option<Check>, HostError> {
    let Some(store) = store else { return Ok(None) };
    let promised = store.check_writable()?;
    let health = if promised.is_durable == Some(false) { Health::Warning } else { Health::Good };
    Ok(Some(Check::new(TRANSCRIPTS, health, promised.detail)))
}

impl Check {
    /// Creates a check of something that the host does not have, such as a server of a front end.
    pub fn new(what: impl Into<String>, health: Health, detail: impl Into<String>) -> Self {
        Self { health, ..Self::good(what, detail) }
    }

    pub(crate) fn good(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { what: what.into(), health: Health::Good, detail: detail.into(), code: None, is_built_in: false }
    }

    pub(crate) fn bad(what: impl Into<String>, error: &HostError) -> Self {
        Self { code: error.code(), ..Self::failed(what, error.in_one_line()) }
    }

    pub(crate) fn failed(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { health: Health::Bad, ..Self::good(what, detail) }
    }

    pub(crate) fn of(what: &str, found: &Diagnostic) -> Self {
        let health = if found.is_error() { Health::Bad } else { Health::Warning };
        Self { health, code: Some(found.code), ..Self::good(what, in_one_line(found)) }
    }
}

async fn check_provider(provider: Result<&ProviderConfig, &HostError>) -> Check {
    let what = "provider";
    match provider {
        Ok(config) => match providers::check(config).await {
            Ok(detail) => Check::good(what, detail),
            Err(error) => Check::failed(what, error.to_string()),
        },
        Err(error) => Check::bad(what, error),
    }
}

async fn check_loaded(loaded: &Loaded) -> Vec<Check> {
    let mut checks = check_plugins(loaded).await;
    checks.extend(tool_checks(loaded));
    checks.extend(gap_checks(loaded));
    checks.extend(loaded.builtin.iter().map(|tools| commands::check(&tools.command_variables())));
    checks.push(check_store(loaded).await);
    checks.extend(rule_checks(loaded));
    checks.extend(context_check(loaded));
    checks.extend(settings_checks(loaded));
    checks.extend(loaded.other_warnings().map(|one| Check::of("setup", &one)));
    checks
}

async fn check_plugins(loaded: &Loaded) -> Vec<Check> {
    let plugins = loaded.plugins();
    let mut checks: Vec<Check> = plugins
        .iter()
        .map(|plugin| {
            let names: Vec<&str> = plugin.callbacks.iter().map(|one| one.kind().as_str()).collect();
            let callbacks = if names.is_empty() { "no callbacks".to_owned() } else { names.join(", ") };
            let tools: Vec<&str> = plugin.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
            let tools = if tools.is_empty() { String::new() } else { format!("; tools: {}", tools.join(", ")) };
            let count = |number, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
            let (rules, prompts) = (count(plugin.rules, "rule"), count(plugin.prompts, "prompt"));
            let detail = format!("{}: {callbacks}{tools}; {rules}, {prompts}", plugin.version);
            Check::good(format!("plugin {}", plugin.id), detail)
        })
        .collect();
    // A store of its own: a check changes no state that is kept.
    let plugins = loaded.extensions.with_store(Stored::memory(Arc::new(SystemClock)).sessions);
    let host = loaded.with_native(Arc::new(plugins));
    let extensions = match host.open(&new_session_id(), Arc::new(Nothing), Arc::new(Nothing)).await {
        Ok(extensions) => extensions,
        Err(error) => {
            checks.push(Check::bad("callbacks", &HostError::from(error)));
            return checks;
        }
    };
    for (index, one) in loaded.registrations().iter().enumerate() {
        for registered in &one.callbacks {
            let what = format!("callback {} {}", one.plugin, registered.kind().as_str());
            checks.push(check_callback(&*extensions, index, &registered.callback, what).await);
        }
    }
    // In memory, so that it cannot fail.
    let _ = extensions.close(Duration::ZERO).await;
    checks
}

/// The tools of plugins with their permissions. They are not called: no arguments could be made up that do no harm.
fn tool_checks(loaded: &Loaded) -> Vec<Check> {
    let check = |(tool, plugin): (&str, &PluginId)| {
        let permission = match loaded.provided.permission(tool, &loaded.decisions) {
            Some(Permission::Deny { .. }) => "deny",
            Some(Permission::Ask { .. }) => "ask",
            Some(Permission::Allow) | None => "allow",
        };
        Check::good(format!("tool {tool}"), format!("of plugin {plugin}; permission: {permission}"))
    };
    loaded.provided.owners().map(check).collect()
}

/// Whether a session could be opened in the operator's store, and what the store has.
async fn check_store(loaded: &Loaded) -> Check {
    let what = "state store";
    let opened = async {
        let stored = &loaded.shared.basis.stored;
        stored.admin.check().await?;
        let session = stored.sessions.open(&new_session_id()).await?;
        session.close(Duration::ZERO).await?;
        stored.admin.sessions().await
    };
    match opened.await {
        Ok(list) => {
            let bytes: u64 = list.sessions.iter().flat_map(|session| &session.plugins).map(|plugin| plugin.bytes).sum();
            let (sessions, unread) = (list.sessions.len(), list.problems.len());
            let kept =
                format!("a session was opened and closed; sessions with stored state: {sessions}, {bytes} bytes");
            match list.problems.first() {
                None => Check::good(what, kept),
                Some(first) => Check::failed(what, format!("{kept}; {unread} cannot be read: {first}")),
            }
        }
        Err(error) => Check::bad(what, &HostError::from(error)),
    }
}

/// What an operator can do about a failure of this kind; `None` where only the plugin's author can.
pub fn remedy(failure: &CallFailure) -> Option<&'static str> {
    match (failure.cause, &failure.called) {
        (FailureCause::Timeout, Called::Tool(_)) => Some(
            "`tool_ms` under `[plugin.limits]` gives it more time; its start has `callback_ms`, a migration `turn_ms`",
        ),
        (FailureCause::Timeout, Called::Callback(CallbackKind::PlainText | CallbackKind::Tag)) => Some(
            "`text_ms` under `[plugin.limits]` gives it more time; its start has `callback_ms`, a migration `turn_ms`",
        ),
        (FailureCause::Timeout, Called::Callback(_)) => {
            Some("`callback_ms` under `[plugin.limits]` gives it and its start more time; a migration has `turn_ms`")
        }
        (FailureCause::Memory, _) => Some("`memory_mib` under `[plugin.limits]` gives it more"),
        (FailureCause::Size, Called::Tool(_)) => {
            Some("`tool_output_kib` under `[plugin.limits]` lets it give back more")
        }
        (FailureCause::Size, Called::Callback(_)) => {
            Some("`output_kib` under `[plugin.limits]` lets it give back more")
        }
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
        flow::Callback::ToolCall => extensions.tool_call(plugin, &sample_call()).await.err(),
        flow::Callback::ToolResult => extensions.tool_result(plugin, &sample_result()).await.err(),
    };
    match failed {
        None => Check::good(what, "called successfully"),
        Some(NoAnswer::NotPermitted(why) | NoAnswer::NoInstance(why)) => {
            Check::failed(what, format!("it was not called: {why}"))
        }
        Some(NoAnswer::Failed(failure)) => {
            let help = remedy(&failure).map(|help| format!("; {help}")).unwrap_or_default();
            Check::failed(what, format!("{failure}{help}"))
        }
    }
}

fn sample_call() -> AskedCall {
    let call = ToolCall { id: CallId::new("ping"), name: "ping".into(), arguments: "{}".into() };
    AskedCall { at: RunPosition::default(), call, edited: false }
}

fn sample_result() -> GivenResult {
    let AskedCall { at, call, .. } = sample_call();
    GivenResult { at, call, stage: ResultStage::Done, content: vec!["ping".into()], diff: None, is_error: false }
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
    ModelOutput {
        at: RunPosition::default(),
        text: "ping".into(),
        tool_calls: Vec::new(),
        stop: StopReason::EndTurn,
        usage: Usage::default(),
    }
}

fn sample_event() -> TtsrEvent {
    let evidence = Evidence {
        pattern: "ping".into(),
        text: "ping".into(),
        start: 0,
        end: 4,
        line: 1,
        field: None,
        path: None,
        unread: false,
    };
    let found = RuleMatch { rule: "doctor-sample".into(), stream: StreamKind::Text, evidence };
    TtsrEvent { matches: vec![found], action: Action::Pass, place: RunPosition { turn: 1, step: 1, attempt: 1 } }
}

/// An empty session without subscribers.
struct Nothing;

impl EventSink for Nothing {
    fn emit(&self, _: EventKind) {}
}

impl SessionView for Nothing {
    fn info(&self) -> SessionInfo {
        let (provider, model, workspace) = (String::new(), String::new(), String::new());
        let agent = config::agents::MAIN.to_owned();
        SessionInfo { id: SessionId::new("doctor"), place: RunPosition::default(), provider, model, workspace, agent }
    }

    fn history_len(&self) -> usize {
        0
    }

    fn history(&self, _: usize, _: usize) -> Vec<(u64, Arc<Message>)> {
        Vec::new()
    }

    fn tools(&self) -> Vec<flow::ToolSpec> {
        Vec::new()
    }
}
