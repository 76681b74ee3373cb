//! What a rule with `secret = true` matched, or a part of it, is in no event, no request and no call of an extension, wherever it is written
//! and at every chunking.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use flow::{
    CallAnswer, Callback, InputAnswer, OutputAnswer, OutputMode, ResultAnswer, StopReason, StreamKind, TagAnswer,
    TagPattern, TextAnswer, TextOptions, TextUnit, TurnStatus,
};
use rules::ContextMode;
use tidegate_kit::{CUTS, Plugin, Scene, Script, blocks, rule_set, text, tool};

const SECRET: &str = "CANARY-q7w8e9r0t1y2";

/// Matches the secret.
const GUARD: &str = "+++\ncondition = 'CANARY-[a-z0-9]{12}'\nsecret = true\nACTION\n+++\nNo keys.";
/// Matches a part of it before, and all of it in the same byte.
const NEIGHBOUR: &str = "+++\ncondition = ['CANARY-[a-z0-9]{4}', 'now CANARY-[a-z0-9]{12}']\nscope = [\"text\", \"thinking\", \"tool\"]\n\
                         interrupt = \"never\"\nrepeat = \"always\"\n+++\nA reminder.";

type Log = Arc<Mutex<Vec<String>>>;
type Answer<T, R> = Box<dyn Fn(T) -> Result<R, String> + Send + Sync>;

/// An extension with all callbacks, which keeps what they get.
fn listener(log: &Log) -> Plugin {
    fn note<T: Debug + 'static, R: 'static>(log: &Log, name: &'static str, answer: fn() -> R) -> Option<Answer<T, R>> {
        let log = Arc::clone(log);
        Some(Box::new(move |given| {
            log.lock().unwrap().push(format!("{name} {given:?}"));
            Ok(answer())
        }))
    }
    let callbacks = [
        Callback::InputMessages,
        Callback::PlainText(TextOptions { unit: TextUnit::Line, answer: true, thinking: true }),
        Callback::Tag(vec![TagPattern::Exact("note".into())]),
        Callback::LlmOutput(OutputMode::Observe),
        Callback::TtsrTriggered,
        Callback::ToolCall,
        Callback::ToolResult,
    ];
    Plugin {
        id: "listener",
        callbacks: callbacks.into_iter().map(|callback| (callback, 50)).collect(),
        input: note(log, "input", || InputAnswer::Pass),
        text: note(log, "text", || TextAnswer::Pass),
        tag: note(log, "tag", || TagAnswer::Keep),
        output: note(log, "output", OutputAnswer::default),
        ttsr: note(log, "ttsr", || ()),
        call: note(log, "call", || CallAnswer::Pass),
        result: note(log, "result", ResultAnswer::default),
        ..Plugin::default()
    }
}

/// Fails where four characters in a row of what makes the secret are in a text.
fn is_kept(what: &str, text: &str) {
    let own = SECRET.strip_prefix("CANARY-").unwrap();
    for part in (0..=own.len() - 4).map(|at| &own[at..at + 4]) {
        let around = |at: usize| text[text.floor_char_boundary(at.saturating_sub(200))..].chars().take(300);
        assert!(!text.contains(part), "{what}: {:?}", text.find(part).map(|at| around(at).collect::<String>()));
    }
}

/// Answers that contain the secret, each followed by one without it.
fn answers(cut: usize) -> Vec<(&'static str, Script)> {
    let (write, stop) = (tool("c1", "write_file"), StopReason::ToolUse);
    let say = |words: &str| text(words, cut);
    let call = |arguments: String| Script::Say(blocks(&[(write.clone(), &arguments)], cut, stop.clone()), Some(Ok(())));
    let thinking = [(StreamKind::Thinking, &*format!("I see, now {SECRET} and on")), (StreamKind::Text, "Here.")];
    vec![
        ("in text", say(&format!("It is here.\nThe key is now {SECRET} and more."))),
        ("at the end of text", say(&format!("The key: {SECRET}"))),
        ("in a section", say(&format!("So <note>it is {SECRET}</note>."))),
        ("in reasoning", Script::Say(blocks(&thinking, cut, StopReason::EndTurn), Some(Ok(())))),
        ("in arguments", call(format!(r#"{{"path":"a.txt","content":"one\nnow {SECRET}\n","n":1}}"#))),
        ("in the name of a file", call(format!(r#"{{"path":"{SECRET}.txt","content":"now CANARY-abcdef"}}"#))),
        ("spelled with escapes", call(r#"{"path":"a","content":"CANARY-\u0071\u0037w8e9r0t1y2"}"#.to_owned())),
    ]
}

#[tokio::test]
async fn a_secret_is_in_no_event_no_request_and_no_callback() {
    for action in ["action = \"block\"", "action = \"stop\"", "interrupt = \"always\"", "interrupt = \"never\""] {
        for context in [ContextMode::Discard, ContextMode::Keep, ContextMode::Rewind] {
            for cut in CUTS {
                let guard = GUARD.replace("ACTION", action);
                for (place, answer) in answers(cut) {
                    let label = format!("{place}, {action}, {context:?}, in pieces of {cut}");
                    let log = Log::default();
                    let rules = rule_set(&[("keys", &guard), ("near", NEIGHBOUR)], |all| all.context_mode = context);
                    let scripts = [answer, text("Fine.", cut), text("Fine.", cut)];
                    let mut scene = Scene::new(scripts, vec![listener(&log)], rules);
                    let (report, events) = scene.turn("go").await;
                    let stops = action.contains("stop");
                    assert_eq!(report.status == TurnStatus::Completed, !stops, "{label}: {:?}", report.status);
                    let records = events.iter().map(|event| record::json(event, "test").to_string());
                    is_kept(&format!("{label}: records"), &records.collect::<String>());
                    is_kept(&format!("{label}: events"), &format!("{events:?} {report:?}"));
                    let requests: Vec<_> = (0..scene.model.asked()).map(|number| scene.model.request(number)).collect();
                    is_kept(&format!("{label}: requests"), &format!("{requests:?}"));
                    scene.session.notified().await;
                    let told = log.lock().unwrap().join("\n");
                    assert!(told.contains("ttsr") && told.contains("[hidden]"), "{label}: {told}");
                    is_kept(&format!("{label}: callbacks"), &told);
                }
            }
        }
    }
}
