//! Tests of the queue: what a full one loses, and when the writer wakes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use flow::{Event, EventKind, RunPosition};

use super::{DROPPABLE, Due, Queue};

fn event(seq: usize) -> Event {
    let kind = EventKind::Notice { message: seq.to_string() };
    Event::new(seq as u64, 0, RunPosition::default(), kind)
}

/// Adds events, of which those at the positions of `critical` are critical, and returns `number+dropped` of what the writer gets.
fn taken(count: usize, critical: &[usize]) -> Vec<(u64, u64)> {
    let queue = Queue::default();
    for number in 0..count {
        queue.push(event(number), critical.contains(&number));
    }
    queue.close();
    let batch = queue.take().unwrap();
    assert!(batch.closing);
    let lost: u64 = batch.events.iter().map(|queued| queued.dropped).sum();
    assert_eq!(batch.events.len() as u64 + lost, count as u64, "every event is there or counted");
    batch.events.iter().map(|queued| (queued.event.seq, queued.dropped)).collect()
}

#[test]
fn a_full_queue_loses_droppable_events_except_the_last_and_counts_them() {
    let all = taken(DROPPABLE, &[]);
    assert_eq!(all.len(), DROPPABLE);
    assert!(all.iter().all(|(_, dropped)| *dropped == 0));

    let many = taken(DROPPABLE + 500, &[]);
    assert_eq!(many.len(), DROPPABLE);
    assert_eq!(many[DROPPABLE - 1], (DROPPABLE as u64 + 499, 500), "the newest is kept, with the count before it");
}

#[test]
fn critical_events_are_never_lost_and_their_order_is_kept() {
    let critical = [5, DROPPABLE + 10, DROPPABLE + 11, DROPPABLE + 100];
    let found = taken(DROPPABLE + 200, &critical);
    for number in critical {
        assert!(found.iter().any(|(seq, _)| *seq == number as u64), "{number}");
    }
    assert!(found.is_sorted_by(|one, next| one.0 < next.0));
    // After a critical event one droppable event has a place, for the count of those that are lost there.
    let after = |number: usize| found.iter().find(|(seq, _)| *seq > number as u64).copied();
    assert_eq!(after(DROPPABLE + 11), Some((DROPPABLE as u64 + 99, 87)));
    assert_eq!(after(DROPPABLE + 100), Some((DROPPABLE as u64 + 199, 98)));
    assert!(found.len() <= DROPPABLE + 2 * critical.len());
}

#[test]
fn a_writer_is_asked_once_and_at_once_for_what_is_critical() {
    let queue = Queue::default();
    let push = |number, is_critical| queue.push(event(number), is_critical);
    assert!(queue.take().is_none(), "nothing is there");
    assert_eq!([push(0, false), push(1, false)], [Due::Later, Due::Asked], "droppable events wait for company");
    assert_eq!([push(2, true), push(3, true), push(4, false)], [Due::Now, Due::Asked, Due::Asked]);
    assert_eq!(queue.take().unwrap().events.len(), 5, "of both that were asked the first one takes all");
    assert!(queue.take().is_none(), "the other one finds nothing");
    assert_eq!(push(5, true), Due::Asked, "who writes looks again");
    assert!(queue.take().is_none(), "one writes at a time");
    assert_eq!(queue.written(), Due::Now);
    assert_eq!(queue.take().unwrap().events.len(), 1);
    assert_eq!(push(6, false), Due::Asked);
    assert_eq!(queue.written(), Due::Later);
    assert_eq!(queue.take().unwrap().events.len(), 1);
    assert_eq!(queue.written(), Due::Asked);
    let last =
        (0..DROPPABLE / 2).map(|number| push(number, false)).filter(|due| *due != Due::Asked).collect::<Vec<_>>();
    assert_eq!(last, [Due::Later, Due::Now], "half of what the queue takes does not wait");
    assert_eq!([queue.announce(), queue.close()], [Due::Asked; 2]);
}

#[test]
fn a_failed_or_closed_queue_takes_nothing() {
    for fails in [true, false] {
        let queue = Queue::default();
        if fails {
            queue.fail();
        } else {
            queue.close();
        }
        assert_eq!(queue.push(event(0), true), Due::Asked);
        assert_eq!(queue.critical(), 0);
        queue.close();
        assert!(queue.take().unwrap().events.is_empty());
    }
}
