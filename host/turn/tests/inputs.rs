//! The inputs that wait, against a small model: random operations, with turns that complete or are cancelled between them, and the same from
//! the records.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::{
    Callback, Event, EventKind, InputAnswer, InputId, InputWay, Message, Receipt, Role, TurnStatus, Withdrawal,
};
use proptest::prelude::*;
use record::Record;
use tidegate_kit::{AtOnce, Plugin, ScriptedModel, drain, ready, rule_set, say};
use tidegate_turn as turn;
use turn::rebuild::{Rebuild, Resumed};
use turn::{CancellationToken, Claim, FlushMode, Inputs, Session, Ticket};

#[derive(Clone, Debug)]
enum Step {
    Wait(InputWay, bool),
    Edit(usize),
    Withdraw(usize, Withdrawal),
    GiveBack(usize),
    Flush(FlushMode),
    RunQueued(FlushMode, bool),
    RunPrompt(usize, bool),
    RunSteering(bool),
    /// A message starts a turn at once.
    Start(InputWay, bool),
}

fn way() -> impl Strategy<Value = InputWay> {
    prop::sample::select(vec![InputWay::Prompt, InputWay::Queue, InputWay::Steer, InputWay::Interrupt])
}

fn mode() -> impl Strategy<Value = FlushMode> {
    prop::sample::select(vec![FlushMode::Sequential, FlushMode::Batched])
}

fn step() -> impl Strategy<Value = Step> {
    let withdrawal = || prop::sample::select(vec![Withdrawal::Removed, Withdrawal::Returned]);
    prop_oneof![
        6 => (way(), any::<bool>()).prop_map(|(way, named)| Step::Wait(way, named)),
        2 => (0..30_usize).prop_map(Step::Edit),
        2 => (0..30_usize, withdrawal()).prop_map(|(at, withdrawal)| Step::Withdraw(at, withdrawal)),
        1 => (0..30_usize).prop_map(Step::GiveBack),
        1 => mode().prop_map(Step::Flush),
        2 => (mode(), any::<bool>()).prop_map(|(mode, cancel)| Step::RunQueued(mode, cancel)),
        2 => (0..30_usize, any::<bool>()).prop_map(|(at, cancel)| Step::RunPrompt(at, cancel)),
        1 => any::<bool>().prop_map(Step::RunSteering),
        1 => (way(), any::<bool>()).prop_map(|(way, cancel)| Step::Start(way, cancel)),
    ]
}

/// What an input is, as far as this test tells them apart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Waiting,
    Delivered,
    Removed,
    Returned,
}

/// What there should be.
#[derive(Default)]
struct Model {
    waiting: Vec<(InputId, InputWay, String)>,
    all: BTreeMap<InputId, Is>,
}

impl Model {
    fn end(&mut self, id: &InputId, is: Is) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(known, ..)| known != id);
        let was_there = self.waiting.len() < before;
        if was_there {
            self.all.insert(id.clone(), is);
        }
        was_there
    }

    fn ids(&self, wanted: impl Fn(InputWay) -> bool) -> Vec<InputId> {
        self.waiting.iter().filter(|(_, way, _)| wanted(*way)).map(|(id, ..)| id.clone()).collect()
    }

    /// A turn with these inputs.
    fn run(&mut self, claimed: &[InputId], cancelled: bool) {
        if cancelled {
            let prompts = self.ids(|way| way == InputWay::Prompt);
            for id in prompts.iter().filter(|id| claimed.contains(id)) {
                self.end(id, Is::Returned);
            }
            return;
        }
        let joining = self.ids(|way| matches!(way, InputWay::Steer | InputWay::Interrupt));
        for id in claimed.iter().chain(&joining) {
            self.end(id, Is::Delivered);
        }
    }
}

struct Scene {
    session: Session,
    inputs: Inputs,
    model: Model,
    /// Every input that there was, in order, with its ticket; 0: it started a turn.
    known: Vec<(InputId, Ticket)>,
}

impl Scene {
    fn id(&self, at: usize) -> Option<(InputId, Ticket)> {
        (!self.known.is_empty()).then(|| self.known[at % self.known.len()].clone())
    }

    fn new_input(&self, named: bool) -> (Option<InputId>, Message, String) {
        let number = self.known.len();
        let text = format!("message {number}");
        (named.then(|| InputId::new(format!("ui-{number}"))), Message::user(text.as_str()), text)
    }

    fn run(&mut self, claim: Option<Claim>, cancelled: bool) {
        let Some(claim) = claim else { return };
        let claimed = claim.ids();
        let cancel = CancellationToken::new();
        if cancelled {
            cancel.cancel();
        }
        let report = ready(self.session.run_claimed(claim, &cancel));
        assert_eq!(report.status, if cancelled { TurnStatus::Cancelled } else { TurnStatus::Completed });
        self.model.run(&claimed, cancelled);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Wait(way, named) => {
                let (id, message, text) = self.new_input(*named);
                let (ticket, mut ids) = self.inputs.wait(vec![(id, message)], *way);
                self.known.push((ids[0].clone(), ticket));
                self.model.all.insert(ids[0].clone(), Is::Waiting);
                self.model.waiting.push((ids.remove(0), *way, text));
            }
            Step::Edit(at) => {
                let Some((id, _)) = self.id(*at) else { return };
                let text = format!("edited {}", self.known.len());
                let waiting = self.model.waiting.iter_mut().find(|(known, ..)| *known == id);
                assert_eq!(self.inputs.edit(&id, &text).is_ok(), waiting.is_some());
                waiting.into_iter().for_each(|(.., own)| own.clone_from(&text));
            }
            Step::Withdraw(at, receipt) => {
                let Some((id, _)) = self.id(*at) else { return };
                let is = if *receipt == Withdrawal::Removed { Is::Removed } else { Is::Returned };
                assert_eq!(self.inputs.withdraw(&id, *receipt).is_ok(), self.model.end(&id, is));
            }
            Step::GiveBack(at) => {
                let Some((id, ticket)) = self.id(*at).filter(|(_, ticket)| *ticket > 0) else { return };
                self.inputs.give_back(ticket);
                self.model.end(&id, Is::Returned);
            }
            Step::Flush(mode) => {
                let mut ids = self.model.ids(|way| way == InputWay::Queue);
                if *mode == FlushMode::Sequential {
                    ids.truncate(1);
                }
                assert_eq!(self.inputs.steer_queued(*mode), ids);
                let flushed = self.model.waiting.iter_mut().filter(|(id, ..)| ids.contains(id));
                flushed.for_each(|(_, way, _)| *way = InputWay::Steer);
            }
            Step::RunQueued(mode, cancelled) => {
                let claim = self.inputs.claim_queued(*mode);
                assert_eq!(claim.is_some(), !self.model.ids(|way| way == InputWay::Queue).is_empty());
                self.run(claim, *cancelled);
            }
            Step::RunPrompt(at, cancelled) => {
                let Some((_, ticket)) = self.id(*at) else { return };
                let claim = self.inputs.claim_prompt(ticket);
                self.run(claim, *cancelled);
            }
            Step::RunSteering(cancelled) => {
                let claim = self.inputs.claim_steering();
                self.run(claim, *cancelled);
            }
            Step::Start(way, cancelled) => self.start(*way, *cancelled),
        }
    }

    fn start(&mut self, way: InputWay, cancelled: bool) {
        let (id, message, text) = self.new_input(true);
        let (mut ids, claim) = self.inputs.start(vec![(id, message)], way);
        self.known.push((ids[0].clone(), 0));
        self.model.all.insert(ids[0].clone(), Is::Waiting);
        self.model.waiting.push((ids.remove(0), way, text));
        self.run(claim, cancelled);
    }

    fn check(&self) {
        let waiting = self.inputs.waiting().into_iter();
        let waiting: Vec<_> = waiting.map(|input| (input.id, input.way, input.message.plain_text())).collect();
        assert_eq!(waiting, self.model.waiting);
        for (id, wanted) in &self.model.all {
            let is = match self.inputs.receipt(id).unwrap() {
                Receipt::Queued => Is::Waiting,
                Receipt::Delivered { .. } => Is::Delivered,
                Receipt::Removed => Is::Removed,
                Receipt::Returned => Is::Returned,
            };
            assert_eq!(is, *wanted, "{id}");
        }
        let history = self.session.history();
        for (id, is) in &self.model.all {
            let known = self.known.iter().position(|(known, _)| known == id).unwrap();
            let text = format!("message {known}");
            let times = history.iter().filter(|message| message.plain_text() == text).count();
            // An edited text is not looked for.
            assert!(times <= usize::from(*is == Is::Delivered), "{id}: {times}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_operations_are_as_the_model_says(steps in prop::collection::vec(step(), 0..40)) {
        let model = ScriptedModel::always(say("ok"));
        let session = tidegate_kit::session(&model, vec![], rule_set(&[], |_| {}));
        let mut events = session.subscribe();
        let inputs = session.handles().inputs;
        let mut scene = Scene { session, inputs, model: Model::default(), known: Vec::new() };
        for step in &steps {
            scene.take(step);
            scene.check();
        }
        let mut rebuild = Rebuild::default();
        drain(&mut events).iter().for_each(|event| rebuild.take(&Record::of(event, "thread")).unwrap());
        let resumed = rebuild.finish();
        let waiting: Vec<_> = resumed.waiting.into_iter().map(|input| (input.id, input.way, input.message.plain_text())).collect();
        let queued = |way| if way == InputWay::Prompt { InputWay::Queue } else { way };
        let wanted: Vec<_> = scene.model.waiting.into_iter().map(|(id, way, text)| (id, queued(way), text)).collect();
        prop_assert_eq!(waiting, wanted);
        prop_assert_eq!(resumed.receipts.len(), scene.model.all.values().filter(|is| **is != Is::Waiting).count());
        for (id, receipt) in &resumed.receipts {
            prop_assert_eq!(scene.inputs.receipt(id), Some(*receipt));
        }
    }
}

/// The process ends at each record of the start of a turn: the input is waiting, or in the conversation, and never neither or both.
#[test]
fn an_input_is_not_lost_between_its_delivery_and_the_conversation() {
    for way in [InputWay::Queue, InputWay::Steer, InputWay::Prompt] {
        let model = ScriptedModel::new([say("Done.")]);
        let mut session = tidegate_kit::session(&model, vec![], rule_set(&[], |_| {}));
        let (inputs, mut events) = (session.handles().inputs, session.subscribe());
        let (ids, claim) = inputs.start(vec![(Some(InputId::new("mine")), Message::user("hello"))], way);
        assert_eq!(ids, [InputId::new("mine")]);
        let report = ready(session.run_claimed(claim.unwrap(), &CancellationToken::new()));
        assert_eq!(report.status, TurnStatus::Completed);
        let events = drain(&mut events);
        let first =
            events.iter().position(|event| matches!(event.kind.name(), "input_queued" | "input_received")).unwrap();
        let mut again = 0;
        for end in first + 1..=events.len() {
            let mut rebuild = Rebuild::default();
            events[..end].iter().for_each(|event| rebuild.take(&Record::of(event, "thread")).unwrap());
            let resumed = rebuild.finish();
            let waits = resumed.waiting.iter().filter(|input| input.message.plain_text() == "hello").count();
            let is_there = resumed.history.iter().filter(|message| message.plain_text() == "hello").count();
            assert_eq!(waits + is_there, 1, "{way:?}, after {}", events[end - 1].kind.name());
            assert_eq!(resumed.receipts.len(), is_there, "{way:?}");
            again += usize::from(waits == 1 && events[end - 1].kind.name() == "input_received");
        }
        assert_eq!(again, 1, "{way:?}");
    }
}

/// What an extension makes of the messages of an input.
type Make = fn(Vec<Message>) -> Vec<Message>;

/// The records of a turn with two inputs that are delivered together, of which an extension makes other messages; each message is preceded by
/// a notice, as a prompt addition is. And the messages that were made.
fn delivered_together(way: InputWay, make: Make) -> (Vec<Record>, Vec<String>) {
    let plugin = Plugin {
        id: "p",
        callbacks: vec![(Callback::InputMessages, 50)],
        input: Some(Box::new(move |messages| Ok(InputAnswer::Replace(make(messages))))),
        ..Plugin::default()
    };
    let model = ScriptedModel::new([say("Done.")]);
    let mut session = tidegate_kit::session(&model, vec![plugin], rule_set(&[], |_| {}));
    let (inputs, mut events) = (session.handles().inputs, session.subscribe());
    let both = ["a", "b"].map(|id| (Some(InputId::new(id)), Message::user(id)));
    inputs.wait(both.into(), way);
    let claim = if way == InputWay::Queue { inputs.claim_queued(FlushMode::Batched) } else { inputs.claim_steering() };
    let report = ready(session.run_claimed(claim.unwrap(), &CancellationToken::new()));
    assert_eq!(report.status, TurnStatus::Completed);
    let mut records = Vec::new();
    for event in drain(&mut events) {
        if matches!(event.kind, EventKind::CognitionIn { .. }) {
            let notice = EventKind::Notice { message: "an addition".into() };
            records.push(Record::of(&Event::new(event.seq, event.at_ms, event.place, notice), "thread"));
        }
        records.push(Record::of(&event, "thread"));
    }
    let history = session.history();
    let made = history.iter().filter(|message| message.role == Role::User).map(|one| one.plain_text());
    (records, made.collect())
}

/// The inputs are in the conversation, all together, or wait, and then the next process says so: whatever follows, a third has the same.
#[test]
fn inputs_that_are_delivered_together_are_lost_at_no_record() {
    let same: Make = |messages| messages;
    let joined: Make = |messages| vec![Message::user(messages.iter().map(Message::plain_text).collect::<String>())];
    let doubled: Make = |messages| messages.iter().flat_map(|one| [one.clone(), one.clone()]).collect();
    for (way, make) in
        [InputWay::Queue, InputWay::Steer].into_iter().flat_map(|way| [same, joined, doubled].map(|make| (way, make)))
    {
        let (records, made) = delivered_together(way, make);
        let first = records.iter().position(|record| record.body.name() == "turn_start").unwrap();
        let mut again = 0;
        for end in first..=records.len() {
            let mut rebuild = Rebuild::default();
            records[..end].iter().for_each(|record| rebuild.take(record).unwrap());
            let resumed = rebuild.clone().finish();
            let user = resumed.history.iter().filter(|message| message.role == Role::User);
            let there: Vec<String> = user.map(|message| message.plain_text()).collect();
            let waiting: Vec<&str> = resumed.waiting.iter().map(|input| input.id.as_str()).collect();
            let last = &records[end - 1].body.name();
            if there.is_empty() {
                assert_eq!((waiting, resumed.receipts.len()), (vec!["a", "b"], 0), "after {last}");
            } else {
                assert_eq!((there, waiting, resumed.receipts.len()), (made.clone(), vec![], 2), "after {last}");
            }
            again += usize::from(!resumed.waiting_again.is_empty());
            continues(rebuild, &resumed);
        }
        assert!(again > 2, "{way:?}: {again}");
    }
}

/// Another process continues, changes what waits again, and delivers it.
fn continues(mut rebuild: Rebuild, resumed: &Resumed) {
    let model = ScriptedModel::always(say("Done."));
    let session = tidegate_kit::session(&model, vec![], rule_set(&[], |_| {}));
    let mut session = session.with_journal(Arc::new(AtOnce), Some(resumed.clone()));
    let (inputs, mut events) = (session.handles().inputs, session.subscribe());
    inputs.report_again();
    let reported: Vec<InputId> = drain(&mut events)
        .iter()
        .map(|event| {
            rebuild.take(&Record::of(event, "thread")).unwrap();
            let EventKind::InputQueued { id, .. } = &event.kind else { panic!("{event:?}") };
            id.clone()
        })
        .collect();
    assert_eq!(reported, resumed.waiting_again);
    let waiting = rebuild.clone().finish().waiting;
    assert_eq!((&waiting, &rebuild.clone().finish().history), (&resumed.waiting, &resumed.history));
    if !waiting.is_empty() {
        inputs.edit(&waiting[1].id, "edited").unwrap();
        let claim = inputs.claim_queued(FlushMode::Batched).or_else(|| inputs.claim_steering());
        let report = ready(session.run_claimed(claim.unwrap(), &CancellationToken::new()));
        assert_eq!(report.status, TurnStatus::Completed);
    }
    drain(&mut events).iter().for_each(|event| rebuild.take(&Record::of(event, "thread")).unwrap());
    let third = rebuild.finish();
    assert_eq!((third.history, third.waiting), (session.history(), vec![]));
}
