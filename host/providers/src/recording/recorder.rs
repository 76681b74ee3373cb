//! Takes down a real session while it runs, on a thread of its own: no answer waits for the disk. A recording that cannot
//! be written is reported once and never stops a session.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flow::ports::AnswerLog;
use flow::{Action, RuleMatch};

use super::format::{Expect, RecordedEnd, RecordedFire, RecordedRules, RecordingError};
use super::writer::{RecordingWriter, RequestNumber};
use wire::Wire;

/// The most bytes that wait for the disk: 64 MiB, minutes of the fastest answers. Beyond, the recording ends.
const LONGEST_QUEUE: usize = 64 << 20;

/// How long dropping a recorder waits for the disk to take the rest.
const PATIENCE: Duration = Duration::from_secs(10);

/// The recorder of a model's requests. Dropping the last of it and its requests waits until all is written.
pub(crate) struct Recorder {
    queue: Arc<Queue>,
}

/// One request under way. Dropping it without [`Taken::end`] records the cut.
pub(crate) struct Taken {
    request: Arc<Request>,
    ended: bool,
}

/// A request and what is done with its answer. When the last of its owners is dropped, what stream rules did is recorded.
pub(crate) struct Request {
    queue: Arc<Queue>,
    key: usize,
    begun: Instant,
    /// `None` until rules are reported to watch the answer.
    rules: Mutex<Option<RecordedRules>>,
}

/// The way to the thread that writes.
struct Queue {
    path: PathBuf,
    /// `None` while it is dropped.
    notes: Option<Sender<Note>>,
    /// Bytes on the way.
    waiting: Arc<AtomicUsize>,
    most: usize,
    /// Nothing more is recorded: what follows would be a recording with a hole.
    over: AtomicBool,
    requests: AtomicUsize,
    /// Hears nothing, and ends with the thread.
    written: Mutex<Receiver<()>>,
}

/// What happened, in the order in which it did.
struct Note {
    key: usize,
    at_ms: u64,
    what: What,
}

enum What {
    Request(Vec<u8>),
    Response(u16, Vec<(String, String)>),
    Chunk(Vec<u8>),
    End(RecordedEnd),
    /// This request has ended.
    Over(Option<RecordedRules>),
}

impl Note {
    fn size(&self) -> usize {
        size_of::<Self>()
            + match &self.what {
                What::Request(bytes) | What::Chunk(bytes) => bytes.len(),
                What::Response(_, headers) => headers.iter().map(|(name, value)| name.len() + value.len()).sum(),
                What::End(_) => 0,
                What::Over(rules) => rules.as_ref().map_or(0, |rules| {
                    rules.prefix.len()
                        + rules.fired.iter().map(|fire| size_of_val(fire) + fire.rule.len()).sum::<usize>()
                }),
            }
    }
}

impl Recorder {
    pub(crate) fn create<'s>(
        path: &Path,
        wire: Wire,
        model: &str,
        secrets: impl Iterator<Item = &'s str>,
    ) -> Result<Self, RecordingError> {
        let failed = |cause: io::Error| {
            let message = match cause.kind() {
                io::ErrorKind::AlreadyExists => "exists already; remove it or choose another name".to_owned(),
                _ => format!("cannot be written: {cause}"),
            };
            RecordingError { path: path.to_owned(), line: None, message }
        };
        let mut writer = RecordingWriter::create(path, wire, model).map_err(failed)?;
        secrets.for_each(|secret| writer.hide(secret));
        Self::start(writer, path, LONGEST_QUEUE).map_err(failed)
    }

    fn start(writer: RecordingWriter, path: &Path, most: usize) -> io::Result<Self> {
        let (notes, taken) = channel();
        let (alive, written) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (told, left) = (path.to_owned(), Arc::clone(&waiting));
        // Whoever hears this thread's log lines hears those of the writing.
        let log = tracing::dispatcher::get_default(Clone::clone);
        thread::Builder::new().name("recording".to_owned()).spawn(move || {
            let _alive: Sender<()> = alive;
            tracing::dispatcher::with_default(&log, || write_all(writer, &taken, &left, &told));
        })?;
        let queue = Queue {
            path: path.to_owned(),
            notes: Some(notes),
            waiting,
            most,
            over: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            written: Mutex::new(written),
        };
        Ok(Self { queue: Arc::new(queue) })
    }

    pub(crate) fn request(&self, body: &[u8]) -> Taken {
        let key = self.queue.requests.fetch_add(1, Ordering::Relaxed);
        let (queue, begun) = (Arc::clone(&self.queue), Instant::now());
        let request = Arc::new(Request { queue, key, begun, rules: Mutex::new(None) });
        request.note(What::Request(body.to_vec()));
        Taken { request, ended: false }
    }
}

impl Request {
    fn note(&self, what: What) {
        let at_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.queue.send(Note { key: self.key, at_ms, what });
    }

    fn rules(&self) -> MutexGuard<'_, Option<RecordedRules>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerLog for Request {
    fn watched(&self, prefix: &str) {
        self.rules().get_or_insert_default().prefix = prefix.to_owned();
    }

    fn fired(&self, found: &RuleMatch, action: Action) {
        self.rules().get_or_insert_default().fired.push(RecordedFire::new(found, action));
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let rules = self.rules().take();
        self.note(What::Over(rules));
    }
}

impl Taken {
    /// Where what is done with the answer is taken down.
    pub(crate) fn log(&self) -> Arc<Request> {
        Arc::clone(&self.request)
    }

    pub(crate) fn response(&mut self, status: u16, headers: &[(String, String)]) {
        self.request.note(What::Response(status, headers.to_vec()));
    }

    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        self.request.note(What::Chunk(bytes.to_vec()));
    }

    pub(crate) fn end(&mut self, end: &RecordedEnd) {
        if !std::mem::replace(&mut self.ended, true) {
            self.request.note(What::End(end.clone()));
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.end(&RecordedEnd::Cut);
    }
}

impl Queue {
    fn send(&self, note: Note) {
        if self.over.load(Ordering::Relaxed) {
            return;
        }
        let size = note.size();
        let waiting = self.waiting.fetch_add(size, Ordering::Relaxed) + size;
        if waiting > self.most {
            if !self.over.swap(true, Ordering::Relaxed) {
                let path = self.path.display();
                tracing::error!(
                    "the recording {path} ends here: {waiting} bytes wait for the disk; the session continues"
                );
            }
            return;
        }
        // If the thread has ended, it has reported the reason.
        if self.notes.as_ref().is_none_or(|notes| notes.send(note).is_err()) {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.notes = None;
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        if written.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let (path, seconds) = (self.path.display(), PATIENCE.as_secs());
            tracing::error!("the recording {path} is not complete: the disk took more than {seconds} s for the rest");
        }
    }
}

/// The thread: writes until all senders are gone, or until writing fails.
fn write_all(mut writer: RecordingWriter, notes: &Receiver<Note>, waiting: &AtomicUsize, path: &Path) {
    let mut numbers = HashMap::new();
    for note in notes {
        waiting.fetch_sub(note.size(), Ordering::Relaxed);
        if let Err(cause) = write(&mut writer, &mut numbers, note) {
            let path = path.display();
            tracing::error!(
                "the recording {path} cannot be written any further: {cause}; the session continues without it"
            );
            return;
        }
    }
}

fn write(writer: &mut RecordingWriter, numbers: &mut HashMap<usize, RequestNumber>, note: Note) -> io::Result<()> {
    let Note { key, at_ms, what } = note;
    if let What::Request(body) = &what {
        // We wrote this JSON ourselves, so it can be read.
        let body = serde_json::from_slice(body).unwrap_or_default();
        numbers.insert(key, writer.request(&body, &Expect::default())?);
        return Ok(());
    }
    let Some(number) = numbers.get(&key).copied() else { return Ok(()) };
    match what {
        What::Request(_) => Ok(()),
        What::Response(status, headers) => {
            let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            writer.response(number, at_ms, status, headers)
        }
        What::Chunk(bytes) => writer.chunk(number, at_ms, &bytes),
        What::End(end) => writer.end(number, at_ms, &end),
        What::Over(rules) => {
            numbers.remove(&key);
            rules.map_or(Ok(()), |rules| writer.rules(number, at_ms, &rules))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::sync::Condvar;

    use tracing::span;

    use super::*;

    /// A disk that can be stopped, and be full.
    #[derive(Clone, Default)]
    struct Disk(Arc<(Mutex<State>, Condvar)>);

    #[derive(Default)]
    struct State {
        text: String,
        stopped: bool,
        full: bool,
    }

    impl Disk {
        fn change(&self, change: impl FnOnce(&mut State)) {
            change(&mut self.0.0.lock().unwrap());
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            self.0.0.lock().unwrap().text.clone()
        }
    }

    impl io::Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.1.wait_while(self.0.0.lock().unwrap(), |state| state.stopped).unwrap();
            if state.full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.text.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Collects the errors that the recorder reports.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl tracing::Subscriber for Log {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::ERROR
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let mut text = String::new();
            event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| text = format!("{value:?}"));
            self.0.lock().unwrap().push(text);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    /// Records on this disk; returns the reported errors.
    fn record(disk: &Disk, most: usize, session: impl FnOnce(&Recorder)) -> Vec<String> {
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            let writer = RecordingWriter::new(disk.clone(), Wire::Anthropic, "m").unwrap();
            let recorder = Recorder::start(writer, Path::new("r.jsonl"), most).unwrap();
            session(&recorder);
        });
        let told = log.0.lock().unwrap();
        told.clone()
    }

    #[test]
    fn nobody_waits_for_the_disk_and_all_is_written_in_order() {
        let disk = Disk::default();
        let errors = record(&disk, 1 << 20, |recorder| {
            disk.change(|disk| disk.stopped = true);
            let mut first = recorder.request(b"{\"a\":1}");
            let mut second = recorder.request(b"{}");
            for at in 0..100 {
                first.chunk(format!(": {at}\n\n").as_bytes());
                second.chunk(b": x\n\n");
            }
            first.end(&RecordedEnd::Complete);
            assert!(!disk.text().contains("request"), "the disk stands still");
            disk.change(|disk| disk.stopped = false);
        });
        assert_eq!(errors, [""; 0]);
        let text = disk.text();
        let chunks = text.lines().filter(|line| line.starts_with("{\"text\":\": ") && line.contains("\"n\":1"));
        let numbers: Vec<String> = chunks.map(|line| line.chars().filter(char::is_ascii_digit).collect()).collect();
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().enumerate().all(|(at, number)| number.starts_with(&at.to_string())), "{numbers:?}");
        let ends: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"end\"")).collect();
        assert!(ends.len() == 2 && ends[0].contains("complete") && ends[1].contains("cut"), "{ends:?}");
    }

    #[test]
    fn a_disk_that_fails_is_told_once_and_the_session_goes_on() {
        let disk = Disk::default();
        let errors = record(&disk, 1 << 20, |recorder| {
            disk.change(|disk| disk.full = true);
            for _ in 0..50 {
                let mut taken = recorder.request(b"{}");
                taken.chunk(b": x\n\n");
            }
        });
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].contains("r.jsonl cannot be written any further") && errors[0].contains("continues without it")
        );
        assert_eq!(disk.text().lines().count(), 1);
    }

    #[test]
    fn what_waits_is_bounded() {
        let disk = Disk::default();
        let errors = record(&disk, 10_000, |recorder| {
            disk.change(|disk| disk.stopped = true);
            let mut taken = recorder.request(b"{}");
            (0..1000).for_each(|_| taken.chunk(b": x\n\n"));
            assert!(recorder.queue.waiting.load(Ordering::Relaxed) < 20_000);
            disk.change(|disk| disk.stopped = false);
        });
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("r.jsonl ends here") && errors[0].contains("wait for the disk"), "{errors:?}");
        // What was taken before is a good recording.
        assert!(disk.text().lines().count() > 10 && !disk.text().contains("\"end\""));
    }
}
