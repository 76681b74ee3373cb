//! Questions about calls of the built-in tools, end to end: front ends, the operator's settings, a process that is killed.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and the process to kill reports"
)]

mod killed;
mod place;

use flow::{Event, SuspendReason};
use place::{Place, decisions, edit, pending, write};
use tidegate::question::{Answer, AnswerError, EditError};
use tidegate::{EventKind, TurnStatus};
use tidegate_kit::{ScriptedModel, calls, say};

/// The first and the second case of the specification, with the tools that change files.
#[tokio::test(flavor = "multi_thread")]
async fn what_front_ends_answer_is_what_happens() {
    let place = Place::new("\"write_file(secret/**)\" = \"deny\"\n");
    place.rule("no-todo", "+++\ncondition = 'TODO'\nscope = 'tool'\n+++\nWrite no such notes.");
    let wanted = [write("one", "1"), write("two", "2"), write("three", "3")];
    let wanted: Vec<(&str, &str, &str)> = ["a", "b", "c"]
        .into_iter()
        .zip(&wanted)
        .map(|(id, arguments)| (id, "write_file", arguments.as_str()))
        .collect();
    let model = ScriptedModel::new([calls(&wanted, usize::MAX), say("Done.")]);
    let session = place.session(&model).await;
    let (mut one, mut two) = (session.subscribe(), session.subscribe());
    let turn = session.prompt("go");
    let open = pending(&session, 3).await;
    assert_eq!(open[1].preview.notes, ["creates the file `two`"]);
    session.answer(&open[1].id, Answer::Deny { reason: "not that file".into() }, "Ada").unwrap();
    let late = session.answer(&open[1].id, Answer::Approve, "Bob").unwrap_err();
    assert_eq!(late, AnswerError::NotOpen { id: open[1].id.clone(), by: Some("Ada".into()) });
    let edit = |arguments: String| match session.answer(&open[2].id, Answer::Edit { arguments }, "Bob") {
        Err(AnswerError::Edit { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(edit(write("three", "TODO")), EditError::Rules { .. }));
    assert!(matches!(edit(write("secret/three", "x")), EditError::Denied { .. }));
    assert!(matches!(edit("{\"path\": \"three\", \"text\": \"x\"}".into()), EditError::Schema { .. }));
    session.answer(&open[2].id, Answer::Edit { arguments: write("three", "edited") }, "Bob").unwrap();
    session.answer(&open[0].id, Answer::Approve, "Ada").unwrap();
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    assert_eq!(["one", "two", "three"].map(|name| place.read(name)), ["1", "", "edited"]);
    let results = &model.request(1).last().unwrap().1.clone();
    for part in ["created `one`", "the user denied this call: not that file", "The user edited the arguments"] {
        assert!(results.contains(part), "{part}: {results}");
    }
    place.close(session).await;
    let collect = async |events: &mut tidegate::Subscription| {
        let mut all: Vec<Event> = Vec::new();
        while let Some(event) = events.next().await {
            all.push(event);
        }
        decisions(&all)
    };
    let seen = collect(&mut one).await;
    assert_eq!(seen, collect(&mut two).await, "both front ends have the same state");
    assert_eq!(seen, ["question-2 denied Ada", "question-3 edited Bob", "question-1 approved Ada"]);
}

/// The second is about the file as the first has left it.
#[tokio::test(flavor = "multi_thread")]
async fn two_edits_of_one_file_in_one_message() {
    // The middle line is far enough from both: one change does not show in the diff of the other.
    let long = (1..=40).map(|line| format!("line {line}\n")).collect::<String>();
    for (second, asked_again) in [("line 1\n", true), ("line 40\n", false)] {
        let place = Place::new("");
        place.put("notes", &long);
        let (first, second) = (edit("notes", "line 2\n", "LINE 2\n"), edit("notes", second, "CHANGED\n"));
        let wanted = [("a", "edit_file", first.as_str()), ("b", "edit_file", second.as_str())];
        let session = place.session(&ScriptedModel::new([calls(&wanted, usize::MAX), say("Done.")])).await;
        let turn = session.prompt("go");
        for question in pending(&session, 2).await {
            session.answer(&question.id, Answer::Approve, "Ada").unwrap();
        }
        if asked_again {
            let again = pending(&session, 1).await;
            assert_eq!(again[0].id.as_str(), "question-3");
            assert!(again[0].preview.diff.as_ref().unwrap().contains(" LINE 2\n"), "{:?}", again[0].preview);
            session.answer(&again[0].id, Answer::Approve, "Ada").unwrap();
        }
        assert_eq!(turn.report().await.status, TurnStatus::Completed);
        let text = place.read("notes");
        assert!(text.contains("LINE 2\n") && text.contains("CHANGED\n"), "{text}");
        place.close(session).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_allowed_always_runs_unasked_also_in_the_next_process() {
    let place = Place::new("");
    let shell = |id: &'static str, command: &str| (id, serde_json::json!({"command": command}).to_string());
    let turn = |all: &[(&str, String)]| {
        let all: Vec<(&str, &str, &str)> = all.iter().map(|(id, text)| (*id, "shell", text.as_str())).collect();
        [calls(&all, usize::MAX), say("Done.")]
    };
    let session = place.session(&ScriptedModel::new(turn(&[shell("1", "echo x >> made")]))).await;
    let running = session.prompt("go");
    let open = pending(&session, 1).await;
    assert_eq!(open[0].always.as_deref(), Some("shell(echo x >> made)"));
    session.answer(&open[0].id, Answer::Always, "Ada").unwrap();
    running.report().await;
    place.close(session).await;

    let again = turn(&[shell("1", "echo x >> made"), shell("2", "echo x >> made; echo y >> made")]);
    let session = place.session(&ScriptedModel::new(again)).await;
    assert_eq!(session.allowed_always(), ["shell(echo x >> made)"]);
    let running = session.prompt("again");
    let open = pending(&session, 1).await;
    assert!(open[0].call.arguments.contains("echo y"), "{open:?}");
    session.answer(&open[0].id, Answer::Deny { reason: String::new() }, "Ada").unwrap();
    running.report().await;
    assert_eq!(place.read("made"), "x\nx\n");
    place.close(session).await;
}

/// Neither a person's `always` nor the clock allows what other programs execute.
#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_path_is_asked_about_each_time() {
    let place = Place::new("[tools.question]\ntimeout_ms = 50\non_timeout = \"allow\"\n");
    let (hook, plain) = (write(".git/hooks/pre-commit", "x"), write("plain", "x"));
    let wanted = [("a", "write_file", hook.as_str()), ("b", "write_file", plain.as_str())];
    let session = place.session(&ScriptedModel::new([calls(&wanted, usize::MAX), say("Done.")])).await;
    let mut turn = session.prompt("go");
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    let mut decided = decisions(&events);
    decided.sort();
    assert_eq!(decided, ["question-1 timed_out ", "question-2 timed_out "]);
    assert_eq!((place.read(".git/hooks/pre-commit"), place.read("plain")), (String::new(), "x".to_owned()));
    let always: Vec<Option<String>> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolConfirmationRequested { always, .. } => Some(always.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(always, [None, Some("write_file(plain)".to_owned())]);
    place.close(session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_times_out_is_denied_unless_the_operator_says_otherwise() {
    let place = Place::new("[tools.question]\ntimeout_ms = 50\n");
    let plain = write("plain", "x");
    let model = ScriptedModel::new([calls(&[("a", "write_file", &plain)], usize::MAX), say("Done.")]);
    let session = place.session(&model).await;
    assert_eq!(session.prompt("go").report().await.status, TurnStatus::Completed);
    assert_eq!(place.read("plain"), "");
    assert!(model.request(1).last().unwrap().1.contains("nobody has answered"));
    place.close(session).await;
}

/// The end of a session answers no question: the next process asks it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_closed_while_a_person_is_asked_is_suspended() {
    let place = Place::new("");
    let plain = write("plain", "x");
    let session = place.session(&ScriptedModel::new([calls(&[("a", "write_file", &plain)], usize::MAX)])).await;
    let turn = session.prompt("go");
    pending(&session, 1).await;
    session.close();
    let status = turn.report().await.status;
    assert!(matches!(status, TurnStatus::Suspended { reason: SuspendReason::Approval, .. }), "{status:?}");
    session.closed().await;
    let session = place.session(&ScriptedModel::new([say("Done.")])).await;
    assert_eq!(session.interrupted().map(|left| left.questions), Some(1), "front ends learn that it can be continued");
    let turn = session.resume();
    let open = pending(&session, 1).await;
    session.answer(&open[0].id, Answer::Approve, "Ada").unwrap();
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    assert_eq!(place.read("plain"), "x");
    place.close(session).await;
    // A cancel is a cancel, also right before the end.
    let session =
        place.session(&ScriptedModel::new([calls(&[("b", "write_file", &write("plain", "y"))], usize::MAX)])).await;
    let turn = session.prompt("go");
    pending(&session, 1).await;
    session.cancel();
    session.close();
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
}
