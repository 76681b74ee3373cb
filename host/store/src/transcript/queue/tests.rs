//! Tests of the queue: what a full one loses, and when the writer wakes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::{Event, EventKind, RunPosition};

use super::{DROPPABLE, LINGER, Queue};

const PATIENCE: Duration = Duration::from_secs(20);

fn event(seq: usize) -> Event {
    let kind = EventKind::Notice { message: seq.to_string() };
    Event::new(seq as u64, 0, RunPosition::default(), kind)
}

/// Adds events, of which those at the positions of `critical` are critical, and returns `number+dropped` of what the writer gets.
fn taken(count: usize, critical: &[usize]) -> Vec<(u64, u64)> {
    let queue = Queue::default();
    (0..count).for_each(|number| queue.push(event(number), critical.contains(&number)));
    queue.close();
    let batch = queue.take();
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
fn droppable_events_wait_for_company_and_critical_ones_do_not() {
    let queue = Arc::new(Queue::default());
    queue.push(event(0), false);
    let started = Instant::now();
    assert_eq!(queue.take().events.len(), 1);
    // The lower bound is exact: the upper one is the machine's.
    assert!(started.elapsed() >= LINGER, "{:?}", started.elapsed());

    // A critical event wakes a writer that waits, and one that gathers: each is taken before the next is added.
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = Arc::clone(&queue);
    let writer = std::thread::spawn(move || {
        loop {
            let batch = other.take();
            batch.events.iter().for_each(|queued| sender.send(queued.event.seq).unwrap());
            if batch.closing {
                return;
            }
        }
    });
    for number in 1..100 {
        let gathers = number % 3 == 0;
        if gathers {
            queue.push(event(1_000 + number), false);
        }
        queue.push(event(number), true);
        let first = if gathers { receiver.recv_timeout(PATIENCE).unwrap() } else { 0 };
        assert!(!gathers || first == 1_000 + number as u64);
        assert_eq!(receiver.recv_timeout(PATIENCE).unwrap(), number as u64);
    }
    queue.close();
    writer.join().unwrap();
}

#[test]
fn a_failed_or_closed_queue_takes_nothing() {
    for end in [Queue::fail, Queue::close] {
        let queue = Queue::default();
        end(&queue);
        queue.push(event(0), true);
        assert_eq!(queue.critical(), 0);
        queue.close();
        assert!(queue.take().events.is_empty());
    }
}
