//! Edited arguments are checked like those of the model: JSON, schema, rules, permissions. Refused ones leave the question open.

use flow::{Answer, EventKind};
use tidegate_kit::{rule_set, say};
use turn::{AnswerError, EditError};

use crate::turn;
use crate::world::{Setup, asked, calls, write, writes};

/// The error of an edit.
fn error(result: Result<(), AnswerError>) -> EditError {
    match result {
        Err(AnswerError::Edit { error, .. }) => error,
        other => panic!("{other:?}"),
    }
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
    let mut place = crate::place(&[("a", "1")]).await;
    place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("a", &"ü".repeat(100_000)) }).unwrap();
        })
        .await;
    let results = place.results(1);
    assert!(results.len() < 20_000 && results.contains("more bytes)"), "{}", results.len());
}
