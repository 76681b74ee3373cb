//! Gives events their place in the thread and hands them to any number of subscribers.
//!
//! Emitting never waits and loses nothing: each subscriber has a queue of its own. While one lags, neighbouring pieces of
//! the same text are joined in its queue, so the queue is bounded by what was said and not by how finely it was cut.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use flow::{Event, EventKind, Place};
use tokio::sync::Notify;

use crate::ports::{Clock, EventSink};

/// A queue longer than this joins neighbouring pieces of text.
const JOIN_ABOVE: usize = 64;

/// Where a session's events are emitted.
pub struct Hub {
    /// Number of the next event.
    seq: AtomicU64,
    /// Subscribers that were there at the last event; while there are none, an event takes no lock.
    heard: AtomicUsize,
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct State {
    place: Place,
    subscribers: Vec<Weak<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    events: Mutex<(VecDeque<Event>, bool)>,
    ready: Notify,
}

/// One subscriber's events, from the moment it subscribed.
#[derive(Debug)]
pub struct Subscription(Arc<Queue>);

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("seq", &self.seq).finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub whose first event has number 0.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { seq: AtomicU64::new(0), heard: AtomicUsize::new(0), state: Mutex::default(), clock }
    }

    /// Subscribes to everything emitted from now on.
    pub fn subscribe(&self) -> Subscription {
        let queue = Arc::new(Queue::default());
        let mut state = lock(&self.state);
        state.subscribers.push(Arc::downgrade(&queue));
        self.heard.store(state.subscribers.len(), Ordering::SeqCst);
        drop(state);
        Subscription(queue)
    }

    /// Whether somebody listens: where nobody does, text need not be copied.
    pub fn is_heard(&self) -> bool {
        lock(&self.state).subscribers.iter().any(|queue| queue.strong_count() > 0)
    }

    /// Sets where in the run the next events are.
    pub fn set_place(&self, place: Place) {
        lock(&self.state).place = place;
    }

    /// Where in the run the next event is.
    pub fn place(&self) -> Place {
        lock(&self.state).place
    }

    /// No event will come any more: subscribers get what is queued and then the end.
    pub fn close(&self) {
        for queue in lock(&self.state).subscribers.drain(..).filter_map(|queue| queue.upgrade()) {
            queue.close();
        }
    }
}

impl EventSink for Hub {
    fn emit(&self, kind: EventKind) {
        if self.heard.load(Ordering::SeqCst) == 0 {
            self.seq.fetch_add(1, Ordering::SeqCst);
            return;
        }
        // Numbered under the lock, so that every subscriber gets events in their order.
        let mut state = lock(&self.state);
        let seq = self.seq.fetch_add(1, Ordering::SeqCst);
        let event = Event { seq, at_ms: self.clock.now_ms(), place: state.place, kind };
        state.subscribers.retain(|queue| queue.upgrade().map(|queue| queue.push(event.clone())).is_some());
        self.heard.store(state.subscribers.len(), Ordering::SeqCst);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    fn push(&self, event: Event) {
        let mut guard = lock(&self.events);
        let events = &mut guard.0;
        let joined = events.len() >= JOIN_ABOVE && events.back_mut().is_some_and(|last| join(last, &event));
        if !joined {
            events.push_back(event);
        }
        drop(guard);
        self.ready.notify_one();
    }

    fn close(&self) {
        lock(&self.events).1 = true;
        self.ready.notify_one();
    }
}

/// Joins `next` to `last` where both are pieces of one text. The joined event has the number of the later one.
fn join(last: &mut Event, next: &Event) -> bool {
    if last.place != next.place {
        return false;
    }
    match (&mut last.kind, &next.kind) {
        (EventKind::CognitionOutDelta { text, .. }, EventKind::CognitionOutDelta { text: more, .. })
        | (EventKind::CognitionReasoningDelta { text }, EventKind::CognitionReasoningDelta { text: more }) => {
            text.push_str(more);
            last.seq = next.seq;
            true
        }
        _ => false,
    }
}

impl Subscription {
    /// The next event; `None` when the session is closed and everything was taken.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let notified = self.0.ready.notified();
            {
                let mut guard = lock(&self.0.events);
                if let Some(event) = guard.0.pop_front() {
                    return Some(event);
                }
                if guard.1 {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// The next event if one is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        lock(&self.0.events).0.pop_front()
    }
}

/// A panic elsewhere must not silence a thread's events: the data are valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
