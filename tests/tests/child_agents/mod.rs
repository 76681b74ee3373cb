//! Child agents, end to end: files that declare them, the tool that starts them, their sessions and transcripts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chat;
mod ends;
mod limits;
mod place;
mod questions;

use flow::{EventKind, Role};
use place::{Place, kinds, names, spawn};
use tidegate::TurnStatus;
use tidegate::question::Answer;
use tidegate_kit::{ScriptedModel, calls, say};

/// The answer of a child is the result of the tool call, and nothing else of it reaches the parent.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_answers_its_parent() {
    let place = Place::new();
    place.write("notes.txt", "seven lines");
    place.agent("helper", "description: Helps with small things.\ntools: read_file", "You are a helper.");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Read notes.txt."),
        calls(&[("a", "read_file", r#"{"path": "notes.txt"}"#)], usize::MAX),
        say("It has seven lines."),
        say("The helper says seven."),
    ]);
    let session = place.open(&model).await;
    let (report, events) = place.turn(&session, "How long are the notes?").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "The helper says seven."));

    let prompts = model.prompts.lock().unwrap().clone();
    let system = |at: usize| prompts[at].system.iter().map(|block| block.text.clone()).collect::<Vec<_>>().concat();
    assert!(system(0).contains("careful assistant") && !system(0).contains("You are a helper."));
    assert!(system(1).starts_with("You are a helper.") && !system(1).contains("careful assistant"), "{}", system(1));
    let tools = |at: usize| prompts[at].tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
    assert_eq!(tools(1), ["read_file"]);
    let spec = prompts[0].tools.iter().find(|tool| tool.name == "spawn_agent").unwrap();
    assert!(spec.description.ends_with("\n- `helper`: Helps with small things."), "{}", spec.description);
    assert_eq!(spec.parameters["properties"]["agent"]["enum"], serde_json::json!(["helper"]));
    assert_eq!(model.request(1), [(Role::User, "Read notes.txt.".to_owned())], "it does not see the conversation");
    let last = model.request(3);
    assert_eq!(last.len(), 3);
    assert!(last[2].1.contains("It has seven lines."), "{last:?}");

    let child = place.child_of(&events);
    assert_eq!(
        kinds(&events, |kind| match kind {
            EventKind::ChildThreadStarted { agent, parent, call, .. } => {
                Some(format!("{agent} {parent} {call}"))
            }
            EventKind::ToolCallProgress { message, .. } => Some(message.clone()),
            EventKind::ChildThreadFailed { error, .. } => Some(error.clone()),
            _ => None,
        }),
        ["helper main-session 1", "helper: step 1", "helper: `read_file` runs", "helper: step 2"]
    );
    place.close(session).await;

    let header = place.transcripts().read(&child).unwrap().header().clone();
    let spawned_by = header.spawned_by.unwrap();
    assert_eq!((spawned_by.thread_id.as_str(), spawned_by.call_id.as_str()), ("main-session", "1"));
    assert_eq!((spawned_by.agent.as_str(), header.parent), ("helper", None));
    let records = place.records(&child);
    assert_eq!(names(&records).first().unwrap(), "thread_started");
    assert_eq!(records[0]["payload"]["directive"], "helper");
    assert_eq!(names(&records).last().unwrap(), "thread_completed");
    assert!(names(&place.records(&place.main())).contains(&"child_thread_started".to_owned()));
    let rebuilt = place.rebuilt(&child);
    assert_eq!(rebuilt.history.last().unwrap().plain_text(), "It has seven lines.");
    assert_eq!(rebuilt.problems, [""; 0]);
}

/// A thread of an agent that is over is read, and not continued as another agent.
#[tokio::test(flavor = "multi_thread")]
async fn the_session_of_a_child_is_not_continued() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let model = ScriptedModel::new([spawn("1", "helper", "Say yes."), say("Yes."), say("It says yes.")]);
    let host = place.host(&model).await;
    let session = place.session(&host).await;
    let (_, events) = place.turn(&session, "Ask.").await;
    let child = place.child_of(&events);
    let error = host.session(place.options().id(child.clone())).await.unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "host-transcript-unavailable");
    assert!(error.with_hint().contains("continue `main-session`, which started it"), "{}", error.with_hint());
    assert_eq!(names(&place.records(&child)).last().unwrap(), "thread_completed", "nothing was added to it");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_children_of_one_answer_work_one_after_the_other() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let call = |task: &str| format!(r#"{{"agent": "helper", "task": "{task}"}}"#);
    let both = calls(&[("1", "spawn_agent", &call("One?")), ("2", "spawn_agent", &call("Two?"))], usize::MAX);
    let model = ScriptedModel::new([both, say("First."), say("Second."), say("Both.")]);
    let session = place.open(&model).await;
    let (report, events) = place.turn(&session, "Ask both.").await;
    assert_eq!(report.text, "Both.");
    let results = kinds(&events, |kind| match kind {
        EventKind::ToolCallResult { call, output, is_error: false, .. } => Some(format!("{call} {output}")),
        _ => None,
    });
    assert_eq!(results, ["1 First.", "2 Second."]);
    let children = place.children_of(&events);
    assert_eq!(children.len(), 2);
    assert_ne!(children[0], children[1]);
    assert_eq!(session.children().len(), 0, "both are closed");
}

/// A rule of the child stops the child and nobody else, and the text of an always-applied rule is in its prompt alone.
#[tokio::test(flavor = "multi_thread")]
async fn rules_that_name_an_agent_are_for_that_agent() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    place.write(
        ".tidegate/rules/no-perhaps.md",
        "---\ncondition: perhaps\nagents: helper\nrepeat: always\n---\nDo not say perhaps.\n",
    );
    place.write(".tidegate/rules/short.md", "---\nalwaysApply: true\nagents: helper\n---\nBe short.\n");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Is it?"),
        say("It perhaps is."),
        say("It is."),
        say("It perhaps is, too."),
    ]);
    let session = place.open(&model).await;
    assert_eq!(session.loaded().rule_problem_lines(), [""; 0]);
    let (report, events) = place.turn(&session, "Is it?").await;
    assert_eq!(report.text, "It perhaps is, too.");
    let fired = kinds(&events, |kind| matches!(kind, EventKind::RuleFired { .. }).then(String::new));
    assert_eq!(fired.len(), 0, "it does not fire in the parent");
    let child = place.child_of(&events);
    assert!(names(&place.records(&child)).contains(&"rule_fired".to_owned()));
    let prompts = model.prompts.lock().unwrap();
    let system = |at: usize| prompts[at].system.iter().map(|block| block.text.clone()).collect::<Vec<_>>().concat();
    assert!(!system(0).contains("Be short.") && system(1).contains("Be short."));
}

/// A child's question reaches the handler of the session that started it, and names the agent.
#[tokio::test(flavor = "multi_thread")]
async fn questions_of_a_child_reach_the_parents_handler() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Run it."),
        calls(&[("a", "shell", r#"{"command": "true"}"#)], usize::MAX),
        say("I was not allowed to."),
        say("It was not run."),
    ]);
    let host = place.host(&model).await;
    let asked = place::Asked::new(Answer::Deny { reason: "not now".into() });
    let session = host.session(place.options().confirm(asked.clone())).await.unwrap();
    let (_, events) = place.turn(&session, "Run it.").await;
    let child = place.child_of(&events);
    let questions = asked.questions.lock().unwrap();
    let question = &questions[0];
    assert_eq!((questions.len(), question.agent.as_str(), &question.session), (1, "helper", &child));
    assert!(model.request(2).last().unwrap().1.contains("not now"));
}

/// Who denies the tool denies the agents; and a file of the project that chooses another model asks first.
#[tokio::test(flavor = "multi_thread")]
async fn permissions_decide_about_agents() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    place.agent("costly", "description: Thinks.\nmodel: large", "You think.");
    let result = async |model: &std::sync::Arc<ScriptedModel>, permission: &str| {
        let session = place.session(&place.host_with(model, permission).await).await;
        let (_, events) = place.turn(&session, "Ask.").await;
        place.close(session).await;
        kinds(&events, |kind| match kind {
            EventKind::ToolCallResult { output, is_error: true, .. } => Some(output.clone()),
            _ => None,
        })
        .concat()
    };
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), say("No.")]);
    let denied = result(&model, "spawn_agent = \"deny\"").await;
    assert!(denied.starts_with("`spawn_agent` is denied here by the permission `spawn_agent`"), "{denied}");
    let model = ScriptedModel::new([spawn("1", "costly", "Think."), say("No.")]);
    let asked = result(&model, "").await;
    assert!(asked.contains("the agent `costly` of this project chooses the model `large`"), "{asked}");
    // The embedder's model is the only one there is.
    let model = ScriptedModel::new([spawn("1", "costly", "Think."), say("No.")]);
    let unusable = result(&model, "spawn_agent = \"allow\"").await;
    assert!(
        unusable
            .contains("it needs the model `large`, and the program that embeds the host has given `script-1` alone"),
        "{unusable}"
    );
}

/// A plugin that the session does without is not in its children either.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_has_the_plugins_of_its_parent() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let manifest = "id = \"house\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"d\"\n\
                    capabilities.prompt = \"style\"\n[[rule]]\nname = \"short\"\nalways_apply = true\n\
                    body = \"Be short.\"\n";
    place.write("house/plugin.toml", manifest);
    let answers = || [spawn("1", "helper", "Help."), say("Helped."), say("Done.")];
    let model = ScriptedModel::new(answers().into_iter().chain(answers()));
    let host = place.host_with(&model, "[[plugin]]\npath = \"house\"\ngrants = [\"prompt\"]").await;
    let session = place.session(&host).await;
    place.turn(&session, "Ask.").await;
    session.disable_plugin(&"house".parse().unwrap()).unwrap();
    place.turn(&session, "Ask again.").await;
    let prompts = model.prompts.lock().unwrap();
    let has_rule = |at: usize| prompts[at].system.iter().any(|block| block.text.contains("Be short."));
    assert_eq!([0, 1, 2, 3, 4, 5].map(has_rule), [true, true, true, false, false, false]);
}
