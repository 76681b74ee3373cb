//! What a session keeps of what extensions take out of it: the cases of `tests/corpus/kept`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the count of the corpus")]

mod case;
mod place;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use case::{Case, File};
use flow::{Event, EventKind, Message, Part};
use place::{Place, listed, printed};
use tidegate::{Session, TurnReport};
use tidegate_kit::{CUTS, ScriptedModel, say};

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/kept");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        toml::from_str::<File>(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display())).case
    };
    files.iter().flat_map(read).collect()
}

/// What the turns of a case have left behind.
struct Run {
    place: Place,
    /// The messages that joined the conversation in each turn.
    kept: Vec<Vec<String>>,
    reports: Vec<TurnReport>,
    events: Vec<Event>,
    /// The conversation in the process that had the turns, but for the words that are the provider's alone.
    history: String,
    /// What the model was sent in the turns, but for signed reasoning.
    sent: String,
    /// What it is sent by a process that continues the session, which is tried where the answers are not cut.
    resumed: String,
}

async fn run(case: &Case, keep: &str, cut: usize) -> Run {
    let place = Place::new(case, keep);
    let scripts = case.scripts(cut);
    let model = if case.prefill { ScriptedModel::going_on(scripts) } else { ScriptedModel::new(scripts) };
    let session = place.session(&model).await;
    let mut events = session.subscribe();
    let (mut kept, mut reports, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for turn in &case.turn {
        let before = session.history().len();
        let mut running = session.prompt(turn.input.as_str());
        let mut shown = String::new();
        while let Some(event) = running.next().await {
            if let EventKind::CognitionOutDelta { text, .. } = &event.kind {
                shown.push_str(text);
            }
            if turn.cancel && shown == turn.text {
                session.cancel();
            }
        }
        reports.push(running.report().await);
        kept.push(listed(&session.history()[before..]));
    }
    let history = seen(&session.history());
    close(session).await;
    while let Some(event) = events.next().await {
        all.push(event);
    }
    let sent = model.prompts.lock().unwrap().iter().map(|prompt| seen(&prompt.messages)).collect();
    let resumed = if cut == usize::MAX { resume(case, &place).await } else { String::new() };
    Run { place, kept, reports, events: all, history, sent, resumed }
}

/// Another process continues the session: what the model is sent then.
async fn resume(case: &Case, place: &Place) -> String {
    let again = ScriptedModel::new([say("Done.")]);
    let session = place.session(&again).await;
    let report = session.prompt("Go on.").report().await;
    assert_eq!(report.text, "Done.", "{}: {:?}", case.name, report.status);
    close(session).await;
    let prompts = again.prompts.lock().unwrap();
    let messages = prompts.iter().flat_map(|prompt| &prompt.messages);
    assert!(messages.clone().count() > case.turn.len(), "{}: it continues nothing", case.name);
    format!("{:?}", messages.collect::<Vec<_>>())
}

async fn close(session: Session) {
    session.close();
    session.closed().await;
}

/// All of the messages but what only the provider gets that has signed it.
fn seen(messages: &[Arc<Message>]) -> String {
    let part = |part: &Part| part.seen_thinking().map_or_else(|| format!("{part:?}"), str::to_owned);
    messages.iter().flat_map(|message| &message.parts).map(part).collect()
}

fn has<'w>(text: &str, words: &'w BTreeSet<String>) -> Vec<&'w String> {
    words.iter().filter(|word| text.contains(word.as_str())).collect()
}

#[tokio::test]
async fn what_was_taken_out_is_nowhere() {
    let (mut count, mut wrong) = (0, Vec::new());
    for case in cases() {
        let words = case.words();
        assert_eq!(words.is_empty(), case.unsaid, "{}: words to take out", case.name);
        for cut in CUTS {
            let at = format!("{}, cut {cut}", case.name);
            let run = run(&case, "shown", cut).await;
            for (number, turn) in case.turn.iter().enumerate() {
                let report = &run.reports[number];
                let status = turn.status.as_deref().unwrap_or("completed");
                assert_eq!(report.status.as_str(), status, "{at}: {:?}", report.status);
                let text = if report.status.as_str() == "completed" { &turn.text } else { "" };
                if report.text != *text {
                    wrong.push(format!("{at}:\n  expected {text:?}\n  shown {:?}", report.text));
                }
                if run.kept[number] != turn.kept {
                    wrong.push(format!("{at}:\n  expected {:#?}\n  kept {:#?}", turn.kept, run.kept[number]));
                }
            }
            let none: [&String; 0] = [];
            assert_eq!(has(&printed(&run.events), &words), none, "{at}: events");
            assert_eq!(has(&run.history, &words), none, "{at}: the conversation");
            assert_eq!(has(&run.sent, &words), none, "{at}: requests");
            assert_eq!(has(&run.place.asked().concat(), &words), none, "{at}: questions");
            assert_eq!(run.place.asked().is_empty(), case.asks.is_none(), "{at}: {:?}", run.place.asked());
            for (name, text) in &case.left {
                assert_eq!(fs::read_to_string(run.place.path().join(name)).unwrap(), *text, "{at}: {name}");
            }
            assert_eq!(has(&run.resumed, &words), none, "{at}: requests of a process that continues");
            assert_eq!(run.place.files_with(&case, &words), [""; 0], "{at}: files");
            count += 1;
        }
        if !case.unsaid {
            let original = run(&case, "original", usize::MAX).await;
            assert!(!original.place.files_with(&case, &words).is_empty(), "{}: the search finds nothing", case.name);
            assert!(!has(&printed(&original.events), &words).is_empty(), "{}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 19 * CUTS.len(), "{count} runs");
    println!("{count} runs");
}
