//! Extensions that change between two turns, together with their tools, rules and prompt.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use flow::ports::{BoxFuture, ExtensionHost, PreparedCall, Tools};
use flow::{
    AdditionId, BlockOrigin, Callback, EventKind, InputAnswer, Message, Position, PromptAddition, RegistrationAction,
    SystemBlock, ToolCall, ToolSpec, TurnStatus,
};
use tidegate_kit::{EchoTools, Plugin, Plugins, Script, ScriptedModel, drain, rule_set, say};
use tidegate_turn as turn;
use turn::sources::{ExtensionChange, ExtensionSet, ExtensionSource, ExtensionUpdate, FixedRules};
use turn::{CancellationToken, Session};

/// A source that is told what to answer, turn by turn; afterwards nothing changes.
#[derive(Default)]
struct Told(Mutex<VecDeque<Result<ExtensionUpdate, String>>>);

impl ExtensionSource for Told {
    fn current(&self) -> BoxFuture<'_, Result<ExtensionUpdate, String>> {
        let next = self.0.lock().unwrap().pop_front().unwrap_or_else(|| Ok(ExtensionUpdate::default()));
        Box::pin(async { next })
    }
}

/// One tool of this name.
struct OneTool(&'static str);

impl Tools for OneTool {
    fn specs(&self) -> Vec<ToolSpec> {
        let parameters = serde_json::json!({"type": "object"});
        vec![ToolSpec { name: self.0.into(), description: String::new(), parameters }]
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        EchoTools.prepare(call)
    }
}

/// A plugin that puts its name before the user's words.
fn speaker(id: &'static str) -> Plugin {
    let say = move |messages: Vec<Message>| {
        let words = |message: &Message| Message::user(format!("{id}({})", message.plain_text()));
        Ok(InputAnswer::Replace(messages.iter().map(words).collect()))
    };
    Plugin { id, callbacks: vec![(Callback::InputMessages, 50)], input: Some(Box::new(say)), ..Plugin::default() }
}

fn change(plugin: &str, action: RegistrationAction) -> ExtensionChange {
    ExtensionChange { plugin: plugin.parse().unwrap(), version: "2.0.0".into(), action, reason: "edited".into() }
}

/// Everything that comes with one plugin: its callback, tool, rule, guidance and addition all carry its name.
fn set(id: &'static str, changes: Vec<ExtensionChange>) -> ExtensionSet {
    let rule = format!("+++\nalwaysApply = true\n+++\nRule of {id}.");
    let addition = AdditionId { plugin: id.parse().unwrap(), index: 0 };
    ExtensionSet {
        extensions: Plugins::new(vec![speaker(id)]) as Arc<dyn ExtensionHost>,
        tools: Arc::new(OneTool(id)),
        rules: Arc::new(FixedRules(rule_set(&[(id, &rule)], |_| {}))),
        system: vec![SystemBlock::new(BlockOrigin::Host, format!("system of {id}"))],
        additions: vec![PromptAddition {
            id: addition,
            position: Position::SystemSuffix,
            text: format!("addition of {id}"),
            when: Vec::new(),
        }],
        changes,
    }
}

/// What the model is sent in one request: the system prompt, the tools, the last message.
fn request(model: &ScriptedModel, index: usize) -> String {
    let prompts = model.prompts.lock().unwrap();
    let prompt = &prompts[index];
    let system: Vec<&str> = prompt.system.iter().map(|block| block.text.trim()).collect();
    let tools: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
    format!("{} | {} | {}", system.join(", "), tools.join(", "), prompt.messages.last().unwrap().plain_text())
}

struct Run {
    model: Arc<ScriptedModel>,
    session: Session,
    events: turn::Subscription,
}

impl Run {
    /// A session whose source answers this, turn by turn.
    async fn new(updates: Vec<Result<ExtensionUpdate, String>>, scripts: Vec<Script>) -> Self {
        let model = ScriptedModel::new(scripts);
        let parts = tidegate_kit::parts(&model, vec![speaker("a")], rule_set(&[], |_| {}));
        let source = Arc::new(Told(Mutex::new(updates.into())));
        let session = Session::open(parts).await.unwrap().with_extension_source(source);
        let events = session.subscribe();
        Self { model, session, events }
    }

    async fn turn(&mut self) -> (TurnStatus, Vec<EventKind>) {
        let report = self.session.run(vec![Message::user("go")], &CancellationToken::new()).await;
        (report.status, drain(&mut self.events).into_iter().map(|event| event.kind).collect())
    }
}

/// Which plugins came and left, as events.
fn registered(events: &[EventKind]) -> Vec<String> {
    let one = |kind: &EventKind| match kind {
        EventKind::ExtensionRegistered { plugin, version, action, callbacks } => {
            Some(format!("{action} {plugin} {version} with {} callbacks", callbacks.len()))
        }
        EventKind::ExtensionUnregistered { plugin, action, reason } => Some(format!("{action} {plugin}: {reason}")),
        EventKind::Notice { message } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

fn unchanged() -> Result<ExtensionUpdate, String> {
    Ok(ExtensionUpdate::default())
}

fn changed(set: ExtensionSet) -> Result<ExtensionUpdate, String> {
    Ok(ExtensionUpdate { set: Some(set), notices: vec!["a notice".to_owned()], ..ExtensionUpdate::default() })
}

#[tokio::test]
async fn callbacks_rules_prompt_and_tools_change_together_at_the_turn_boundary() {
    let b = set("b", vec![change("a", RegistrationAction::Unregister), change("b", RegistrationAction::Register)]);
    let again = set("b", vec![change("b", RegistrationAction::Reload)]);
    let updates = vec![unchanged(), changed(b), unchanged(), changed(again)];
    let mut run = Run::new(updates, vec![say("1"), say("2"), say("3"), say("4")]).await;
    let mut seen = Vec::new();
    for turn in 0..4 {
        let (status, events) = run.turn().await;
        assert_eq!(status, TurnStatus::Completed);
        seen.push((request(&run.model, turn), registered(&events)));
    }
    let with_b = "system of b, Rule of b., addition of b | b | b(go)";
    assert_eq!(seen[0].0, " | read, write, edit, slow, shell, locked, steps | a(go)");
    assert_eq!(seen[0].1, ["register a 1.0.0 with 1 callbacks"]);
    assert_eq!(seen[1].0, with_b);
    assert_eq!(seen[1].1, ["unregister a: edited", "register b 2.0.0 with 1 callbacks", "a notice"]);
    // Without a change everything stays, and after one that brings the same rules the prompt still has them.
    assert_eq!(seen[2], (with_b.to_owned(), Vec::new()));
    assert_eq!(seen[3].0, with_b);
    assert_eq!(seen[3].1, ["reload b 2.0.0 with 1 callbacks", "a notice"]);
}

#[tokio::test]
async fn an_extension_that_is_required_and_cannot_be_used_stops_the_turn_and_not_the_session() {
    let updates = vec![Err("plugin `guard` is required and cannot be loaded: broken".to_owned())];
    let mut run = Run::new(updates, vec![say("1")]).await;
    let (status, events) = run.turn().await;
    let TurnStatus::Failed { message, .. } = status else { panic!("{status:?}") };
    assert_eq!(message, "plugin `guard` is required and cannot be loaded: broken");
    assert!(run.model.prompts.lock().unwrap().is_empty(), "the model was asked");
    assert!(matches!(events.last(), Some(EventKind::TurnFinish { .. })), "{events:?}");
    assert_eq!(run.turn().await.0, TurnStatus::Completed);
}

#[tokio::test]
async fn a_host_that_cannot_adopt_extensions_says_so() {
    /// Extensions of another kind of host.
    struct Foreign(Arc<Plugins>);

    impl ExtensionHost for Foreign {
        fn registrations(&self) -> Arc<[flow::Registration]> {
            self.0.registrations()
        }

        fn open<'a>(
            &'a self,
            session: &'a flow::SessionId,
            view: Arc<dyn flow::ports::SessionView>,
            events: Arc<dyn flow::ports::EventSink>,
        ) -> BoxFuture<'a, Result<Arc<dyn flow::ports::Extensions>, flow::ports::StateError>> {
            self.0.open(session, view, events)
        }
    }

    let foreign = ExtensionSet { extensions: Arc::new(Foreign(Plugins::new(vec![speaker("b")]))), ..set("b", vec![]) };
    let mut run = Run::new(vec![changed(foreign)], vec![say("1")]).await;
    let (status, _) = run.turn().await;
    let TurnStatus::Failed { message, .. } = status else { panic!("{status:?}") };
    assert!(message.contains("do not change while a session is open"), "{message}");
}
