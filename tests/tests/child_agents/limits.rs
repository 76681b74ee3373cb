//! How many agents can be started, how deep, and how long they work.

use std::time::{Duration, Instant};

use flow::{EventKind, LimitDecision, TurnStatus};
use tidegate::input::WhenBusy;
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

fn limits(place: &Place, limits: &str) {
    place.write(
        "../user/thread_limits.toml",
        &format!("schema_version = \"1.0.0\"\n[approval]\ntimeout = \"1s\"\n[limits]\n{limits}\n"),
    );
}

/// The agent on the last level cannot start another one.
#[tokio::test(flavor = "multi_thread")]
async fn agents_are_as_deep_as_the_limit() {
    let place = Place::new();
    limits(&place, "depth = 2");
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
    assert!(refused.contains("agents are not allowed to start agents at this depth"), "{refused}");
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
    limits(&place, "depth = 3");
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
    assert!(refused.contains("agents are not allowed to start agents at this depth"), "{refused}");
    let tools = |at: usize| {
        let prompts = model.prompts.lock().unwrap();
        prompts[at].tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tools(4), ["read_file", "spawn_agent"]);
    assert_eq!(tools(5), ["read_file"], "both files permit it");
    let refused = last_of(&model, 6);
    assert!(refused.contains("there is no tool `write_file`; the tools are `read_file`"), "{refused}");
}

/// By default, the agents of a session start none.
#[tokio::test(flavor = "multi_thread")]
async fn agents_are_one_level_deep_by_default() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Level one."),
        spawn("2", "helper", "Level two."),
        say("No further."),
        say("Done."),
    ]);
    let session = place.open(&model).await;
    let (_, events) = place.turn(&session, "Go down.").await;
    assert_eq!(results(&events), ["No further."]);
    assert!(last_of(&model, 2).contains("agents are not allowed to start agents at this depth"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_a_session_are_counted_over_its_turns_and_processes() {
    let place = Place::new();
    limits(&place, "spawns = 2");
    place.agent("helper", "description: Helps.", "You are a helper.");
    let start = |at: &str| spawn(at, "helper", "Help.");
    let model = ScriptedModel::new([
        start("1"),
        say("Helped."),
        say("One."),
        start("2"),
        say("Helped."),
        start("3"),
        say("Two."),
        start("4"),
        say("None."),
    ]);
    let host = place.host(&model).await;
    let session = place.session(&host).await;
    let (_, first) = place.turn(&session, "Go.").await;
    place.close(session).await;
    let session = place.session(&host).await;
    let (_, second) = place.turn(&session, "Once more.").await;
    let (_, third) = place.turn(&session, "Again.").await;
    let refused = "no agent was started: the limit of 2 agents in a session is reached. Do the task yourself.";
    assert_eq!([results(&first), results(&second), results(&third)].concat(), ["Helped.", "Helped.", refused, refused]);
    assert_eq!((place.children_of(&second).len(), place.children_of(&third).len()), (1, 0));
}

/// More agents than the limit are started where somebody approves.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_approve_more_agents() {
    let place = Place::new();
    place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\nspawns = 0\n");
    place.agent("helper", "description: Helps.", "You are a helper.");
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), say("Helped."), say("Done.")]);
    let session = place.open(&model).await;
    let asked = session.clone();
    let approving = tokio::spawn(async move {
        loop {
            if let Some(request) = asked.pending_limit() {
                let since = Instant::now();
                tokio::time::sleep(Duration::from_millis(200)).await;
                let decision = LimitDecision::Approved { max: request.proposed };
                let waited = since.elapsed();
                return (asked.decide_limit(&request.id, decision, "the test"), waited);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let began = Instant::now();
    let (_, events) = place.turn(&session, "Go.").await;
    let took = began.elapsed();
    assert_eq!(results(&events), ["Helped."]);
    let (decided, waited) = approving.await.unwrap();
    assert_eq!(decided, Ok(()));
    // What the approval took is no time of the turn; the clock of the session counts whole milliseconds.
    let counted = session.budget().spent().duration;
    assert!(counted <= took - waited + Duration::from_millis(5), "{counted:?} of {took:?}, {waited:?} waited");
    let names: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
    let at = |name: &str| names.iter().position(|kind| *kind == name).unwrap();
    assert!(at("limit_escalation_requested") < at("limit_escalation_resolved"));
    assert!(at("limit_escalation_resolved") < at("child_thread_started"));
    assert_eq!(session.budget().limits().spawns, Some(1));
}

/// The call that needs more agents is stopped before anybody has decided: nobody can decide any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_more_agents_ends_with_its_call() {
    // Also before the request is durable.
    for (interrupts, at_once) in [(true, true), (true, false), (false, true), (false, false)] {
        let place = Place::new();
        place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\nspawns = 0\n");
        place.agent("helper", "description: Helps.", "You are a helper.");
        let model = ScriptedModel::new([spawn("1", "helper", "Help."), say("Done.")]);
        let session = place.open(&model).await;
        let (asked, mut events) = (session.clone(), session.subscribe());
        let stopping = tokio::spawn(async move {
            while events.next().await.unwrap().kind.name() != "limit_escalation_requested" {}
            while !at_once && asked.pending_limit().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            match interrupts {
                true => drop(asked.send("Stop that.", WhenBusy::Interrupt)),
                false => asked.cancel(),
            }
        });
        let (report, events) = place.turn(&session, "Go.").await;
        stopping.await.unwrap();
        assert_eq!(report.status, if interrupts { TurnStatus::Completed } else { TurnStatus::Cancelled });
        assert_eq!(session.pending_limit(), None);
        let decided = kinds(&events, |kind| match kind {
            EventKind::LimitEscalationResolved { decision: LimitDecision::Denied { reason }, .. } => {
                Some(reason.clone())
            }
            _ => None,
        });
        assert_eq!(decided, ["the call that needs it was stopped"]);
        place.close(session).await;
        assert_eq!(place.rebuilt(&place.main()).open_request, None);
    }
}

/// What an agent reaches a limit with is the result; the session that started it continues, and has spent what its agents have.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_ends_at_the_limits_of_its_file() {
    let list = || calls(&[("a", "list_dir", "{}")], usize::MAX);
    for (limit, answers, error) in [
        ("steps: 2", vec![list(), list()], "the session has reached its limit `steps` of 2"),
        ("tokens: 1", vec![], "the session has reached its limit `tokens` of 1"),
        ("spend: 0.5", vec![], "the price of the model `script-1` is not known, so `spend` cannot be limited"),
    ] {
        let place = Place::new();
        place.agent("helper", &format!("description: Helps.\nlimits:\n  {limit}"), "You are a helper.");
        let scripts = [spawn("1", "helper", "Help.")].into_iter().chain(answers).chain([say("Done.")]);
        let model = ScriptedModel::new(scripts);
        let session = place.open(&model).await;
        let (report, events) = place.turn(&session, "Go.").await;
        assert_eq!(report.text, "Done.");
        assert!(results(&events)[0].contains(error), "{limit}: {:?}", results(&events));
        let failed = |event: &flow::Event| matches!(event.kind, EventKind::ChildThreadFailed { .. });
        assert_eq!(events.iter().filter(|event| failed(event)).count(), 1);
    }
}

/// What an agent spends, its parent spends too.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_spends_counts_for_its_parent() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", &"You are a helper. ".repeat(1_000));
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), say("Helped."), say("Done.")]);
    let session = place.open(&model).await;
    place.turn(&session, "Go.").await;
    let spent = session.budget().spent();
    // A quarter of the bytes of the agent's prompt, where nobody counts.
    assert!(spent.tokens > 4_000, "{spent:?}");
    assert_eq!((spent.spawns, spent.steps), (1, 2));
}
