//! What `on_tool_call` does to calls: what it replaces is what is asked about and runs, and what it denies does not run.

use std::sync::{Arc, Mutex};

use flow::{AskedCall, CallAnswer, Callback, EventKind, TurnStatus};
use serde_json::{Value, json};
use tidegate_kit::{Plugin, RANDOM, Scene, calls, reports, rule_set, say};

use super::{plugin, records, result, scene, started};

const ARGUMENTS: &str = r#"{"path": "a"}"#;

/// One call of `echo` with [`ARGUMENTS`], and the end.
fn one_call() -> [tidegate_kit::Script; 2] {
    [calls(&[("1", "echo", ARGUMENTS)], RANDOM), say("done")]
}

/// Sets a member of the arguments.
fn sets(id: &'static str, priority: u8, name: &'static str, value: &'static str) -> Plugin {
    let call = move |asked: AskedCall| {
        let mut arguments: Value = serde_json::from_str(&asked.call.arguments).unwrap();
        arguments[name] = value.into();
        Ok(CallAnswer::Replace(arguments.to_string()))
    };
    Plugin { call: Some(Box::new(call)), ..plugin(id, Callback::ToolCall, priority) }
}

fn answers(id: &'static str, answer: Result<CallAnswer, String>) -> Plugin {
    Plugin { call: Some(Box::new(move |_| answer.clone())), ..plugin(id, Callback::ToolCall, 50) }
}

fn deny(reason: &str, shown: Option<&str>) -> CallAnswer {
    CallAnswer::Deny { reason: reason.into(), shown: shown.map(str::to_owned) }
}

#[tokio::test]
async fn each_extension_gets_what_the_one_before_it_returned() {
    let seen: Arc<Mutex<Vec<AskedCall>>> = Arc::default();
    let watch = Arc::clone(&seen);
    let last = Plugin {
        call: Some(Box::new(move |asked| {
            watch.lock().unwrap().push(asked);
            Ok(CallAnswer::Pass)
        })),
        ..plugin("last", Callback::ToolCall, 10)
    };
    let plugins =
        vec![last, sets("second", 50, "path", "c"), sets("first", 90, "path", "b"), sets("third", 20, "x", "y")];
    let mut scene = scene(one_call(), plugins);
    let (_, events) = scene.turn("go").await;
    assert_eq!(
        reports(&events),
        [
            "first on_tool_call changed",
            "second on_tool_call changed",
            "third on_tool_call changed",
            "last on_tool_call passed",
        ]
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].call.arguments, r#"{"path":"c","x":"y"}"#);
    assert!(!seen[0].edited);
    assert_eq!((seen[0].at.turn, seen[0].at.step), (1, 1));
    assert_eq!(started(&events), [r#"{"path":"c","x":"y"}"#], "it is what runs");
    // The conversation and the transcript have what the model wrote; what was shown is next to it.
    let block = &records(&events, "cognition_out")[0]["blocks"][0];
    assert_eq!((&block["arguments"], &block["shown"]), (&json!(ARGUMENTS), &json!(r#"{"path":"c","x":"y"}"#)));
    let request = scene.model.request(1);
    assert_eq!(request[request.len() - 2].1, format!("call echo {ARGUMENTS}"));
    assert!(result(&scene).contains(
        "The extensions `first`, `second`, `third` changed the arguments of this call before it ran. It ran with: {"
    ));
}

/// Without white space and with each string decoded: an extension need not know all ways to write a value.
#[tokio::test]
async fn arguments_are_plain() {
    let written = "{ \"p\\u0061th\" : \"\\u0061\", \"n\": 1.50,\n \"list\": [ true ] }";
    let seen: Arc<Mutex<String>> = Arc::default();
    let watch = Arc::clone(&seen);
    let pass = Plugin {
        call: Some(Box::new(move |asked| {
            *watch.lock().unwrap() = asked.call.arguments;
            Ok(CallAnswer::Pass)
        })),
        ..plugin("pass", Callback::ToolCall, 50)
    };
    let mut scene = scene([calls(&[("1", "echo", written)], 1), say("done")], vec![pass]);
    let (_, events) = scene.turn("go").await;
    assert_eq!(*seen.lock().unwrap(), r#"{"path":"a","n":1.50,"list":[true]}"#);
    assert_eq!(started(&events), [written], "a call that passes is as the model wrote it");
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_rest_of_the_chain_is_skipped() {
    let plugins = vec![answers("no", Ok(deny("not today", None))), sets("later", 10, "x", "y")];
    let mut scene = scene(one_call(), plugins);
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.status, TurnStatus::Completed);
    assert_eq!(started(&events), [""; 0]);
    assert_eq!(reports(&events), ["no on_tool_call changed", "later on_tool_call skipped: no denied the call"]);
    let result = result(&scene);
    assert!(result.contains("not run: the extension `no` denied this call: not today"), "{result}");
}

#[tokio::test]
async fn of_a_denied_call_is_shown_what_the_extension_says() {
    let mut scene = scene(one_call(), vec![answers("no", Ok(deny("secret", Some(r#"{"path":"…"}"#))))]);
    let (_, events) = scene.turn("go").await;
    let block = &records(&events, "cognition_out")[0]["blocks"][0];
    assert_eq!(block["shown"], r#"{"path":"…"}"#);
    assert_eq!(block["arguments"], ARGUMENTS);
}

/// What is wrong with the rest of a denial does not undo it.
#[tokio::test]
async fn a_denial_that_shows_nonsense_is_a_denial() {
    for closed in [true, false] {
        let one = Plugin { closed, ..answers("guard", Ok(deny("why", Some("no JSON")))) };
        let mut scene = scene(one_call(), vec![one]);
        let (_, events) = scene.turn("go").await;
        assert_eq!(started(&events), [""; 0]);
        let block = &records(&events, "cognition_out")[0]["blocks"][0];
        assert_eq!(block["shown"], r#"{"withheld":"[withheld: guard did not check this]"}"#);
        let notice = records(&events, "notice")[0]["message"].to_string();
        assert!(notice.contains("`guard` has denied a call"), "{notice}");
        assert!(result(&scene).contains("the extension `guard` denied this call: why"));
    }
}

/// Whatever the cause: what was not checked does not run.
#[tokio::test]
async fn a_call_that_a_closed_extension_did_not_check_does_not_run() {
    let unusable = ["[1]", "{", r#"{"a":1,"\u0061":2}"#, ""].map(|text| Ok(CallAnswer::Replace(text.into())));
    let ignored = [Ok(CallAnswer::Ignored("nonsense".into())), Err("broken".to_owned())];
    for answer in unusable.into_iter().chain(ignored) {
        let at = format!("{answer:?}");
        for closed in [true, false] {
            let one = Plugin { closed, ..answers("guard", answer.clone()) };
            let mut scene = scene(one_call(), vec![one]);
            let (report, events) = scene.turn("go").await;
            assert_eq!(report.status, TurnStatus::Completed, "{at}");
            assert_eq!(started(&events).is_empty(), closed, "{at}");
            let withheld = records(&events, "extension_withheld");
            assert_eq!(withheld.len(), usize::from(closed), "{at}");
            if closed {
                let block = &records(&events, "cognition_out")[0]["blocks"][0];
                assert_eq!(block["shown"], r#"{"withheld":"[withheld: guard did not check this]"}"#, "{at}");
                let result = result(&scene);
                assert!(result.contains("not run: the extension `guard` did not check this call"), "{at}: {result}");
            }
        }
    }
}

#[tokio::test]
async fn a_required_extension_that_fails_ends_the_turn_before_anything_runs() {
    let one = Plugin { required: true, ..answers("guard", Err("broken".into())) };
    let mut scene = scene(one_call(), vec![one]);
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.status.as_str(), "failed", "{:?}", report.status);
    assert_eq!(started(&events), [""; 0]);
    assert!(records(&events, "tool_call_result").iter().all(|result| result["error"].is_string()));
}

/// An extension cannot decide about what it cannot read; the model is told to write it again.
#[tokio::test]
async fn arguments_that_are_no_object_reach_no_extension() {
    for written in ["[1]", r#"{"a":"#, r#"{"a":1,"a":2}"#, "7"] {
        let never = Plugin {
            closed: true,
            call: Some(Box::new(|asked| panic!("{asked:?}"))),
            ..plugin("guard", Callback::ToolCall, 50)
        };
        let mut scene = scene([calls(&[("1", "echo", written)], RANDOM), say("done")], vec![never]);
        let (_, events) = scene.turn("go").await;
        assert_eq!(started(&events), [""; 0], "{written}");
        let result = result(&scene);
        assert!(result.contains("the arguments of `echo` are not valid"), "{written}: {result}");
        let block = &records(&events, "cognition_out")[0]["blocks"][0];
        assert!(block["shown"].as_str().unwrap().contains("withheld"), "{block}");
    }
}

/// The permission, the question and the tool are those of the call that runs.
#[tokio::test]
async fn a_call_is_permitted_as_it_runs() {
    for (tool, refused) in [("locked", "locked is set to deny"), ("shell", "nobody can be asked")] {
        let script = [calls(&[("1", tool, ARGUMENTS)], RANDOM), say("done")];
        let mut scene = scene(script, vec![sets("one", 50, "x", "y")]);
        let (_, events) = scene.turn("go").await;
        assert_eq!(started(&events), [""; 0]);
        let result = result(&scene);
        assert!(result.contains(refused), "{result}");
        for question in records(&events, "tool_confirmation_requested") {
            assert_eq!(question["input"], json!({"path": "a", "x": "y"}));
        }
    }
}

fn blocks(word: &str) -> Arc<rules::RuleSet> {
    let rule = format!(
        "+++\ncondition = \"{word}\"\nscope = \"tool\"\ninterrupt = \"never\"\naction = \"block\"\n+++\nNo {word}."
    );
    rule_set(&[("block", rule.as_str())], |_| {})
}

/// Rules see what the model wrote and what would run.
#[tokio::test]
async fn rules_see_both_texts() {
    for word in ["before", "after"] {
        let script = [calls(&[("1", "echo", r#"{"path": "before"}"#)], RANDOM), say("done")];
        let mut scene = Scene::new(script, vec![sets("one", 50, "path", "after")], blocks(word));
        let (_, events) = scene.turn("go").await;
        assert_eq!(started(&events), [""; 0], "{word}");
        let result = result(&scene);
        assert!(result.contains(&format!("No {word}.")), "{result}");
        let fired = records(&events, "rule_fired");
        assert_eq!((fired.len(), fired[0]["evidence"]["text"].as_str()), (1, Some(word)), "{fired:?}");
    }
}

/// With `keep = "shown"` the conversation, the records and the evidence of rules have what was shown.
#[tokio::test]
async fn what_was_shown_of_a_call_can_be_kept() {
    let script = [calls(&[("1", "echo", r#"{"path": "harsh"}"#)], RANDOM), say("done")];
    let one = Plugin { keeps_shown: true, ..sets("one", 50, "path", "after") };
    let rule = "+++\ncondition = \"har.h\"\nscope = \"tool\"\ninterrupt = \"never\"\n+++\nMildly.";
    let mut scene = Scene::new(script, vec![one], rule_set(&[("mild", rule)], |_| {}));
    let (_, events) = scene.turn("go").await;
    assert_eq!(started(&events), [r#"{"path":"after"}"#]);
    let all: String = events.iter().map(|event| record::json(event, "test").to_string()).collect();
    assert!(!all.contains("harsh"), "{all}");
    let block = &records(&events, "cognition_out")[0]["blocks"][0];
    assert_eq!((&block["arguments"], &block["changed"]), (&json!(r#"{"path":"after"}"#), &json!(true)));
    let request = scene.model.request(1);
    assert_eq!(request[request.len() - 2].1, r#"call echo {"path":"after"}"#);
    let result = result(&scene);
    assert!(
        result.contains("changed the arguments of this call before it ran") && result.contains("Mildly."),
        "{result}"
    );
    assert!(!format!("{request:?}").contains("harsh"), "{request:?}");
}

/// Each of several calls is asked about before the first runs.
#[tokio::test]
async fn all_calls_of_an_answer_are_checked_before_one_runs() {
    let script = [calls(&[("1", "echo", "{\"n\":1}"), ("2", "echo", "{\"n\":2}")], RANDOM), say("done")];
    let second = Plugin {
        required: true,
        call: Some(Box::new(|asked| {
            if asked.call.arguments.contains('2') { Err("broken".into()) } else { Ok(CallAnswer::Pass) }
        })),
        ..plugin("guard", Callback::ToolCall, 50)
    };
    let mut scene = scene(script, vec![second]);
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.status.as_str(), "failed");
    assert_eq!(started(&events), [""; 0]);
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::ToolCallProgress { .. })));
}
