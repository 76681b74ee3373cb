//! What a session keeps for front ends that reconnect: its last events, and the state of a chat that has processed all events before them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chat::{ChatSession, SavedChat};
use flow::Event;
use turn::{Hub, Subscription};

use crate::front_end::event_size::recorded;

/// How much a session keeps in memory for front ends that reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// The most events. Default: 1024.
    pub events: usize,
    /// The most bytes of their records, and of what each event takes besides. Default: 1 MiB. A longer event is not kept.
    pub bytes: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { events: 1024, bytes: 1 << 20 }
    }
}

impl Backlog {
    /// Sets the most events; with 0, who reconnects gets a snapshot whenever it has missed an event.
    #[must_use]
    pub fn events(self, events: usize) -> Self {
        Self { events, ..self }
    }

    /// Sets the most bytes.
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

/// The session keeps nothing for front ends that reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session keeps no events: open it with `SessionOptions::backlog`")]
pub struct NoBacklog;

/// A subscription from an event on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reconnection {
    /// Replaces everything that the front end has learnt from events, where not all that it has missed are kept. `None`: all follow.
    pub snapshot: Option<Snapshot>,
    /// The missed events, or those after the snapshot, and then all that happens, with no gap and no repetition.
    pub events: Subscription,
}

/// The state of a chat in the place of events.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What a chat has learnt from all events until now, for [`ChatSession::restore`](chat::ChatSession::restore).
    pub chat: SavedChat,
    /// How many events the front end did not get, those of kinds that a chat does not show included.
    pub omitted: u64,
}

/// The last events of a session and its chat. All access is under the lock of the session's [`Hub`].
#[derive(Debug)]
pub(crate) struct Recent(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    events: Last<Event>,
    chat: ChatSession,
}

impl Recent {
    /// Follows the events of a session from its next on. `before`: what a chat knows of those before it.
    pub(crate) fn follow(hub: &Hub, limits: Backlog, before: Option<SavedChat>) -> Arc<Self> {
        let mut chat = ChatSession::default();
        if let Some(before) = before {
            let _changed = chat.restore(before);
        }
        let recent = Arc::new(Self(Mutex::new(Kept { events: Last::new(limits), chat })));
        let follower = Arc::clone(&recent);
        let first = hub.follow(move |event| follower.lock().take(event));
        // Nothing is emitted before the session is open.
        recent.lock().events.first = first;
        recent
    }

    /// Returns the number of the first event that is kept, or else of the next.
    pub(crate) fn first(&self) -> u64 {
        self.lock().events.first
    }

    /// Subscribes to the events from `seq` on.
    pub(crate) fn subscribe(&self, hub: &Hub, seq: u64) -> Reconnection {
        let mut snapshot = None;
        let events = hub.subscribe_after(|next| {
            let kept = self.lock();
            if let Some(events) = kept.events.from(seq, next) {
                return events;
            }
            snapshot = Some(Snapshot { chat: kept.chat.save().at(next), omitted: next.saturating_sub(seq) });
            Vec::new()
        });
        Reconnection { snapshot, events }
    }

    /// The data are valid after every statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, event: &Event) {
        let _changed = self.chat.process(event);
        let size = |most| size_of::<Event>() + recorded(&event.kind, most);
        self.events.push(event.seq, || event.clone(), size);
    }
}

/// The last entries of those that were added, each under a number that is higher than the one before.
#[derive(Debug)]
pub(crate) struct Last<T> {
    limits: Backlog,
    /// Each with its number and its size.
    entries: VecDeque<(u64, T, usize)>,
    /// The sum of the sizes.
    bytes: usize,
    /// The number of the first entry that is kept, or else of the next.
    first: u64,
}

impl<T: Clone> Last<T> {
    pub(crate) fn new(limits: Backlog) -> Self {
        Self { limits, entries: VecDeque::new(), bytes: 0, first: 0 }
    }

    /// Adds an entry, whose size is asked for up to that of all.
    pub(crate) fn push(&mut self, seq: u64, entry: impl FnOnce() -> T, size: impl FnOnce(usize) -> usize) {
        if self.limits.events == 0 {
            self.first = seq.saturating_add(1);
            return;
        }
        let size = size(self.limits.bytes);
        self.bytes += size;
        self.entries.push_back((seq, entry(), size));
        while self.entries.len() > self.limits.events || self.bytes > self.limits.bytes {
            let Some((seq, _, size)) = self.entries.pop_front() else { break };
            self.bytes -= size;
            self.first = seq.saturating_add(1);
        }
    }

    /// Returns the entries from `seq` on; `None`: not all of them are kept, or `seq` comes after `next`, the number of the next one.
    pub(crate) fn from(&self, seq: u64, next: u64) -> Option<Vec<T>> {
        let is_kept = (self.first..=next).contains(&seq);
        let start = self.entries.partition_point(|(at, ..)| *at < seq);
        is_kept.then(|| self.entries.range(start..).map(|(_, entry, _)| entry.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use flow::ports::EventSink as _;
    use flow::{EventKind, RunPosition};
    use system::SystemClock;

    use super::*;

    fn say(hub: &Hub, texts: &[&str]) {
        for text in texts {
            hub.emit(EventKind::CognitionOutDelta { text: (*text).to_owned(), index: 0, is_final: false });
        }
    }

    fn texts(events: &mut Subscription) -> String {
        std::iter::from_fn(|| events.try_next())
            .map(|event| match event.kind {
                EventKind::CognitionOutDelta { text, .. } => text,
                other => other.name().to_owned(),
            })
            .collect()
    }

    #[test]
    fn missed_events_follow_while_they_are_kept_and_a_snapshot_after_that() {
        let hub = Hub::new(Arc::new(SystemClock));
        hub.set_place(RunPosition { turn: 1, step: 1, attempt: 1 });
        let recent = Recent::follow(&hub, Backlog::default().events(3), None);
        say(&hub, &["a", "b", "c", "d", "e"]);
        for (seq, kept) in [(2, "cde"), (3, "de"), (4, "e"), (5, "")] {
            let mut again = recent.subscribe(&hub, seq);
            assert_eq!((again.snapshot.is_none(), texts(&mut again.events)), (true, kept.to_owned()), "{seq}");
        }
        // Not kept any more, or from another process.
        for (seq, omitted) in [(0, 5), (1, 4), (6, 0)] {
            let snapshot = recent.subscribe(&hub, seq).snapshot;
            let snapshot = snapshot.unwrap_or_else(|| panic!("no snapshot from {seq}"));
            assert_eq!((snapshot.omitted, snapshot.chat.next_seq()), (omitted, 5), "{seq}");
            let mut chat = ChatSession::default();
            let _changed = chat.restore(snapshot.chat);
            assert_eq!(chat.snapshot().streaming.text().to_string(), "abcde");
        }
        let mut again = recent.subscribe(&hub, 0);
        say(&hub, &["f"]);
        assert_eq!(texts(&mut again.events), "f");
        hub.close();
        assert_eq!(texts(&mut recent.subscribe(&hub, 4).events), "ef", "also after the end");
    }

    #[test]
    fn who_has_missed_an_event_gets_a_snapshot_where_none_is_kept() {
        let hub = Hub::new(Arc::new(SystemClock));
        let recent = Recent::follow(&hub, Backlog::default().events(0), None);
        say(&hub, &["a", "b"]);
        assert!(recent.subscribe(&hub, 1).snapshot.is_some());
        let mut again = recent.subscribe(&hub, 2);
        say(&hub, &["c"]);
        assert_eq!((again.snapshot.is_none(), texts(&mut again.events)), (true, "c".to_owned()));
        let kept = recent.lock();
        assert_eq!((kept.events.entries.len(), kept.events.bytes, kept.events.first), (0, 0, 3));
    }

    #[test]
    fn the_bytes_of_the_backlog_are_limited_and_a_longer_event_is_not_kept() {
        let hub = Hub::new(Arc::new(SystemClock));
        let recent = Recent::follow(&hub, Backlog::default().bytes(20 * size_of::<Event>()), None);
        say(&hub, &["a"; 100]);
        let kept = recent.lock();
        let of = &kept.events;
        assert!((10..=20).contains(&of.entries.len()) && of.bytes <= of.limits.bytes, "{}", of.entries.len());
        drop(kept);
        say(&hub, &["long".repeat(100_000).as_str()]);
        let kept = recent.lock();
        assert_eq!((kept.events.entries.len(), kept.events.bytes, kept.events.first), (0, 0, 101));
        drop(kept);
        let text = "long".repeat(100_000);
        hub.emit(EventKind::InputEdited { id: flow::InputId::new("input-1"), text, hidden: false });
        assert_eq!(recent.lock().events.entries.len(), 0, "whatever its kind");
    }
}
