//! Random sessions: no sequence of events panics, and each change is reported.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use flow::{Event, EventKind, RunPosition, TurnStatus, Withdrawal};
use proptest::prelude::*;
use serde_json::json;
use tidegate_chat::{ChatSession, ChildThread, RenderMode};

use crate::support::random::session;
use crate::support::{chat, state};

const MODES: [&str; 4] = ["streaming", "block", "message", "at_end"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// What is not reported has not changed, and ids are unique.
    #[test]
    fn a_change_that_is_not_reported_did_not_happen(events in session()) {
        for mode in MODES {
            let mut chat = chat(&json!({"render_mode": mode, "mode": "queue"}));
            chat.submit("a");
            chat.submit("b");
            let mut before = state(&chat.snapshot());
            for event in &events {
                let changed = chat.process(event);
                let after = state(&chat.snapshot());
                prop_assert!(changed.is_yes() || before == after, "{mode}: {event:?}\n{before}\n{after}");
                before = after;
            }
            let ids: Vec<String> = chat.snapshot().messages.messages().map(|one| one.id.as_str().to_owned()).collect();
            let unique: BTreeSet<&String> = ids.iter().collect();
            prop_assert_eq!(unique.len(), ids.len(), "{:?}", ids);
            // Nothing of it is sent twice.
            let sent = chat.take_commands().len();
            let is_returned = |event: &&Event| matches!(event.kind, EventKind::InputWithdrawn { receipt: Withdrawal::Returned, .. });
            let returned = events.iter().filter(is_returned).count();
            prop_assert!(sent <= 3 + returned, "{} commands for two messages, one of which can come back", sent);
        }
    }

    /// A front end that gets the saved state at any event ends with the same state.
    #[test]
    fn a_saved_state_continues_as_the_session_does(events in session(), cut in any::<prop::sample::Index>()) {
        let cut = if events.is_empty() { 0 } else { cut.index(events.len()) };
        let mut whole = ChatSession::default();
        let mut half = ChatSession::default();
        let child = ChildThread::new("child", "helper");
        for event in &events {
            let _changed = whole.process(event).or(whole.process_child(&child, event));
        }
        for event in &events[..cut] {
            let _changed = half.process(event).or(half.process_child(&child, event));
        }
        let saved = half.save();
        let read = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
        prop_assert_eq!(&saved, &read);
        let mut rest = ChatSession::default();
        let _changed = rest.restore(read);
        prop_assert_eq!(state(&rest.snapshot()), state(&half.snapshot()));
        for event in &events[cut..] {
            let _changed = rest.process(event).or(rest.process_child(&child, event));
        }
        prop_assert_eq!(state(&rest.snapshot()), state(&whole.snapshot()));
        prop_assert_eq!(rest.save(), whole.save());
    }

    /// A snapshot does not change when the session does.
    #[test]
    fn a_snapshot_stays_as_it_was(events in session()) {
        let mut chat = ChatSession::default();
        let mut kept = Vec::new();
        for event in &events {
            let snapshot = chat.snapshot();
            kept.push((state(&snapshot), snapshot));
            let _changed = chat.process(event);
        }
        for (then, snapshot) in kept {
            prop_assert_eq!(then, state(&snapshot));
        }
    }

    /// At every end of a turn all modes show the same.
    #[test]
    fn all_modes_agree_when_a_turn_ends(events in session()) {
        let end = EventKind::TurnFinish { status: TurnStatus::Completed };
        let last = events.last().map_or((1, RunPosition::default()), |last| (last.seq + 1, last.place));
        let ends: Vec<_> = MODES.into_iter().map(|mode| {
            let mut chat = chat(&json!({"render_mode": mode}));
            events.iter().for_each(|event| _ = chat.process(event));
            let _changed = chat.process(&Event::new(last.0, 0, last.1, end.clone()));
            state(&chat.snapshot())["messages"].clone()
        }).collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", ends);
    }
}

#[test]
fn the_modes_are_those_of_the_options() {
    let modes: std::collections::HashSet<RenderMode> =
        MODES.iter().map(|mode| serde_json::from_value(json!(mode)).unwrap()).collect();
    assert_eq!(modes.len(), MODES.len());
}
