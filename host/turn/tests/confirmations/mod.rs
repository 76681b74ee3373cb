//! Questions about tool calls: all of a message at once, each answered once, and what was approved is what runs.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod callbacks;
mod edits;
mod handlers;
mod resumed;
mod world;

use std::time::Duration;

use flow::{Answer, Confirmation, EventKind, QuestionId, TurnStatus};
use tidegate_kit::say;
use tidegate_turn as turn;
use turn::{AnswerError, QuestionSettings};
use world::{Setup, asked, calls, decided, place, write, writes};

fn pair(path: &str, content: &str) -> (String, String) {
    (path.to_owned(), content.to_owned())
}

/// The first case of the specification.
#[tokio::test]
async fn three_questions_at_once_are_answered_each_for_itself() {
    let mut place = place(&[("a", "1"), ("b", "2"), ("c", "3")]).await;
    let world = place.world.clone();
    let (report, events) = place
        .turn(|desk| async move {
            let open = desk.open(3).await;
            assert!(world.written.lock().unwrap().is_empty(), "nothing runs before its own answer");
            desk.answer(&open[1], Answer::Deny { reason: "not that file".into() }).unwrap();
            desk.answer(&open[2], Answer::Edit { arguments: write("c", "edited") }).unwrap();
            assert_eq!(desk.0.pending().len(), 1);
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(report.status, TurnStatus::Completed);
    assert_eq!(place.written(), [pair("a", "1"), pair("c", "edited")]);
    let results = place.results(1);
    for part in [
        "result [\"written\"]",
        "not run: the user denied this call: not that file",
        "The user edited the arguments of this call before it ran. It ran with: {",
        "edited",
    ] {
        assert!(results.contains(part), "{part}: {results}");
    }
    let ids = ["question-1", "question-2", "question-3"].map(QuestionId::new);
    assert_eq!(asked(&events), ids);
    let position = |found: fn(&EventKind) -> bool| events.iter().position(|event| found(&event.kind)).unwrap();
    let last_asked = events.iter().rposition(|event| matches!(event.kind, EventKind::ToolConfirmationRequested { .. }));
    assert!(last_asked.unwrap() < position(|kind| matches!(kind, EventKind::ToolConfirmationResolved { .. })));
    let by = |id: &str, word: &'static str| (id.to_owned(), word, "Ada".to_owned());
    assert_eq!(
        decided(&events),
        [by("question-2", "denied"), by("question-3", "edited"), by("question-1", "approved")]
    );
    tidegate_kit::assert_rebuilt(&events, &place.session.history());
}

/// The second case of the specification.
#[tokio::test]
async fn the_first_answer_counts_and_a_later_one_learns_whose_it_was() {
    let mut place = place(&[("a", "1")]).await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.0.answer(&open[0].id, Answer::Deny { reason: String::new() }, "Ada").unwrap();
            let late = desk.0.answer(&open[0].id, Answer::Approve, "Bob");
            assert_eq!(late, Err(AnswerError::NotOpen { id: open[0].id.clone(), by: Some("Ada".into()) }));
            let unknown = QuestionId::new("question-9");
            let error = desk.0.answer(&unknown, Answer::Approve, "Bob");
            assert_eq!(error, Err(AnswerError::NotOpen { id: unknown, by: None }));
        })
        .await;
    assert_eq!(decided(&events), [("question-1".to_owned(), "denied", "Ada".to_owned())]);
    assert!(place.written().is_empty());
}

/// Two threads answer at the same time, many times: exactly one of them wins.
#[tokio::test]
async fn of_two_answers_at_once_one_wins() {
    for _ in 0..200 {
        let mut place = place(&[("a", "1")]).await;
        let (_, events) = place
            .turn(|desk| async move {
                let open = desk.open(1).await;
                let start = std::sync::Barrier::new(2);
                let won: Vec<bool> = std::thread::scope(|scope| {
                    let one = |answer: Answer, by: &'static str| {
                        let (desk, id, start) = (&desk, &open[0].id, &start);
                        scope.spawn(move || {
                            start.wait();
                            desk.0.answer(id, answer, by).is_ok()
                        })
                    };
                    let all = [one(Answer::Approve, "Ada"), one(Answer::Deny { reason: String::new() }, "Bob")];
                    all.map(|thread| thread.join().unwrap()).into()
                });
                assert_eq!(won.iter().filter(|won| **won).count(), 1);
            })
            .await;
        let [(_, word, _)] = decided(&events).try_into().unwrap();
        assert_eq!(place.written().is_empty(), word == "denied");
    }
}

#[tokio::test]
async fn cancelling_the_turn_answers_all_questions() {
    let mut place = place(&[("a", "1"), ("b", "2"), ("c", "3")]).await;
    let cancel = place.cancel.clone();
    let (report, events) = place
        .turn(|desk| async move {
            desk.open(3).await;
            cancel.cancel();
        })
        .await;
    assert_eq!(report.status, TurnStatus::Cancelled);
    let words: Vec<&str> = decided(&events).iter().map(|(_, word, _)| *word).collect();
    assert_eq!(words, ["cancelled"; 3]);
    assert!(matches!(events.last().unwrap().kind, EventKind::TurnFinish { .. }), "the questions end before the turn");
    assert!(place.written().is_empty());
    tidegate_kit::assert_rebuilt(&events, &place.session.history());
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_decided_as_the_operator_says() {
    for (approve, files) in [(false, vec![]), (true, vec![pair("a", "1")])] {
        let mut setup = Setup::new([writes(&[("a", "1"), ("guarded/b", "2")]), say("done")]);
        setup.settings.timeout = Some(Duration::from_secs(60));
        setup.settings.approve_on_timeout = approve;
        let mut place = setup.open().await;
        let (report, events) = place
            .turn(|desk| async move {
                assert_eq!(desk.open(2).await[0].timeout_ms, Some(60_000));
            })
            .await;
        assert_eq!(report.status, TurnStatus::Completed);
        let nobody = |id: &str| (id.to_owned(), "timed_out", String::new());
        assert_eq!(decided(&events), [nobody("question-1"), nobody("question-2")]);
        // What is asked about each time is never approved by the clock.
        assert_eq!(place.written(), files, "{approve}");
        assert!(place.results(1).contains("nobody has answered the question"), "{}", place.results(1));
    }
    assert_eq!(QuestionSettings::default().timeout, None);
}

#[tokio::test]
async fn what_is_allowed_always_covers_the_next_call_and_not_another_one() {
    let scripts = [writes(&[("a", "1"), ("a", "2")]), writes(&[("a", "3"), ("b", "4")]), say("done")];
    let mut place = Setup::new(scripts).open().await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(2).await;
            assert_eq!(open[0].always.as_deref(), Some("write(a)"));
            // It covers the other question that is open.
            desk.answer(&open[0], Answer::Always).unwrap();
            let open = desk.open(1).await;
            assert_eq!(open[0].call.arguments, write("b", "4"));
            desk.answer(&open[0], Answer::Deny { reason: String::new() }).unwrap();
        })
        .await;
    let words: Vec<&str> = decided(&events).iter().map(|(_, word, _)| *word).collect();
    assert_eq!(words, ["always", "always", "denied"]);
    assert_eq!(place.written(), [pair("a", "1"), pair("a", "2"), pair("a", "3")]);
    assert_eq!(place.questions.always(), ["write(a)"]);
    assert_eq!(world::rebuilt(&events).always.into_iter().collect::<Vec<_>>(), ["write(a)"]);
}

#[tokio::test]
async fn a_guarded_path_cannot_be_allowed_always() {
    let mut place = place(&[("guarded/a", "1")]).await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            assert_eq!(open[0].always, None);
            let refused = desk.answer(&open[0], Answer::Always);
            assert_eq!(refused, Err(AnswerError::NoAlways { id: open[0].id.clone() }));
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(decided(&events).len(), 1);
    assert!(place.questions.always().is_empty());
}

/// What was approved is not what the second call would do any more.
#[tokio::test]
async fn of_two_writes_to_one_file_the_second_is_asked_about_again() {
    let mut place = place(&[("a", "1"), ("a", "2"), ("b", "3")]).await;
    let (_, events) = place
        .turn(|desk| async move {
            for question in desk.open(3).await {
                desk.answer(&question, Answer::Approve).unwrap();
            }
            let again = desk.open(1).await;
            assert_eq!(again[0].preview.diff.as_deref(), Some("--- a\n-1\n+2"));
            desk.answer(&again[0], Answer::Deny { reason: String::new() }).unwrap();
        })
        .await;
    let ids = ["question-1", "question-2", "question-3", "question-4"].map(QuestionId::new);
    assert_eq!(asked(&events), ids, "the third is still true");
    assert_eq!(place.written(), [pair("a", "1"), pair("b", "3")]);
}

/// A call that is allowed when the message arrives, and denied or asked about by the time it runs.
#[tokio::test]
async fn a_permission_is_that_of_the_moment_in_which_the_call_runs() {
    for (target, runs) in [("denied/x", false), ("open/y", true), ("guarded/z", false)] {
        let link = ("link", serde_json::json!({"path": "open/x", "to": target}).to_string());
        let script = calls(&[link, ("write", write("open/x", "1"))]);
        let mut place = Setup::new([script, say("done")]).open().await;
        let (_, events) = place
            .turn(|desk| async move {
                if target.starts_with("guarded") {
                    let open = desk.open(1).await;
                    desk.answer(&open[0], Answer::Deny { reason: String::new() }).unwrap();
                }
            })
            .await;
        assert_eq!(asked(&events).len(), usize::from(target.starts_with("guarded")), "{target}");
        assert_eq!(place.written().len(), usize::from(runs), "{target}");
    }
}

#[tokio::test]
async fn a_call_that_needs_no_answer_runs_while_a_later_one_waits() {
    let mut place = place(&[("open/a", "1"), ("b", "2")]).await;
    let world = place.world.clone();
    place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            while world.written.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(place.written(), [pair("open/a", "1"), pair("b", "2")]);
}

#[tokio::test]
async fn a_reason_is_bounded() {
    let mut place = place(&[("a", "1")]).await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Deny { reason: "ü".repeat(1_000_000) }).unwrap();
        })
        .await;
    assert!(place.results(1).chars().count() < Confirmation::MAX_REASON + 200);
    let resolved = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolConfirmationResolved { decision: Confirmation::Denied { reason }, .. } => Some(reason.clone()),
        _ => None,
    });
    assert_eq!(resolved.unwrap().chars().count(), Confirmation::MAX_REASON + 1);
}
