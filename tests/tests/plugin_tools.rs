//! Tools that plugins provide, in whole turns of a host: permissions, questions, schemas, names, cancelling.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use tempfile::TempDir;
use tidegate::diagnostic::{Health, SourceFile};
use tidegate::event::StreamKind;
use tidegate::message::Part;
use tidegate::model::{Delta, Model, ModelError, ModelStream, StopReason};
use tidegate::prompt::Prompt;
use tidegate::question::{Answer, Confirm, Preview, Question};
use tidegate::tool::{CallId, Permission, PreparedCall, Progress, ToolCall, ToolOutcome, ToolOutput, ToolSpec, Tools};
use tidegate::{BoxFuture, Event, EventKind, Host, HostError, Operator, Session, SessionOptions, TurnStatus};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A folder with the guest that runs the script it gets, and its manifest.
fn guest() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let build = || {
        let source = root().join("tests/guests/conformance");
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(source.join("plugin.toml"), folder.path().join("plugin.toml")).unwrap();
        let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
        std::fs::write(folder.path().join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
        folder
    };
    FOLDER.get_or_init(build).path()
}

/// The operator's table of the guest, without its settings.
fn entry(folder: &Path) -> String {
    format!(
        "[[plugin]]\npath = {:?}\ngrants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n",
        folder.display().to_string()
    )
}

async fn open(toml: &str) -> Result<Host, HostError> {
    let source = SourceFile::new("tidegate.toml", format!("[rules]\nbuiltin_rules = false\n{toml}"));
    let operator = Operator::of_source(&source).unwrap_or_else(|wrong| panic!("{wrong}"));
    Host::builder(operator).cache_dir(None).max_instances(4).user_rules(None).open().await
}

/// Calls a tool in each of its first answers, with these arguments, and then says that it is done.
struct Calls(Mutex<VecDeque<(&'static str, String)>>);

struct Streamed(VecDeque<Delta>);

impl Model for Calls {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "calls"
    }

    fn start<'a>(&'a self, _: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let (kind, text, reason) = match self.0.lock().unwrap().pop_front() {
            Some((tool, arguments)) => {
                (StreamKind::Tool { call: CallId::new("c1"), name: tool.into() }, arguments, StopReason::ToolUse)
            }
            None => (StreamKind::Text, "done".to_owned(), StopReason::EndTurn),
        };
        let deltas = [
            Delta::Start { model: None },
            Delta::BlockStart { block: 0, kind },
            Delta::Piece { block: 0, text },
            Delta::BlockEnd { block: 0 },
            Delta::Stop { reason },
        ];
        Box::pin(async move { Ok(Box::new(Streamed(deltas.into())) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for Streamed {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// Answers every question the same way, and keeps the questions.
struct Person(Answer, Mutex<Vec<Question>>);

impl Person {
    fn who(answer: Answer) -> Arc<Self> {
        Arc::new(Self(answer, Mutex::default()))
    }

    fn asked(&self) -> Vec<Question> {
        self.1.lock().unwrap().clone()
    }
}

impl Confirm for Person {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.1.lock().unwrap().push(question.clone());
        Box::pin(std::future::ready(self.0.clone()))
    }
}

fn script(script: &str) -> (&'static str, String) {
    ("run", serde_json::json!({"script": script}).to_string())
}

async fn session(toml: &str, calls: Vec<(&'static str, String)>, person: &Arc<Person>) -> (Session, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let host = open(&format!("{}{toml}", entry(guest()))).await.unwrap_or_else(|error| panic!("{error}"));
    let options = SessionOptions::new(folder.path()).model(Arc::new(Calls(Mutex::new(calls.into()))));
    (host.session(options.confirm(Arc::clone(person) as Arc<dyn Confirm>)).await.unwrap(), folder)
}

/// Runs a turn; its events, and the results that the model got.
async fn turn(session: &Session) -> (Vec<Event>, Vec<String>) {
    let mut turn = session.prompt("go");
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    let result = |part: &Part| if let Part::ToolResult(result) = part { Some(result.content.join("\n")) } else { None };
    let history = session.history();
    let results = history.iter().flat_map(|message| message.parts.iter().filter_map(result));
    (events, results.collect())
}

fn outcomes(events: &[Event]) -> Vec<&ToolOutcome> {
    let outcome = |event: &'_ Event| matches!(event.kind, EventKind::ExtensionTool(_));
    let reports = events.iter().filter(|event| outcome(event));
    reports
        .map(|event| match &event.kind {
            EventKind::ExtensionTool(report) => &report.outcome,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_and_what_was_shown_is_what_runs() {
    let person = Person::who(Answer::Approve);
    let (session, _folder) = session("", vec![script("!progress half\n!replace done")], &person).await;
    let (events, results) = turn(&session).await;
    assert_eq!(results, ["done"]);
    let asked = person.asked();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    for part in ["`run` is a tool of the plugin `conformance`", "`run = \"allow\"`", "[tools.permission]"] {
        assert!(question.reason.contains(part), "{part}: {}", question.reason);
    }
    let Preview { arguments, notes, .. } = &question.preview;
    assert_eq!((arguments[0].name.as_str(), arguments[0].value.as_str()), ("script", "!progress half\n!replace done"));
    assert!(notes[0].contains("the plugin `conformance` 0.1.0, which runs in the sandbox"), "{notes:?}");
    let progress =
        |event: &Event| matches!(&event.kind, EventKind::ToolCallProgress { message, .. } if message == "half");
    assert!(events.iter().any(progress), "{events:#?}");
    assert_eq!(outcomes(&events), [&ToolOutcome::Done]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_a_permission_and_the_absence_of_a_person_decide() {
    let no = Answer::Deny { reason: "not today".to_owned() };
    let (asking, person) = ("", Person::who(no));
    let (opened, _folder) = session(asking, vec![script("!state-must-set k v")], &person).await;
    let (events, results) = turn(&opened).await;
    let denied = "not run: the user denied this call: not today".to_owned();
    assert_eq!((results, outcomes(&events).len()), (vec![denied], 0), "it did not run");

    for (toml, expected, asked) in [
        ("[tools.permission]\nrun = \"allow\"\n", "done", 0),
        ("[tools.permission]\n\"*\" = \"allow\"\n", "done", 0),
        ("[tools.permission]\nrun = \"ask\"\n\"*\" = \"allow\"\n", "done", 1),
        ("[tools.permission]\nrun = \"deny\"\n", "`run` is denied here by the permission `run`", 0),
    ] {
        let person = Person::who(Answer::Approve);
        let (session, _folder) = session(toml, vec![script("!replace done")], &person).await;
        let (_, results) = turn(&session).await;
        assert!(results[0].contains(expected), "{toml}: {results:?}");
        assert_eq!(person.asked().len(), asked, "{toml}");
        assert!(session.loaded().warnings().is_empty(), "{:?}", session.loaded().warnings());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_violate_the_schema_reach_neither_the_person_nor_the_plugin() {
    let person = Person::who(Answer::Approve);
    let wrong = vec![
        ("run", "{\"script\": 3}".to_owned()),
        ("run", "{}".to_owned()),
        ("run", "{\"script\": \"a\", \"script\": \"b\"}".to_owned()),
        script("!replace corrected"),
    ];
    let (session, _folder) = session("", wrong, &person).await;
    let (events, results) = turn(&session).await;
    assert!(results[0].contains("not valid: at `/script`: expected string, found number"), "{results:?}");
    assert!(results[1].contains("not valid: missing `script`"), "{results:?}");
    assert!(results[2].contains("occurs twice"), "{results:?}");
    assert_eq!(results[3], "corrected");
    assert_eq!((person.asked().len(), outcomes(&events).len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_the_result_of_the_call_and_the_turn_continues_also_where_the_plugin_is_required() {
    let person = Person::who(Answer::Approve);
    let calls = vec![script("!state-must-set k v\n!panic on purpose"), script("!reject no"), script("!state-get k")];
    let (session, _folder) = session("required = true\n[tools.permission]\nrun = \"allow\"\n", calls, &person).await;
    let (events, results) = turn(&session).await;
    assert!(
        results[0].starts_with("`run` failed and changed nothing: its plugin `conformance` panicked at"),
        "{results:?}"
    );
    assert_eq!(results[1..], ["no", "None"]);
    let outcomes = outcomes(&events);
    assert!(
        matches!(outcomes[0], ToolOutcome::Failed(failure) if failure.message.contains("its words are left out, because it guards")),
        "{outcomes:?}"
    );
    assert_eq!(outcomes[1..], [&ToolOutcome::Rejected("no".into()), &ToolOutcome::Done]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_stops_a_call_and_undoes_its_writes() {
    let person = Person::who(Answer::Approve);
    let calls = vec![script("!state-must-set k v\n!progress started\n!loop"), script("!state-get k")];
    let (session, _folder) = session("[tools.permission]\nrun = \"allow\"\n", calls, &person).await;
    let mut running = session.prompt("go");
    let mut stopped = false;
    while let Some(event) = running.next().await {
        match &event.kind {
            EventKind::ToolCallProgress { .. } => session.cancel(),
            EventKind::ExtensionTool(report) => stopped = report.outcome == ToolOutcome::Stopped,
            _ => {}
        }
    }
    assert_eq!((running.report().await.status, stopped), (TurnStatus::Cancelled, true));
    let (_, results) = turn(&session).await;
    assert_eq!(results.last().unwrap(), "None");
}

/// A tool of the embedder.
struct Own;

impl Tools for Own {
    fn specs(&self) -> Vec<ToolSpec> {
        let parameters = serde_json::json!({"type": "object"});
        vec![ToolSpec { name: "run".to_owned(), description: String::new(), parameters }]
    }

    fn prepare<'a>(&'a self, _: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(OwnCall)
    }
}

struct OwnCall;

impl PreparedCall for OwnCall {
    fn permission(&self) -> Permission {
        Permission::Allow
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(std::future::ready(Preview::default()))
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(std::future::ready(ToolOutput::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_tool_has_refuses_the_session_and_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let options = || SessionOptions::new(folder.path()).model(Arc::new(Calls(Mutex::default())));
    let tools = |names: &[&str]| {
        let tool = |name: &&str| format!("'{name}|d|{{\"type\": \"object\"}}'");
        format!("[plugin.settings]\ntools = [{}]\n", names.iter().map(tool).collect::<Vec<_>>().join(", "))
    };
    // A second plugin: the same guest under another id.
    let twin = tempfile::tempdir().unwrap();
    let manifest = std::fs::read_to_string(guest().join("plugin.toml")).unwrap();
    std::fs::write(twin.path().join("plugin.toml"), manifest.replace("id = \"conformance\"", "id = \"twin\"")).unwrap();
    std::fs::copy(guest().join("component.wasm"), twin.path().join("component.wasm")).unwrap();

    let builtin = format!("{}{}", entry(guest()), tools(&["fine", "read_file"]));
    let rulebook = format!("{}{}", entry(guest()), tools(&["read_rule"]));
    let two = format!("{}{}", entry(guest()), entry(twin.path()));
    for (toml, plugin, name, owner) in [
        (&builtin, "conformance", "read_file", "a built-in tool"),
        (&rulebook, "conformance", "read_rule", "a built-in tool"),
        (&two, "twin", "run", "a tool of the plugin `conformance`"),
    ] {
        let error = open(toml).await.unwrap().session(options()).await.unwrap_err();
        let expected = format!("the tool `{name}` of the plugin `{plugin}` has the name of {owner}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.code().unwrap().as_str(), "plugin-tool-conflict");
        assert!(error.hint().unwrap().contains("leave one of the two out"), "{error}");
    }
    let host = open(&entry(guest())).await.unwrap();
    let error = host.session(options().tools(Arc::new(Own))).await.unwrap_err().to_string();
    assert!(error.contains("`run` of the plugin `conformance`") && error.contains("embeds the host"), "{error}");
    assert!(host.session(options().plugins([]).tools(Arc::new(Own))).await.is_ok(), "the plugin is not in the session");
    // What does not keep others from working is left out by the doctor, and reported.
    let checks = open(&builtin).await.unwrap().doctor(folder.path()).await;
    assert!(checks.iter().any(|one| one.health == Health::Bad && one.detail.contains("read_file")), "{checks:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_change_with_their_plugin_at_the_next_turn_and_a_taken_name_leaves_them() {
    let own = tempfile::tempdir().unwrap();
    std::fs::copy(guest().join("component.wasm"), own.path().join("component.wasm")).unwrap();
    let manifest = std::fs::read_to_string(guest().join("plugin.toml")).unwrap();
    let write = |name: &str| {
        let edited = manifest.replace("default = ['run|", &format!("default = ['{name}|"));
        assert_eq!(edited == manifest, name == "run");
        std::fs::write(own.path().join("plugin.toml"), edited).unwrap();
    };
    write("run");
    let host = open(&format!("{}[tools.permission]\n\"*\" = \"allow\"\n", entry(own.path()))).await.unwrap();
    let calls = ["run", "renamed", "run", "renamed"].map(|tool| (tool, script("!state-append k x\n!state-get k").1));
    let folder = tempfile::tempdir().unwrap();
    let model = Arc::new(Calls(Mutex::new(calls[..1].to_vec().into())));
    let options = SessionOptions::new(folder.path()).model(Arc::clone(&model) as Arc<dyn Model>);
    let session = host.session(options).await.unwrap();
    let results = turn(&session).await.1;
    assert_eq!(results, ["()\nSome(\"x\")"]);

    write("renamed");
    model.0.lock().unwrap().extend(calls[1..3].to_vec());
    let results = turn(&session).await.1;
    assert_eq!(results[1], "()\nSome(\"xx\")", "the state stays");
    assert!(results[2].contains("there is no tool `run`"), "{results:?}");

    write("read_file");
    model.0.lock().unwrap().extend(calls[3..].to_vec());
    let (events, results) = turn(&session).await;
    assert_eq!(results[3], "()\nSome(\"xxx\")", "{events:#?}");
    let notice = |event: &Event| matches!(&event.kind, EventKind::Notice { message } if message.contains("`read_file` of the plugin"));
    assert!(events.iter().any(notice), "{events:#?}");
}

/// What a plugin emits reaches subscribers as far as its manifest or a file declares it, and up to a limit for each turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_emits_events_of_declared_types() {
    let person = Person::who(Answer::Approve);
    let scripts = [
        "!emit seen what it\n!emit deployment target test\n!emit seen other it\n!emit notice message forged",
        "!emit-many 300",
    ];
    let calls = scripts.map(script).to_vec();
    let (session, folder) = session("", calls.clone(), &person).await;
    let declared = folder.path().join(".tidegate/thread_events.toml");
    std::fs::create_dir_all(declared.parent().unwrap()).unwrap();
    let text = "schema_version = \"1.0.0\"\n[event_types.deployment]\npayload_schema = { type = \"object\" }\n";
    std::fs::write(declared, text).unwrap();
    let (events, results) = turn(&session).await;
    let [one, many] = results.as_slice() else { panic!("{results:?}") };
    for part in ["()\n()\nrefused: ", "the payload of `conformance.seen`", "`notice` is not declared"] {
        assert!(one.contains(part), "{part}: {one}");
    }
    assert!(many.contains("256 events in a turn"), "{many}");
    let custom = events.iter().filter_map(|event| match &event.kind {
        EventKind::CustomEvent { event_type, plugin: Some(plugin), payload } => {
            Some((event_type.as_str(), plugin.as_str(), payload.to_string()))
        }
        _ => None,
    });
    let custom: Vec<_> = custom.collect();
    assert_eq!(custom[0], ("conformance.seen", "conformance", r#"{"what":"it"}"#.to_owned()));
    assert_eq!(custom[1], ("deployment", "conformance", r#"{"target":"test"}"#.to_owned()));
    assert_eq!(custom.len(), 256);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_model_keeps_lists_and_misuses_the_notes_of_a_plugin() {
    let folder = root().join("plugins/session-notes");
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    built.place_beside_manifest(&folder).unwrap();
    let recording = root().join("tests/corpus/plugin-tools/notes.jsonl");
    let toml = format!(
        "[provider]\nkind = \"recording\"\nrecording = {:?}\n[[plugin]]\npath = {:?}\n\
         grants = [\"state\", \"prompt\", \"provide-tools\"]\n[tools.permission]\nnote_list = \"allow\"\n",
        recording.display().to_string(),
        folder.display().to_string()
    );
    let host = open(&toml).await.unwrap();
    let person = Person::who(Answer::Approve);
    let workspace = tempfile::tempdir().unwrap();
    let options = SessionOptions::new(workspace.path()).confirm(Arc::clone(&person) as Arc<dyn Confirm>);
    let session = host.session(options).await.unwrap();
    let mut turn = session.prompt("Remember that we use tabs.");
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    let report = turn.report().await;
    assert_eq!((&report.status, report.text.as_str()), (&TurnStatus::Completed, "It is noted."), "{events:#?}");
    // The recording checks what each request contained: results, and the violation of the schema.
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Notice { .. })), "{events:#?}");
    let asked: Vec<String> = person.asked().into_iter().map(|question| question.call.name).collect();
    assert_eq!(asked, ["note_add"], "nobody is asked about what is allowed, or cannot be done");
    assert_eq!(outcomes(&events), [&ToolOutcome::Done, &ToolOutcome::Done]);

    let checks = host.doctor(workspace.path()).await;
    let detail = |what: &str| checks.iter().find(|check| check.what == what).map(|check| check.detail.clone()).unwrap();
    assert!(detail("plugin session-notes").contains("; tools: note_add, note_list, note_remove; "), "{checks:#?}");
    assert_eq!(detail("tool note_add"), "of plugin session-notes; permission: ask");
    assert_eq!(detail("tool note_list"), "of plugin session-notes; permission: allow");
    let info = &session.loaded().plugins()[0];
    let reads: Vec<_> = info.tools.iter().map(|tool| (tool.spec.name.as_str(), tool.read_only)).collect();
    assert_eq!(reads, [("note_add", false), ("note_list", true), ("note_remove", false)]);
}
