//! Sessions recorded as they run, and replayed with the rules that they had: a replay must report what fired then, the same
//! matches in the same order with the same actions, from a recording of the wire and from a transcript.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ::wire::Wire;
use flow::ports::AnswerLog;
use flow::{Action, Event, EventKind, RuleMatch};
use providers::{Expect, RecordedEnd, RecordedFire, RecordedRules, RecordingWriter, RequestNumber};
use record::Record;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_kit::assert_valid;
use trial::{Agreement, Replay, Trial};
use turn::rebuild::Rebuild;

/// The wire recording of one session.
#[derive(Clone)]
pub(crate) struct Recording(Arc<Mutex<RecordingWriter>>);

impl Recording {
    pub(crate) fn request(&self, body: &Value) -> Arc<RequestLog> {
        let mut writer = self.0.lock().unwrap();
        let number = writer.request(body, &Expect::default()).unwrap();
        writer.response(number, 0, 200, [("content-type", "text/event-stream")]).unwrap();
        let answer = Mutex::new((RecordedRules::default(), RecordedEnd::Cut));
        Arc::new(RequestLog { recording: self.clone(), number, answer })
    }
}

/// One request of the recording. What rules did with its answer is written when the attempt drops it.
pub(crate) struct RequestLog {
    recording: Recording,
    number: RequestNumber,
    answer: Mutex<(RecordedRules, RecordedEnd)>,
}

impl RequestLog {
    pub(crate) fn chunk(&self, bytes: &[u8]) {
        self.recording.0.lock().unwrap().chunk(self.number, 0, bytes).unwrap();
    }

    /// The whole answer was received.
    pub(crate) fn end(&self) {
        self.answer.lock().unwrap().1 = RecordedEnd::Complete;
    }
}

impl AnswerLog for RequestLog {
    fn watched(&self, prefix: &str) {
        prefix.clone_into(&mut self.answer.lock().unwrap().0.prefix);
    }

    fn fired(&self, found: &RuleMatch, action: Action) {
        let RuleMatch { rule, stream, evidence } = found.clone();
        let fire = RecordedFire { rule, stream, action, start: evidence.start, end: evidence.end };
        self.answer.lock().unwrap().0.fired.push(fire);
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let (rules, end) = self.answer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut writer = self.recording.0.lock().unwrap_or_else(PoisonError::into_inner);
        writer.end(self.number, 0, end).unwrap();
        writer.rules(self.number, 0, rules).unwrap();
    }
}

/// A session's recording and its transcript.
pub(crate) struct Recorded {
    dir: TempDir,
    transcript: String,
    fired: Vec<(RuleMatch, Action)>,
    /// Matches of rules that were used up.
    again: Vec<RuleMatch>,
    turns: u64,
}

impl Recorded {
    pub(crate) fn new(wire: Wire) -> (Self, Recording) {
        let dir = tempfile::tempdir().unwrap();
        let writer = RecordingWriter::create(&dir.path().join("recording"), wire, "m").unwrap();
        let own = Self { dir, transcript: String::new(), fired: Vec::new(), again: Vec::new(), turns: 0 };
        (own, Recording(Arc::new(Mutex::new(writer))))
    }

    /// A turn is over.
    pub(crate) fn take(&mut self, events: &[Event]) {
        self.turns += 1;
        for event in events {
            writeln!(self.transcript, "{}", record::json(event, "case")).unwrap();
            if let EventKind::RuleFired { found, action, again, .. } = &event.kind {
                if *again { self.again.push(found.clone()) } else { self.fired.push((found.clone(), *action)) }
            }
        }
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.transcript.lines().map(|line| Record::read(line.as_bytes()).unwrap()).collect()
    }

    /// Every start of the transcript is a conversation that providers take.
    fn check_starts(&self, label: &str) {
        let mut rebuild = Rebuild::default();
        for line in self.transcript.lines() {
            rebuild.take(&Record::read(line.as_bytes()).unwrap()).unwrap_or_else(|error| panic!("{label}: {error}"));
            let resumed = rebuild.clone().finish();
            assert_eq!(resumed.problems, Vec::<String>::new(), "{label}");
            assert_valid(&resumed.history);
        }
    }

    /// Replays both with the rules of the session, which is over.
    pub(crate) fn check(&self, label: &str, trial: &Trial) {
        self.check_starts(label);
        std::fs::write(self.dir.path().join("transcript"), &self.transcript).unwrap();
        for file in ["recording", "transcript"] {
            let path: PathBuf = self.dir.path().join(file);
            let Replay { fires, again, then, turns, unknown, .. } = trial::replay(trial, &[path]).unwrap();
            assert!(then.is_empty(), "{label}: in a replay of its {file} {then:?} does not fire");
            let same = fires.iter().chain(&again).all(|fire| fire.agreement == Agreement::Same);
            assert!(same, "{label}: a replay of its {file} differs: {fires:?}, {again:?}");
            let fires: Vec<_> = fires.into_iter().map(|fire| (fire.found, fire.action)).collect();
            assert_eq!(fires, self.fired, "{label}: a replay of its {file}");
            let again: Vec<_> = again.into_iter().map(|fire| fire.found).collect();
            assert_eq!(again, self.again, "{label}: rules that were used up, in a replay of its {file}");
            assert_eq!(unknown, 0, "{label}: attempts of its {file} that were not compared");
            // A recording of the wire does not say where a turn ended: one that failed looks like an attempt that is repeated.
            assert!(turns == self.turns || file == "recording", "{label}: {turns} turns in a replay of its {file}");
        }
    }
}
