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
/// It has what the types of [`Shown`] have, and nothing that a rule stopped. The numbers of the lines are its own: each record has two, and an
/// answer whose text is in no earlier record has a line with that text first, a [`CognitionOutDelta`](EventKind::CognitionOutDelta). They are
/// the same whenever the transcript is read.
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
        // Each record has two numbers. Those of another transcript have no meaning here.
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
            if let Some(shown) = text_before(&mut self.streaming, &event) {
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
}

/// Returns an event with the text of an answer that no event before it has shown; `None`: there is none. `streaming`: what these have shown.
fn text_before(streaming: &mut StreamingText, event: &Event) -> Option<Event> {
    let before = streaming.clone();
    let _changed = streaming.process(event);
    if !matches!(event.kind, EventKind::CognitionOut { .. }) {
        return None;
    }
    let text = streaming.text().to_string();
    // A text that is not the same any more, because an extension has changed a later part of its line, is given from where it differs.
    let has = if before.adds(event.place) { before.text().common_prefix(&text) } else { 0 };
    let text = text.get(has..).filter(|text| !text.is_empty())?.to_owned();
    let shown = EventKind::CognitionOutDelta { text, index: 0, is_final: true };
    Some(Event::new(event.seq.saturating_sub(1), event.at_ms, event.place, shown))
}

#[cfg(test)]
mod tests {
    use flow::{KeptText, Origin, Partial, Retained, RunPosition};

    use super::*;

    fn answer(text: &str, shown: Option<&str>, is_stopped: bool) -> EventKind {
        let bytes = shown.unwrap_or(text).len() as u64;
        EventKind::CognitionOut {
            text: text.to_owned(),
            keep: KeptText::Original,
            model: None,
            author: Origin::Model,
            shown: shown.map(str::to_owned),
            partial: is_stopped.then(|| Partial::new("a rule stopped it", bytes, bytes)),
            retained: if is_stopped { Retained::Start { bytes } } else { Retained::Answer },
            blocks: Vec::new(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        }
    }

    #[test]
    fn the_text_of_an_answer_is_given_once_and_completely() {
        let delta = |text: &str| EventKind::CognitionOutDelta { text: text.to_owned(), index: 0, is_final: false };
        for (kinds, expected) in [
            (vec![answer("One.", None, false)], &[Some("One.")][..]),
            (vec![delta("On"), delta("e."), answer("One.", None, false)], &[None, None, None]),
            (vec![delta("On"), answer("One.", None, false)], &[None, Some("e.")]),
            (vec![answer("It is ", None, true), answer("It is so.", None, false)], &[Some("It is "), Some("so.")]),
            // The line that was kept is changed when it is complete.
            (
                vec![answer("It is ", None, true), answer("It is a key.", Some("[changed]"), false)],
                &[Some("It is "), Some("[changed]")],
            ),
            (vec![answer("", None, false)], &[None]),
        ] {
            let mut streaming = StreamingText::default();
            let place = RunPosition { turn: 1, step: 1, attempt: 1 };
            let events = (1..).zip(kinds).map(|(seq, kind)| Event::new(2 * seq, 0, place, kind));
            let texts: Vec<_> = events
                .map(|event| match text_before(&mut streaming, &event).map(|shown| shown.kind) {
                    Some(EventKind::CognitionOutDelta { text, .. }) => Some(text),
                    _ => None,
                })
                .collect();
            assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        }
    }
}
