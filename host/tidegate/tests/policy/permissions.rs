//! Every way to permit more than the policy does.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tidegate::config::OperatorFiles;
use tidegate::message::Part;
use tidegate::model::Model;
use tidegate::question::{Confirm, Question};
use tidegate::tool::PermissionRule;
use tidegate::trust::{SettingsReader, TrustStore};
use tidegate::{BoxFuture, HostBuilder, Session, SessionOptions};

use super::Machine;
use crate::sessions::support::{Answer, Scripted};

/// What all of the cases are under.
const POLICY: &str = "[tools.permission]\nwrite_file = \"deny\"\n\"read_file(secret/**)\" = \"deny\"\nlist_dir = \"ask\"\n\
                      spawn_agent = \"ask\"\n";

/// Answers every question the same way, and keeps what could have been allowed for good.
struct Answers(tidegate::question::Answer, Mutex<Vec<Option<String>>>);

impl Confirm for Answers {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, tidegate::question::Answer> {
        self.1.lock().unwrap().push(question.always.clone());
        // An answer that is refused is asked for again.
        let answer = if question.refused.is_some() { tidegate::question::Answer::Approve } else { self.0.clone() };
        Box::pin(async move { answer })
    }
}

/// Changes how a host is opened.
type Builder = fn(&Machine, HostBuilder) -> HostBuilder;

/// A way to permit what the policy does not: what it is, the operator's settings, and how the host is opened.
const WAYS: [(&str, &str, Builder); 10] = [
    ("defaults", "", |_, builder| builder),
    ("a file allows everything", "[tools.permission]\n\"*\" = \"allow\"\n", |_, builder| builder),
    (
        "a file allows the tools",
        "[tools.permission]\nwrite_file = \"allow\"\nread_file = \"allow\"\nlist_dir = \"allow\"\nspawn_agent = \"allow\"\n",
        |_, builder| builder,
    ),
    (
        "a file allows by pattern",
        "[tools.permission]\n\"write_file(**)\" = \"allow\"\n\"read_file(secret/key)\" = \"allow\"\n\"list_dir(.)\" = \"allow\"\n",
        |_, builder| builder,
    ),
    ("flags allow everything", "", |_, builder| builder.permissions(rules(&["*=allow"]))),
    ("flags allow the tools", "", |_, builder| {
        builder.permissions(rules(&["write_file=allow", "read_file=allow", "list_dir=allow", "spawn_agent=allow"]))
    }),
    ("flags allow by pattern", "", |_, builder| {
        builder.permissions(rules(&["write_file(**)=allow", "read_file(secret/**)=allow", "list_dir(*)=allow"]))
    }),
    (
        "a time-out allows",
        "[tools.permission]\n\"*\" = \"allow\"\n[tools.question]\ntimeout_ms = 1\non_timeout = \"allow\"\n",
        |_, builder| builder,
    ),
    ("a workspace that is trusted allows", "", |machine, builder| from_workspace(machine, builder, false)),
    ("a workspace that is taken allows", "", |machine, builder| from_workspace(machine, builder, true)),
];

fn rules(texts: &[&str]) -> Vec<PermissionRule> {
    texts.iter().map(|text| PermissionRule::parse(text).unwrap()).collect()
}

/// A host over the file of the workspace, which allows everything.
fn from_workspace(machine: &Machine, _: HostBuilder, takes_all: bool) -> HostBuilder {
    machine.write("work/tidegate.toml", "[tools.permission]\n\"*\" = \"allow\"\n");
    let files = OperatorFiles::new().user_folder(Some(machine.path("user")));
    let store = TrustStore::in_folder(Some(machine.path("trust")));
    let reader = SettingsReader::new().files(files).store(store).take_all(takes_all);
    let settings = reader.read(&machine.path("work")).unwrap();
    let settings = if takes_all { settings } else { settings.trust().unwrap() };
    assert!(settings.has_own_file());
    let (operator, again) = (settings.operator().clone(), settings.clone());
    let builder = tidegate::Host::builder(operator).cache_dir(None).max_instances(4).user_rules(None);
    builder.policy_file(machine.path("etc/policy.toml")).follow(move || again.again())
}

/// A session whose model gives these answers, and whose questions are all answered alike.
async fn session(
    builder: HostBuilder,
    machine: &Machine,
    model: &[Reply],
    answer: tidegate::question::Answer,
) -> (Session, Arc<Answers>) {
    let answers = Arc::new(Answers(answer, Mutex::default()));
    let model = Scripted::new(model.iter().map(|answer| match answer {
        Reply::Call(tool, arguments) => Answer::Call(tool, arguments),
        Reply::Text(text) => Answer::Text(text),
    }));
    let options = SessionOptions::new(machine.path("work"))
        .model(model as Arc<dyn Model>)
        .confirm(Arc::clone(&answers) as Arc<dyn Confirm>);
    (builder.open().await.unwrap().session(options).await.unwrap(), answers)
}

/// An answer of the model that can be given again.
enum Reply {
    Call(&'static str, &'static str),
    Text(&'static str),
}

/// The results of the calls of a session.
fn results(session: &Session) -> Vec<String> {
    let parts = session.history().into_iter().flat_map(|message| message.parts.clone());
    parts
        .filter_map(|part| if let Part::ToolResult(result) = part { Some(result.content.join("\n")) } else { None })
        .collect()
}

#[tokio::test]
async fn no_setting_flag_or_answer_permits_what_the_policy_denies() {
    let calls = [
        Reply::Call("write_file", r#"{"path": "made", "content": "x"}"#),
        Reply::Call("read_file", r#"{"path": "secret/key"}"#),
        Reply::Call("grep", r#"{"pattern": "hunter2"}"#),
        Reply::Text("done"),
    ];
    for (way, settings, open) in WAYS {
        for answer in [tidegate::question::Answer::Approve, tidegate::question::Answer::Always] {
            let machine = Machine::new(POLICY);
            machine.write("work/secret/key", "hunter2");
            let builder = open(&machine, machine.builder(settings));
            let (session, answers) = session(builder, &machine, &calls, answer).await;
            drop(session.prompt("go").report().await);
            let [written, read, found] = results(&session).try_into().unwrap();
            let place = format!("{}:2", machine.path("etc/policy.toml").display());
            assert!(written.contains("`write_file` is denied here") && written.contains(&place), "{way}: {written}");
            assert!(!written.contains("the operator can set it"), "{way}: {written}");
            assert!(!read.contains("hunter2") && read.contains("is denied here"), "{way}: {read}");
            assert!(found.contains("no line matches"), "{way}: {found}");
            assert!(!machine.path("work/made").exists(), "{way}");
            assert!(answers.1.lock().unwrap().is_empty(), "{way}: nobody is asked about what nobody can allow");
        }
    }
    println!("{} ways", WAYS.len());
}

#[tokio::test]
async fn what_the_policy_asks_about_is_asked_about_each_time() {
    let calls = [
        Reply::Call("list_dir", r#"{"path": "."}"#),
        Reply::Call("list_dir", r#"{"path": "."}"#),
        Reply::Call("read_file", r#"{"path": "notes.txt"}"#),
        Reply::Text("done"),
    ];
    for (way, settings, open) in WAYS {
        let is_timed = settings.contains("on_timeout");
        let machine = Machine::new(POLICY);
        let builder = open(&machine, machine.builder(settings));
        let (session, answers) = session(builder, &machine, &calls, tidegate::question::Answer::Always).await;
        drop(session.prompt("go").report().await);
        // "Always" is refused for each of the two calls, and asked about again.
        let asked = answers.1.lock().unwrap().clone();
        assert_eq!(asked, [None, None, None, None], "{way}");
        let results = results(&session);
        assert!(results[2].contains("notes"), "{way}: {results:?}");
        assert!(is_timed || results[0].contains("notes.txt"), "{way}: {results:?}");
    }
}

/// A person who never answers.
struct Silent;

impl Confirm for Silent {
    fn confirm<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, tidegate::question::Answer> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn no_time_out_allows_what_the_policy_asks_about() {
    let machine = Machine::new(POLICY);
    let settings = "[tools.question]\ntimeout_ms = 1\non_timeout = \"allow\"\n";
    let model = Scripted::new([Answer::Call("list_dir", r#"{"path": "."}"#), Answer::Text("done")]);
    let options = SessionOptions::new(machine.path("work")).model(model as Arc<dyn Model>).confirm(Arc::new(Silent));
    let session = machine.builder(settings).open().await.unwrap().session(options).await.unwrap();
    drop(session.prompt("go").report().await);
    let results = results(&session);
    assert!(results.len() == 1 && !results[0].contains("notes.txt"), "{results:?}");
}

#[tokio::test]
async fn agents_are_under_the_policy_and_their_start_too() {
    let machine = Machine::new(POLICY);
    machine.write("work/.tidegate/agents/helper.md", "---\ndescription: Helps.\n---\nYou write files.\n");
    let calls = [
        Reply::Call("spawn_agent", r#"{"agent": "helper", "task": "Write."}"#),
        // The agent's own.
        Reply::Call("write_file", r#"{"path": "made", "content": "x"}"#),
        Reply::Text("I wrote it."),
        Reply::Text("done"),
    ];
    let builder = machine.builder("[tools.permission]\n\"*\" = \"allow\"\n");
    let (session, answers) = session(builder, &machine, &calls, tidegate::question::Answer::Always).await;
    drop(session.prompt("go").report().await);
    assert_eq!(*answers.1.lock().unwrap(), [None, None], "each start is asked about");
    assert!(!machine.path("work/made").exists() && results(&session)[0].contains("I wrote it."));
}

#[tokio::test]
async fn a_misspelled_tool_of_the_policy_stops_the_host_and_a_foreign_one_does_not() {
    let machine = Machine::new("[tools.permission]\nwrite_flie = \"deny\"\n");
    let open = |machine: &Machine| {
        let model = Scripted::new([]) as Arc<dyn Model>;
        let (builder, options) = (machine.builder(""), SessionOptions::new(machine.path("work")).model(model));
        async move { builder.open().await.unwrap().session(options).await.map(drop) }
    };
    let refused = open(&machine).await.unwrap_err().to_string();
    assert!(refused.contains("did you mean `write_file`?") && refused.contains("policy.toml:2:1"), "{refused}");
    machine.write("etc/policy.toml", "[tools.permission]\nsend_mail = \"deny\"\n");
    open(&machine).await.unwrap();
}

#[tokio::test]
async fn without_an_entry_the_operator_decides() {
    let machine = Machine::new("[tools.permission]\n\"*\" = \"deny\"\nwrite_file = \"allow\"\n");
    let calls = [
        Reply::Call("write_file", r#"{"path": "made", "content": "x"}"#),
        Reply::Call("read_file", r#"{"path": "notes.txt"}"#),
        Reply::Text("done"),
    ];
    let deny = tidegate::question::Answer::Deny { reason: "no".into() };
    for (settings, runs) in [("", false), ("[tools.permission]\nwrite_file = \"allow\"\n", true)] {
        let (session, answers) = session(machine.builder(settings), &machine, &calls, deny.clone()).await;
        drop(session.prompt("go").report().await);
        assert_eq!((machine.path("work/made").exists(), answers.1.lock().unwrap().len()), (runs, usize::from(!runs)));
        assert!(results(&session)[1].contains("is denied here"), "{:?}", results(&session));
    }
    let checks = machine.builder("").doctor(machine.path("work")).await;
    let check = checks.iter().find(|check| check.what == "policy").unwrap();
    assert!(check.detail.contains(&json!("*").to_string()) && check.detail.contains("policy.toml: "), "{check:?}");
}
