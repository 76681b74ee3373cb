//! Gives events their place in the thread and hands them to any number of subscribers and observers.
//!
//! Emitting never waits and loses nothing: each subscriber has a queue of its own. While one lags, adjacent chunks of
//! the same text are joined in its queue, so the queue is bounded by the length of the text and not by the number of
//! chunks. An observer has no queue: it is called with each event where the event is emitted, which suits counting. A follower is
//! called with each event when subscribers get it, which suits keeping what a subscriber misses.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use flow::{Event, EventKind, RunPosition};
use futures_core::Stream;

use flow::ports::{Clock, Durability, EventSink, Journal, JournalProgress};
use guard::Events;

/// A queue longer than this joins adjacent chunks of text.
const JOIN_ABOVE: usize = 64;

/// Where a session's events are emitted.
///
/// With a journal an event reaches subscribers when it may: a critical one when it is on disk, any other after the events before it.
/// Observers count what happens, and get every event at once.
pub struct Hub(Arc<Shared>);

/// What the hub and the journal's writer share.
struct Shared {
    /// Number of the next event.
    seq: AtomicU64,
    /// Those who get the next event, as of the last; while there are none, an event takes no lock.
    listeners: AtomicUsize,
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

/// Called with every event, in order.
type Observer = Box<dyn FnMut(&Event) + Send>;

#[derive(Default)]
struct State {
    place: RunPosition,
    /// Each with the number of the first event that it gets.
    subscribers: Vec<(Weak<Queue>, u64)>,
    observers: Vec<Observer>,
    followers: Vec<Observer>,
    journal: Option<Arc<dyn Journal>>,
    /// Events that wait for the disk, each with whether it is critical.
    held: VecDeque<(Event, Durability)>,
    /// The number of the last event that is known to be on disk.
    durable: Option<u64>,
    /// The journal has failed: nothing is recorded any more, and nothing waits for it.
    unrecorded: bool,
    /// No event follows: who subscribes now gets the end as soon as nothing is held.
    closed: bool,
}

#[derive(Debug, Default)]
struct Queue(Mutex<Queued>);

#[derive(Debug, Default)]
struct Queued {
    events: VecDeque<Event>,
    /// No event follows those that are queued.
    closed: bool,
    /// The subscriber, while it waits.
    waker: Option<Waker>,
}

/// One subscriber's events, from the moment it subscribed; a stream that ends when the session is closed.
#[derive(Debug)]
pub struct Subscription(Arc<Queue>);

/// The other end of a [`Subscription`] that [`channel`] made. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Feed(Arc<Queue>);

/// A subscription to a part of a session's events: those that are emitted while its feed is attached to a [`Hub`].
pub fn channel() -> (Feed, Subscription) {
    let queue = Arc::new(Queue::default());
    (Feed(Arc::clone(&queue)), Subscription(queue))
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("seq", &self.0.seq).finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub whose first event has number 0.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            seq: AtomicU64::new(0),
            listeners: AtomicUsize::new(0),
            state: Mutex::default(),
            clock,
        }))
    }

    /// Subscribes to everything emitted from now on.
    pub fn subscribe(&self) -> Subscription {
        let subscription = Subscription(Arc::default());
        self.add(&subscription.0);
        subscription
    }

    /// Gives a feed everything emitted from now on, until it is dropped.
    pub fn attach(&self, feed: &Feed) {
        self.add(&feed.0);
    }

    fn add(&self, queue: &Arc<Queue>) {
        let mut state = self.0.lock();
        if state.is_over() {
            drop(state);
            queue.close();
            return;
        }
        // What waits for the disk was emitted before.
        state.subscribers.push((Arc::downgrade(queue), self.0.seq.load(Ordering::SeqCst)));
        self.0.listeners.store(state.listeners(), Ordering::SeqCst);
    }

    /// Calls `observer` with every event from now on, under the lock that orders events: it must be quick, and must not use
    /// this hub. It is dropped when the hub is closed. A closed hub drops it at once.
    pub fn observe(&self, observer: impl FnMut(&Event) + Send + 'static) {
        let mut state = self.0.lock();
        if !state.closed {
            state.observers.push(Box::new(observer));
            self.0.listeners.store(state.listeners(), Ordering::SeqCst);
        }
    }

    /// Calls `follower` with every event from the next on, each when subscribers get it, under the lock that orders events: it must be
    /// quick, and must not use this hub. It is dropped when subscribers have got the last event. Returns the number of its first event.
    pub fn follow(&self, follower: impl FnMut(&Event) + Send + 'static) -> u64 {
        let mut state = self.0.lock();
        if !state.is_over() {
            state.followers.push(Box::new(follower));
            self.0.listeners.store(state.listeners(), Ordering::SeqCst);
        }
        self.0.next(&state)
    }

    /// Subscribes to the events that `missed` returns and to all that subscribers get from now on. `missed` is called under the lock that
    /// orders events, with the number of the next one that subscribers get: what it returns ends right before that.
    pub fn subscribe_after(&self, missed: impl FnOnce(u64) -> Vec<Event>) -> Subscription {
        let subscription = Subscription(Arc::default());
        let mut state = self.0.lock();
        let next = self.0.next(&state);
        lock(&subscription.0.0).events = missed(next).into();
        if state.is_over() {
            subscription.0.close();
        } else {
            state.subscribers.push((Arc::downgrade(&subscription.0), next));
            self.0.listeners.store(state.listeners(), Ordering::SeqCst);
        }
        drop(state);
        subscription
    }

    /// Numbers the events from `next` on, where a thread continues.
    pub fn continue_at(&self, next: u64) {
        self.0.seq.store(next, Ordering::SeqCst);
        self.0.lock().durable = next.checked_sub(1);
    }

    /// Records every event from now on.
    pub fn record(&self, journal: Arc<dyn Journal>) {
        let shared = Arc::clone(&self.0);
        journal.watch(Box::new(move |progress| shared.progressed(progress)));
        let mut state = self.0.lock();
        state.journal = Some(journal);
        self.0.listeners.store(state.listeners(), Ordering::SeqCst);
    }

    /// Whether the journal has failed: nothing is recorded any more.
    pub fn is_unrecorded(&self) -> bool {
        self.0.lock().unrecorded
    }

    /// Sets where in the run the next events are.
    pub fn set_place(&self, place: RunPosition) {
        self.0.lock().place = place;
    }

    /// Where in the run the next event is.
    pub fn place(&self) -> RunPosition {
        self.0.lock().place
    }

    /// No event will come any more: subscribers get what is queued and then the end. What the journal has not written yet reaches
    /// them when it has.
    pub fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        let followers = if state.is_over() { state.end() } else { Vec::new() };
        let observers = std::mem::take(&mut state.observers);
        let journal = state.journal.take();
        drop(state);
        // What they do when they are dropped is not the hub's.
        drop((observers, followers, journal));
    }
}

impl Shared {
    /// A panic elsewhere must not silence a thread's events: the data are valid after every statement.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The journal has written more, or has failed: what waited for it reaches the subscribers.
    fn progressed(&self, progress: JournalProgress) {
        let mut state = self.lock();
        match progress {
            JournalProgress::Durable(seq) => {
                state.durable = Some(seq);
                while let Some((event, durability)) = state.held.pop_front() {
                    if durability == Durability::Critical && event.seq > seq {
                        state.held.push_front((event, durability));
                        break;
                    }
                    state.deliver(&event);
                }
                if state.held.is_empty() {
                    state.held = VecDeque::new();
                }
            }
            JournalProgress::Failed(error) => {
                // There is nothing to wait for any more. The event says what is not recorded. Who gets one of these events can know it by then.
                let is_known = std::mem::replace(&mut state.unrecorded, true);
                while let Some((event, _)) = state.held.pop_front() {
                    state.deliver(&event);
                }
                if !is_known {
                    let kind = EventKind::JournalFailed { message: error.to_string(), recorded: state.durable };
                    let seq = self.seq.fetch_add(1, Ordering::SeqCst);
                    let event = Event::new(seq, self.clock.now_ms(), state.place, kind);
                    state.observers.iter_mut().for_each(|observer| observer(&event));
                    state.deliver(&event);
                }
            }
        }
        let followers = if state.is_over() { state.end() } else { Vec::new() };
        self.listeners.store(state.listeners(), Ordering::SeqCst);
        drop(state);
        drop(followers);
    }

    /// The number of the next event that subscribers get.
    fn next(&self, state: &State) -> u64 {
        state.held.front().map_or_else(|| self.seq.load(Ordering::SeqCst), |(event, _)| event.seq)
    }
}

impl State {
    /// Those who get the next event.
    fn listeners(&self) -> usize {
        let called = self.observers.len() + self.followers.len();
        self.subscribers.len() + called + usize::from(self.journal.is_some())
    }

    /// Whether subscribers have got the last event.
    fn is_over(&self) -> bool {
        self.closed && self.held.is_empty()
    }

    fn deliver(&mut self, event: &Event) {
        self.followers.iter_mut().for_each(|follower| follower(event));
        self.subscribers
            .retain(|(queue, from)| queue.upgrade().is_some_and(|queue| event.seq < *from || queue.push(event)));
    }

    /// Ends all subscriptions. The followers are returned, to be dropped without the lock.
    fn end(&mut self) -> Vec<Observer> {
        for queue in self.subscribers.drain(..).filter_map(|(queue, _)| queue.upgrade()) {
            queue.close();
        }
        std::mem::take(&mut self.followers)
    }
}

impl Hub {
    /// Emits an event; returns its number and where in the run it is.
    pub(crate) fn emit_at(&self, kind: EventKind) -> (u64, RunPosition) {
        // Numbered under the lock, so that every subscriber gets events in their order.
        let mut state = self.0.lock();
        let (place, seq) = (state.place, self.0.seq.fetch_add(1, Ordering::SeqCst));
        if state.listeners() == 0 {
            return (seq, place);
        }
        let event = Event::new(seq, self.0.clock.now_ms(), state.place, kind);
        state.observers.iter_mut().for_each(|observer| observer(&event));
        let journal = state.journal.as_ref().filter(|_| !state.unrecorded);
        let durability = journal.map_or(Durability::Droppable, |journal| journal.append(&event));
        if durability == Durability::Critical || !state.held.is_empty() {
            state.held.push_back((event, durability));
        } else {
            state.deliver(&event);
        }
        self.0.listeners.store(state.listeners(), Ordering::SeqCst);
        (seq, place)
    }
}

impl Events for Hub {
    fn place(&self) -> RunPosition {
        Hub::place(self)
    }
}

impl EventSink for Hub {
    fn emit(&self, kind: EventKind) {
        if self.0.listeners.load(Ordering::SeqCst) == 0 {
            self.0.seq.fetch_add(1, Ordering::SeqCst);
            return;
        }
        self.emit_at(kind);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    /// Queues an event; `false` where the queue is closed.
    fn push(&self, event: &Event) -> bool {
        let mut queued = lock(&self.0);
        if queued.closed {
            return false;
        }
        let events = &mut queued.events;
        let joined = events.len() >= JOIN_ABOVE && events.back_mut().is_some_and(|last| join(last, event));
        if !joined {
            events.push_back(event.clone());
        }
        wake(queued);
        true
    }

    fn close(&self) {
        let mut queued = lock(&self.0);
        queued.closed = true;
        wake(queued);
    }
}

/// Wakes the subscriber, after the lock is released: it would only wait for it.
fn wake(mut queued: MutexGuard<'_, Queued>) {
    let waker = queued.waker.take();
    drop(queued);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Joins `next` to `last` where both are chunks of one text. The joined event has the number of the later one.
fn join(last: &mut Event, next: &Event) -> bool {
    if last.place != next.place {
        return false;
    }
    match (&mut last.kind, &next.kind) {
        (
            EventKind::CognitionOutDelta { text, is_final, .. },
            EventKind::CognitionOutDelta { text: more, is_final: ends, .. },
        ) => {
            text.push_str(more);
            *is_final = *ends;
            last.seq = next.seq;
            true
        }
        (EventKind::CognitionReasoningDelta { text }, EventKind::CognitionReasoningDelta { text: more }) => {
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
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next event if one is queued.
    pub fn try_next(&mut self) -> Option<Event> {
        lock(&self.0.0).events.pop_front()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut queued = lock(&self.0.0);
        match queued.events.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if queued.closed => Poll::Ready(None),
            None => {
                queued.waker = Some(cx.waker().clone());
                // What a subscriber waits for can be hours away: an idle session keeps no memory for it.
                queued.events = VecDeque::new();
                Poll::Pending
            }
        }
    }
}

impl Stream for Subscription {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

/// The data are valid after every statement, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
