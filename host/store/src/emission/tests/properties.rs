//! The state machine on random threads, compared with a model that looks at the whole thread at once.

use flow::{CallbackOutcome, Event, EventKind, RunPosition, TurnStatus};
use proptest::prelude::*;

use super::{callback, delta, emission, finish, progress, result, run};

/// What happens next, and how many milliseconds later.
#[derive(Clone, Debug)]
enum Next {
    Delta(String),
    Attempt,
    Progress(u8, u32),
    Log(u8),
    Result(u8),
    Callback(u8, bool, u32),
    TurnEnds,
}

fn next() -> impl Strategy<Value = (u64, Next)> {
    let what = prop_oneof![
        6 => "[a-z]{1,3}".prop_map(Next::Delta),
        1 => Just(Next::Attempt),
        4 => (0..3u8, 0..=100u32).prop_map(|(call, percent)| Next::Progress(call, percent)),
        4 => (0..3u8).prop_map(Next::Log),
        1 => (0..3u8).prop_map(Next::Result),
        4 => (0..2u8, any::<bool>(), 1..100u32).prop_map(|(plugin, changed, nanos)| Next::Callback(plugin, changed, nanos)),
        1 => Just(Next::TurnEnds),
    ];
    (0..700u64, what)
}

fn name(of: u8) -> String {
    format!("n{of}")
}

/// The events of a thread, numbered without gaps.
fn thread(all: Vec<(u64, Next)>) -> Vec<Event> {
    let (mut at_ms, mut place) = (0, RunPosition { turn: 1, step: 1, attempt: 1 });
    let mut events = Vec::new();
    for (later, next) in all {
        at_ms += later;
        let is_end = matches!(next, Next::TurnEnds);
        let kind = match next {
            Next::Attempt => {
                place.attempt += 1;
                continue;
            }
            Next::Delta(text) => delta(&text, events.len() as u32),
            Next::Progress(call, percent) => progress(&name(call), &percent),
            // Reports without a number, of calls of their own.
            Next::Log(call) => progress(&format!("log{call}"), &"working"),
            Next::Result(call) => result(&name(call)),
            Next::Callback(plugin, changed, nanos) => {
                let outcome = if changed { CallbackOutcome::Changed } else { CallbackOutcome::Passed };
                callback(&name(plugin), outcome, nanos.into())
            }
            Next::TurnEnds => finish(TurnStatus::Completed),
        };
        events.push(Event::new(events.len() as u64, at_ms, place, kind));
        if is_end {
            place = RunPosition { turn: place.turn + 1, step: 1, attempt: 1 };
        }
    }
    events
}

fn is_critical(event: &Event) -> bool {
    matches!(event.kind, EventKind::ToolCallResult { .. } | EventKind::TurnFinish { .. })
}

fn text(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::CognitionOutDelta { text, .. } => Some(text),
        _ => None,
    }
}

fn report(event: &Event) -> Option<(&str, &str)> {
    match &event.kind {
        EventKind::ToolCallProgress { call, message, .. } => Some((call.as_str(), message)),
        _ => None,
    }
}

/// The numbers of a throttled type that are recorded: those of `candidates` (numbers with their key) that are due, and for each stretch
/// between two ends the last one of each key. It goes through the stretches instead of holding anything back.
fn throttled(events: &[Event], is_end: impl Fn(&Event) -> bool, key: impl Fn(&Event) -> Option<String>) -> Vec<u64> {
    let mut recorded = Vec::new();
    let mut open_at = 0;
    for stretch in events.split(is_end) {
        let candidates: Vec<(&Event, String)> = stretch.iter().filter_map(|event| Some((event, key(event)?))).collect();
        let mut left: Vec<&Event> = Vec::new();
        for (position, (event, own)) in candidates.iter().enumerate() {
            let is_last = !candidates[position + 1..].iter().any(|(_, other)| other == own);
            if event.at_ms >= open_at {
                open_at = event.at_ms + 1000;
                recorded.push(event.seq);
            } else if is_last {
                left.push(event);
            }
        }
        open_at = left.iter().map(|event| event.at_ms + 1000).next_back().unwrap_or(open_at);
        recorded.extend(left.iter().map(|event| event.seq));
    }
    recorded.sort_unstable();
    recorded
}

/// The first number of a call that reaches each milestone, and the last number of each of its runs.
fn milestones(events: &[Event], call: &str) -> Vec<u64> {
    let is_end = |event: &Event| match &event.kind {
        EventKind::ToolCallResult { call: of, .. } => of.as_str() == call,
        EventKind::TurnFinish { .. } => true,
        _ => false,
    };
    let mut recorded = Vec::new();
    for stretch in events.split(is_end) {
        let own: Vec<(u64, f64)> = stretch
            .iter()
            .filter_map(|event| {
                report(event).filter(|(of, _)| *of == call).map(|(_, value)| (event.seq, value.parse().unwrap()))
            })
            .collect();
        let firsts = [0.0, 25.0, 50.0, 75.0, 100.0].map(|milestone| own.iter().find(|(_, value)| *value >= milestone));
        recorded.extend(firsts.into_iter().flatten().chain(own.last()).map(|(seq, _)| *seq));
    }
    recorded.sort_unstable();
    recorded.dedup();
    recorded
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_record_of_a_thread_is_that_of_the_model(all in proptest::collection::vec(next(), 0..120)) {
        let events = thread(all);
        let recorded = run(emission(""), events.clone());
        let of = |is: &dyn Fn(&Event) -> bool| -> Vec<u64> {
            let mut found: Vec<u64> = recorded.iter().filter(|event| is(event)).map(|event| event.seq).collect();
            found.sort_unstable();
            found
        };

        // Everything critical, unchanged and in order.
        let critical = |events: &[Event]| -> Vec<Event> { events.iter().filter(|event| is_critical(event)).cloned().collect() };
        prop_assert_eq!(critical(&recorded), critical(&events));

        // Reports without a number, by the throttle.
        let log = |event: &Event| report(event).filter(|(call, _)| call.starts_with("log")).map(|(call, _)| call.to_owned());
        prop_assert_eq!(of(&|event| log(event).is_some()), throttled(&events, is_critical, log));

        // Reports with one, by the milestones.
        for call in ["n0", "n1", "n2"] {
            let own = |event: &Event| report(event).is_some_and(|(of, _)| of == call);
            prop_assert_eq!(of(&own), milestones(&events, call));
        }

        // Before a critical event, and at the end, all text so far.
        let mut places: Vec<RunPosition> = events.iter().map(|event| event.place).collect();
        places.dedup();
        for critical in events.iter().filter(|event| is_critical(event)).map(|event| Some(event.seq)).chain([None]) {
            let until = |events: &[Event], place| -> String {
                let end = events.iter().position(|event| Some(event.seq) == critical).unwrap_or(events.len());
                events[..end].iter().filter(|event| event.place == place).filter_map(text).collect()
            };
            for place in &places {
                prop_assert_eq!(until(&recorded, *place), until(&events, *place));
            }
        }

        // Callbacks: one record for each turn and plugin, before the end of the turn.
        for (turn, plugin) in (1..=places.len() as u32).flat_map(|turn| [(turn, "n0"), (turn, "n1")]) {
            let own = |event: &Event| match &event.kind {
                EventKind::ExtensionCallback(report) if report.plugin.as_str() == plugin && event.place.turn == turn => {
                    Some((report.nanos, report.state_reads, report.outcome == CallbackOutcome::Changed))
                }
                _ => None,
            };
            let sum = |one: (u64, u64, bool), next: (u64, u64, bool)| (one.0 + next.0, one.1 + next.1, one.2 || next.2);
            let found: Vec<_> = recorded.iter().filter_map(own).collect();
            prop_assert_eq!(found, events.iter().filter_map(own).reduce(sum).into_iter().collect::<Vec<_>>());
        }
    }

    /// The chunks of a thread without interruptions are at least the throttle apart, apart from the last.
    #[test]
    fn text_is_throttled(times in proptest::collection::vec(0..400u64, 1..200)) {
        let all = times.iter().map(|later| (*later, Next::Delta("x".to_owned()))).collect();
        let recorded = run(emission(""), thread(all));
        for pair in recorded[..recorded.len() - 1].windows(2) {
            prop_assert!(pair[1].at_ms - pair[0].at_ms >= 1000);
        }
        let joined: String = recorded.iter().filter_map(text).collect();
        prop_assert_eq!(joined.len(), times.len());
    }
}
