//! A thread of two processes as a transcript of the corpus: what changes between its turns, how it is cancelled, and how it continues.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use flow::ports::{BoxFuture, Clock};
use flow::{
    Callback, Delta, Event, ExtensionPrompt, InputWay, Message, OutputAnswer, OutputMode, PromptText,
    RegistrationAction, StopReason, StreamKind, TurnStatus, Withdrawal,
};
use record::Record;
use rules::RuleSet;
use tidegate_kit::{
    AtOnce, EchoTools, Edited, Plugin, Plugins, Script, ScriptedModel, TokioClock, assert_rebuilt, assert_valid, drain,
    live, rule_set, say,
};
use turn::rebuild::Rebuild;
use turn::sources::{ExtensionChange, ExtensionSet, ExtensionSource, ExtensionUpdate};
use turn::{CancellationToken, Compaction, Inputs, Session, SessionParts, SessionSettings, Subscription};

/// What each call finds, in order; then nothing.
#[derive(Default)]
struct InOrder<T>(Mutex<VecDeque<T>>);

impl ExtensionSource for InOrder<ExtensionUpdate> {
    fn current(&self) -> BoxFuture<'_, Result<ExtensionUpdate, String>> {
        let next = self.0.lock().unwrap().pop_front().unwrap_or_default();
        Box::pin(async { Ok(next) })
    }
}

fn guards(key: &str) -> Arc<RuleSet> {
    let todo = "+++\ncondition = 'TODO'\n+++\nDo not leave a TODO: write the code, or say that it is missing.";
    let key = format!("+++\ncondition = '{key}'\n+++\nNever write a key.");
    rule_set(&[("no-todo", todo), ("no-keys", &key)], |_| {})
}

/// What waits for the session, once it is open.
type Waiting = Arc<OnceLock<Inputs>>;

/// One message joins the turn, after it was edited, and another is removed.
fn hand_over(inputs: &Inputs) {
    let wait = |text: &str, way| inputs.wait(vec![(None, Message::user(text))], way).1.remove(0);
    let steered = wait("Keep it", InputWay::Steer);
    let queued = wait("Then print it", InputWay::Queue);
    inputs.edit(&steered, "Keep it short").unwrap();
    inputs.withdraw(&queued, Withdrawal::Removed).unwrap();
}

/// The extension of the session; its state cannot be saved at the end.
fn notes(inputs: &Waiting) -> Plugin {
    let inputs = Arc::clone(inputs);
    Plugin {
        id: "notes",
        callbacks: vec![(Callback::InputMessages, 50), (Callback::LlmOutput(OutputMode::Observe), 50)],
        // The first answer is being accepted: others arrive now.
        output: Some(Box::new(move |output| {
            if output.at.turn == 1 && output.at.step == 1 {
                hand_over(inputs.get().unwrap());
            }
            Ok(OutputAnswer::default())
        })),
        unsaved: Some("the disk is full"),
        ..Plugin::default()
    }
}

/// The plugin `polite` has a text for the model that was not shown yet; at the next turn it is there, and then it is gone again.
fn changes(rules: &Arc<Edited>, inputs: &Waiting) -> Vec<ExtensionUpdate> {
    let polite = || Plugin { id: "polite", callbacks: vec![(Callback::InputMessages, 50)], ..Plugin::default() };
    let set = |plugins: Vec<Plugin>, action, reason: &str| ExtensionSet {
        extensions: Plugins::new(plugins),
        tools: Arc::new(EchoTools),
        rules: Arc::<Edited>::clone(rules),
        system: Vec::new(),
        additions: Vec::new(),
        changes: vec![ExtensionChange {
            plugin: "polite".parse().unwrap(),
            version: "1.0.0".into(),
            action,
            reason: reason.into(),
        }],
    };
    let text = PromptText { place: "prompt".into(), text: "Answer politely.".into() };
    let digest = "c0ffee".repeat(10) + "c0ff";
    let prompt = ExtensionPrompt { plugin: "polite".parse().unwrap(), changed: false, texts: vec![text], digest };
    let added = set(vec![notes(inputs), polite()], RegistrationAction::Register, "the operator's file names it");
    let removed =
        set(vec![notes(inputs)], RegistrationAction::Unregister, "the operator's file does not name it any more");
    let notice = "plugins/other: the component cannot be read; the plugin is not loaded".to_owned();
    vec![
        ExtensionUpdate { set: Some(added), prompts: vec![prompt], notices: vec![notice], known: None },
        ExtensionUpdate { set: Some(removed), ..ExtensionUpdate::default() },
    ]
}

/// Part of it could belong to a key for longer than anything is held back.
fn held() -> Script {
    let chunk = |text: &str| Delta::Piece { block: 0, text: text.into() };
    Script::Slow(vec![
        (0, Delta::Start { model: None }),
        (0, Delta::BlockStart { block: 0, kind: StreamKind::Text }),
        (0, chunk("It is called key-")),
        (2_000, chunk("ring and has three parts.")),
        (0, Delta::BlockEnd { block: 0 }),
        (0, Delta::Stop { reason: StopReason::EndTurn }),
    ])
}

struct Thread {
    clock: Arc<dyn Clock>,
    past: Vec<Event>,
    inputs: Waiting,
}

impl Thread {
    /// The parts of a process that continues the thread. The model takes so few tokens that the third turn begins with a summary.
    fn parts(&self, scripts: Vec<Script>, rules: &Arc<Edited>) -> SessionParts {
        let compaction = Some(Compaction { context_tokens: Some(605), at: 0.5, keep_turns: 1 });
        let settings = SessionSettings { compaction, workspace: "/workspace".into(), ..SessionSettings::default() };
        let parts = tidegate_kit::parts(&ScriptedModel::new(scripts), vec![notes(&self.inputs)], rule_set(&[], |_| {}));
        SessionParts { settings, rules: Arc::<Edited>::clone(rules), clock: Arc::clone(&self.clock), ..parts }
    }

    /// Runs a turn to its end.
    async fn turn(&mut self, session: &mut Session, events: &mut Subscription, input: &str) {
        let report = session.run(vec![Message::user(input)], &CancellationToken::new()).await;
        assert_eq!(report.status, TurnStatus::Completed, "{input}");
        self.check(session, events);
    }

    fn check(&mut self, session: &Session, events: &mut Subscription) {
        self.past.extend(drain(events));
        assert_valid(&session.history());
        assert_rebuilt(&self.past, &session.history());
    }

    async fn close(&mut self, session: Session, events: &mut Subscription) {
        session.close().await;
        self.past.extend(drain(events));
    }

    /// Rules and extensions change, the conversation is summarised and replaced, and the last turn is cancelled.
    async fn first(&mut self) {
        let (answer, last) = live();
        let scripts = vec![
            say("TODO: the plan."),
            say("The plan has three parts: the parser, the printer and the tests."),
            say("Three parts: parser, printer, tests. Each of them takes about a day of work."),
            held(),
            say("They planned three parts."),
            say("The parser comes first."),
            last,
        ];
        let rules = Arc::new(Edited::new(guards("key-[a-z]*!")));
        let source = Arc::new(InOrder(Mutex::new(changes(&rules, &self.inputs).into())));
        let mut session = Session::open(self.parts(scripts, &rules)).await.unwrap();
        session = session.with_extension_source(source).with_journal(Arc::new(AtOnce), None);
        self.inputs.set(session.handles().inputs).unwrap();
        let mut events = session.subscribe();
        self.turn(&mut session, &mut events, "Plan the work").await;
        rules.set(guards("key-[a-z]*[!?]"));
        self.turn(&mut session, &mut events, "What is it called?").await;
        self.turn(&mut session, &mut events, "What comes first?").await;
        session.replace_history(vec![Arc::new(Message::user("We plan a parser."))]);
        let (cancel, canceller) = (CancellationToken::new(), session.handles().canceller);
        let person = async {
            answer.send("It reads ").unwrap();
            tokio::time::sleep(Duration::from_secs(3)).await;
            canceller.set("user", None);
            cancel.cancel();
        };
        let (report, ()) = tokio::join!(session.run(vec![Message::user("What does it do?")], &cancel), person);
        assert_eq!(report.status, TurnStatus::Cancelled);
        self.check(&session, &mut events);
        self.close(session, &mut events).await;
    }

    /// Another process continues it.
    async fn second(&mut self) {
        let mut rebuild = Rebuild::default();
        self.past.iter().for_each(|event| rebuild.take(&Record::of(event, "threads")).unwrap());
        let rules = Arc::new(Edited::new(guards("key-[a-z]*[!?]")));
        let parts = self.parts(vec![say("It reads files.")], &rules);
        let notice = "the last record of the transcript was not complete: 17 bytes were removed".to_owned();
        let mut session = Session::open(parts).await.unwrap().with_journal(Arc::new(AtOnce), Some(rebuild.finish()));
        session = session.with_notices(vec![notice]);
        let mut events = session.subscribe();
        self.turn(&mut session, &mut events, "Continue").await;
        self.close(session, &mut events).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_of_two_processes() {
    let mut thread = Thread { clock: Arc::new(TokioClock::new()), past: Vec::new(), inputs: Waiting::default() };
    thread.first().await;
    thread.second().await;
    crate::support::recorded("threads", &thread.past);
}
