//! Extensions around the questions: what a person approves is what runs, whoever wrote it.

use flow::{Answer, CallAnswer, Callback, Confirmation, Event, EventKind, ResultAnswer, ResultStage, TurnStatus};
use tidegate_kit::{Plugin, rule_set, say};

use super::turn::{AnswerError, EditError};
use super::world::{Setup, asked, calls, rebuilt, until, write, writes};

/// Writes `safe` where the model, or a person, writes `risky`.
fn careful() -> Plugin {
    Plugin {
        id: "careful",
        callbacks: vec![(Callback::ToolCall, 50)],
        call: Some(Box::new(|asked| {
            let safe = asked.call.arguments.replace("risky", "safe");
            Ok(if safe == asked.call.arguments { CallAnswer::Pass } else { CallAnswer::Replace(safe) })
        })),
        ..Plugin::default()
    }
}

/// What ran, as events say it.
fn started(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match &event.kind {
        EventKind::ToolCallStart { arguments, .. } => Some(arguments.clone()),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

#[tokio::test]
async fn a_question_shows_what_an_extension_made_of_the_call() {
    let setup = Setup { plugins: vec![careful()], ..Setup::new([writes(&[("a", "risky")]), say("done")]) };
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            assert_eq!(serde_json::from_str::<serde_json::Value>(&open[0].call.arguments).unwrap()["content"], "safe");
            assert_eq!(open[0].preview.diff.as_deref(), Some("--- a\n-\n+safe"));
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(place.written(), [("a".to_owned(), "safe".to_owned())]);
    assert!(started(&events)[0].contains("safe"), "{:?}", started(&events));
    let results = place.results(1);
    assert!(results.contains("The extension `careful` changed the arguments of this call"), "{results}");
    tidegate_kit::assert_rebuilt(&events, &place.session.history());
}

/// The person wrote something else than what an extension lets run: they have not approved that.
#[tokio::test]
async fn where_an_extension_changes_an_edit_the_person_is_asked_again() {
    let setup = Setup { plugins: vec![careful()], ..Setup::new([writes(&[("a", "1")]), say("done")]) };
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            // Below `open/` no question is needed; here there is one all the same.
            desk.answer(&open[0], Answer::Edit { arguments: write("open/a", "risky") }).unwrap();
            let again = desk.open(1).await.remove(0);
            assert!(again.reason.contains("`careful` changed the arguments"), "{}", again.reason);
            assert!(again.call.arguments.contains("safe"), "{}", again.call.arguments);
            assert_eq!(again.always, None);
            desk.answer(&again, Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(asked(&events).len(), 2);
    assert_eq!(place.written(), [("open/a".to_owned(), "safe".to_owned())]);
    tidegate_kit::assert_rebuilt(&events, &place.session.history());
}

#[tokio::test]
async fn an_edit_that_an_extension_denies_does_not_run() {
    let strict = Plugin {
        id: "strict",
        callbacks: vec![(Callback::ToolCall, 50)],
        call: Some(Box::new(|asked| {
            let risky = asked.call.arguments.contains("risky");
            assert_eq!(asked.edited, risky, "it is told who wrote the arguments");
            let deny = CallAnswer::Deny { reason: "too risky".into(), shown: None };
            Ok(if risky { deny } else { CallAnswer::Pass })
        })),
        ..Plugin::default()
    };
    let setup = Setup { plugins: vec![strict], ..Setup::new([writes(&[("a", "1")]), say("done")]) };
    let mut place = setup.open().await;
    place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("a", "risky") }).unwrap();
        })
        .await;
    assert!(place.written().is_empty());
    assert!(place.results(1).contains("the extension `strict` denied this call: too risky"), "{}", place.results(1));
}

/// Rules see what will run.
#[tokio::test]
async fn what_an_extension_makes_of_an_edit_goes_through_the_rules() {
    let rule =
        "+++\ncondition = \"safe\"\nscope = \"tool\"\ninterrupt = \"never\"\naction = \"block\"\n+++\nNot even safe.";
    let rules = rule_set(&[("none", rule)], |_| {});
    let setup = Setup { plugins: vec![careful()], rules, ..Setup::new([writes(&[("a", "1")]), say("done")]) };
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            let forbidden = desk.answer(&open[0], Answer::Edit { arguments: write("a", "safe") });
            assert!(matches!(forbidden, Err(AnswerError::Edit { error: EditError::Rules { .. }, .. })));
            desk.answer(&open[0], Answer::Edit { arguments: write("a", "risky") }).unwrap();
        })
        .await;
    assert!(place.written().is_empty());
    assert!(place.results(1).contains("Not even safe."), "{}", place.results(1));
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::RuleFired { .. })));
}

/// The change that a question shows is made of files, as a result is.
#[tokio::test]
async fn the_change_in_a_question_goes_through_on_tool_result() {
    let quiet = Plugin {
        id: "quiet",
        callbacks: vec![(Callback::ToolResult, 50)],
        result: Some(Box::new(|given| {
            let diff = given.diff.map(|diff| diff.replace("secret", "…"));
            let replace = (given.stage == ResultStage::Preview).then_some((given.content, diff));
            Ok(ResultAnswer { replace, ..ResultAnswer::default() })
        })),
        ..Plugin::default()
    };
    let setup = Setup { plugins: vec![quiet], ..Setup::new([writes(&[("a", "new")]), say("done")]) };
    setup.world.files.lock().unwrap().insert("a".into(), "secret".into());
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            assert_eq!(open[0].preview.diff.as_deref(), Some("--- a\n-…\n+new"));
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(place.written(), [("a".to_owned(), "new".to_owned())]);
    assert!(!format!("{events:?}").contains("secret"));
}

/// A question shows nothing that a callback which fails closed did not check, and it is still a question.
#[tokio::test]
async fn a_change_that_was_not_checked_is_not_in_the_question() {
    let broken = Plugin {
        id: "broken",
        closed: true,
        callbacks: vec![(Callback::ToolResult, 50)],
        result: Some(Box::new(|given| match given.stage {
            ResultStage::Preview => Err("no".to_owned()),
            ResultStage::Done => Ok(ResultAnswer::default()),
        })),
        ..Plugin::default()
    };
    let setup = Setup { plugins: vec![broken], ..Setup::new([writes(&[("a", "new")]), say("done")]) };
    let mut place = setup.open().await;
    place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            assert_eq!(open[0].preview.diff, None);
            assert_eq!(open[0].preview.notes, ["[withheld: broken did not check this]"]);
            desk.answer(&open[0], Answer::Deny { reason: String::new() }).unwrap();
        })
        .await;
}

/// A process that continues has the calls as the model wrote them, and asks the extensions again; an edited call is as the person wrote it.
#[tokio::test]
async fn open_calls_of_an_earlier_process_are_checked_again() {
    let script = calls(&[("write", write("a", "risky"))]);
    let setup = Setup { plugins: vec![careful()], ..Setup::new([script, say("done")]) };
    let mut place = setup.open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Deny { reason: String::new() }).unwrap();
        })
        .await;
    let events = until(&events, |kind| matches!(kind, EventKind::ToolConfirmationRequested { .. }));
    let resumed = rebuilt(&events);
    let setup = Setup { plugins: vec![careful()], resumed: Some(resumed), ..Setup::new([say("done")]) };
    let mut place = setup.open().await;
    let (report, events) = place
        .resume(|desk| async move {
            let open = desk.open(1).await;
            assert!(open[0].call.arguments.contains("safe"), "{}", open[0].call.arguments);
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(report.status, TurnStatus::Completed);
    assert_eq!(place.written(), [("a".to_owned(), "safe".to_owned())]);
    assert!(events.iter().any(|event| matches!(
        &event.kind,
        EventKind::ToolConfirmationResolved { decision: Confirmation::Approved, .. }
    )));
}
