//! Front ends that lose their connection to a session: wherever that was, they end in the state of one that never did.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tidegate::chat::{ChatSession, SavedChat};
use tidegate::event::{Backlog, NoBacklog};
use tidegate::model::Model;
use tidegate::question::{Answer, Confirm, Question};
use tidegate::{BoxFuture, Event, Host, Operator, Session, SessionId, SessionOptions, Subscription, TurnStatus};
use tidegate_kit::{Frozen, Random, Script, ScriptedModel, calls, live, text};

/// A user who approves what is not a command.
struct Careful;

impl Confirm for Careful {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let answer = match question.call.name.as_str() {
            "shell" => Answer::Deny { reason: "not now".into() },
            _ => Answer::Approve,
        };
        Box::pin(async move { answer })
    }
}

async fn host(folder: &Path, scripts: impl IntoIterator<Item = Script>) -> Host {
    std::fs::create_dir_all(folder.join("work")).unwrap();
    let settings = "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"../sessions\"\n";
    std::fs::write(folder.join("work/tidegate.toml"), settings).unwrap();
    let operator = Operator::load(&folder.join("work/tidegate.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
    let model = ScriptedModel::new(scripts) as Arc<dyn Model>;
    // A subscriber that is late gets chunks joined, with the time of the first: times must not tell one front end from another.
    let builder =
        Host::builder(operator).cache_dir(None).user_rules(None).max_instances(4).clock(Arc::new(Frozen::default()));
    builder.model(model).confirm(Arc::new(Careful)).open().await.unwrap()
}

async fn session(host: &Host, folder: &TempDir, backlog: Backlog) -> Session {
    let options = SessionOptions::new(folder.path().join("work")).id(SessionId::new("s")).backlog(backlog);
    host.session(options).await.unwrap()
}

/// Two turns: tools that are asked about, one of which is denied, and a text in many deltas.
fn scripts() -> Vec<Script> {
    let file = r#"{"path": "a.txt", "content": "one\ntwo\n"}"#;
    let tools = [("c1", "write_file", file), ("c2", "shell", r#"{"command": "ls"}"#)];
    vec![calls(&tools, 5), text("The file is there, and nothing was run.", 1), text("Gladly. Anything else?", 2)]
}

fn drain(events: &mut Subscription) -> Vec<Event> {
    std::iter::from_fn(|| events.try_next()).collect()
}

fn process(chat: &mut ChatSession, events: &[Event]) {
    events.iter().for_each(|event| _ = chat.process(event));
}

/// A front end that has the events before `seq`, and reconnects. Returns its state, and how many events it did not get.
fn reconnected(session: &Session, events: &[Event], seq: u64) -> (SavedChat, Option<u64>) {
    let mut chat = ChatSession::default();
    let had: Vec<Event> = events.iter().filter(|event| event.seq < seq).cloned().collect();
    process(&mut chat, &had);
    let mut again = session.subscribe_from(seq).unwrap();
    let omitted = again.snapshot.take().map(|snapshot| {
        let _changed = chat.restore(snapshot.chat);
        snapshot.omitted
    });
    process(&mut chat, &drain(&mut again.events));
    (chat.save(), omitted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_can_reconnect_at_every_event() {
    for kept in [0, 10, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let host = host(folder.path(), scripts()).await;
        let session = session(&host, &folder, Backlog::default().events(kept)).await;
        let mut all = session.subscribe_from(0).unwrap();
        assert_eq!(all.snapshot, None, "nothing has happened");
        for input in ["Write it.", "Thank you."] {
            assert_eq!(session.prompt(input).report().await.status, TurnStatus::Completed);
        }
        let events = drain(&mut all.events);
        let mut uninterrupted = ChatSession::default();
        process(&mut uninterrupted, &events);
        let next = uninterrupted.next_seq();
        let shown = serde_json::to_string(&uninterrupted.snapshot()).unwrap();
        assert!(["+two", "not now", "Anything else?"].iter().all(|text| shown.contains(text)), "{shown}");
        for seq in 0..=next {
            let (state, omitted) = reconnected(&session, &events, seq);
            assert_eq!(state, uninterrupted.save(), "from {seq} of {next}, with {kept} events kept");
            let is_kept = next - seq <= kept as u64;
            assert_eq!(omitted, (!is_kept).then_some(next - seq), "from {seq} of {next}, with {kept} events kept");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn front_ends_reconnect_while_a_turn_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (say, script) = live();
    let host = host(folder.path(), [script]).await;
    let session = session(&host, &folder, Backlog::default().events(40)).await;
    let mut all = session.subscribe();
    let over = Arc::new(AtomicBool::new(false));
    let front_ends: Vec<_> = (1..=6)
        .map(|seed| {
            let (session, over) = (session.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let (mut chat, mut random, mut snapshots) = (ChatSession::default(), Random::new(seed), 0);
                loop {
                    let is_last = over.load(Ordering::SeqCst);
                    let mut again = session.subscribe_from(chat.next_seq()).unwrap();
                    if let Some(snapshot) = again.snapshot.take() {
                        let _changed = chat.restore(snapshot.chat);
                        snapshots += 1;
                    }
                    if is_last {
                        process(&mut chat, &drain(&mut again.events));
                        return (chat.save(), snapshots);
                    }
                    let mut left = random.below(30);
                    while let Some(event) = again.events.try_next().filter(|_| left > 0) {
                        left -= 1;
                        let _changed = chat.process(&event);
                    }
                    for _ in 0..random.below(4) {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    let turn = session.prompt("Go on.");
    for word in ["one ", "two ", "three ", "four "].iter().cycle().take(4_000) {
        say.send(*word).unwrap();
        tokio::task::yield_now().await;
    }
    drop(say);
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    let mut uninterrupted = ChatSession::default();
    // The last events reach subscribers when they are on disk.
    while uninterrupted.snapshot().messages.messages().count() < 2 || uninterrupted.snapshot().steering.is_executing() {
        let _changed = uninterrupted.process(&all.next().await.unwrap());
    }
    over.store(true, Ordering::SeqCst);
    for front_end in front_ends {
        let (state, _) = front_end.await.unwrap();
        assert_eq!(state, uninterrupted.save());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_has_a_snapshot_of_what_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let first = session(&host(folder.path(), scripts()).await, &folder, Backlog::default()).await;
    let mut all = first.subscribe();
    assert_eq!(first.prompt("Write it.").report().await.status, TurnStatus::Completed);
    first.close();
    first.closed().await;
    let mut uninterrupted = ChatSession::default();
    process(&mut uninterrupted, &drain(&mut all));

    let second = session(&host(folder.path(), [text("Gladly.", 1)]).await, &folder, Backlog::default()).await;
    let mut again = second.subscribe_from(0).unwrap();
    let snapshot = again.snapshot.take().unwrap();
    assert_eq!((snapshot.omitted, snapshot.chat.next_seq()), (uninterrupted.next_seq(), uninterrupted.next_seq()));
    let mut chat = ChatSession::default();
    let _changed = chat.restore(snapshot.chat);
    let shown = |chat: &ChatSession| serde_json::to_value(chat.snapshot().messages).unwrap();
    assert_eq!(shown(&chat), shown(&uninterrupted));
    assert_eq!(second.prompt("Thank you.").report().await.status, TurnStatus::Completed);
    let more = drain(&mut again.events);
    process(&mut chat, &more);
    process(&mut uninterrupted, &more);
    assert_eq!(shown(&chat), shown(&uninterrupted));
    assert_eq!(chat.save(), second.subscribe_from(0).unwrap().snapshot.unwrap().chat);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_backlog_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(folder.path(), []).await;
    let session = host.session(SessionOptions::new(folder.path().join("work"))).await.unwrap();
    assert_eq!(session.subscribe_from(0).err(), Some(NoBacklog));
    assert!(NoBacklog.to_string().contains("SessionOptions::backlog"));
}
