//! What an embedder brings: tools, a confirmation handler, a conversation, a choice of plugins; and errors with kinds.

use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tidegate::diagnostic::render;
use tidegate::model::Model;
use tidegate::question::{Confirm, Preview, Question};
use tidegate::state::StateError;
use tidegate::tool::{Permission, PreparedCall, Progress, ToolCall, ToolOutput, ToolSpec, Tools};
use tidegate::{BoxFuture, HostError, Message, Session, SessionId, SessionOptions, TurnStatus};

use super::support::{Answer, Scripted, builder, texts};

/// One tool of the embedder, which records that it ran.
struct Own(&'static str, Permission);

impl Tools for Own {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec { name: self.0.to_owned(), description: String::new(), parameters: serde_json::json!({}) }]
    }

    fn prepare<'a>(&'a self, _: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(OwnCall(self.1.clone()))
    }
}

struct OwnCall(Permission);

impl PreparedCall for OwnCall {
    fn permission(&self) -> Permission {
        self.0.clone()
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(async { Preview::default() })
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async { ToolOutput { content: "it ran".to_owned(), diff: None, is_error: false } })
    }
}

/// Answers every question the same way, and keeps the questions.
struct Answers(tidegate::question::Answer, Mutex<Vec<String>>);

impl Confirm for Answers {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, tidegate::question::Answer> {
        self.1.lock().unwrap().push(format!("{}: {}", question.session, question.call.name));
        Box::pin(async { self.0.clone() })
    }
}

/// A session with this tool, whose model calls it once; the model's input, and the questions.
async fn call(tool: &'static str, own: Permission, toml: &str) -> (String, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let model = Scripted::new([Answer::Call(tool, "{}"), Answer::Text("done")]);
    let answers = Arc::new(Answers(tidegate::question::Answer::Approve, Mutex::default()));
    let options = SessionOptions::new(folder.path())
        .id(SessionId::new("s"))
        .model(Arc::clone(&model) as Arc<dyn Model>)
        .tools(Arc::new(Own(tool, own)))
        .confirm(Arc::clone(&answers) as Arc<dyn Confirm>);
    let session = builder(toml).open().await.unwrap().session(options).await.unwrap();
    assert_eq!(session.prompt("go").report().await.status, TurnStatus::Completed);
    let result = session.history()[2].parts.first().cloned();
    let Some(tidegate::message::Part::ToolResult(result)) = result else { panic!("{result:?}") };
    let asked = answers.1.lock().unwrap().clone();
    (result.content.join("\n"), asked)
}

#[tokio::test]
async fn tools_of_the_embedder_run_under_the_operators_permissions() {
    let deny = || Permission::Deny { reason: "never".to_owned() };
    assert_eq!(call("mine", Permission::Allow, "").await, ("it ran".to_owned(), vec![]));
    let asks = "[tools.permission]\nmine = \"ask\"\n";
    assert_eq!(call("mine", Permission::Allow, asks).await, ("it ran".to_owned(), vec!["s: mine".to_owned()]));
    let (said, _) = call("mine", Permission::Allow, "[tools.permission]\n\"*\" = \"deny\"\n").await;
    assert!(said.contains("`mine` is denied here by the permission `*`"), "{said}");
    let allowed = "[tools.permission]\nmine = \"allow\"\n";
    assert_eq!(call("mine", deny(), allowed).await.0, "never", "no operator allows what the tool itself denies");
    // One with the name of a built-in tool replaces it.
    assert_eq!(call("read_file", Permission::Allow, "").await.0, "it ran");
}

#[tokio::test]
async fn a_pattern_for_a_tool_of_the_embedder_refuses_the_session() {
    let folder = TempDir::new().unwrap();
    let host = builder("[tools.permission]\n\"read_file(*.env)\" = \"deny\"\n").open().await.unwrap();
    let model = Scripted::new([]) as Arc<dyn Model>;
    let options = SessionOptions::new(folder.path()).model(model);
    assert!(host.session(options.clone()).await.is_ok());
    let error = host.session(options.tools(Arc::new(Own("read_file", Permission::Allow)))).await.unwrap_err();
    assert!(matches!(&error, HostError::Permission { tool, .. } if tool == "read_file"), "{error}");
}

#[tokio::test]
async fn a_permission_of_a_tool_that_a_session_does_not_have_is_a_warning_and_a_misspelt_one_an_error() {
    let folder = TempDir::new().unwrap();
    let options = || SessionOptions::new(folder.path()).model(Scripted::new([]));
    let host = builder("[tools.permission]\nmine = \"deny\"\n").open().await.unwrap();
    let session = host.session(options()).await.unwrap();
    let warnings: Vec<String> = session.loaded().warnings().iter().map(|one| render(one, false)).collect();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.starts_with("warning[config-unknown-tool]: the permission `mine` is for a tool"), "{warning}");
    assert!(warning.contains("tidegate.toml:4:1"), "{warning}");
    let owner = host.session(options().tools(Arc::new(Own("mine", Permission::Allow)))).await.unwrap();
    assert!(owner.loaded().warnings().is_empty());

    let host = builder("[tools.permission]\n\"shel(rm *)\" = \"deny\"\n").open().await.unwrap();
    let error = host.session(options()).await.unwrap_err().to_string();
    for part in ["error[config-unknown-tool]", "`shel`", "did you mean `shell`?", "tidegate.toml:4:1"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn guidance_on_a_misspelt_built_in_tool_is_an_error_and_on_another_tool_a_warning() {
    let folder = TempDir::new().unwrap();
    let manifest = "id = \"habits\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Habits.\"\n[tools]\n";
    let options = || SessionOptions::new(folder.path()).model(Scripted::new([]));
    let toml = format!("[[plugin]]\npath = {:?}\n", folder.path().display().to_string());
    let open = async |name: &str| {
        let text = format!("{manifest}preferred_tools = [{name:?}]\n");
        std::fs::write(folder.path().join("plugin.toml"), text).unwrap();
        builder(&toml).open().await.unwrap().session(options()).await
    };
    let warnings = open("mine").await.unwrap().loaded().warnings();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.to_string().starts_with("warning[plugin-unknown-tool]: plugin `habits`:"), "{warning}");
    let error = open("readfile").await.unwrap_err().to_string();
    assert!(error.contains("error[plugin-unknown-tool]") && error.contains("`read_file`"), "{error}");
}

#[tokio::test]
async fn a_configuration_file_that_nothing_reads_is_a_warning_of_the_session() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("thread_events.toml"), "").unwrap();
    let host = builder("").open().await.unwrap();
    let session = host.session(SessionOptions::new(folder.path()).model(Scripted::new([]))).await.unwrap();
    let warnings = session.loaded().warnings();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.to_string().starts_with("warning[config-not-read]: "), "{warning}");
}

#[tokio::test]
async fn a_session_goes_on_from_a_conversation_that_was_given_to_it() {
    let folder = TempDir::new().unwrap();
    let model = Scripted::new([Answer::Text("third")]);
    let options = SessionOptions::new(folder.path()).model(Arc::clone(&model) as Arc<dyn Model>);
    let host = builder("").open().await.unwrap();
    let earlier = [Message::user("first"), Message::user("second")];
    let session = host.session(options.history(earlier).without_builtin_tools()).await.unwrap();
    assert_eq!(texts(&session.history()), ["first", "second"]);
    session.prompt("go").report().await;
    assert_eq!(model.requests(), [["first", "second", "go"]]);
}

#[tokio::test]
async fn sessions_have_workspaces_of_their_own_and_share_what_is_loaded_for_one() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::fs::write(one.path().join("a.txt"), "of one").unwrap();
    std::fs::write(two.path().join("a.txt"), "of two").unwrap();
    let host = builder("").open().await.unwrap();
    let open = async |folder: &TempDir| -> Session {
        let model = Scripted::new([Answer::Call("read_file", r#"{"path": "a.txt"}"#), Answer::Text("done")]);
        host.session(SessionOptions::new(folder.path()).model(model)).await.unwrap()
    };
    let (first, second, third) = (open(&one).await, open(&two).await, open(&one).await);
    for (session, said) in [(&first, "of one"), (&second, "of two"), (&third, "of one")] {
        session.prompt("read").report().await;
        assert!(format!("{:?}", session.history()[2]).contains(said));
    }
    assert!(Arc::ptr_eq(&first.loaded(), &third.loaded()) && !Arc::ptr_eq(&first.loaded(), &second.loaded()));
    assert_ne!(first.id(), third.id());
}

fn code(error: &HostError) -> &'static str {
    error.code().map_or("", |code| code.as_str())
}

#[tokio::test]
async fn what_keeps_a_host_from_opening_has_a_code() {
    let recording = "[provider]\nkind = \"recording\"\nrecording = \"missing.jsonl\"\n";
    for (toml, expected) in
        [("[provider]\nkind = \"anthropic\"\n", "host-no-model"), (recording, "host-provider-unusable")]
    {
        assert_eq!(code(&builder(toml).open().await.unwrap_err()), expected, "{toml}");
    }
    assert_eq!(code(&HostError::NoEngine), "host-engine-unavailable");
    // `tests/tests/plugin_tools.rs` has the cases that end so.
    let (plugin, tool, owner) = ("p".parse().unwrap(), "shell".to_owned(), "a built-in tool".to_owned());
    assert_eq!(code(&HostError::ToolName { plugin, tool, owner }), "plugin-tool-conflict");
    let state = "[state]\nbackend = \"redis\"\nurl_env = \"TIDEGATE_TEST_NOT_SET\"\n";
    let error = builder(state).open().await.unwrap_err();
    assert_eq!(code(&error), "host-state-unavailable");
    let (message, hint) = (error.to_string(), error.hint().unwrap());
    let expected = match cfg!(feature = "redis") {
        true => ("`TIDEGATE_TEST_NOT_SET`", "redis://127.0.0.1:6379"),
        false => ("built without it", "the feature `redis`"),
    };
    assert!(message.contains(expected.0) && hint.contains(expected.1), "{message}; {hint}");
}

#[tokio::test]
async fn what_keeps_a_session_from_opening_has_a_kind_and_a_hint() {
    let folder = TempDir::new().unwrap();
    let host = builder("").open().await.unwrap();
    let options = || SessionOptions::new(folder.path());
    let with_model = || options().model(Scripted::new([]));

    let error = host.session(options()).await.unwrap_err();
    assert!(matches!(error, HostError::NoProvider { .. }), "{error}");
    assert_eq!(code(&error), "host-no-provider");
    assert!(error.hint().unwrap().contains("set `kind` under `[provider]`"));

    let error = host.session(with_model().plugins(["notes".parse().unwrap()])).await.unwrap_err();
    assert!(matches!(&error, HostError::UnknownPlugin { plugin, .. } if plugin.as_str() == "notes"), "{error}");
    assert_eq!(code(&error), "host-unknown-plugin");

    let _open = host.session(with_model().id(SessionId::new("a"))).await.unwrap();
    let error = host.session(with_model().id(SessionId::new("a"))).await.unwrap_err();
    assert!(matches!(error, HostError::State(StateError::Leased { .. })), "{error}");
    assert_eq!(code(&error), "host-session-in-use");

    let error = host.session(SessionOptions::new("no/such/folder").model(Scripted::new([]))).await.unwrap_err();
    assert!(matches!(error, HostError::Tools(_)), "{error}");
    assert_eq!(code(&error), "host-workspace-unusable");
    assert!(std::error::Error::source(&error).is_none() || error.hint().is_none());

    let plugin =
        "id = \"p\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"P.\"\n[component]\npath = \"p.wasm\"\n";
    std::fs::write(folder.path().join("plugin.toml"), plugin).unwrap();
    let toml = format!("[[plugin]]\npath = {:?}\n", folder.path().display().to_string());
    let error = builder(&toml).open().await.unwrap_err();
    assert!(matches!(&error, HostError::ComponentMissing { plugin, .. } if plugin.as_str() == "p"), "{error}");
    assert!(error.hint().unwrap().contains("correct `path`"));
    assert_eq!(error.code().unwrap().as_str(), "plugin-component-missing");
    std::fs::write(folder.path().join("p.wasm"), "no component").unwrap();
    let error = builder(&toml).open().await.unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "plugin-component-refused", "{error}");
}

#[tokio::test]
async fn the_operators_file_decides_how_many_instances_an_engine_has() {
    let limit = |host: &tidegate::Host| host.engine().unwrap().instances().limit;
    let default = builder("").open().await.unwrap();
    let own = builder("[limits]\ninstances = 7\n").open().await.unwrap();
    assert_eq!((limit(&default), limit(&own)), (4, 7));
    // Of two that share an engine, the one that was opened later gets a warning that its number has no effect.
    let shared = builder("[limits]\ninstances = 9\n").engine(own.engine().unwrap()).open().await.unwrap();
    assert_eq!(limit(&shared), 7);
    let folder = TempDir::new().unwrap();
    let warnings = shared.loaded(folder.path()).await.unwrap().warnings();
    let codes: Vec<&str> = warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["host-instances"], "{warnings:?}");
    assert!(own.loaded(folder.path()).await.unwrap().warnings().is_empty());
}
