//! Records: the one that each kind of event becomes, and that it is read back as it was.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::sync::Arc;

use flow::{
    Action, Annotation, AnswerBlock, BreakerScope, BreakerState, CallFailure, CallId, Callback, CallbackKind,
    CallbackOutcome, CallbackReport, Charged, CompactionCause, CompactionMethod, Confirmation, ErrorClass, Event,
    EventKind, Evidence, ExtensionPrompt, FailureCause, HoldOutcome, InputId, InputWay, LeftOut, Limit, LimitDecision,
    LimitRequest, Message, Origin, Part, Partial, PlanEntry, PlanStatus, PluginId, Preview, PromptText, QuestionId,
    RegistrationAction, Retained, Role, RuleMatch, RuleRecord, RunPosition, SessionId, Spend, StepEnd, StopReason,
    StreamKind, SuspendReason, ThreadMode, ToolCall, ToolOutcome, ToolReport, ToolResult, TurnStatus, Usage,
    Withdrawal,
};
use serde_json::Value;

/// Fields that a record must have, by type: those of the thread-event specification, and of our own types all.
const REQUIRED: &[(&str, &[&str])] = &[
    ("thread_started", &["directive", "model", "provider", "session_id", "thread_mode"]),
    ("thread_resumed", &["resumed_by", "provider", "model"]),
    ("thread_suspended", &["suspend_reason", "message", "cost"]),
    (
        "limit_escalation_requested",
        &["limit_code", "current_value", "current_max", "proposed_max", "message", "approval_request_id"],
    ),
    ("limit_escalation_resolved", &["approval_request_id", "limit_code", "decision", "decided_by"]),
    ("input_received", &["text", "role", "hidden"]),
    ("input_queued", &["id", "way", "text", "role", "hidden"]),
    ("input_edited", &["id", "text"]),
    ("input_withdrawn", &["id", "receipt"]),
    ("history_replaced", &["messages"]),
    ("journal_failed", &["message"]),
    ("schema_violation", &["event_type", "problems"]),
    ("context_compaction_start", &["triggered_by", "pressure_ratio"]),
    ("context_compaction_end", &["prune_before_turn", "kept_messages"]),
    ("thread_completed", &["cost", "tokens"]),
    ("thread_error", &["category", "error"]),
    ("thread_cancelled", &["cancelled_by"]),
    ("turn_start", &[]),
    ("turn_finish", &["status"]),
    ("step_start", &["turn_number"]),
    ("step_finish", &["tokens", "finish_reason"]),
    ("cognition_in", &["text", "role", "hidden"]),
    ("cognition_out", &["text", "is_partial", "truncated", "author", "retained"]),
    ("cognition_out_delta", &["text", "chunk_index"]),
    ("cognition_reasoning", &["text", "is_partial", "was_interrupted"]),
    ("cognition_reasoning_delta", &["text"]),
    ("tool_call_start", &["tool", "call_id", "input"]),
    ("tool_call_progress", &["call_id", "message"]),
    ("tool_call_result", &["call_id", "output", "tool"]),
    ("tool_confirmation_requested", &["call_id", "tool", "input", "reason"]),
    ("tool_confirmation_resolved", &["call_id", "approved"]),
    ("plan_updated", &[]),
    ("retry_scheduled", &["retry", "max_retries", "delay_ms", "asked_by_provider"]),
    ("error_classified", &["error_code", "category", "retryable", "metadata"]),
    ("retry_succeeded", &["original_error", "retry_count", "total_delay_ms"]),
    ("rule_fired", &["rule", "stream", "action", "first", "again", "evidence"]),
    ("rule_hold_released", &["stream", "bytes", "bound"]),
    ("rule_held", &["stream", "rules", "holds", "bytes_max", "ms_max", "outcome"]),
    ("ttsr_injection", &["rules", "discarded_bytes", "records"]),
    ("ttsr_rearmed", &["rules"]),
    ("rules_reloaded", &["active", "notices"]),
    ("steering_message", &["role", "text"]),
    ("custom_message", &["custom_type", "text", "hidden"]),
    ("child_thread_started", &["child_thread_id", "child_directive", "parent_thread_id", "call_id"]),
    ("child_thread_failed", &["child_thread_id", "error"]),
    ("extension_registered", &["extension_id", "version", "callbacks"]),
    ("extension_breaker", &["extension_id", "scope", "state", "reason", "retry_after_ms"]),
    ("extension_withheld", &["extension_id", "callback", "bytes", "reason"]),
    ("state_lost", &["message"]),
    ("extension_unregistered", &["extension_id", "reason"]),
    ("extension_prompt", &["extension_id", "changed", "texts", "digest"]),
    ("extension_callback", &["extension_id", "callback", "duration_us", "outcome"]),
    ("extension_tool", &["extension_id", "tool", "call_id", "duration_us", "outcome"]),
    ("extension_state", &["extension_id", "operation", "key", "size_bytes"]),
    ("custom_event", &["event_type", "payload"]),
    ("extension_log", &["extension_id", "level", "message"]),
    ("notice", &["message"]),
];

fn rule_record() -> RuleRecord {
    let RuleMatch { rule, stream, evidence } = found();
    let (action, tokens_discarded, tokens_estimated) = (Action::Interrupt, 5, true);
    RuleRecord { rule, hash: u64::MAX, turn: 2, stream, evidence, action, tokens_discarded, tokens_estimated }
}

fn plugin() -> PluginId {
    "p".parse().unwrap()
}

fn found() -> RuleMatch {
    let evidence = Evidence {
        pattern: "x".into(),
        text: "x".into(),
        start: 0,
        end: 1,
        line: 1,
        field: Some("content".into()),
        path: Some("a.ts".into()),
        unread: false,
    };
    RuleMatch { rule: "r".into(), stream: StreamKind::Tool { call: CallId::new("1"), name: "write".into() }, evidence }
}

fn report(outcome: CallbackOutcome) -> EventKind {
    EventKind::ExtensionCallback(CallbackReport::new(plugin(), CallbackKind::Tag, outcome, 1500))
}

fn tool_report(outcome: ToolOutcome) -> EventKind {
    EventKind::ExtensionTool(ToolReport::new(plugin(), "note_add".into(), CallId::new("1"), outcome, 1500))
}

fn unfinished_call(call: &CallId) -> AnswerBlock {
    let mut block = AnswerBlock::prose(StreamKind::Tool { call: call.clone(), name: "t".into() }, 2);
    block.arguments = Some("{}".into());
    block.complete = false;
    block
}

fn system() -> Message {
    let parts = vec![Part::Text("one".into()), Part::Text("two".into())];
    Message { role: Role::System, origin: Origin::Host, parts, hidden: true }
}

/// A message with a part of each kind.
fn everything() -> Message {
    let call = ToolCall { id: CallId::new("1"), name: "t".into(), arguments: "{}".into() };
    let result = ToolResult { call: CallId::new("1"), content: vec!["a".into(), "b".into()], is_error: true };
    let addition = flow::AdditionId { plugin: plugin(), index: 2 };
    let parts = vec![
        Part::Text("words".into()),
        Part::Image(flow::Image::new("image/png", "iVBORw0KGgo=").unwrap()),
        Part::Thinking { text: String::new(), signature: Some("sig".into()), redacted: true, shown: None },
        Part::ToolCall(call),
        Part::ToolResult(result),
    ];
    Message { role: Role::Assistant, origin: Origin::Addition(addition), parts, hidden: false }
}

/// A question that was answered.
fn answered(decision: Confirmation, by: &str) -> EventKind {
    let (question, call) = (QuestionId::new("question-1"), CallId::new("1"));
    EventKind::ToolConfirmationResolved { question, call, decision, by: by.to_owned() }
}

fn samples() -> Vec<EventKind> {
    let (call, text, message) = (CallId::new("1"), "words".to_owned(), "words".to_owned());
    let question = QuestionId::new("question-1");
    let failure = CallFailure {
        plugin: plugin(),
        called: CallbackKind::Tag.into(),
        cause: FailureCause::Trap,
        message: "it trapped".into(),
        frames: vec!["f".into()],
    };
    let failed = TurnStatus::Failed { class: ErrorClass::Quota, message: message.clone() };
    vec![
        EventKind::ThreadStarted {
            session: SessionId::new("s"),
            agent: "main".into(),
            provider: "p".into(),
            model: "m".into(),
            workspace: "/w".into(),
            mode: ThreadMode::Channel,
            inputs: [("text".to_owned(), "go".into())].into_iter().collect(),
        },
        EventKind::ThreadResumed { by: "input".into(), suspended: None, provider: "p".into(), model: "m".into() },
        EventKind::ThreadResumed {
            by: "approval".into(),
            suspended: Some(SuspendReason::Limit),
            provider: "p".into(),
            model: "m".into(),
        },
        EventKind::ThreadSuspended {
            reason: SuspendReason::Budget,
            message: message.clone(),
            turns: 1,
            usage: Usage::default(),
            spend: Some(Spend::of_dollars(0.5)),
            duration_ms: 1,
        },
        EventKind::ThreadCompleted { turns: 1, usage: Usage::default(), spend: None, duration_ms: 1 },
        EventKind::LimitEscalationRequested(LimitRequest::new(1, Limit::Steps, 3.0, 3.0, 6.0)),
        resolved(LimitDecision::Approved { max: 6.0 }),
        resolved(LimitDecision::Denied { reason: "no".into() }),
        resolved(LimitDecision::TimedOut),
        EventKind::ThreadError { class: ErrorClass::Quota, message: message.clone() },
        EventKind::CustomEvent {
            event_type: "deployment".into(),
            plugin: Some(plugin()),
            payload: Arc::new(serde_json::json!({"target": "test"})),
        },
        EventKind::PlanUpdated { entries: vec![PlanEntry { content: text.clone(), status: PlanStatus::InProgress }] },
        EventKind::PlanUpdated { entries: Vec::new() },
        EventKind::ThreadCancelled { by: "x".into(), reason: None },
        EventKind::ThreadCancelled { by: "x".into(), reason: Some("too slow".into()) },
        EventKind::TurnStart,
        EventKind::TurnFinish { status: TurnStatus::Completed },
        EventKind::TurnFinish { status: TurnStatus::Rejected { by: plugin(), reason: "no".into() } },
        EventKind::TurnFinish { status: TurnStatus::StoppedByRule { rule: "r".into() } },
        EventKind::TurnFinish { status: TurnStatus::Cancelled },
        EventKind::TurnFinish { status: failed },
        EventKind::TurnFinish { status: TurnStatus::StepLimit { steps: 3 } },
        EventKind::TurnFinish { status: TurnStatus::NoProgress { message: message.clone() } },
        EventKind::TurnFinish {
            status: TurnStatus::Suspended { reason: SuspendReason::Limit, message: message.clone() },
        },
        EventKind::StepStart { number: 4 },
        EventKind::StepFinish {
            usage: Usage::default(),
            spend: Some(Spend::of_dollars(0.25)),
            charged: Charged::default(),
            end: StepEnd::Answered(StopReason::Other("odd".into())),
            context_tokens: Some(7),
        },
        EventKind::StepFinish {
            usage: Usage::default(),
            spend: None,
            charged: Charged::default(),
            end: StepEnd::Cancelled,
            context_tokens: None,
        },
        EventKind::InputReceived { id: None, message: Arc::new(Message::user("words")) },
        EventKind::InputReceived { id: Some(InputId::new("input-1")), message: Arc::new(Message::user("words")) },
        EventKind::InputQueued {
            id: InputId::new("input-1"),
            way: InputWay::Queue,
            message: Arc::new(Message::user("words")),
        },
        EventKind::InputQueued { id: InputId::new("x"), way: InputWay::Interrupt, message: Arc::new(everything()) },
        EventKind::InputEdited { id: InputId::new("input-1"), text: "new".into(), hidden: false },
        EventKind::InputWithdrawn { id: InputId::new("input-1"), receipt: Withdrawal::Returned },
        EventKind::CognitionIn { message: Arc::new(Message::user("words")) },
        EventKind::CognitionIn { message: Arc::new(system()) },
        EventKind::HistoryReplaced { messages: vec![Arc::new(everything()), Arc::new(system())] },
        EventKind::CognitionOut {
            text: text.clone(),
            keep: flow::KeptText::Original,
            model: Some("m".into()),
            author: Origin::Model,
            shown: None,
            partial: Some(Partial::new("gone", 3, 2).with_completion(Some(12.0))),
            retained: Retained::Start { bytes: 2 },
            blocks: vec![unfinished_call(&call)],
            annotations: vec![(plugin(), Annotation { key: "k".into(), value: Value::Bool(true) })],
            rewrites: vec![(plugin(), "new".into())],
        },
        EventKind::CognitionOut {
            text: text.clone(),
            keep: flow::KeptText::Original,
            model: None,
            author: Origin::Plugin(plugin()),
            shown: Some("other".into()),
            partial: None,
            retained: Retained::Answer,
            blocks: vec![],
            annotations: vec![],
            rewrites: vec![],
        },
        EventKind::CognitionOutDelta { text: text.clone(), index: 0, is_final: true },
        EventKind::CognitionReasoning {
            text: text.clone(),
            keep: flow::KeptText::Original,
            interrupted: true,
            retained: false,
        },
        EventKind::CognitionReasoningDelta { text: text.clone() },
        EventKind::ToolCallStart { call: call.clone(), tool: "t".into(), arguments: "no json".into() },
        EventKind::ToolCallProgress { call: call.clone(), message: message.clone(), percent: Some(12.5) },
        EventKind::ToolCallResult {
            call: call.clone(),
            tool: "t".into(),
            output: "o".into(),
            reminder: Some("m".into()),
            diff: Some("d".into()),
            is_error: true,
            duration_ms: None,
            waited_ms: Some(1),
            original: Some("before".into()),
            annotations: vec![(plugin(), Annotation { key: "k".into(), value: Value::Bool(true) })],
        },
        EventKind::ToolConfirmationRequested {
            question,
            call: call.clone(),
            tool: "t".into(),
            arguments: "{}".into(),
            reason: "r".into(),
            preview: Preview {
                arguments: vec![flow::Argument { name: "a".into(), value: "b".into() }],
                diff: Some("d".into()),
                notes: vec!["n".into()],
            },
            always: Some("t(b)".into()),
            timeout_ms: Some(5),
        },
        answered(Confirmation::Approved, "Ada"),
        answered(Confirmation::Always { pattern: "t(b)".into() }, "Ada"),
        answered(Confirmation::Edited { arguments: "{ }".into() }, "Ada"),
        answered(Confirmation::Denied { reason: "r".into() }, "Ada"),
        answered(Confirmation::Unavailable { reason: "u".into() }, ""),
        answered(Confirmation::TimedOut { approved: true }, ""),
        answered(Confirmation::Cancelled, ""),
        EventKind::ErrorClassified {
            class: ErrorClass::RateLimited,
            code: "429".into(),
            message: message.clone(),
            retryable: true,
            metadata: flow::ErrorMetadata::default(),
        },
        EventKind::RetryScheduled { retry: 1, max_retries: 3, delay_ms: 1000, asked: true },
        EventKind::RetrySucceeded { original_error: "e".into(), retry_count: 2, total_delay_ms: 3 },
        EventKind::RuleFired { found: found(), action: Action::Interrupt, first: true, again: false },
        EventKind::RuleHoldReleased { stream: StreamKind::Text, bytes: 1, bound: "hold_max_ms".into() },
        EventKind::RuleHeld {
            stream: StreamKind::Thinking,
            rules: vec!["r".into()],
            holds: 2,
            bytes_max: 3,
            ms_max: 4,
            outcome: HoldOutcome::RuledOut,
        },
        EventKind::TtsrInjection { rules: vec!["r".into()], discarded_bytes: 4, records: vec![rule_record()] },
        EventKind::TtsrRearmed { rules: vec!["r".into()] },
        EventKind::RulesReloaded { active: 2, notices: vec![text.clone()] },
        EventKind::SteeringMessage { id: None, role: Role::User, text: text.clone(), hidden: false },
        EventKind::SteeringMessage {
            id: Some(InputId::new("input-1")),
            role: Role::User,
            text: text.clone(),
            hidden: false,
        },
        EventKind::CustomMessage { custom_type: "ttsr-injection".into(), text, hidden: true },
        EventKind::ChildThreadStarted {
            child: SessionId::new("c"),
            agent: "a".into(),
            parent: SessionId::new("thread-1"),
            call: CallId::new("c1"),
        },
        EventKind::ChildThreadFailed { child: SessionId::new("c"), error: "e".into() },
        EventKind::ExtensionRegistered {
            plugin: plugin(),
            version: "1".into(),
            action: RegistrationAction::Register,
            callbacks: vec![Callback::TtsrTriggered.into()],
        },
        EventKind::ExtensionUnregistered { plugin: plugin(), action: RegistrationAction::Disable, reason: "r".into() },
        EventKind::ExtensionPrompt(ExtensionPrompt {
            plugin: plugin(),
            changed: true,
            texts: vec![PromptText::new("user_suffix", "t")],
            digest: "d".into(),
        }),
        report(CallbackOutcome::Passed),
        report(CallbackOutcome::Changed),
        report(CallbackOutcome::Skipped("why".into())),
        report(CallbackOutcome::NotPermitted("why".into())),
        report(CallbackOutcome::Ignored("why".into())),
        report(CallbackOutcome::Failed(failure.clone())),
        tool_report(ToolOutcome::Done),
        tool_report(ToolOutcome::Rejected("why".into())),
        tool_report(ToolOutcome::NotPermitted("why".into())),
        tool_report(ToolOutcome::Failed(failure)),
        tool_report(ToolOutcome::Stopped),
        EventKind::ExtensionCallback(
            CallbackReport::new(plugin(), CallbackKind::Tag, CallbackOutcome::Passed, 1).with_state_reads(2),
        ),
        EventKind::ExtensionBreaker {
            plugin: plugin(),
            called: CallbackKind::Tag.into(),
            scope: BreakerScope::Session,
            state: BreakerState::HalfOpen,
            reason: "r".into(),
            retry_after_ms: 0,
        },
        EventKind::ExtensionBreaker {
            plugin: plugin(),
            called: flow::Called::Tool("t".into()),
            scope: BreakerScope::Host,
            state: BreakerState::Open,
            reason: "r".into(),
            retry_after_ms: 0,
        },
        EventKind::ExtensionWithheld { plugin: plugin(), callback: CallbackKind::Tag, bytes: 3, reason: "r".into() },
        EventKind::ExtensionState { plugin: plugin(), operation: "set".into(), key: "k".into(), size_bytes: 1 },
        EventKind::StateLost { message: message.clone() },
        EventKind::ExtensionLog { plugin: plugin(), level: "warn".into(), message: message.clone() },
        EventKind::ContextCompactionStart {
            cause: CompactionCause::Overflow,
            method: CompactionMethod::Shorten,
            used_tokens: 9,
            ratio: 0.5,
            context_tokens: 18,
        },
        EventKind::ContextCompactionEnd {
            summary: Some("s".into()),
            prune_before_turn: 2,
            kept: 3,
            left_out: vec![
                LeftOut::ToolResult { message: 3, part: 1, tool: "read".into(), bytes: 5, head: 2, tail: 1 },
                LeftOut::Image { message: 0, part: 1, bytes: 7 },
                LeftOut::Messages { message: 0, count: 2, bytes: 9 },
            ],
            used_tokens: 4,
            error: Some("e".into()),
            usage: Usage::default(),
            spend: None,
            charged: Charged::default(),
        },
        EventKind::SchemaViolation { event_type: "notice".into(), problems: vec![("/message".into(), "no".into())] },
        EventKind::JournalFailed { message: message.clone(), recorded: Some(3) },
        EventKind::Notice { message },
    ]
}

#[test]
fn every_kind_has_its_record_with_what_it_must_have() {
    let place = RunPosition { turn: 1, step: 2, attempt: 3 };
    let mut seen = BTreeSet::new();
    for (seq, kind) in (5..).zip(samples()) {
        let event = Event::new(seq, 9, place, kind);
        let typed = record::Record::of(&event, "thread-1");
        let line = serde_json::to_string(&typed).unwrap();
        assert_eq!(record::Record::read(line.as_bytes()).unwrap(), typed, "{line}");
        assert!(!line.contains("null"), "what is not known is absent: {line}");
        let record = record::json(&event, "thread-1");
        assert_eq!(record, serde_json::from_str::<Value>(&line).unwrap());
        let name = event.kind.name();
        assert_eq!(record["type"], name);
        for (field, value) in [("seq", seq), ("ts", 9), ("turn", 1), ("step", 2), ("attempt", 3)] {
            assert_eq!(record[field], value, "{name}: {field}");
        }
        assert_eq!(record["thread_id"], "thread-1");
        let (_, required) = REQUIRED.iter().find(|(known, _)| *known == name).expect("a line in the table");
        let payload = record["payload"].as_object().expect("an object");
        for field in *required {
            assert!(payload.contains_key(*field), "{name} has no {field}: {record}");
        }
        seen.insert(name);
    }
    assert_eq!(seen, EventKind::NAMES.iter().copied().collect(), "a sample for each kind");
    assert_eq!(seen, record::Body::TYPES.iter().copied().collect(), "a body for each kind");
    assert_eq!(seen.len(), REQUIRED.len());
}

/// The shown stream has each kind under the name of its record, but those of which nothing is shown; what it has of one, the record has, too.
#[test]
fn what_is_shown_of_a_kind_is_in_its_record() {
    let nothing =
        ["cognition_in", "cognition_reasoning", "custom_event", "custom_message", "extension_log", "extension_state"];
    let mut seen = BTreeSet::new();
    for kind in samples() {
        let event = Event::new(0, 0, RunPosition::default(), kind);
        let (record, name) = (record::json(&event, "t"), event.kind.name());
        let shown = record::Shown::of(&event, "t");
        assert_eq!(record::Shown::of_record(&record::Record::of(&event, "t")).unwrap(), shown, "{name}");
        let Some(shown) = shown else { continue };
        let shown = shown.json();
        assert_eq!(shown["type"], name);
        for (key, value) in shown["payload"].as_object().unwrap() {
            let is_summed_up = (name, key.as_str()) == ("history_replaced", "messages") || key == "is_error";
            assert!(is_summed_up || record["payload"][key] == *value, "{name}: {key}");
        }
        seen.insert(name);
    }
    let rest = EventKind::NAMES.iter().copied().filter(|name| !seen.contains(name)).collect::<BTreeSet<_>>();
    assert_eq!(rest, nothing.into());
}

#[test]
fn records_say_what_their_event_says() {
    let record = |kind| record::json(&Event::new(0, 0, RunPosition::default(), kind), "t")["payload"].clone();
    let payloads: Vec<Value> = samples().into_iter().map(record).collect();
    let of = |name: &str, field: &str| -> Vec<Value> {
        let with = samples().into_iter().zip(&payloads).filter(|(kind, _)| kind.name() == name);
        with.map(|(_, payload)| payload[field].clone()).collect()
    };
    assert_eq!(
        of("turn_finish", "status"),
        ["completed", "rejected", "stopped_by_rule", "cancelled", "failed", "step_limit", "no_progress", "suspended"]
    );
    assert_eq!(
        of("extension_callback", "outcome"),
        ["passed", "changed", "skipped", "not_permitted", "ignored", "error", "passed"]
    );
    assert_eq!(of("extension_callback", "state_reads")[5..], [Value::Null, 2.into()]);
    assert_eq!(of("extension_breaker", "state"), ["half_open", "open"]);
    assert_eq!(of("extension_breaker", "callback"), [Value::from("on_tag"), Value::Null]);
    assert_eq!(of("extension_breaker", "tool"), [Value::Null, "t".into()]);
    assert_eq!(of("extension_callback", "cause")[5], "trap");
    assert_eq!(of("extension_callback", "duration_us")[0], 1.5);
    assert_eq!(of("cognition_out", "is_partial"), [true, false]);
    assert_eq!(of("cognition_out", "error"), [Value::from("gone"), Value::Null]);
    assert_eq!(of("tool_confirmation_resolved", "approved"), [true, true, true, false, false, true, false]);
    assert_eq!(
        of("tool_confirmation_resolved", "decision"),
        ["approved", "always", "edited", "denied", "unavailable", "timed_out", "cancelled"]
    );
    assert_eq!(of("tool_confirmation_resolved", "pattern")[1], "t(b)");
    assert_eq!(of("tool_confirmation_resolved", "arguments")[2], "{ }");
    assert_eq!(of("tool_confirmation_resolved", "reason")[3..5], ["r", "u"]);
    assert_eq!(of("tool_confirmation_resolved", "decided_by")[3..5], [Value::from("Ada"), Value::Null]);
    assert_eq!(of("tool_call_start", "input")[0]["raw"], "no json");
    assert_eq!(of("tool_call_result", "error")[0], "o");
    assert_eq!(of("rule_fired", "call_id")[0], "1");
    assert_eq!(of("error_classified", "retryable")[0], true);
    assert_eq!(of("step_finish", "finish_reason")[0], "error");
    assert_eq!(of("tool_call_progress", "progress")[0], 12.5);
    assert_eq!(of("step_finish", "finish_reason")[1], "cancelled");
    assert_eq!(of("input_received", "id"), [Value::Null, "input-1".into()]);
    assert_eq!(of("steering_message", "id"), [Value::Null, "input-1".into()]);
    assert_eq!(of("input_queued", "way"), ["queue", "interrupt"]);
    assert_eq!(of("input_withdrawn", "receipt"), ["returned"]);
}

fn resolved(decision: LimitDecision) -> EventKind {
    EventKind::LimitEscalationResolved { request: "limit-1".into(), limit: Limit::Steps, decision, by: "x".into() }
}
