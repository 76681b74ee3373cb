//! Child agents at the terminal: `agents list`, what `run` prints of them, and their sessions in `session`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;

use crate::support::{Place, Say, Server, code, err, out, recording};

const HELPER: &str = "---\ndescription: Helps with small things.\ntools: [read_file, grep]\nlimits:\n  steps: 3\n  duration: 90s\n---\n\
                      You are a helper.\n";

fn place(answers: &[&[Say<'_>]]) -> Place {
    let place = Place::new();
    place.write("answers.jsonl", &recording(answers));
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[rules]\nbuiltin_rules = false\n",
    );
    place.write(".tidegate/agents/helper.md", HELPER);
    place
}

fn spawn(agent: &str) -> String {
    format!(r#"{{"agent": "{agent}", "task": "How many?"}}"#)
}

fn sessions(place: &Place) -> Vec<Value> {
    place.json(&["session", "list", "--json"])["sessions"].as_array().unwrap().clone()
}

#[test]
fn agents_are_listed_with_what_is_wrong_with_others() {
    let place = place(&[]);
    place.write("user/tidegate/agents/thinker.md", "---\ndescription: Thinks.\nmodel: large\n---\nYou think.\n");
    let listed = place.run(&["agents", "list"]);
    assert_eq!(code(&listed), 0, "{}", err(&listed));
    let expected = "helper  Helps with small things.\n  tools: read_file, grep\n  limits: 3 steps, 90 s\n  from .tidegate/agents/helper.md \
                    (project)\nthinker  Thinks.\n  tools: those of the session that starts it; model: large\n";
    assert!(out(&listed).starts_with(expected), "{}", out(&listed));
    assert!(out(&listed).contains("user/tidegate/agents/thinker.md (user)"), "{}", out(&listed));

    place.write(".tidegate/agents/broken.md", "---\ndescription: Breaks.\ntool: grep\n---\nYou break.\n");
    let listed = place.run(&["agents", "list"]);
    assert_eq!(code(&listed), 1, "{}", err(&listed));
    assert!(err(&listed).contains("unknown key `tool`") && err(&listed).contains("did you mean `tools`?"));
    let json = place.run(&["agents", "list", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["agents"][0]["limits"], serde_json::json!({"steps": 3, "duration_ms": 90000}));
    assert_eq!((&json["agents"][1]["tools"], &json["forbidden_by"]), (&Value::Null, &serde_json::json!([])));
    place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\ndepth = 0\n");
    let forbidden = place.run(&["agents", "list"]);
    assert!(out(&forbidden).starts_with("no session can start them: its limit `depth` is 0"), "{}", out(&forbidden));
    assert_eq!(place.json(&["agents", "list", "--json"])["forbidden_by"], serde_json::json!(["depth"]));
    assert!(json["problems"][0].as_str().unwrap().starts_with("error[config-unknown-key]"));
    // A host starts all the same.
    let doctor = place.run(&["doctor"]);
    assert!([out(&doctor), err(&doctor)].concat().contains("unknown key `tool`"), "{}", out(&doctor));
}

#[test]
fn a_child_is_shown_listed_and_not_continued() {
    let arguments = spawn("helper");
    let place =
        place(&[&[Say::Call("spawn_agent", &arguments)], &[Say::Text("Seven.")], &[Say::Text("It says seven.")]]);
    let run = place.run(&["run", "Ask how many"]);
    assert_eq!((code(&run), out(&run).as_str()), (0, "It says seven.\n"), "{}", err(&run));
    let shown = err(&run);
    assert!(shown.contains("● spawn_agent") && shown.contains("The agent helper started in the session "), "{shown}");
    assert!(shown.contains("Seven."), "{shown}");

    let all = sessions(&place);
    assert_eq!(all.len(), 2);
    let child = all.iter().find(|one| !one["spawned_by"].is_null()).unwrap();
    let parent = all.iter().find(|one| one["spawned_by"].is_null()).unwrap();
    assert_eq!(
        (&child["spawned_by"]["agent"], &child["spawned_by"]["session"]),
        (&"helper".into(), &parent["session"])
    );
    let id = child["session"].as_str().unwrap();
    let listed = out(&place.run(&["session", "list"]));
    assert!(listed.contains(&format!("agent helper of {}", parent["session"].as_str().unwrap())), "{listed}");
    let shown = out(&place.run(&["session", "show", id]));
    assert!(shown.contains("How many?") && shown.contains("Seven."), "{shown}");
    let shown = out(&place.run(&["session", "show", parent["session"].as_str().unwrap()]));
    assert!(shown.contains(&format!("The agent helper started in the session {id}")), "{shown}");

    place.write("answers.jsonl", &recording(&[&[Say::Text("Again.")]]));
    assert_eq!(out(&place.run(&["run", "--continue", "More"])), "Again.\n");
    assert_eq!(sessions(&place).len(), 2, "the session of the user continues, and not that of the agent");
    let refused = place.run(&["run", "--resume", id, "More"]);
    assert!(code(&refused) != 0 && err(&refused).contains("belongs to a child agent"), "{}", err(&refused));
}

#[test]
fn an_agent_that_fails_is_a_line() {
    let arguments = spawn("helper");
    let list = || [Say::Call("grep", r#"{"pattern": "x"}"#)];
    let place = place(&[&[Say::Call("spawn_agent", &arguments)], &list(), &list(), &list(), &[Say::Text("Then not.")]]);
    let run = place.run(&["run", "Ask how many"]);
    assert_eq!((code(&run), out(&run).as_str()), (0, "Then not.\n"), "{}", err(&run));
    assert!(err(&run).contains("has reached its limit `steps` of 3"), "{}", err(&run));
}

/// The provider is asked for the agent's model.
#[test]
fn an_agent_has_its_own_model() {
    let arguments = spawn("thinker");
    let answers: &[&[Say<'_>]] =
        &[&[Say::Call("spawn_agent", &arguments)], &[Say::Text("Seven.")], &[Say::Text("It says seven.")]];
    let server = Server::start(&recording(answers));
    let place = place(&[]);
    place.write(
        "tidegate.toml",
        &format!(
            "[provider]\nkind = \"anthropic\"\nmodel = \"small\"\nbase_url = \"{}\"\napi_key_env = \"\"\n",
            server.url
        ),
    );
    place.write("user/tidegate/agents/thinker.md", "---\ndescription: Thinks.\nmodel: large\n---\nYou think.\n");
    let run = place.run(&["run", "Ask how many"]);
    assert_eq!((code(&run), out(&run).as_str()), (0, "It says seven.\n"), "{}", err(&run));
    for one in sessions(&place) {
        let id = one["session"].as_str().unwrap();
        let first = out(&place.run(&["session", "show", id, "--json"]));
        let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
        let model = if one["spawned_by"].is_null() { "small" } else { "large" };
        assert_eq!(first["payload"]["model"], model);
    }
}

/// A replay goes by the agent that the transcript names.
#[test]
fn rules_of_an_agent_are_replayed_in_its_transcript() {
    let arguments = spawn("helper");
    let answers: &[&[Say<'_>]] = &[
        &[Say::Call("spawn_agent", &arguments)],
        &[Say::Text("It perhaps is.")],
        &[Say::Text("It is.")],
        &[Say::Text("It perhaps is, too.")],
    ];
    let place = place(answers);
    place.write(
        ".tidegate/rules/no-perhaps.md",
        "---\ncondition: perhaps\nscope: text\nagents: helper\n---\nDo not say perhaps.\n",
    );
    let run = place.run(&["run", "Is it?"]);
    assert_eq!((code(&run), out(&run).as_str()), (0, "It perhaps is, too.\n"), "{}", err(&run));
    for one in sessions(&place) {
        let file = format!("state/tidegate/sessions/{}/transcript.jsonl", one["session"].as_str().unwrap());
        let report = place.json(&["rules", "replay", &file, "--json"]);
        let fired = if one["spawned_by"].is_null() { 0 } else { 1 };
        assert_eq!(report["rules"].as_array().unwrap().len(), fired, "{report:#}");
        let as_main = place.json(&["rules", "replay", &file, "--agent", "main", "--json"]);
        assert_eq!(as_main["fires"].as_array().map(Vec::len), Some(0), "{as_main:#}");
        if fired == 1 {
            assert_eq!(report["rules"][0]["agreement"], serde_json::json!({"same": 1}));
        }
    }
}
