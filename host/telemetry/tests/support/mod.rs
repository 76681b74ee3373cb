//! Events as data: what a session emits, a short line each.

use flow::{
    Action, BreakerScope, BreakerState, CallFailure, CallId, CallbackKind, CallbackOutcome, CallbackReport, Called,
    Charged, ErrorClass, ErrorMetadata, Event, EventKind, Evidence, FailureCause, PluginId, RegistrationAction,
    RuleMatch, RuleRecord, RunPosition, SessionId, StepEnd, StopReason, StreamKind, ThreadMode, ToolOutcome,
    ToolReport, TurnStatus, Usage,
};
use tidegate_telemetry::SessionMetrics;

/// Observes events of one attempt of a turn, in order.
pub(crate) fn observe(session: &mut SessionMetrics, attempt: u32, kinds: impl IntoIterator<Item = EventKind>) {
    let place = RunPosition { turn: 1, step: 1, attempt };
    for (seq, kind) in (0..).zip(kinds) {
        session.observe(&Event::new(seq, 0, place, kind));
    }
}

pub(crate) fn plugin(id: &str) -> PluginId {
    id.parse().unwrap()
}

pub(crate) fn started(model: &str) -> EventKind {
    EventKind::ThreadStarted {
        session: SessionId::new("s"),
        agent: "main".into(),
        provider: "p".into(),
        model: model.into(),
        workspace: String::new(),
        mode: ThreadMode::default(),
        inputs: Default::default(),
    }
}

pub(crate) fn registered(id: &str) -> EventKind {
    changed(id, RegistrationAction::Register)
}

pub(crate) fn changed(id: &str, action: RegistrationAction) -> EventKind {
    let (plugin, version, callbacks) = (plugin(id), "1.0.0".to_owned(), Vec::new());
    match action {
        RegistrationAction::Unregister | RegistrationAction::Disable => {
            EventKind::ExtensionUnregistered { plugin, action, reason: "r".into() }
        }
        RegistrationAction::Register | RegistrationAction::Enable | RegistrationAction::Reload => {
            EventKind::ExtensionRegistered { plugin, version, action, callbacks }
        }
    }
}

/// A call of `on_tag` that took so many microseconds and read so many values.
pub(crate) fn called(id: &str, outcome: CallbackOutcome, micros: u64, reads: u64) -> EventKind {
    let report = CallbackReport::new(plugin(id), CallbackKind::Tag, outcome, micros * 1000);
    EventKind::ExtensionCallback(report.with_state_reads(reads))
}

pub(crate) fn failed(id: &str) -> CallbackOutcome {
    CallbackOutcome::Failed(CallFailure {
        plugin: plugin(id),
        called: CallbackKind::Tag.into(),
        cause: FailureCause::Trap,
        message: "it trapped".into(),
        frames: Vec::new(),
    })
}

/// A call of a tool of the extension that read so many values.
pub(crate) fn ran(id: &str, reads: u64) -> EventKind {
    let report = ToolReport::new(plugin(id), "t".into(), CallId::new("1"), ToolOutcome::Done, 1);
    EventKind::ExtensionTool(report.with_state_reads(reads))
}

/// A call of a tool of the extension that ended so, after so many microseconds.
pub(crate) fn tool_of(id: &str, outcome: ToolOutcome, micros: u64) -> EventKind {
    EventKind::ExtensionTool(ToolReport::new(plugin(id), "note_add".into(), CallId::new("1"), outcome, micros * 1000))
}

pub(crate) fn custom(id: &str) -> EventKind {
    let (event_type, plugin) = (format!("{id}.added"), Some(plugin(id)));
    EventKind::CustomEvent { event_type, plugin, payload: std::sync::Arc::default() }
}

pub(crate) fn breaker(id: &str, state: BreakerState) -> EventKind {
    breaker_of(id, BreakerScope::Session, state)
}

pub(crate) fn breaker_of(id: &str, scope: BreakerScope, state: BreakerState) -> EventKind {
    let (called, reason) = (CallbackKind::Tag.into(), "r".to_owned());
    EventKind::ExtensionBreaker { plugin: plugin(id), called, scope, state, reason, retry_after_ms: 0 }
}

pub(crate) fn breaker_of_tools(id: &str, state: BreakerState) -> EventKind {
    EventKind::ExtensionBreaker {
        plugin: plugin(id),
        called: Called::Tool("run".to_owned()),
        scope: BreakerScope::Session,
        state,
        reason: "r".to_owned(),
        retry_after_ms: 0,
    }
}

pub(crate) fn state(id: &str, operation: &str, size_bytes: u64) -> EventKind {
    EventKind::ExtensionState { plugin: plugin(id), operation: operation.into(), key: "k".into(), size_bytes }
}

pub(crate) fn tool(name: &str, is_error: bool, duration_ms: u64) -> EventKind {
    EventKind::ToolCallResult {
        call: CallId::new("1"),
        tool: name.into(),
        output: String::new(),
        reminder: None,
        diff: None,
        is_error,
        duration_ms: Some(duration_ms),
        waited_ms: None,
        original: None,
        annotations: Vec::new(),
    }
}

fn evidence() -> Evidence {
    let (pattern, text) = ("x".to_owned(), "x".to_owned());
    Evidence { pattern, text, start: 0, end: 1, line: 1, field: None, path: None, unread: false }
}

pub(crate) fn fired(rule: &str, action: Action) -> EventKind {
    let found = RuleMatch { rule: rule.into(), stream: StreamKind::Text, evidence: evidence() };
    EventKind::RuleFired { found, action, first: true, again: false }
}

/// A reminder of a rule that stopped an answer of so many tokens.
pub(crate) fn injected(rule: &str, tokens_discarded: u64) -> EventKind {
    let record = RuleRecord {
        rule: rule.into(),
        hash: 0,
        turn: 1,
        stream: StreamKind::Text,
        evidence: evidence(),
        action: Action::Interrupt,
        tokens_discarded,
        tokens_estimated: true,
    };
    EventKind::TtsrInjection { rules: vec![rule.into()], discarded_bytes: 4 * tokens_discarded, records: vec![record] }
}

pub(crate) fn usage(input: u64, output: u64) -> Usage {
    Usage { input: Some(input), output: Some(output), ..Usage::default() }
}

pub(crate) fn step(usage: Usage) -> EventKind {
    EventKind::StepFinish {
        usage,
        spend: None,
        charged: Charged::default(),
        end: StepEnd::Answered(StopReason::EndTurn),
        context_tokens: None,
    }
}

pub(crate) fn error(class: ErrorClass) -> EventKind {
    EventKind::ErrorClassified {
        class,
        code: "c".into(),
        message: "m".into(),
        retryable: false,
        metadata: ErrorMetadata::default(),
    }
}

pub(crate) fn retry() -> EventKind {
    EventKind::RetryScheduled { retry: 1, max_retries: 3, delay_ms: 1, asked: false }
}

pub(crate) fn turn(status: TurnStatus) -> EventKind {
    EventKind::TurnFinish { status }
}

/// Every kind of number once: a session whose answer was stopped by a rule, sent again after an error, and accepted.
pub(crate) fn whole_session(session: &mut SessionMetrics) {
    observe(session, 0, [started("m-1"), registered("notes"), registered("shaky")]);
    observe(
        session,
        1,
        [fired("no-guess", Action::Interrupt), injected("no-guess", 12), fired("style", Action::Remind)],
    );
    observe(session, 2, [error(ErrorClass::RateLimited), retry()]);
    let cached = Usage { cache_read: Some(60), ..usage(100, 30) };
    observe(
        session,
        3,
        [
            called("notes", CallbackOutcome::Changed, 40, 2),
            called("notes", CallbackOutcome::Passed, 7, 0),
            called("shaky", failed("shaky"), 20_500, 0),
            breaker("shaky", BreakerState::Open),
            called("shaky", CallbackOutcome::Skipped("it is open".into()), 0, 0),
            state("notes", "set", 300),
            state("notes", "set", 11_000_000),
            state("notes", "evict", 200),
            tool_of("notes", ToolOutcome::Done, 1_500),
            tool_of("notes", ToolOutcome::Rejected("r".into()), 400),
            tool_of("notes", ToolOutcome::NotPermitted("it is open".into()), 0),
            custom("notes"),
            tool("read_file", false, 3),
            tool("read_file", true, 900_000),
            step(cached),
            turn(TurnStatus::Completed),
        ],
    );
}
