//! A host with a session whose plugins change, next to what the model knows of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use tidegate::diagnostic::SourceFile;
use tidegate::event::CallbackOutcome;
use tidegate::plugin::{CallbackKind, EngineOptions, OutputMode, PluginEntry, Power, SettingValue};
use tidegate::prompt::Prompt;
use tidegate::{Engine, Event, EventKind, Host, Operator, PluginId, Session, SessionOptions, TurnStatus};
use tidegate_kit::{Random, Script, ScriptedModel, shown, text};

use super::expect::{Answer, Expected, Facts, Input};
use super::random::{Spec, TAGS};

const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guests/conformance");
const SYSTEM: &str = "The operator's prompt.";
/// Ids that plugins have; one that left can come back, as another plugin.
const IDS: [&str; 7] = ["b", "a", "d", "c", "Z", "a1", "e-2"];

/// The component, in a file that the folders of plugins link to.
fn component() -> &'static Path {
    static FILE: OnceLock<TempDir> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir().unwrap();
        let built = tidegate_build::build(Path::new(GUEST), &tidegate_build::Options::default(), &mut |_| {}).unwrap();
        fs::write(folder.path().join("component.wasm"), built.bytes).unwrap();
        folder
    };
    FILE.get_or_init(build).path()
}

/// One engine for all hosts: the component is compiled once.
fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        Engine::new(&EngineOptions { cache_dir: None, max_instances: 64, ..EngineOptions::default() }).unwrap()
    })
}

fn id(id: &str) -> PluginId {
    id.parse().unwrap()
}

/// A plugin that is registered.
struct Known {
    spec: Spec,
    enabled: bool,
}

pub(crate) struct World {
    seed: u64,
    random: Random,
    folder: TempDir,
    host: Host,
    session: Session,
    model: Arc<ScriptedModel>,
    builtin: Vec<String>,
    /// In order of registration.
    plugins: Vec<Known>,
    /// Ids that the session does without.
    without: BTreeSet<&'static str>,
    kept: BTreeMap<String, &'static str>,
    turns: u32,
    last_answer: Option<String>,
    conversation: Vec<String>,
    folders: u32,
    /// What was done, for the message of a failure.
    log: Vec<String>,
}

impl World {
    pub(crate) async fn open(seed: u64) -> Self {
        let toml = format!("[rules]\nbuiltin_rules = false\nuser_rules = false\n[prompt]\nsystem = {SYSTEM:?}\n");
        let operator = Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let builtin = tidegate::tool::tool_specs(&operator, folder.path()).unwrap().into_iter().map(|tool| tool.name);
        let builtin = builtin.collect();
        let host = Host::builder(operator).engine(engine()).user_rules(None).open().await.unwrap();
        let model = ScriptedModel::new([]);
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let options = SessionOptions::new(workspace).model(Arc::<ScriptedModel>::clone(&model));
        let session = host.session(options).await.unwrap();
        let mut world = Self {
            seed,
            random: Random::new(seed),
            folder,
            host,
            session,
            model,
            builtin,
            plugins: Vec::new(),
            without: BTreeSet::new(),
            kept: BTreeMap::new(),
            turns: 0,
            last_answer: None,
            conversation: Vec::new(),
            folders: 0,
            log: Vec::new(),
        };
        for _ in 0..world.random.below(4) {
            world.register().await;
        }
        world
    }

    /// Some changes between two turns.
    pub(crate) async fn change(&mut self) {
        for _ in 0..self.random.below(4) {
            let known: Vec<String> = self.plugins.iter().map(|known| known.spec.id.clone()).collect();
            if known.is_empty() || self.random.once_in(3) {
                self.register().await;
                continue;
            }
            let plugin = self.random.pick(&known);
            match self.random.below(5) {
                0 => self.unregister(&plugin).await,
                1 => self.enable(&plugin, true).await,
                2 => self.enable(&plugin, false).await,
                3 => self.use_here(&plugin, true),
                _ => self.use_here(&plugin, false),
            }
        }
        let listed: Vec<String> = self.host.plugins().list().iter().map(|plugin| plugin.id.to_string()).collect();
        let known: Vec<String> = self.plugins.iter().map(|known| known.spec.id.clone()).collect();
        assert_eq!(listed, known, "{}", self.case());
    }

    async fn register(&mut self) {
        let free: Vec<&str> =
            IDS.into_iter().filter(|id| self.plugins.iter().all(|known| known.spec.id != *id)).collect();
        if free.is_empty() {
            return;
        }
        let name = self.random.pick(&free).to_owned();
        let mut spec = Spec::random(&mut self.random, name);
        if self.plugins.iter().any(|known| !known.spec.guidance.order.is_empty()) {
            spec.guidance.order.clear();
        }
        self.log.push(format!("register {spec:?}"));
        self.folders += 1;
        let folder = self.folder.path().join(format!("plugin-{}", self.folders));
        fs::create_dir(&folder).unwrap();
        fs::hard_link(component().join("component.wasm"), folder.join("component.wasm")).unwrap();
        let of_guest = fs::read_to_string(format!("{GUEST}/plugin.toml")).unwrap();
        fs::write(folder.join("plugin.toml"), spec.manifest(&of_guest)).unwrap();
        let registered = self.host.plugins().register(entry(&folder, &spec)).await;
        assert_eq!(registered.unwrap_or_else(|error| panic!("{error}\n{}", self.case())), id(&spec.id));
        self.plugins.push(Known { spec, enabled: true });
    }

    async fn unregister(&mut self, plugin: &str) {
        self.log.push(format!("unregister {plugin}"));
        self.host.plugins().unregister(&id(plugin)).await.unwrap();
        self.plugins.retain(|known| known.spec.id != plugin);
        self.kept.remove(plugin);
    }

    async fn enable(&mut self, plugin: &str, enabled: bool) {
        self.log.push(format!("host: {plugin} enabled {enabled}"));
        let plugins = self.host.plugins();
        let done = if enabled { plugins.enable(&id(plugin)).await } else { plugins.disable(&id(plugin)).await };
        done.unwrap();
        self.plugins.iter_mut().find(|known| known.spec.id == plugin).unwrap().enabled = enabled;
    }

    fn use_here(&mut self, plugin: &str, used: bool) {
        self.log.push(format!("session: {plugin} enabled {used}"));
        let name = IDS.into_iter().find(|id| *id == plugin).unwrap();
        if used {
            self.session.enable_plugin(&id(plugin)).unwrap();
            self.without.remove(name);
        } else {
            self.session.disable_plugin(&id(plugin)).unwrap();
            self.without.insert(name);
        }
    }

    /// A turn, compared with the model's.
    pub(crate) async fn turn(&mut self) {
        self.turns += 1;
        let (input, answer) = (self.input(), self.answer());
        self.log.push(format!("turn {}: {input:?} {answer:?}", self.turns));
        let active =
            self.plugins.iter().filter(|known| known.enabled && !self.without.contains(known.spec.id.as_str()));
        let active: Vec<&Spec> = active.map(|known| &known.spec).collect();
        let callbacks: BTreeSet<(String, CallbackKind)> =
            active.iter().flat_map(|spec| CallbackKind::ALL.map(|kind| (spec.id.clone(), kind))).collect();
        let mut facts = Facts {
            active,
            kept: &mut self.kept,
            turn: self.turns,
            last_answer: self.last_answer.clone(),
            builtin: &self.builtin,
            system: SYSTEM,
        };
        let expected = facts.expect(&input, &answer);
        let (found, reported) = self.run(&input, &answer).await;
        assert_eq!(found, expected, "{}", self.case());
        assert_eq!(reported, callbacks, "a callback has no report, or one that is not there has: {}", self.case());
        self.last_answer = Some(expected.answer);
    }

    fn input(&mut self) -> Input {
        let mode = if self.random.once_in(2) { Some(self.random.pick(&["a", "b"])) } else { None };
        let tag = if self.random.once_in(3) { format!(" <{}> x", self.random.pick(&TAGS)) } else { String::new() };
        Input { mode, words: format!("input {}{tag}", self.turns) }
    }

    fn answer(&mut self) -> Answer {
        let [before, inside, after] = ["before ", "inside", " after"].map(str::to_owned);
        Answer { before, tag: self.random.pick(&TAGS), inside, after }
    }

    /// Runs the turn; what it did, and which callbacks have a report.
    async fn run(&mut self, input: &Input, answer: &Answer) -> (Expected, BTreeSet<(String, CallbackKind)>) {
        let script: Script = text(&answer.text(), self.random.pick(&tidegate_kit::CUTS));
        self.model.scripts.lock().unwrap().push(script);
        let mut turn = self.session.prompt(input.text());
        let mut events = Vec::new();
        while let Some(event) = turn.next().await {
            events.push(event);
        }
        let report = turn.report().await;
        assert_eq!(report.status, TurnStatus::Completed, "{}", self.case());
        assert_eq!(report.text, shown(&events), "{}", self.case());
        let prompt = self.model.prompts.lock().unwrap().last().cloned().unwrap();
        let messages = self.new_messages(&prompt);
        let answer = self.session.history().last().unwrap().plain_text();
        self.conversation.push(answer.clone());
        let found = Expected {
            reports: ran(&events),
            system: prompt.system.iter().map(|block| block.text.clone()).collect(),
            tools: prompt.tools.iter().map(|tool| tool.name.clone()).collect(),
            messages,
            answer,
            shown: report.text,
        };
        let reported = reports(&events).map(|(plugin, kind, _)| (plugin, kind)).collect();
        (found, reported)
    }

    /// The messages of a request after those that the conversation had before.
    fn new_messages(&mut self, prompt: &Prompt) -> Vec<String> {
        let all: Vec<String> = prompt.messages.iter().map(|message| message.plain_text()).collect();
        let new = all[self.conversation.len()..].to_vec();
        assert_eq!(all[..self.conversation.len()], self.conversation, "history changed: {}", self.case());
        self.conversation = all;
        new
    }

    /// What led to this state, to run it again.
    fn case(&self) -> String {
        format!("seed {}\n{}", self.seed, self.log.join("\n"))
    }
}

/// The operator's entry: some priorities are the guest's own, some the operator's.
fn entry(folder: &Path, spec: &Spec) -> PluginEntry {
    let mut entry = PluginEntry::of_path(folder);
    entry.grants = vec![Power::State, Power::Session, Power::History, Power::Tools, Power::ProvideTools, Power::Prompt];
    let own = spec.priorities[&CallbackKind::InputMessages];
    entry.priorities =
        spec.priorities.iter().filter(|(_, priority)| **priority != own).map(|(k, p)| (*k, *p)).collect();
    let text = |text: &str| SettingValue::Text(text.to_owned());
    let texts = |all: Vec<String>| SettingValue::Texts(all);
    let acts = spec.acts.iter().map(|kind| kind.as_str().to_owned()).chain(["none".to_owned()]).collect();
    let schema = r#"{"type": "object"}"#;
    for (key, value) in [
        ("mark", text(&spec.mark)),
        ("only", texts(acts)),
        ("tags", texts(spec.tags.iter().map(|tag| (*tag).to_owned()).collect())),
        ("mode", text(if spec.mode == OutputMode::Rewrite { "rewrite" } else { "observe" })),
        ("priority", SettingValue::Number(f64::from(own))),
        ("tools", texts(vec![format!("run-{}|Runs.|{schema}", spec.id)])),
    ] {
        entry.settings.insert(key.to_owned(), (value, None));
    }
    entry
}

fn reports(events: &[Event]) -> impl Iterator<Item = (String, CallbackKind, &CallbackOutcome)> {
    events.iter().filter_map(|event| match &event.kind {
        EventKind::ExtensionCallback(report) => Some((report.plugin.to_string(), report.callback, &report.outcome)),
        _ => None,
    })
}

/// The reports of callbacks that were called, in order, by callback.
fn ran(events: &[Event]) -> BTreeMap<CallbackKind, Vec<String>> {
    let mut all: BTreeMap<CallbackKind, Vec<String>> = BTreeMap::new();
    for (plugin, kind, outcome) in reports(events) {
        if !matches!(outcome, CallbackOutcome::Skipped(_) | CallbackOutcome::NotPermitted(_)) {
            all.entry(kind).or_default().push(format!("{plugin} {}", outcome.as_str()));
        }
    }
    all
}
