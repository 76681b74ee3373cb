//! Edited arguments are checked like those of the model: JSON, schema, rules, permissions. Refused ones leave the question open.

use flow::{Action, Answer, Event, EventKind, InputWay, Message};
use tidegate_kit::{rule_set, say};
use turn::{AnswerError, EditError};

use super::turn;
use super::world::{Setup, asked, calls, write, writes};

/// The error of an edit.
fn error(result: Result<(), AnswerError>) -> EditError {
    match result {
        Err(AnswerError::Edit { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

/// The rules that fired, each with what was decided.
fn fired(events: &[Event]) -> Vec<(String, Action)> {
    let one = |event: &Event| match &event.kind {
        EventKind::RuleFired { found, action, .. } => Some((found.rule.clone(), *action)),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

#[tokio::test]
async fn an_edit_that_cannot_run_is_refused_and_the_question_stays_open() {
    let rules = rule_set(
        &[
            ("hard", "+++\ncondition = \"FORBIDDEN\"\nscope = \"tool\"\n+++\nNo."),
            (
                "block",
                "+++\ncondition = \"BLOCKED\"\nscope = \"tool\"\ninterrupt = \"never\"\naction = \"block\"\n+++\nNo.",
            ),
        ],
        |_| {},
    );
    let setup = Setup { rules, ..Setup::new([writes(&[("a", "1")]), say("done")]) };
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await.remove(0);
            let edit = |arguments: &str| error(desk.answer(&open, Answer::Edit { arguments: arguments.into() }));
            assert!(matches!(edit("{"), EditError::Invalid { .. }));
            assert!(matches!(edit("[1]"), EditError::Invalid { .. }));
            let twice = r#"{"path":"a","content":"x","c\u006fntent":"y"}"#;
            assert!(matches!(edit(twice), EditError::Ambiguous(_)));
            for wrong in [r#"{"path":"a"}"#, r#"{"path":"a","content":1}"#, r#"{"path":"a","content":"","x":1}"#] {
                let EditError::Schema { tool, problems } = edit(wrong) else { panic!("{wrong}") };
                assert_eq!((tool.as_str(), problems.len()), ("write", 1), "{problems:?}");
            }
            for (word, rule) in [("FORBIDDEN", "hard"), ("BLOCKED", "block")] {
                let EditError::Rules { matches } = edit(&write("a", word)) else { panic!("{word}") };
                assert_eq!(matches[0].rule, rule);
            }
            let EditError::Denied { reason } = edit(&write("denied/a", "x")) else { panic!() };
            assert_eq!(reason, "`denied/a` is denied");
            assert_eq!(desk.0.pending().len(), 1);
            desk.answer(&open, Answer::Edit { arguments: write("b", "fine") }).unwrap();
        })
        .await;
    assert_eq!(fired(&events), [("hard".to_owned(), Action::Interrupt), ("block".to_owned(), Action::Block)]);
    assert_eq!(place.written(), [("b".to_owned(), "fine".to_owned())]);
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallStart { arguments, .. } => Some(arguments.clone()),
        _ => None,
    });
    assert_eq!(started, Some(write("b", "fine")), "the events have what ran");
}

/// A rule that only reminds lets the edit run, and the model reads its reminder.
#[tokio::test]
async fn a_rule_that_reminds_reminds_of_an_edit() {
    let rules = rule_set(
        &[("soft", "+++\ncondition = \"MILD\"\nscope = \"tool\"\ninterrupt = \"never\"\n+++\nMildly.")],
        |_| {},
    );
    let setup = Setup { rules, ..Setup::new([writes(&[("a", "1")]), say("done")]) };
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("a", "MILD") }).unwrap();
        })
        .await;
    let results = place.results(1);
    assert!(results.contains("The user edited") && results.contains("Mildly."), "{results}");
    let injected = events.iter().filter(|event| matches!(event.kind, EventKind::TtsrInjection { .. })).count();
    assert_eq!(injected, 1);
    assert_eq!(fired(&events), [("soft".to_owned(), Action::Remind)]);
    let first = |name: &str| events.iter().position(|event| event.kind.name() == name);
    assert!(first("rule_fired") < first("tool_call_start"));
    assert_eq!(place.session.rule_metrics()["soft"].fires, 1);
    tidegate_kit::assert_rebuilt(&events, &place.session.history());
}

/// The person approved a file. If a call before makes the path another file, they are asked about that one.
#[tokio::test]
async fn an_edited_call_whose_path_leads_elsewhere_is_asked_about_again() {
    let link = ("link", serde_json::json!({"path": "b", "to": "c"}).to_string());
    let script = calls(&[link, ("write", write("a", "1"))]);
    let mut place = Setup::new([script, say("done")]).open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("b", "2") }).unwrap();
            let again = desk.open(1).await;
            assert_eq!(again[0].preview.diff.as_deref(), Some("--- c\n-\n+2"));
            assert_eq!(again[0].call.arguments, write("b", "2"));
            desk.answer(&again[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(asked(&events).len(), 2);
    assert_eq!(place.written(), [("c".to_owned(), "2".to_owned())]);
    assert!(place.results(1).contains("The user edited"), "{}", place.results(1));
}

/// A large edit is not repeated in whole to the model.
#[tokio::test]
async fn the_note_about_an_edit_is_bounded() {
    let mut place = super::place(&[("a", "1")]).await;
    place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("a", &"ü".repeat(100_000)) }).unwrap();
        })
        .await;
    let results = place.results(1);
    assert!(results.len() < 20_000 && results.contains("more bytes)"), "{}", results.len());
}

/// What ran is not what the model wrote: it learns that also where there is no result.
#[tokio::test]
async fn the_model_learns_of_an_edit_where_the_user_interrupts_the_call() {
    let rules = rule_set(
        &[("soft", "+++\ncondition = \"MILD\"\nscope = \"tool\"\ninterrupt = \"never\"\n+++\nMildly.")],
        |_| {},
    );
    let setup = Setup { rules, ..Setup::new([writes(&[("a", "1")]), say("done")]) };
    let mut place = setup.open().await;
    let (inputs, mut seen) = (place.session.handles().inputs, place.session.subscribe());
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("b", "MILD") }).unwrap();
            while !matches!(seen.next().await.unwrap().kind, EventKind::ToolCallStart { .. }) {}
            inputs.wait(vec![(None, Message::user("stop"))], InputWay::Interrupt);
        })
        .await;
    let request = place.model.request(1);
    let result = &request[request.len() - 2].1;
    for part in
        ["The user edited the arguments", "MILD", "Mildly.", "the user interrupted this call while it was running"]
    {
        assert!(result.contains(part), "{part}: {result}");
    }
    assert_eq!(place.session.rule_metrics()["soft"].reminders, 1);
    tidegate_kit::assert_rebuilt(&events, &place.session.history());
}

/// Nothing ran yet: the model has nothing to learn.
#[tokio::test]
async fn an_edit_is_not_mentioned_where_the_call_has_not_begun() {
    let link = ("link", serde_json::json!({"path": "b", "to": "c"}).to_string());
    let mut place = Setup::new([calls(&[link, ("write", write("a", "1"))]), say("done")]).open().await;
    let inputs = place.session.handles().inputs;
    place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("b", "2") }).unwrap();
            // The path leads elsewhere by now.
            desk.open(1).await;
            inputs.wait(vec![(None, Message::user("stop"))], InputWay::Interrupt);
        })
        .await;
    let request = place.model.request(1);
    let result = &request[request.len() - 2].1;
    assert!(result.contains("not run: the user interrupted") && !result.contains("The user edited"), "{result}");
}
