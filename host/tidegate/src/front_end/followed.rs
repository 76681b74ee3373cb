//! A session that another process runs and records: its events, read from its transcript.

use chat::{ChatSession, SavedChat, StreamingText};
use flow::{Event, EventKind, SessionId};
use record::{Record, RecordError, Shown};
use store::{Records, TranscriptError, TranscriptStore};

use crate::front_end::recent::{Backlog, Last, Snapshot};
use crate::session::transcripts::{counts, invalid};

/// Follows a session that another process runs, such as a conversation of a gateway, by its transcript. It takes no lock, and nothing can be
/// done in the session.
///
/// It has what the types of [`Shown`] have, and nothing that a rule stopped. The numbers of the lines are its own: each record has two, and an answer whose text is in
/// no earlier record has a line with that text first, a [`CognitionOutDelta`](EventKind::CognitionOutDelta). They are the same whenever the
/// transcript is read.
///
/// ```no_run
/// # fn follow(store: &tidegate::transcript::TranscriptStore) -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate::event::{Backlog, FollowedSession};
/// use tidegate::SessionId;
///
/// let mut followed = FollowedSession::open(store, &SessionId::new("gateway-1"), Backlog::default())?;
/// let mut next = 0;
/// loop {
///     let (snapshot, lines) = followed.missed(next);
///     println!("{} lines, after a snapshot: {}", lines.len(), snapshot.is_some());
///     next = followed.next_seq();
///     std::thread::sleep(std::time::Duration::from_millis(250));
///     followed.look_again()?;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct FollowedSession {
    id: SessionId,
    created_ms: u64,
    records: Records<Record>,
    streaming: StreamingText,
    chat: ChatSession,
    lines: Last<Shown>,
    /// The number after that of the last line.
    next: u64,
}

impl FollowedSession {
    /// Reads a transcript from its start. `backlog`: how many lines are kept, and how many bytes of them.
    ///
    /// # Errors
    /// There is none, or a record of it cannot be read.
    pub fn open(store: &TranscriptStore, id: &SessionId, backlog: Backlog) -> Result<Self, TranscriptError> {
        let transcript = store.read(id)?;
        let (created_ms, records) = (transcript.header().created_ms, transcript.records());
        let (streaming, chat) = Default::default();
        let mut followed =
            Self { id: id.clone(), created_ms, records, streaming, chat, lines: Last::new(backlog), next: 0 };
        followed.read()?;
        Ok(followed)
    }

    /// When the transcript was begun, in milliseconds since 1970-01-01 UTC. One of the same session that is begun after its removal has another
    /// time.
    pub fn created_ms(&self) -> u64 {
        self.created_ms
    }

    /// Reads what was recorded since the last time.
    ///
    /// # Errors
    /// A record cannot be read, or the transcript was removed or repaired meanwhile. Open it again then.
    pub fn look_again(&mut self) -> Result<(), TranscriptError> {
        self.records.look_again()?;
        self.read()
    }

    /// Returns the lines from `seq` on; where not all of them are kept, the state of a chat in their place, after which there is none.
    pub fn missed(&self, seq: u64) -> (Option<Snapshot>, Vec<Shown>) {
        if let Some(lines) = self.lines.from(seq, self.next_seq()) {
            return (None, lines);
        }
        // Each record has two numbers. Those of another transcript say nothing about this one.
        let from = if seq > self.next { 0 } else { seq };
        let omitted = (self.next - from) / 2;
        (Some(Snapshot { chat: self.chat(), omitted }), Vec::new())
    }

    /// The number after the last line that was read.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// Returns what a chat has learnt from all records that were read.
    pub fn chat(&self) -> SavedChat {
        self.chat.save().at(self.next)
    }

    fn read(&mut self) -> Result<(), TranscriptError> {
        while let Some(entry) = self.records.next() {
            let entry = entry?;
            if counts(&entry.record, &self.id) {
                self.take(&entry.record).map_err(|error| invalid(&entry, error))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &Record) -> Result<(), RecordError> {
        let seq = record.event.unwrap_or(record.seq).saturating_mul(2).saturating_add(1);
        let mut line = Shown::of_record(record)?;
        if let Some(event) = record.event()? {
            let event = Event::new(seq, event.at_ms, event.place, event.kind);
            if let Some(shown) = self.text_before(&event) {
                let _changed = self.chat.process(&shown);
                self.keep(Shown::of(&shown, self.id.as_str()));
            }
            let _changed = self.chat.process(&event);
        }
        self.next = seq.saturating_add(1);
        if let Some(line) = &mut line {
            line.seq = seq;
        }
        self.keep(line);
        Ok(())
    }

    fn keep(&mut self, line: Option<Shown>) {
        let Some(line) = line else { return };
        let size = line.json().to_string().len() + size_of::<Shown>();
        self.lines.push(line.seq, || line, |_| size);
    }

    /// Returns an event with the text of an answer that no event before it has shown.
    fn text_before(&mut self, event: &Event) -> Option<Event> {
        let before = self.streaming.clone();
        let _changed = self.streaming.process(event);
        let now = self.streaming.text();
        let text = match &event.kind {
            EventKind::CognitionOut { .. } if before.adds(event.place) => now.added_since(before.text())?,
            EventKind::CognitionOut { .. } => now.to_string(),
            _ => return None,
        };
        if text.is_empty() {
            return None;
        }
        let shown = EventKind::CognitionOutDelta { text, index: 0, is_final: true };
        Some(Event::new(event.seq - 1, event.at_ms, event.place, shown))
    }
}
