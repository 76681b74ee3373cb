//! How many agents can be started, how deep, and how long they work.

use flow::EventKind;
use tidegate_kit::{ScriptedModel, calls, say};

use super::place::{Place, kinds, spawn};

fn results(events: &[flow::Event]) -> Vec<String> {
    kinds(events, |kind| match kind {
        EventKind::ToolCallResult { output, .. } => Some(output.clone()),
        _ => None,
    })
}

/// What the model read last in a request.
fn last_of(model: &ScriptedModel, request: usize) -> String {
    model.request(request).pop().unwrap().1
}

/// The agent on the last level cannot start another one.
#[tokio::test(flavor = "multi_thread")]
async fn agents_are_two_levels_deep() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Level one."),
        spawn("2", "helper", "Level two."),
        spawn("3", "helper", "Level three."),
        say("No further."),
        say("Two levels."),
        say("Done."),
    ]);
    let session = place.open(&model).await;
    let (report, events) = place.turn(&session, "Go down.").await;
    assert_eq!(report.text, "Done.");
    assert_eq!(results(&events), ["Two levels."]);
    let refused = last_of(&model, 3);
    assert!(refused.contains("the limit of agents that start agents is reached"), "{refused}");
    let one = place.child_of(&events);
    let records = place.records(&one);
    let two = records.iter().find(|record| record["type"] == "child_thread_started").unwrap();
    assert_eq!(two["payload"]["parent_thread_id"], one.as_str());
    let two = tidegate::SessionId::new(two["payload"]["child_thread_id"].as_str().unwrap());
    assert!(!super::names(&place.records(&two)).contains(&"child_thread_started".to_owned()));
}

/// A file can lower the depth, and an agent has no tool that an agent above it does not have.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_limited_by_its_file_and_by_those_above_it() {
    let place = Place::new();
    place.agent("leaf", "description: d\nlimits: {depth: 0}", "You are a leaf.");
    place.agent("reader", "description: d\ntools: read_file, spawn_agent", "You read.");
    place.agent("writer", "description: d\ntools: \"*_file\"", "You write.");
    let model = ScriptedModel::new([
        spawn("1", "leaf", "Start a helper."),
        spawn("2", "reader", "Help."),
        say("I cannot."),
        spawn("3", "reader", "Start a writer."),
        spawn("4", "writer", "Write."),
        calls(&[("a", "write_file", r#"{"path": "x", "content": "y"}"#)], usize::MAX),
        say("I cannot write."),
        say("It cannot."),
        say("Done."),
    ]);
    let session = place.open(&model).await;
    let (_, events) = place.turn(&session, "Go.").await;
    assert_eq!(results(&events), ["I cannot.", "It cannot."]);
    let refused = last_of(&model, 2);
    assert!(refused.contains("the limit of agents that start agents is reached"), "{refused}");
    let tools = |at: usize| {
        let prompts = model.prompts.lock().unwrap();
        prompts[at].tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tools(4), ["read_file", "spawn_agent"]);
    assert_eq!(tools(5), ["read_file"], "both files permit it");
    let refused = last_of(&model, 6);
    assert!(refused.contains("there is no tool `write_file`; the tools are `read_file`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_agents_are_started_in_a_session() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let mut scripts = Vec::new();
    (0..10).for_each(|at| scripts.extend([spawn(&at.to_string(), "helper", "Help."), say("Helped.")]));
    scripts.extend([spawn("10", "helper", "Help."), say("Done."), spawn("11", "helper", "Help."), say("Done again.")]);
    let model = ScriptedModel::new(scripts);
    let session = place.open(&model).await;
    let (_, events) = place.turn(&session, "Go.").await;
    let refused = "no agent was started: the limit of 10 agents in a session is reached. Do the task yourself.";
    let expected: Vec<&str> = std::iter::repeat_n("Helped.", 10).chain([refused]).collect();
    assert_eq!(results(&events), expected);
    assert_eq!(place.children_of(&events).len(), 10);
    let (_, events) = place.turn(&session, "Once more.").await;
    assert_eq!(results(&events), [refused], "it is a limit of the session and not of a turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turns_of_an_agent_are_its_steps() {
    let place = Place::new();
    place.agent("helper", "description: Helps.\nlimits:\n  turns: 2", "You are a helper.");
    let list = || calls(&[("a", "list_dir", "{}")], usize::MAX);
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), list(), list(), say("Done.")]);
    let session = place.open(&model).await;
    let (report, events) = place.turn(&session, "Go.").await;
    assert_eq!(report.text, "Done.");
    assert_eq!(results(&events), ["The agent `helper` did not complete the task: it reached its limit of 2 steps"]);
}
