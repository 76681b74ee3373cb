//! The sessions of the corpus in each convention: the committed streams, and what a client makes of them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chat::{Author, ChatSession, MessageLog, SavedChat};
use record::{Body, Line, Shown, ShownBody};
use serde_json::{Value, json};

use super::ag_ui::{AgUi, Event, Run};
use super::calls::Open;
use super::restored::Has;
use super::ui_stream::{Chunk, DONE, UiStream};
use super::{Act, Turn, asked_by_child, open_of_child};

fn corpus(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(folder)
}

/// All sessions of the corpus, by name.
fn sessions() -> BTreeMap<String, Vec<Shown>> {
    let mut sessions = BTreeMap::new();
    for folder in ["chat", "transcripts"] {
        for entry in std::fs::read_dir(corpus(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(name) = name.strip_suffix(".jsonl").filter(|name| !name.ends_with(".states")) else { continue };
            let text = std::fs::read_to_string(&path).unwrap();
            let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let records = records.filter(|record| record.get("type").is_some());
            let lines = records.filter_map(|record| shown(record).unwrap_or_else(|error| panic!("{name}: {error}")));
            assert!(sessions.insert(name.to_owned(), lines.collect()).is_none(), "{name} is there twice");
        }
    }
    sessions
}

/// The line of a record; `None`: nothing of it is shown.
fn shown(mut record: Value) -> Result<Option<Shown>, String> {
    let Line::Record(read) = Line::of(record.clone()).unwrap() else { return Ok(None) };
    let is_nothing = matches!(
        read.body,
        Body::CognitionIn(_)
            | Body::CustomMessage(_)
            | Body::CognitionReasoning(_)
            | Body::ExtensionLog(_)
            | Body::ExtensionState(_)
            | Body::CustomEvent(_)
            | Body::Unknown { .. }
    );
    let kind = record["type"].as_str().unwrap().to_owned();
    let payload = &mut record["payload"];
    if is_nothing || payload["hidden"] == true {
        return Ok(None);
    }
    match &*kind {
        "tool_call_result" => {
            payload["is_error"] = json!(payload.get("error").is_some());
            if payload.get("duration_ms").is_none() {
                payload.as_object_mut().unwrap().remove("output");
            }
        }
        "history_replaced" => payload["messages"] = json!(payload["messages"].as_array().unwrap().len()),
        // Records that were written by hand lack them.
        "rule_fired" if payload.get("again").is_none() => payload["again"] = json!(false),
        "context_compaction_end" if payload.get("used_tokens").is_none() => payload["used_tokens"] = json!(0),
        _ => {}
    }
    serde_json::from_value(record.clone()).map(Some).map_err(|error| format!("{error}: {record}"))
}

/// What becomes the streams of a session: one for each turn, or part of a turn up to where it waits for a person.
trait Client {
    fn begin(&mut self, turn: u32, lines: &[Shown], is_continued: bool);
    fn take(&mut self, line: &Shown, acts: Vec<Act>);
    fn pause(&mut self, open: &[Open]);
    /// Whether a turn that waits for this pauses.
    fn pauses(open: &[Open]) -> bool;
}

/// Runs a session. A turn pauses right before a person answers.
fn run<C: Client>(lines: &[Shown], client: &mut C) {
    let mut turn: Option<Turn> = None;
    for line in lines.iter().filter(|line| line.turn > 0) {
        if turn.as_ref().is_some_and(|turn| turn.number() < line.turn && !turn.is_over()) {
            end(turn.take(), line, client);
        }
        if turn.as_ref().is_none_or(|turn| turn.number() < line.turn) {
            client.begin(line.turn, lines, false);
            turn = Some(Turn::new(line.turn));
        }
        let Some(current) = turn.as_mut().filter(|turn| !turn.is_over()) else { continue };
        let is_answer =
            matches!(line.body, ShownBody::ToolConfirmationResolved(_) | ShownBody::LimitEscalationResolved(_));
        if is_answer && C::pauses(current.waits_for()) {
            client.pause(current.waits_for());
            client.begin(line.turn, lines, true);
            *current = Turn::new(line.turn);
        }
        let mut acts = Vec::new();
        current.take(line, &mut acts);
        client.take(line, acts);
    }
    if let Some(last) = lines.last() {
        end(turn, last, client);
    }
}

fn end<C: Client>(turn: Option<Turn>, line: &Shown, client: &mut C) {
    let mut acts = Vec::new();
    if let Some(mut turn) = turn {
        turn.abandon("the process ended", &mut acts);
    }
    client.take(line, acts);
}

#[derive(Default)]
struct UseChat {
    stream: Option<UiStream>,
    streams: Vec<(u32, Vec<Chunk>)>,
}

impl UseChat {
    fn chunks(&mut self) -> &mut Vec<Chunk> {
        &mut self.streams.last_mut().unwrap().1
    }
}

impl Client for UseChat {
    fn begin(&mut self, turn: u32, _: &[Shown], _: bool) {
        self.streams.push((turn, Vec::new()));
        self.stream = Some(UiStream::begin(turn, self.chunks()));
    }

    fn take(&mut self, _: &Shown, acts: Vec<Act>) {
        for act in acts {
            let mut stream = self.stream.take().unwrap();
            stream.take(act, self.chunks());
            self.stream = Some(stream);
        }
    }

    fn pause(&mut self, _: &[Open]) {
        let mut stream = self.stream.take().unwrap();
        stream.pause(self.chunks());
    }

    fn pauses(open: &[Open]) -> bool {
        UiStream::pauses(open)
    }
}

#[derive(Default)]
struct Agent {
    run: Option<AgUi>,
    messages: Vec<Value>,
    runs: u32,
    events: Vec<Event>,
}

impl Client for Agent {
    fn begin(&mut self, turn: u32, lines: &[Shown], is_continued: bool) {
        if let Some(run) = self.run.take() {
            self.messages = run.into_messages();
        }
        let own = lines.iter().filter(|line| line.turn == turn);
        let said = own.filter_map(|line| match &line.body {
            ShownBody::InputReceived(said) => {
                let id = said.id.clone().unwrap_or_else(|| format!("in-{}", line.seq));
                Some(json!({"id": id, "role": "user", "content": said.text}))
            }
            _ => None,
        });
        self.messages.extend(said.filter(|_| !is_continued));
        self.runs += 1;
        let (thread, run, messages) = ("thread".to_owned(), format!("run {}", self.runs), self.messages.clone());
        let now = lines.iter().find(|line| line.turn == turn).unwrap().ts;
        self.run = Some(AgUi::begin(Run { thread, run, messages, is_continued }, now, &mut self.events));
    }

    fn take(&mut self, line: &Shown, acts: Vec<Act>) {
        let Some(run) = &mut self.run else { return };
        run.at(line.ts);
        acts.into_iter().for_each(|act| run.take(act, &mut self.events));
    }

    fn pause(&mut self, open: &[Open]) {
        self.run.as_mut().unwrap().pause(open, &mut self.events);
    }

    fn pauses(open: &[Open]) -> bool {
        !open.is_empty()
    }
}

fn use_chat(lines: &[Shown]) -> Vec<(u32, Vec<Chunk>)> {
    let mut client = UseChat::default();
    run(lines, &mut client);
    client.streams
}

/// Compares with the committed file, or writes it.
fn committed(convention: &str, name: &str, text: &str) {
    let path = corpus("conventions").join(convention).join(name);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "{}: read what changed, and write it with TIDEGATE_BLESS=1", path.display());
}

/// The streams of a session as they are committed: a chunk a line, and the end of each.
fn ui_streams(lines: &[Shown]) -> String {
    let streams = use_chat(lines);
    let chunks = streams.iter().flat_map(|(_, chunks)| chunks.iter().map(|chunk| json!(chunk)).chain([json!(DONE)]));
    chunks.map(|chunk| format!("{chunk}\n")).collect()
}

/// The runs of a session as they are committed: an event a line.
fn ag_ui_runs(lines: &[Shown]) -> String {
    let mut client = Agent::default();
    run(lines, &mut client);
    client.events.iter().map(|event| format!("{}\n", json!(event))).collect()
}

#[test]
fn sessions_are_the_committed_streams() {
    for (name, lines) in sessions() {
        committed("ui-stream", &format!("{name}.jsonl"), &ui_streams(&lines));
        committed("ag-ui", &format!("{name}.jsonl"), &ag_ui_runs(&lines));
    }
}

/// The text of the answers of a turn, as a client of the AI SDK shows it.
fn text_of(chunks: &[&Chunk]) -> String {
    let (mut steps, mut step) = (String::new(), String::new());
    for chunk in chunks {
        match chunk {
            Chunk::StartStep => steps += &std::mem::take(&mut step),
            Chunk::ResetStep => step.clear(),
            Chunk::TextDelta { delta, .. } => step += delta,
            _ => {}
        }
    }
    steps + &step
}

/// The valid text of the answers of a turn.
fn valid(log: &MessageLog, turn: u32) -> String {
    let snapshot = log.snapshot();
    let answers = snapshot.messages().filter(|message| message.turn == turn && message.author == Author::Assistant);
    answers.map(|message| message.text()).collect()
}

#[test]
fn a_client_shows_the_valid_text_and_no_other() {
    let mut texts = BTreeMap::new();
    for (name, lines) in sessions() {
        let mut of_session = BTreeMap::new();
        let mut log = MessageLog::default();
        for line in &lines {
            if let Some(event) = record::read_event(line.json()).unwrap() {
                let _changed = log.process(&event);
            }
        }
        let streams = use_chat(&lines);
        for turn in lines.iter().map(|line| line.turn).collect::<std::collections::BTreeSet<_>>() {
            let chunks: Vec<&Chunk> =
                streams.iter().filter(|(of, _)| *of == turn).flat_map(|(_, chunks)| chunks).collect();
            let text = text_of(&chunks);
            assert_eq!(text, valid(&log, turn), "{name}, turn {turn}");
            if !text.is_empty() {
                of_session.insert(turn, text);
            }
        }
        texts.insert(name, of_session);
    }
    // What clients of the conventions are compared with.
    committed("", "texts.json", &format!("{:#}\n", json!(texts)));
}

/// The state of a chat after these lines.
fn saved(lines: &[Shown]) -> SavedChat {
    let mut chat = ChatSession::<chat::ChatMode>::default();
    for line in lines {
        if let Some(event) = record::read_event(line.json()).unwrap() {
            let _changed = chat.process(&event);
        }
    }
    chat.save()
}

/// Whoever comes when the first lines of a turn are not kept any more has the same text and the same questions as everybody else.
#[test]
fn a_turn_continues_from_the_state_of_a_chat() {
    let mut restored = 0;
    for (name, lines) in sessions() {
        for cut in 1..lines.len() {
            let (before, after) = lines.split_at(cut);
            let Some(turn) = before.last().map(|line| line.turn).filter(|turn| *turn > 0) else { continue };
            let mut acts = Vec::new();
            let Some(mut again) = Turn::restored(&saved(before), Some(turn), Has::Nothing, &mut acts) else { continue };
            let mut live = Turn::new(turn);
            let mut seen = Vec::new();
            before.iter().for_each(|line| live.take(line, &mut seen));
            let ids = |turn: &Turn| turn.waits_for().iter().map(Open::id).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(ids(&again), ids(&live), "{name}, after {cut} lines");
            let mut log = MessageLog::default();
            for line in &lines {
                if let Some(event) = record::read_event(line.json()).unwrap() {
                    let _changed = log.process(&event);
                }
            }
            after.iter().for_each(|line| again.take(line, &mut acts));
            let mut chunks = Vec::new();
            let mut stream = UiStream::begin(turn, &mut chunks);
            acts.into_iter().for_each(|act| stream.take(act, &mut chunks));
            let chunks: Vec<&Chunk> = chunks.iter().collect();
            assert_eq!(text_of(&chunks), valid(&log, turn), "{name}, after {cut} lines");
            restored += 1;
        }
    }
    assert!(restored > 300, "{restored}");
}

/// Who connects when the lines of a child are not kept any more learns the same questions as everybody else.
#[test]
fn questions_of_a_child_are_those_of_its_lines() {
    let (child, mut open_ones) = (chat::ChildThread::new("child", "helper"), 0);
    for (name, lines) in sessions() {
        for cut in 0..=lines.len() {
            let before = lines.get(..cut).unwrap();
            let saved = saved(before);
            let reported: Vec<Value> = open_of_child(&child, &saved).into_iter().map(|aside| aside.payload).collect();
            let pending: Vec<String> = saved
                .confirmations()
                .questions()
                .iter()
                .map(|question| format!("child/{}", question.id.as_str()))
                .collect();
            let asked = |id: &String| {
                let line = |line: &Shown| {
                    asked_by_child(&child, line).filter(|aside| aside.id == *id).map(|aside| aside.payload)
                };
                before.iter().filter_map(line).next_back().unwrap()
            };
            assert_eq!(reported, pending.iter().map(asked).collect::<Vec<_>>(), "{name}, after {cut} lines");
            open_ones += reported.len();
        }
    }
    assert!(open_ones > 20, "{open_ones}");
}

/// What a rule stopped and the reminder that quotes it are in no stream.
#[test]
fn nothing_that_was_held_back_is_in_a_stream() {
    let sessions = sessions();
    for name in ["rule-rewind", "rule-discard", "rule-stop", "interrupts", "redacted"] {
        let lines = &sessions[name];
        for streams in [ui_streams(lines), ag_ui_runs(lines)] {
            for held in ["TODO: later", "Do not leave a TODO", "system-interrupt", "evidence", "push --force"] {
                assert!(!streams.contains(held), "{name}: `{held}` is in {streams}");
            }
        }
    }
    let streams = ui_streams(&sessions["rule-rewind"]);
    assert!(streams.contains("no-todo"), "the rule is named");
}
