//! A process is killed at any moment while inputs wait, are edited, withdrawn and delivered: the next process has what was reported, each
//! input once and in order, and nothing is sent twice. The process is this test program.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child reports what it sees"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use flow::{Event, EventKind, InputId};
use serde_json::Value;
use tempfile::TempDir;
use tidegate::chat::ChatSession;
use tidegate::event::Backlog;
use tidegate::input::{NewInput, Receipt, WhenBusy};
use tidegate::model::Model;
use tidegate::{Host, Message, Operator, Session, SessionId, SessionOptions};
use tidegate_kit::{Random, Script, ScriptedModel, assert_valid, blocks, calls, say};

/// The environment variable with the folder of the child.
const FOLDER: &str = "TIDEGATE_KILLED_FOLDER";
/// The environment variable with the seed of what the child does.
const SEED: &str = "TIDEGATE_KILLED_SEED";

const ID: &str = "killed";

/// How often the process is killed; 12 times unless the environment asks for more.
fn kills() -> u64 {
    match std::env::var("TIDEGATE_KILLS") {
        Ok(kills) => kills.parse().unwrap_or_else(|error| panic!("TIDEGATE_KILLS={kills}: {error}")),
        Err(_) => 12,
    }
}

async fn open(folder: &Path, model: Arc<ScriptedModel>) -> Session {
    let operator = Operator::load(&folder.join("tidegate.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host = Host::builder(operator).cache_dir(None).user_rules(None).model(model as Arc<dyn Model>).open().await;
    let options = SessionOptions::new(folder).id(SessionId::new(ID)).backlog(Backlog::default());
    host.unwrap().session(options).await.unwrap()
}

/// Steps with a call, and ends of turns, each delta after a millisecond.
fn scripts() -> Vec<Script> {
    let slow = |script: Script| match script {
        Script::Say(deltas, _) => Script::Slow(deltas.into_iter().map(|delta| (1, delta)).collect()),
        other => other,
    };
    let end = blocks(&[(flow::StreamKind::Text, "This is all.")], 4, flow::StopReason::EndTurn);
    let step = |number: usize| match number % 3 {
        2 => Script::Say(end.clone(), None),
        _ => calls(&[(&format!("call-{number}"), "list_dir", "{}")], 4),
    };
    (0..2_000).map(|number| slow(step(number))).collect()
}

/// What an event says about an input.
fn about_input(event: &Event) -> Option<(&'static str, &InputId)> {
    match &event.kind {
        EventKind::InputQueued { id, .. }
        | EventKind::InputEdited { id, .. }
        | EventKind::InputWithdrawn { id, .. } => Some((event.kind.name(), id)),
        EventKind::InputReceived { id: Some(id), .. } | EventKind::SteeringMessage { id: Some(id), .. } => {
            Some((event.kind.name(), id))
        }
        _ => None,
    }
}

/// One thing that a user does.
fn act(session: &Session, random: &mut Random, made: &mut u64, seed: u64) {
    let mut new = || {
        *made += 1;
        let id = format!("in-{seed}-{made}");
        NewInput::from(format!("{id}: hello")).id(InputId::new(id))
    };
    let waiting = session.inbox().waiting();
    let any = (!waiting.is_empty()).then(|| waiting[random.below(waiting.len())].id.clone());
    // What does not wait any more cannot be changed, which is no error here.
    match (random.below(12), any) {
        (0, _) => session.prompt(new()).detach(),
        (1 | 2, _) => drop(session.inbox().queue(new())),
        (3 | 4, _) => drop(session.send(new(), WhenBusy::Steer).id),
        (5, _) => drop(session.send(new(), WhenBusy::Interrupt).id),
        (6 | 7, Some(id)) => drop(session.inbox().edit(&id, &format!("{}: edited {made}", id.as_str()))),
        (8, Some(id)) => drop(session.inbox().remove(&id)),
        (9, Some(id)) => drop(session.inbox().take_back(&id)),
        (10, _) => drop(session.inbox().flush()),
        (11, _) if random.once_in(3) => session.cancel(),
        _ => {}
    }
}

/// The process to kill. It prints what it sees of inputs.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let (Ok(folder), Ok(seed)) = (std::env::var(FOLDER), std::env::var(SEED)) else { return };
    let seed: u64 = seed.parse().unwrap();
    let session = open(Path::new(&folder), ScriptedModel::new(scripts())).await;
    let mut events = session.subscribe();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let Some((kind, id)) = about_input(&event) {
                println!("saw {kind} {}", id.as_str());
            }
        }
    });
    println!("ready");
    let (mut random, mut made) = (Random::new(seed), 0);
    loop {
        act(&session, &mut random, &mut made, seed);
        tokio::time::sleep(Duration::from_micros(random.number() % 3_000)).await;
    }
}

/// Runs the process, and kills it at a random moment. Returns what it has seen.
fn killed(folder: &Path, seed: u64, random: &mut Random) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["killed_inputs::child", "--exact", "--nocapture", "--quiet"])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("ready")), "the process did not open the session");
    let reader = std::thread::spawn(move || lines.collect::<Vec<String>>());
    std::thread::sleep(Duration::from_micros(random.number() % 150_000));
    child.kill().unwrap();
    child.wait().unwrap();
    let seen = reader.join().unwrap();
    // The last line can be cut.
    seen.iter().filter_map(|line| line.strip_prefix("saw ").map(str::to_owned)).collect()
}

/// What the records say of inputs: read here without the code that rebuilds a session.
#[derive(Debug, Default)]
struct Recorded {
    /// What an observer has seen of inputs.
    seen: Vec<String>,
    waiting: Vec<(String, String)>,
    /// The inputs that were delivered last, until the turn has gone on with them.
    delivering: Vec<(String, String)>,
    /// A message of theirs is in the conversation.
    have_joined: bool,
    ended: BTreeMap<String, &'static str>,
}

impl Recorded {
    fn read(folder: &Path) -> Self {
        let path = folder.join("sessions").join(ID).join("transcript.jsonl");
        let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
        let mut recorded = Self::default();
        // A line that was cut is not a record.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).skip(1);
        whole.for_each(|line| recorded.take(&serde_json::from_str(line).unwrap()));
        // The process ended before the turn has gone on with them: they wait again.
        recorded.wait_again();
        recorded
    }

    fn wait_again(&mut self) {
        let again = std::mem::take(&mut self.delivering);
        for (id, _) in &again {
            self.ended.remove(id);
        }
        self.waiting.splice(..0, again);
    }

    fn take(&mut self, record: &Value) {
        let (kind, payload) = (record["type"].as_str().unwrap(), &record["payload"]);
        match kind {
            "cognition_in" => self.have_joined |= payload["role"] != "system",
            "step_start" | "cognition_out" | "turn_finish" | "turn_start" => self.delivering.clear(),
            "input_received" | "steering_message" if std::mem::take(&mut self.have_joined) => self.delivering.clear(),
            _ => {}
        }
        // Others are those of this test, which ask the model to go on.
        let own = payload["id"].as_str().filter(|id| id.starts_with("in-"));
        let Some(id) = own.filter(|_| kind.starts_with("input_") || kind == "steering_message") else { return };
        self.seen.push(format!("{kind} {id}"));
        if kind == "input_queued" && self.delivering.iter().any(|(known, _)| known == id) {
            self.wait_again();
        }
        let text = payload["text"].as_str().unwrap_or_default().to_owned();
        let at = self.waiting.iter().position(|(known, _)| known == id);
        match (kind, at) {
            ("input_queued", Some(at)) | ("input_edited", Some(at)) => self.waiting[at].1 = text,
            ("input_queued", None) => {
                assert_eq!(self.ended.get(id), None, "{id} ended before");
                self.waiting.push((id.to_owned(), text));
            }
            ("input_withdrawn", _) => {
                self.waiting.retain(|(known, _)| known != id);
                self.end(id, "withdrawn");
            }
            ("input_received" | "steering_message", at) => {
                let waited = at.map(|at| self.waiting.remove(at).1);
                assert!(waited.is_none_or(|waited| waited == text), "{id}: another text was delivered: {text}");
                self.end(id, "delivered");
                self.delivering.push((id.to_owned(), text));
            }
            other => panic!("{other:?}: {record}"),
        }
    }

    fn end(&mut self, id: &str, how: &'static str) {
        assert_eq!(self.ended.insert(id.to_owned(), how), None, "{id} ended twice");
    }
}

/// How often a message with the input of this id is in the conversation.
fn times(history: &[Arc<Message>], id: &str) -> usize {
    history.iter().filter(|message| message.plain_text().starts_with(&format!("{id}: "))).count()
}

/// The next process has what the records say, and a chat that opens then shows the same.
async fn check(session: &Session, recorded: &Recorded) {
    let waiting: Vec<(String, String)> = session
        .inbox()
        .waiting()
        .iter()
        .map(|input| (input.id.as_str().to_owned(), input.message.plain_text()))
        .collect();
    assert_eq!(waiting, recorded.waiting, "what waits, in order");
    // Without a record there is nothing to show.
    let mut subscribed = session.subscribe_from(0).unwrap();
    if let Some(snapshot) = subscribed.snapshot.take() {
        let mut chat = ChatSession::default();
        let _changed = chat.restore(snapshot.chat);
        // What waits again is reported by events, which follow when they are on the disk.
        while chat.snapshot().steering.waiting().len() < waiting.len() {
            let next = tokio::time::timeout(Duration::from_secs(60), subscribed.events.next()).await;
            let event = next.expect("a chat is shown all that waits").expect("the session is open");
            let _changed = chat.process(&event);
        }
        let steering = chat.snapshot().steering;
        let mut shown: Vec<(String, String)> =
            steering.waiting().iter().map(|one| (one.id.as_str().to_owned(), one.text.to_string())).collect();
        // What waits again is at the end there.
        shown.sort_by_key(|(id, _)| waiting.iter().position(|(known, _)| known == id));
        assert_eq!(shown, waiting, "what a chat shows of it");
    }
    let history = session.history();
    for (id, end) in &recorded.ended {
        match (*end, session.inbox().receipt(&InputId::new(id.as_str()))) {
            ("delivered", Some(Receipt::Delivered { .. })) => assert_eq!(times(&history, id), 1, "{id}: {history:#?}"),
            ("withdrawn", Some(Receipt::Removed | Receipt::Returned)) => assert_eq!(times(&history, id), 0, "{id}"),
            other => panic!("{id}: {other:?}"),
        }
    }
    waiting.iter().for_each(|(id, _)| assert_eq!(times(&history, id), 0, "{id} waits"));
    assert_valid(&history);
}

/// Sends what waits; returns the conversation then.
async fn send_all(session: &Session) -> Vec<Arc<Message>> {
    while !session.inbox().waiting().is_empty() {
        // A steering message waits for a turn.
        if session.inbox().flush().is_empty() {
            session.prompt("Go on.").report().await;
        }
        while session.is_running() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    session.history()
}

fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"sessions\"\n";
    std::fs::write(folder.path().join("tidegate.toml"), text).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_outlives_a_process_that_is_killed_at_any_moment() {
    let mut random = Random::new(7);
    let (mut met, mut left) = (0, 0);
    let mut folder = workspace();
    for seed in 0..kills() {
        // All of it is read after each kill.
        if seed.is_multiple_of(6) {
            folder = workspace();
        }
        let seen = killed(folder.path(), seed, &mut random);
        let before = Recorded::read(folder.path());
        let own: Vec<&String> = before.seen.iter().filter(|line| line.contains(&format!(" in-{seed}-"))).collect();
        // Inputs of earlier processes are among what it sees.
        let seen: Vec<&String> = seen.iter().filter(|line| line.contains(&format!(" in-{seed}-"))).collect();
        assert_eq!(own.get(..seen.len()), Some(&seen[..]), "what was seen is recorded");
        met += own.len();
        left += before.waiting.len();
        let session = open(folder.path(), ScriptedModel::always(say("Done."))).await;
        check(&session, &before).await;
        // Every other time the next process has what waits.
        if seed.is_multiple_of(2) {
            let history = send_all(&session).await;
            session.close();
            session.closed().await;
            let after = Recorded::read(folder.path());
            assert!(after.waiting.is_empty(), "{after:#?}");
            for (id, end) in &after.ended {
                assert_eq!(times(&history, id), usize::from(*end == "delivered"), "{id} is {end}");
            }
        } else {
            session.close();
            session.closed().await;
        }
    }
    assert!(met > 0 && left > 0, "{met} reports about inputs, and {left} inputs left behind");
}
