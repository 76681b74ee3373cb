//! A disk that is full at every record of a session: its turn ends, and what subscribers got before is recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use flow::ports::Durability;
use flow::{Event, EventKind, Message, TurnStatus};
use record::Record;
use tidegate_kit::{ScriptedModel, assert_valid, calls, drain, rule_set, text};
use turn::rebuild::Rebuild;
use turn::{CancellationToken, Session};

use super::{Disk, RecordAll, journal};
use crate::transcript::EventPolicy as _;

/// What a session of two turns amounts to: how they ended, and what a subscriber got.
struct Ran {
    statuses: Vec<TurnStatus>,
    events: Vec<Event>,
}

/// An answer that a rule stops, a tool, and answers.
async fn run(disk: &Disk) -> Ran {
    let call = calls(&[("1", "read", "{\"path\":\"a\"}")], 4);
    let model = ScriptedModel::new([text("FORBIDDEN", 3), call, text("Done.", 2), text("Again.", 2)]);
    let rules = rule_set(&[("no-forbidden", "+++\ncondition = 'FORBIDDEN'\n+++\nNever say it.")], |_| {});
    let journal = Arc::new(journal(disk.clone(), RecordAll));
    let mut session: Session = tidegate_kit::session(&model, vec![], rules).with_journal(journal, None);
    let mut events = session.subscribe();
    let mut statuses = Vec::new();
    for input in ["go", "again"] {
        let status = session.run(vec![Message::user(input)], &CancellationToken::new()).await.status;
        let has_failed = status != TurnStatus::Completed;
        statuses.push(status);
        if has_failed {
            break;
        }
    }
    session.close().await;
    Ran { statuses, events: drain(&mut events) }
}

/// The events on the disk. Every line must be complete.
fn on(disk: &Disk) -> Vec<Record> {
    let content = disk.0.lock().unwrap().content.clone();
    let lines = std::str::from_utf8(&content).unwrap().split_inclusive('\n');
    lines.map(|line| Record::read(line.as_bytes()).unwrap()).collect()
}

fn check(ran: &Ran, disk: &Disk, space: usize) {
    let records = on(disk);
    let recorded: BTreeSet<u64> = records.iter().map(|record| record.event.unwrap()).collect();
    let failed = ran.events.iter().position(|event| matches!(event.kind, EventKind::JournalFailed { .. }));
    let failed = failed.unwrap_or_else(|| panic!("with {space} bytes, nobody learns of the failure"));
    let EventKind::JournalFailed { recorded: last, .. } = ran.events[failed].kind else { unreachable!() };
    // What was held back until the failure is delivered with it; of what came before, everything critical is recorded.
    let before = ran.events[..failed].iter().filter(|event| last.is_some_and(|last| event.seq <= last));
    for event in before.filter(|event| RecordAll.durability(&event.kind) == Durability::Critical) {
        assert!(recorded.contains(&event.seq), "with {space} bytes, {event:?} was notified and is not recorded");
    }
    // No tool runs whose call is not on the disk, and none of its results is used.
    let started = |event: &Event| matches!(event.kind, EventKind::ToolCallStart { .. });
    for event in ran.events.iter().filter(|event| started(event)) {
        let asked =
            records.iter().any(|record| record.body.name() == "cognition_out" && record.step == event.place.step);
        assert!(asked, "with {space} bytes, a call runs that is not recorded");
    }
    let mut rebuild = Rebuild::default();
    records.iter().for_each(|record| rebuild.take(record).unwrap());
    assert_valid(&rebuild.finish().history);
}

#[tokio::test]
async fn a_disk_that_is_full_at_every_record_of_a_session_ends_the_turn_and_loses_nothing() {
    let whole = Disk::new();
    let ran = run(&whole).await;
    let statuses = [TurnStatus::Completed, TurnStatus::Completed];
    assert_eq!(ran.statuses, statuses);
    let content = whole.0.lock().unwrap().content.clone();
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &content).map(|end| end + 1).collect();
    assert!(ends.len() > 25, "only {} records", ends.len());
    // Before each record, and in the middle of it.
    let starts = std::iter::once(0).chain(ends.iter().copied()).zip(&ends);
    for space in starts.flat_map(|(start, end)| [start, usize::midpoint(start, *end), end - 1]) {
        let disk = Disk::with(|state| state.space = space);
        let ran = run(&disk).await;
        // Durations are written with as many digits as they have, so that two runs differ by some bytes: this one had space enough.
        let has_fitted = !ran.events.iter().any(|event| matches!(event.kind, EventKind::JournalFailed { .. }));
        if has_fitted {
            assert_eq!((on(&disk).len(), &ran.statuses[..]), (ends.len(), &statuses[..]), "with {space} bytes");
            assert!(space + 100 >= content.len(), "{space} bytes are too few");
            continue;
        }
        // The end of the thread is written when the session is closed, after its last turn.
        let last = ran.statuses.last().unwrap();
        let is_end = space + 100 >= ends[ends.len() - 2];
        let message = if let TurnStatus::Failed { message, .. } = last { message.as_str() } else { "" };
        assert!(is_end || message.contains("full"), "with {space} bytes: {:?}", ran.statuses);
        check(&ran, &disk, space);
    }
}
