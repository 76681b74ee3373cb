//! Front ends that do anything at any event: prompt, steer, queue, interrupt, cancel, edit and withdraw inputs, answer questions, decide about
//! limits, disconnect and reconnect. Providers are always sent a conversation that they accept, nothing is delivered twice or lost, no call
//! runs unasked, and all front ends end in the same state, also the next process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;
mod user;
mod verdict;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate::chat::ChatSession;
use tidegate::event::Backlog;
use tidegate::limit::Limits;
use tidegate::model::Model;
use tidegate::{Event, EventKind, Host, Operator, Session, SessionId, SessionOptions, Subscription};
use tidegate_kit::Random;

use self::model::RandomModel;
use self::user::User;

const SEEDS: u64 = 200;
/// What the user does before the session is left alone.
const ACTIONS: usize = 25;
/// A session that does nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace whose sessions ask before they write.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        let settings = "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"../sessions\"\n";
        std::fs::write(folder.path().join("work/tidegate.toml"), settings).unwrap();
        Self { folder }
    }

    async fn open(&self, model: &Arc<RandomModel>) -> Session {
        let work = self.folder.path().join("work");
        let operator = Operator::load(&work.join("tidegate.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
        let builder = Host::builder(operator).cache_dir(None).user_rules(None).max_instances(4);
        let host = builder.model(Arc::<RandomModel>::clone(model) as Arc<dyn Model>).open().await.unwrap();
        let mut limits = Limits::default();
        limits.steps = Some(2);
        let options = SessionOptions::new(work).id(SessionId::new("s")).backlog(Backlog::default().events(20));
        host.session(options.questions_wait().limits(limits)).await.unwrap()
    }
}

/// A front end that is never disconnected, and one that sometimes is.
struct FrontEnds {
    steady: (ChatSession, Subscription),
    other: (ChatSession, Option<Subscription>),
    events: Vec<Event>,
    /// It has missed more than the session keeps.
    snapshots: bool,
}

impl FrontEnds {
    fn of(session: &Session) -> Self {
        let steady = session.subscribe_from(0).unwrap().events;
        let mut ends = Self {
            steady: (ChatSession::default(), steady),
            other: (ChatSession::default(), None),
            events: Vec::new(),
            snapshots: false,
        };
        ends.reconnect(session);
        ends
    }

    /// Waits for the next event, or until there is none because the session is idle or waits for a decision. Returns whether there was
    /// one.
    async fn next(&mut self, session: &Session) -> bool {
        let began = Instant::now();
        loop {
            let waits = session.pending_limit().is_some() || !session.pending_questions().is_empty();
            let goes_on = session.is_running() && !waits;
            if let Some(event) = self.steady.1.try_next() {
                self.take(event);
                return true;
            }
            if !goes_on {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "the session hangs after {:#?}", self.events.last());
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    }

    fn take(&mut self, event: Event) {
        let _changed = self.steady.0.process(&event);
        self.events.push(event);
        self.catch_up();
    }

    /// What the other front end can read without waiting.
    fn catch_up(&mut self) {
        let (chat, subscription) = &mut self.other;
        while let Some(event) = subscription.as_mut().and_then(Subscription::try_next) {
            let _changed = chat.process(&event);
        }
    }

    fn disconnect(&mut self) {
        self.other.1 = None;
    }

    fn reconnect(&mut self, session: &Session) {
        let (chat, subscription) = &mut self.other;
        let mut again = session.subscribe_from(chat.next_seq()).unwrap();
        if let Some(snapshot) = again.snapshot.take() {
            let _changed = chat.restore(snapshot.chat);
            self.snapshots |= snapshot.omitted > 0;
        }
        *subscription = Some(again.events);
    }
}

/// What must have happened in some session, or the others prove little: types of events, and how turns ended.
const SEEN: [&str; 18] = [
    "steering_message",
    "input_queued",
    "input_edited",
    "input_withdrawn",
    "tool_confirmation_resolved approved",
    "tool_confirmation_resolved denied",
    "tool_confirmation_resolved edited",
    "tool_confirmation_resolved always",
    "tool_confirmation_resolved cancelled",
    "limit_escalation_resolved",
    "thread_suspended",
    "tool_call_start",
    "cognition_reasoning",
    "turn_finish completed",
    "turn_finish cancelled",
    "turn_finish failed",
    "turn_finish suspended",
    "snapshot",
];

/// What an event says that a session has met.
fn seen(event: &Event) -> String {
    let name = event.kind.name();
    match &event.kind {
        EventKind::TurnFinish { status } => format!("{name} {}", status.as_str()),
        EventKind::ToolConfirmationResolved { decision, .. } => format!("{name} {}", decision.as_str()),
        _ => name.to_owned(),
    }
}

async fn run(seed: u64) -> BTreeSet<String> {
    let place = Place::new();
    let model = Arc::new(RandomModel::new(seed));
    let session = place.open(&model).await;
    let mut ends = FrontEnds::of(&session);
    let mut user = User::new(seed);
    user.begin(&session);
    let mut random = Random::new(seed ^ 0x5eed);
    while user.done < ACTIONS {
        let is_still = !ends.next(&session).await;
        if is_still || random.once_in(3) {
            user.act(&session, &mut ends);
        }
    }
    user.finish(&session, &mut ends).await;
    session.close();
    while let Some(event) = ends.steady.1.next().await {
        ends.take(event);
    }
    ends.reconnect(&session);
    ends.catch_up();
    assert_eq!(ends.other.0.save(), ends.steady.0.save(), "seed {seed}: the front ends differ");
    verdict::check(seed, &session, &ends.events, &user, &model);
    let history = session.history();
    let waiting = session.inbox().waiting();
    session.closed().await;
    drop(session);
    let next = place.open(&model).await;
    assert_eq!(next.history(), history, "seed {seed}: the next process has another conversation");
    let texts = |waiting: &[tidegate::input::WaitingInput]| -> Vec<String> {
        waiting.iter().map(|input| input.message.plain_text()).collect()
    };
    assert_eq!(texts(&next.inbox().waiting()), texts(&waiting), "seed {seed}: other inputs wait in the next process");
    next.close();
    next.closed().await;
    ends.events.iter().map(seen).chain(ends.snapshots.then(|| "snapshot".to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_front_ends_do_nothing_is_lost_or_repeated() {
    // One seed alone: TIDEGATE_SEED=17.
    if let Ok(seed) = std::env::var("TIDEGATE_SEED") {
        run(seed.parse().unwrap()).await;
        return;
    }
    let mut all = BTreeSet::new();
    for seed in 0..SEEDS {
        all.extend(tokio::spawn(run(seed)).await.unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
    let missing: Vec<_> = SEEN.into_iter().filter(|wanted| !all.contains(*wanted)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "never happened; these did: {all:?}");
}
