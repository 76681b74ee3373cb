//! What `on_tool_result` does to results, and to the change that a question shows.

use flow::{Annotation, Callback, GivenResult, ResultAnswer, ResultStage, TurnStatus};
use serde_json::json;
use tidegate_kit::{Plugin, RANDOM, Script, calls, reports, say};

use super::{plugin, records, result, scene};

const RESULT: &str = r#"echo done: {"path": "a"}"#;

fn one_call(tool: &str) -> [Script; 2] {
    [calls(&[("1", tool, r#"{"path": "a"}"#)], RANDOM), say("done")]
}

/// Answers with other blocks, and notes their number.
fn replaces(id: &'static str, priority: u8, blocks: fn(GivenResult) -> Vec<String>) -> Plugin {
    let result = move |given: GivenResult| {
        assert_eq!((given.stage, given.is_error, given.call.name.as_str()), (ResultStage::Done, false, "echo"));
        let (diff, blocks) = (given.diff.clone(), blocks(given));
        let note = Annotation { key: "blocks".into(), value: json!(blocks.len()) };
        Ok(ResultAnswer { replace: Some((blocks, diff)), annotations: vec![note], ..ResultAnswer::default() })
    };
    Plugin { result: Some(Box::new(result)), ..plugin(id, Callback::ToolResult, priority) }
}

fn answers(answer: Result<ResultAnswer, String>) -> Plugin {
    Plugin { result: Some(Box::new(move |_| answer.clone())), ..plugin("guard", Callback::ToolResult, 50) }
}

#[tokio::test]
async fn each_extension_gets_what_the_one_before_it_returned() {
    let first = replaces("first", 90, |given| {
        assert_eq!(given.content, [RESULT]);
        vec!["one".into(), "two".into()]
    });
    let second = replaces("second", 10, |given| {
        assert_eq!(given.content, ["one", "two"]);
        vec!["three".into()]
    });
    let mut scene = scene(one_call("echo"), vec![second, first]);
    let (_, events) = scene.turn("go").await;
    assert_eq!(reports(&events), ["first on_tool_result changed", "second on_tool_result changed"]);
    assert_eq!(result(&scene), r#"result ["three"]"#);
    let record = &records(&events, "tool_call_result")[0];
    assert_eq!((&record["output"], &record["original"]), (&json!("three"), &json!(RESULT)));
    let notes = json!([
        {"extension_id": "first", "key": "blocks", "value": 2},
        {"extension_id": "second", "key": "blocks", "value": 1},
    ]);
    assert_eq!(record["annotations"], notes);
}

#[tokio::test]
async fn what_was_shown_of_a_result_can_be_kept() {
    let one = Plugin { keeps_shown: true, ..replaces("one", 50, |_| vec!["quiet".into()]) };
    let mut scene = scene(one_call("echo"), vec![one]);
    let (_, events) = scene.turn("go").await;
    let record = &records(&events, "tool_call_result")[0];
    assert_eq!((&record["output"], record.get("original")), (&json!("quiet"), None));
    assert!(!format!("{events:?}").contains(RESULT));
}

/// Whatever the cause: nobody gets what was not checked.
#[tokio::test]
async fn a_result_that_a_closed_extension_did_not_check_is_withheld() {
    let unusable = ResultAnswer { unusable: Some("nonsense".into()), ..ResultAnswer::default() };
    for answer in [Err("broken".to_owned()), Ok(unusable)] {
        for closed in [true, false] {
            let one = Plugin { closed, ..answers(answer.clone()) };
            let mut scene = scene(one_call("echo"), vec![one]);
            let (report, events) = scene.turn("go").await;
            assert_eq!(report.status, TurnStatus::Completed);
            let expected = if closed { "[withheld: guard did not check this]" } else { RESULT };
            assert_eq!(result(&scene), format!("result {:?}", [expected]));
            let record = &records(&events, "tool_call_result")[0];
            assert_eq!(record["output"], expected);
            assert_eq!(records(&events, "extension_withheld").len(), usize::from(closed));
        }
    }
}

/// The call has run: the turn ends with its result withheld, and not without one.
#[tokio::test]
async fn a_required_extension_that_fails_ends_the_turn_and_withholds_the_result() {
    let one = Plugin { required: true, ..answers(Err("broken".into())) };
    let mut scene = scene(one_call("echo"), vec![one]);
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.status.as_str(), "failed", "{:?}", report.status);
    let record = &records(&events, "tool_call_result")[0];
    assert_eq!(record["output"], "[withheld: guard did not check this]");
    assert_eq!(record["original"], RESULT, "what is kept is not its business");
}

/// A result that is not the tool's is the host's own words.
#[tokio::test]
async fn refusals_are_no_results() {
    let never = Plugin {
        closed: true,
        result: Some(Box::new(|given| panic!("{given:?}"))),
        ..plugin("guard", Callback::ToolResult, 50)
    };
    let mut scene = scene(one_call("locked"), vec![never]);
    scene.turn("go").await;
    let result = result(&scene);
    assert!(result.contains("locked is set to deny"), "{result}");
}

/// Progress is text of the result: without a check nobody sees it, where somebody asked for one. Numbers pass.
#[tokio::test]
async fn progress_shows_nothing_that_was_not_checked() {
    for (closed, keeps_shown) in [(false, false), (true, false), (false, true)] {
        let one = Plugin { closed, keeps_shown, ..answers(Ok(ResultAnswer::default())) };
        let mut scene = scene(one_call("steps"), vec![one]);
        let (_, events) = scene.turn("go").await;
        let progress = records(&events, "tool_call_progress");
        let lines: Vec<_> = progress.iter().map(|one| one["message"].as_str().unwrap()).collect();
        let marker = "[withheld: guard did not check this]";
        let expected = if closed || keeps_shown { [marker, marker] } else { ["one", "two"] };
        assert_eq!(lines, expected, "{closed} {keeps_shown}");
        assert_eq!((progress[0].get("progress"), &progress[1]["progress"]), (None, &json!(50.0)));
    }
}
