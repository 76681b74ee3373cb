//! A session over the fakes, and turns whose end is checked.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use flow::ports::BoxFuture;
use flow::{Event, Message, SessionId};
use turn::sources::{FixedRules, RuleSource, RuleUpdate};
use turn::{Session, SessionParts, SessionSettings};

use crate::clock::TokioClock;
use crate::events::{assert_rebuilt, assert_valid, drain, kept_on_screen};
use crate::model::{Script, ScriptedModel};
use crate::plugins::{Plugin, Plugins};
use crate::ready::ready;
use crate::tools::{EchoTools, Nobody};

/// A session over these parts.
pub fn session(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Session {
    ready(Session::open(parts(model, plugins, rules))).unwrap()
}

/// What [`session`] is made of.
pub fn parts(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> SessionParts {
    SessionParts {
        id: SessionId::new("test"),
        model: Arc::<ScriptedModel>::clone(model),
        extensions: Plugins::new(plugins),
        tools: Arc::new(EchoTools),
        confirm: Arc::new(Nobody),
        rules: Arc::new(FixedRules(rules)),
        clock: Arc::new(TokioClock::new()),
        settings: SessionSettings::default(),
    }
}

/// A set of rules, each `(name, toml)`, over default settings changed by `change`.
pub fn rule_set(specs: &[(&str, &str)], change: impl FnOnce(&mut rules::RuleSettings)) -> Arc<rules::RuleSet> {
    let mut settings =
        rules::RuleSettings { builtin_rules: false, retry_delay_ms: 0, ..rules::RuleSettings::default() };
    change(&mut settings);
    let source = |name: &str| rules::RuleOrigin { layer: rules::RuleLayer::Project, path: format!("{name}.md") };
    let parse = |(name, text): &(&str, &str)| {
        let (rule, diagnostics) = rules::parse_rule_file(name, &source(name), text);
        rule.unwrap_or_else(|| panic!("{name}: {diagnostics:?}"))
    };
    let (set, diagnostics) = rules::RuleSet::build(specs.iter().map(parse).collect(), settings, "/workspace");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    set
}

/// Rules that a test exchanges, as files that are edited. Notices are returned once.
pub struct Edited(pub Mutex<RuleUpdate>);

impl Edited {
    /// These rules, until others are set.
    pub fn new(set: Arc<rules::RuleSet>) -> Self {
        Self(Mutex::new(RuleUpdate { set, notices: Vec::new() }))
    }

    /// From the next turn on, these rules.
    pub fn set(&self, set: Arc<rules::RuleSet>) {
        self.0.lock().unwrap().set = set;
    }
}

impl RuleSource for Edited {
    fn current<'a>(&'a self) -> BoxFuture<'a, Result<RuleUpdate, String>> {
        let mut update = self.0.lock().unwrap();
        let (set, notices) = (Arc::clone(&update.set), std::mem::take(&mut update.notices));
        Box::pin(async move { Ok(RuleUpdate { set, notices }) })
    }
}

/// One turn and its result.
pub struct Scene {
    pub model: Arc<ScriptedModel>,
    pub session: Session,
    pub events: turn::Subscription,
    /// All events of the turns so far.
    pub past: Vec<Event>,
}

impl Scene {
    pub fn new(scripts: impl IntoIterator<Item = Script>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Self {
        Self::of(ScriptedModel::new(scripts), plugins, rules)
    }

    pub fn of(model: Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Self {
        let session = session(&model, plugins, rules);
        let events = session.subscribe();
        Self { model, session, events, past: Vec::new() }
    }

    /// Runs a turn to its end; everything must be closed and valid then.
    pub async fn turn(&mut self, input: &str) -> (turn::TurnReport, Vec<Event>) {
        let report = self.session.run(vec![Message::user(input)], &turn::CancellationToken::new()).await;
        assert_eq!(self.model.open.load(Ordering::SeqCst), 0, "a stream is left open");
        assert_valid(&self.session.history());
        let events = drain(&mut self.events);
        self.past.extend(events.iter().cloned());
        assert_rebuilt(&self.past, &self.session.history());
        assert_eq!(kept_on_screen(&events), report.text, "what a front end keeps is what the report says");
        (report, events)
    }
}
