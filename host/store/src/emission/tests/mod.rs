//! The state machine of emission on single cases; [`properties`] compares it with a model, [`payloads`] is about schemas.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod payloads;
mod properties;

use std::sync::{Arc, LazyLock};

use config::events::{Catalogue, Variables};
use flow::ports::Durability;
use flow::{
    CallFailure, CallId, CallbackKind, CallbackOutcome, CallbackReport, Called, ErrorClass, Event, EventCatalogue,
    EventKind, FailureCause, RunPosition, SourceFile, TurnStatus, Usage,
};

use super::{Emission, EmissionPolicy};

/// A policy of the default catalogue with this file on top.
fn policy(file: &str) -> EmissionPolicy {
    static DEFAULT: LazyLock<EmissionPolicy> = LazyLock::new(|| with_file(""));
    if file.is_empty() { DEFAULT.clone() } else { with_file(file) }
}

fn with_file(file: &str) -> EmissionPolicy {
    let source = SourceFile::new("a.toml", format!("schema_version = \"1.0.0\"\n{file}"));
    let catalogue = Catalogue::of_sources(&[source]).unwrap_or_else(|found| panic!("{found}"));
    let mut variables = Variables::default();
    variables.reasoning_returned = false;
    EmissionPolicy::new(catalogue.for_session(&variables))
}

/// The state machine of a policy.
fn emission(file: &str) -> Emission {
    policy(file).filter()
}

/// An event of the first turn; its number is its time, so that expectations are short.
fn at(at_ms: u64, kind: EventKind) -> Event {
    Event::new(at_ms, at_ms, RunPosition { turn: 1, step: 1, attempt: 1 }, kind)
}

fn progress(call: &str, message: &dyn ToString) -> EventKind {
    let message = message.to_string();
    EventKind::ToolCallProgress { call: CallId::new(call), percent: message.parse().ok(), message }
}

fn result(call: &str) -> EventKind {
    EventKind::ToolCallResult {
        call: CallId::new(call),
        tool: "shell".to_owned(),
        output: String::new(),
        reminder: None,
        diff: None,
        is_error: false,
        duration_ms: Some(1),
        waited_ms: None,
        original: None,
        annotations: Vec::new(),
    }
}

fn delta(text: &str, index: u32) -> EventKind {
    EventKind::CognitionOutDelta { text: text.to_owned(), index, is_final: false }
}

fn finish(status: TurnStatus) -> EventKind {
    EventKind::TurnFinish { status }
}

fn failed() -> EventKind {
    finish(TurnStatus::Failed { class: ErrorClass::Permanent, message: "no".to_owned() })
}

fn callback(plugin: &str, outcome: CallbackOutcome, nanos: u64) -> EventKind {
    let report = CallbackReport::new(plugin.parse().unwrap(), CallbackKind::PlainText, outcome, nanos);
    EventKind::ExtensionCallback(report.with_state_reads(1))
}

/// What is recorded of these events.
fn run(mut emission: Emission, events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut out = Vec::new();
    events.into_iter().for_each(|event| emission.take(event, &mut out));
    emission.flush(&mut out);
    out
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

/// Case 3 of the specification, first half.
#[test]
fn a_throttle_records_at_most_four_of_a_hundred_updates_and_always_the_last() {
    let events = (0..100).map(|n| at(n * 25, progress("a", &format!("line {n}"))));
    assert_eq!(numbers(&run(emission(""), events.clone())), [0, 1000, 2000, 2475]);
    let faster = "event_types.tool_call_progress.emit_config.throttle = \"500ms\"";
    assert_eq!(numbers(&run(emission(faster), events.clone())), [0, 500, 1000, 1500, 2000, 2475]);
    let off = "event_types.tool_call_progress.emit_config.throttle = \"0s\"";
    assert_eq!(run(emission(off), events).len(), 100);
}

/// Case 3 of the specification, second half.
#[test]
fn milestones_are_recorded_once_each_in_order() {
    let events = |last: u64| (0..=last).map(|n| at(n, progress("a", &n)));
    assert_eq!(numbers(&run(emission(""), events(100))), [0, 25, 50, 75, 100]);
    // A jump over several is one record; a step back is none; the last value is not lost.
    let jumps = [(0, 30), (1, 80), (2, 10), (3, 90)].map(|(ms, value)| at(ms, progress("a", &value)));
    assert_eq!(numbers(&run(emission(""), jumps)), [0, 1, 3]);
    let own = "event_types.tool_call_progress.emit_config.milestones = [33.5]";
    assert_eq!(numbers(&run(emission(own), events(100))), [34, 100]);
    // Without milestones, the throttle decides.
    let none = "event_types.tool_call_progress.emit_config.milestones = []";
    assert_eq!(numbers(&run(emission(none), events(100))), [0, 100]);
}

#[test]
fn the_last_progress_precedes_the_result_of_its_call_and_no_other() {
    let events = [
        at(0, progress("a", &0)),
        at(1, progress("b", &0)),
        at(2, progress("a", &60)),
        at(3, progress("a", &70)),
        at(4, progress("b", &10)),
        at(5, result("b")),
        at(6, result("a")),
    ];
    assert_eq!(numbers(&run(emission(""), events)), [0, 1, 2, 4, 5, 3, 6]);
}

#[test]
fn held_text_is_joined_and_precedes_the_next_critical_event() {
    let events = [
        at(0, delta("a", 0)),
        at(10, delta("b", 1)),
        at(20, delta("c", 2)),
        at(30, result("x")),
        at(40, delta("d", 3)),
    ];
    let recorded = run(emission(""), events);
    let kinds: Vec<EventKind> = recorded.iter().map(|event| event.kind.clone()).collect();
    assert_eq!(kinds, [delta("a", 0), delta("bc", 1), result("x"), delta("d", 3)]);
    assert_eq!(numbers(&recorded), [0, 20, 30, 40]);
}

#[test]
fn text_of_two_attempts_is_not_joined() {
    let second = RunPosition { turn: 1, step: 1, attempt: 2 };
    let events = [at(0, delta("a", 0)), at(1, delta("b", 1)), Event::new(2, 2, second, delta("c", 0))];
    let recorded = run(emission(""), events);
    let kinds: Vec<EventKind> = recorded.iter().map(|event| event.kind.clone()).collect();
    assert_eq!(kinds, [delta("a", 0), delta("b", 1), delta("c", 0)]);
}

#[test]
fn a_clock_that_is_set_back_opens_the_throttle() {
    let recorded = run(emission(""), [at(5000, delta("a", 0)), at(10, delta("b", 1)), at(20, delta("c", 2))]);
    assert_eq!(numbers(&recorded), [5000, 10, 20]);
}

#[test]
fn callbacks_are_counted_for_each_turn_and_failures_are_kept() {
    let failure = CallFailure {
        plugin: "p".parse().unwrap(),
        called: Called::Callback(CallbackKind::PlainText),
        cause: FailureCause::Trap,
        message: "m".to_owned(),
        frames: Vec::new(),
    };
    let events = [
        at(0, callback("p", CallbackOutcome::Passed, 5)),
        at(1, callback("q", CallbackOutcome::Skipped("s".to_owned()), 0)),
        at(2, callback("p", CallbackOutcome::Changed, 7)),
        at(3, callback("p", CallbackOutcome::Failed(failure), 9)),
        at(4, callback("p", CallbackOutcome::Passed, 1)),
        at(5, result("x")),
        at(6, finish(TurnStatus::Completed)),
        at(7, callback("p", CallbackOutcome::Passed, 1)),
    ];
    let recorded = run(emission(""), events.clone());
    assert_eq!(numbers(&recorded), [3, 5, 1, 4, 6, 7]);
    let EventKind::ExtensionCallback(report) = &recorded[3].kind else { panic!("{recorded:?}") };
    assert_eq!((report.nanos, report.state_reads, &report.outcome), (13, 3, &CallbackOutcome::Changed));
    let each = "event_types.extension_callback.emit_config.aggregate = \"never\"";
    assert_eq!(run(emission(each), events).len(), 8);
}

#[test]
fn a_turn_without_an_end_is_counted_until_the_next_begins() {
    let passed = || callback("p", CallbackOutcome::Passed, 1);
    let second = |ms| Event::new(ms, ms, RunPosition { turn: 2, step: 0, attempt: 0 }, passed());
    assert_eq!(numbers(&run(emission(""), [at(0, passed()), at(1, passed()), second(2), second(3)])), [1, 3]);
}

#[test]
fn what_a_catalogue_switches_off_is_not_recorded() {
    let reasoning = |interrupted| EventKind::CognitionReasoning {
        text: "r".to_owned(),
        keep: flow::KeptText::Original,
        interrupted,
        retained: false,
    };
    let completed = || EventKind::ThreadCompleted { turns: 1, usage: Usage::default(), spend: None, duration_ms: 1 };
    let log =
        || EventKind::ExtensionLog { plugin: "p".parse().unwrap(), level: "info".to_owned(), message: "m".to_owned() };
    let off = "[event_types.cognition_reasoning]\nemit_on_error = false";
    let not_accumulated = "[event_types.cognition_reasoning.emit_config]\naccumulate_on_error = false";
    let unlogged = "[event_types.extension_log.emit_config]\ncondition = \"turn.max_steps == 12345\"";
    let always = "[event_types.thread_completed]\nemit_on_error = true";
    let cases: [(&str, Vec<EventKind>, &[u64]); 8] = [
        ("", vec![reasoning(false), reasoning(true)], &[0, 1]),
        (off, vec![reasoning(false), reasoning(true)], &[0]),
        (not_accumulated, vec![reasoning(false), reasoning(true)], &[0]),
        ("", vec![log()], &[0]),
        (unlogged, vec![log()], &[]),
        // The end of a thread is recorded after success only.
        ("", vec![finish(TurnStatus::Completed), completed()], &[0, 1]),
        ("", vec![failed(), completed(), finish(TurnStatus::Completed), completed()], &[0, 2, 3]),
        (always, vec![failed(), completed()], &[0, 1]),
    ];
    for (file, kinds, expected) in cases {
        let events: Vec<Event> = kinds.into_iter().zip(0..).map(|(kind, ms)| at(ms, kind)).collect();
        assert_eq!(numbers(&run(emission(file), events.clone())), expected, "{file} {events:?}");
    }
}

#[test]
fn durability_is_that_of_the_level() {
    let critical = "event_types.cognition_out_delta.criticality = \"critical\"";
    let waits = "event_types.cognition_out_delta.emit_config.async = false";
    let cases = [
        ("", delta("a", 0), Durability::Droppable),
        (critical, delta("a", 0), Durability::Critical),
        (waits, delta("a", 0), Durability::Critical),
        ("", result("x"), Durability::Critical),
    ];
    for (file, kind, expected) in cases {
        assert_eq!(policy(file).durability(&kind), expected, "{file} {kind:?}");
    }
    // A type of which nothing is recorded need not be waited for.
    let off = "event_types.rule_fired.emit_config.condition = \"false\"";
    let policy_off = policy(off);
    let catalogue = policy_off.catalogue();
    assert!(catalogue.get("rule_fired").unwrap().critical && !catalogue.get("rule_fired").unwrap().enabled);
    // What no catalogue knows is not lost.
    let empty = EmissionPolicy::new(EventCatalogue::default());
    assert_eq!(empty.durability(&delta("a", 0)), Durability::Critical);
    assert_eq!(numbers(&run(empty.filter(), [at(0, delta("a", 0)), at(1, delta("b", 1))])), [0, 1]);
}

#[test]
fn the_traits_of_types_are_those_of_their_events() {
    let error = flow::EventTraits::of("error_classified");
    assert!(error.reports_errors && !error.accumulates && !error.has_progress && !error.can_be_counted);
    let kinds = [
        failed(),
        EventKind::StateLost { message: "m".to_owned() },
        EventKind::ChildThreadFailed { child: flow::SessionId::new("c"), error: "m".to_owned() },
        EventKind::ThreadError { class: ErrorClass::Permanent, message: "m".to_owned() },
        EventKind::CognitionReasoning {
            text: String::new(),
            keep: flow::KeptText::Original,
            interrupted: true,
            retained: false,
        },
        EventKind::ThreadCompleted { turns: 1, usage: Usage::default(), spend: None, duration_ms: 1 },
        EventKind::TurnStart,
        EventKind::StepStart { number: 1 },
        EventKind::Notice { message: "m".to_owned() },
        progress("a", &1),
        delta("a", 0),
    ];
    for kind in kinds {
        let traits = flow::EventTraits::of(kind.name());
        assert_eq!(super::kinds::reports_error(&kind, true), traits.reports_errors, "{kind:?}");
        assert_eq!(super::kinds::is_accumulated(&kind), traits.accumulates, "{kind:?}");
        assert_eq!(super::kinds::call(&kind).is_some(), traits.has_progress, "{kind:?}");
    }
}

#[test]
fn sessions_with_equal_catalogues_share_one() {
    let [one, same] = [with_file(""), with_file("")];
    assert!(Arc::ptr_eq(one.catalogue(), same.catalogue()));
    let alone = [("alone".to_owned(), flow::EventType::new("lifecycle", "critical", true))];
    let other = EmissionPolicy::new(EventCatalogue::new(alone.into()));
    assert!(!Arc::ptr_eq(one.catalogue(), other.catalogue()));
    let catalogue = Arc::downgrade(other.catalogue());
    drop(other);
    assert_eq!(catalogue.strong_count(), 0, "the last session takes it along");
}
