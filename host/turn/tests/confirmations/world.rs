//! Tools over files in memory, whose calls ask; and a session with them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use flow::ports::{AnsweredElsewhere, BoxFuture, Confirm, Journal, PreparedCall, Progress, Question, Tools};
use flow::{Answer, Event, EventKind, Message, Permission, Preview, QuestionId, ToolCall, ToolOutput, ToolSpec};
use record::Record;
use rules::RuleSet;
use serde_json::{Value, json};
use tidegate_kit::{AtOnce, Plugin, Script, ScriptedModel, drain, rule_set};
use tidegate_turn as turn;
use turn::rebuild::{Rebuild, Resumed};
use turn::{AnswerError, CancellationToken, QuestionSettings, Questions, Session, SessionParts, TurnReport};

/// Files and links, and what was written.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) files: Mutex<BTreeMap<String, String>>,
    links: Mutex<BTreeMap<String, String>>,
    pub(crate) written: Mutex<Vec<(String, String)>>,
}

/// `write` asks; below `open/` it is allowed, below `denied/` denied, and `guarded/` is asked about each time. `link` makes a path lead
/// elsewhere, and is allowed.
struct FileTools(Arc<World>);

impl Tools for FileTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let text = json!({"type": "string"});
        let spec = |name: &str, properties: Value, required: Value| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
        };
        vec![
            spec("write", json!({"path": text, "content": text}), json!(["path", "content"])),
            spec("link", json!({"path": text, "to": text}), json!(["path", "to"])),
        ]
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let path = text("path");
        let real = self.0.links.lock().unwrap().get(&path).cloned().unwrap_or_else(|| path.clone());
        let content = text(if call.name == "link" { "to" } else { "content" });
        Box::new(FileCall { world: &self.0, is_link: call.name == "link", path, real, content })
    }
}

struct FileCall<'a> {
    world: &'a World,
    is_link: bool,
    path: String,
    real: String,
    content: String,
}

impl PreparedCall for FileCall<'_> {
    fn permission(&self) -> Permission {
        match self.real.split('/').next() {
            _ if self.is_link => Permission::Allow,
            Some("open") => Permission::Allow,
            Some("denied") => Permission::Deny { reason: format!("`{}` is denied", self.real) },
            _ => Permission::Ask { reason: "write is set to ask".into() },
        }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        let before = self.world.files.lock().unwrap().get(&self.real).cloned().unwrap_or_default();
        let diff = Some(format!("--- {}\n-{before}\n+{}", self.real, self.content));
        Box::pin(std::future::ready(Preview { diff, ..Preview::default() }))
    }

    fn always(&self) -> Option<String> {
        (!self.real.starts_with("guarded/")).then(|| format!("write({})", self.real))
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let (path, content) = (self.real.clone(), self.content.clone());
        Box::pin(async move {
            // A front end that is polled alternately before and after this has its turn in any case.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
            if self.is_link {
                self.world.links.lock().unwrap().insert(self.path.clone(), content);
            } else {
                self.world.files.lock().unwrap().insert(path.clone(), content.clone());
                self.world.written.lock().unwrap().push((path, content));
            }
            ToolOutput { content: "written".into(), diff: None, is_error: false }
        })
    }
}

/// The arguments of `write`.
pub(crate) fn write(path: &str, content: &str) -> String {
    json!({"path": path, "content": content}).to_string()
}

/// An answer of the model with these calls; their ids are `1`, `2`, ….
pub(crate) fn calls(calls: &[(&str, String)]) -> Script {
    let ids: Vec<String> = (1..=calls.len()).map(|number| number.to_string()).collect();
    let all: Vec<(&str, &str, &str)> =
        calls.iter().zip(&ids).map(|((name, arguments), id)| (id.as_str(), *name, arguments.as_str())).collect();
    tidegate_kit::calls(&all, usize::MAX)
}

/// An answer with calls of `write`.
pub(crate) fn writes(all: &[(&str, &str)]) -> Script {
    calls(&all.iter().map(|(path, content)| ("write", write(path, content))).collect::<Vec<_>>())
}

/// A session, and what it is asked for.
pub(crate) struct Place {
    pub(crate) world: Arc<World>,
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) session: Session,
    pub(crate) questions: Questions,
    pub(crate) events: turn::Subscription,
    pub(crate) cancel: CancellationToken,
}

/// What a place is made of.
pub(crate) struct Setup {
    pub(crate) scripts: Vec<Script>,
    pub(crate) confirm: Arc<dyn Confirm>,
    pub(crate) plugins: Vec<Plugin>,
    pub(crate) rules: Arc<RuleSet>,
    pub(crate) settings: QuestionSettings,
    pub(crate) resumed: Option<Resumed>,
    pub(crate) world: Arc<World>,
    pub(crate) journal: Arc<dyn Journal>,
}

impl Setup {
    pub(crate) fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            scripts: scripts.into_iter().collect(),
            confirm: Arc::new(AnsweredElsewhere),
            plugins: Vec::new(),
            rules: rule_set(&[], |_| {}),
            settings: QuestionSettings::default(),
            resumed: None,
            world: Arc::default(),
            journal: Arc::new(AtOnce),
        }
    }

    pub(crate) async fn open(self) -> Place {
        let model = ScriptedModel::new(self.scripts);
        let base = tidegate_kit::parts(&model, self.plugins, self.rules);
        let settings = turn::SessionSettings { questions: self.settings, ..base.settings.clone() };
        let tools = Arc::new(FileTools(Arc::clone(&self.world)));
        let parts = SessionParts { tools, confirm: self.confirm, settings, ..base };
        let session = Session::open(parts).await.unwrap().with_journal(self.journal, self.resumed);
        let (questions, events) = (session.handles().questions, session.subscribe());
        Place { world: self.world, model, session, questions, events, cancel: CancellationToken::new() }
    }
}

/// A place where the model makes these calls of `write`, and is done then.
pub(crate) async fn place(all: &[(&str, &str)]) -> Place {
    Setup::new([writes(all), tidegate_kit::say("done")]).open().await
}

/// Front ends of a session, while its turn runs.
#[derive(Clone)]
pub(crate) struct Desk(pub(crate) Questions);

impl Desk {
    /// Waits until so many questions are open.
    pub(crate) async fn open(&self, count: usize) -> Vec<Question> {
        loop {
            let pending = self.0.pending();
            if pending.len() == count {
                return pending;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn answer(&self, question: &Question, answer: Answer) -> Result<(), AnswerError> {
        self.0.answer(&question.id, answer, "Ada")
    }
}

impl Place {
    /// Runs a turn while `front_end` works.
    pub(crate) async fn turn<F: Future<Output = ()>>(
        &mut self,
        front_end: impl FnOnce(Desk) -> F,
    ) -> (TurnReport, Vec<Event>) {
        let front_end = front_end(Desk(self.questions.clone()));
        let run = self.session.run(vec![Message::user("go")], &self.cancel);
        let (report, ()) = tokio::join!(run, front_end);
        tidegate_kit::assert_valid(&self.session.history());
        assert!(self.questions.pending().is_empty(), "a question is left");
        (report, drain(&mut self.events))
    }

    /// Continues without an input while `front_end` works.
    pub(crate) async fn resume<F: Future<Output = ()>>(
        &mut self,
        front_end: impl FnOnce(Desk) -> F,
    ) -> (TurnReport, Vec<Event>) {
        let front_end = front_end(Desk(self.questions.clone()));
        let run = self.session.resume("continue", &self.cancel);
        let (report, ()) = tokio::join!(run, front_end);
        tidegate_kit::assert_valid(&self.session.history());
        (report, drain(&mut self.events))
    }

    pub(crate) fn written(&self) -> Vec<(String, String)> {
        self.world.written.lock().unwrap().clone()
    }

    /// The results that the model got with a request, joined.
    pub(crate) fn results(&self, request: usize) -> String {
        self.model.request(request).last().unwrap().1.clone()
    }
}

/// What a process continues from that has these records.
pub(crate) fn rebuilt(events: &[Event]) -> Resumed {
    let mut rebuild = Rebuild::default();
    for event in events {
        let line = serde_json::to_vec(&Record::of(event, "thread")).unwrap();
        rebuild.take(&Record::read(&line).unwrap()).unwrap();
    }
    rebuild.finish()
}

/// The events up to the last that `is_last`.
pub(crate) fn until(events: &[Event], is_last: impl Fn(&EventKind) -> bool) -> Vec<Event> {
    let end = events.iter().rposition(|event| is_last(&event.kind)).unwrap();
    events[..=end].to_vec()
}

/// The ids of the questions that were asked, in order.
pub(crate) fn asked(events: &[Event]) -> Vec<QuestionId> {
    let id = |event: &Event| match &event.kind {
        EventKind::ToolConfirmationRequested { question, .. } => Some(question.clone()),
        _ => None,
    };
    events.iter().filter_map(id).collect()
}

/// The decisions: which, and by whom.
pub(crate) fn decided(events: &[Event]) -> Vec<(String, &'static str, String)> {
    let one = |event: &Event| match &event.kind {
        EventKind::ToolConfirmationResolved { question, decision, by, .. } => {
            Some((question.to_string(), decision.as_str(), by.clone()))
        }
        _ => None,
    };
    events.iter().filter_map(one).collect()
}
