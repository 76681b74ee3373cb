//! The third case of the specification: a process that is killed while a question is open. The process is this test program.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tidegate::question::Answer;
use tidegate::{EventKind, TurnStatus};
use tidegate_kit::{ScriptedModel, calls, say};

use super::place::{Place, pending, write};

/// Tells the child where it works.
const FOLDER: &str = "TIDEGATE_KILLED_FOLDER";

/// The process to kill: a turn whose questions nobody answers, but for the first.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let place = Place::at(Path::new(&folder));
    let all = [write("one", "1"), write("two", "2"), write("three", "3")];
    let wanted: Vec<(&str, &str, &str)> =
        ["a", "b", "c"].into_iter().zip(&all).map(|(id, text)| (id, "write_file", text.as_str())).collect();
    let session = place.session(&ScriptedModel::new([calls(&wanted, usize::MAX)])).await;
    let mut turn = session.prompt("go");
    let mut first = None;
    while let Some(event) = turn.next().await {
        match event.kind {
            EventKind::ToolConfirmationRequested { question, .. } => {
                println!("asked {question}");
                first.get_or_insert(question);
            }
            EventKind::ToolCallResult { .. } => println!("ran"),
            _ => {}
        }
        if session.pending_questions().len() == 3 && place.read("answer") == "first" {
            session.answer(first.as_ref().unwrap(), Answer::Approve, "Ada").unwrap();
        }
    }
}

fn start(place: &Place) -> Child {
    let arguments = ["confirmations::killed::child", "--exact", "--nocapture", "--quiet"];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(FOLDER, place.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills the child when it has printed so many lines that begin with `word`.
fn kill_after(place: &Place, word: &str, count: usize) {
    let mut child = start(place);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.filter(|line| line.contains(word)).take(count).count(), count);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_questions_of_a_killed_process_are_asked_again() {
    let place = Place::new("");
    kill_after(&place, "asked question-", 3);
    let session = place.session(&ScriptedModel::new([say("Done.")])).await;
    assert!(session.pending_questions().is_empty(), "nothing is asked before the session is resumed");
    let turn = session.resume();
    let open = pending(&session, 3).await;
    let ids: Vec<&str> = open.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids, ["question-1", "question-2", "question-3"]);
    for question in &open {
        session.answer(&question.id, Answer::Approve, "Ada").unwrap();
    }
    let report = turn.report().await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
    assert_eq!(["one", "two", "three"].map(|name| place.read(name)), ["1", "2", "3"]);
    place.close(session).await;
}

/// What had run is not run again, and what had not is asked about.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_has_run_keeps_its_result() {
    let place = Place::new("");
    place.put("answer", "first");
    kill_after(&place, "ran", 1);
    place.put("one", "changed since");
    let model = ScriptedModel::new([say("Done.")]);
    let session = place.session(&model).await;
    let turn = session.resume();
    for question in pending(&session, 2).await {
        session.answer(&question.id, Answer::Approve, "Ada").unwrap();
    }
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    assert_eq!(["one", "two", "three"].map(|name| place.read(name)), ["changed since", "2", "3"]);
    assert_eq!(model.request(0).last().unwrap().1.matches("created").count(), 3);
    place.close(session).await;
}
