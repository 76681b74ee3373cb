//! The spans of turns: which there are, what is in them, and that every log line inside of them names its session and turn.
//!
//! A program of its own: whether anybody wants a span is found out once in a process, by the thread that first comes to it, so that a test
//! without a subscriber can keep one with a subscriber from getting it.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod cancel;
mod recorded;

use expect_test::expect;
use flow::{
    Callback, Delta, ErrorClass, InputAnswer, ModelError, OutputAnswer, OutputMode, StopReason, StreamKind, TextUnit,
    Usage,
};
use recorded::{Spans, logged, tree};
use tidegate_kit::{Plugin, Scene, Script, blocks, rule_set, say, tool};

/// An answer with its tokens, as a provider reports them.
fn counted(parts: &[(StreamKind, &str)], stop: StopReason) -> Script {
    let mut deltas = blocks(parts, usize::MAX, stop);
    let usage = Usage { input: Some(100), output: Some(7), cache_read: Some(60), cache_write: None };
    deltas.insert(deltas.len() - 1, Delta::Usage(usage));
    deltas[0] = Delta::Start { model: Some("script-1-2026".into()) };
    Script::Say(deltas, Some(Ok(())))
}

fn plugins() -> Vec<Plugin> {
    let failing = Plugin {
        id: "shaky",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Observe), 50)],
        output: Some(Box::new(|_| Err("the words of the model: SECRET".into()))),
        ..Plugin::default()
    };
    let notified = Plugin {
        id: "notes",
        callbacks: vec![
            (Callback::InputMessages, 50),
            (Callback::PlainText(TextUnit::Line.into()), 50),
            (Callback::TtsrTriggered, 50),
        ],
        yields: true,
        ..Plugin::default()
    };
    vec![failing, notified]
}

/// A turn that meets everything: a refused request, a rule that stops, tools that run, fail and are denied.
fn scene() -> Scene {
    let rules = rule_set(&[("hard", "+++\ncondition = \"FORBIDDEN\"\n+++\nNo.")], |_| {});
    let calls = [
        (StreamKind::Text, "Reading.\n"),
        (tool("c1", "read"), r#"{"path":"SECRET"}"#),
        (tool("c2", "locked"), "{}"),
        (tool("c3", "read"), r#"{"path":"a","path":"b"}"#),
    ];
    let busy =
        ModelError { code: Some("overloaded_error".into()), ..ModelError::new(ErrorClass::Transient, "busy: SECRET") };
    let scripts = [
        Script::Refuse(busy),
        counted(&[(StreamKind::Text, "SECRET and FORBIDDEN")], StopReason::EndTurn),
        counted(&calls, StopReason::ToolUse),
        counted(&[(StreamKind::Text, "Done.")], StopReason::EndTurn),
    ];
    Scene::new(scripts, plugins(), rules)
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_a_tree_of_spans() {
    let (spans, _guard) = Spans::keep();
    let (report, _) = scene().turn("SECRET").await;
    assert_eq!((report.text.as_str(), report.interrupts), ("Reading.\nDone.", 1));
    let tree = tree(&spans.take("the turn"));
    expect![[r#"
        turn cache_read_tokens=120 input_tokens=200 model="script-1" outcome="completed" output_tokens=14 provider="script" session="test" stop="end_turn" turn=1
          callback callback="on_input_messages" extension="notes" outcome="passed"
          step outcome="completed" step=1
            attempt attempt=1 error="overloaded_error" outcome="failed"
            attempt attempt=2 first_chunk_s=… outcome="interrupted" response_model="script-1-2026" rules="hard"
            attempt attempt=3 cache_read_tokens=60 first_chunk_s=… input_tokens=100 outcome="completed" output_tokens=7 response_model="script-1-2026" stop="tool_use"
              callback callback="on_plain_text" extension="notes" outcome="passed"
            callback callback="on_llm_output" error="returned_error" extension="shaky" outcome="error"
            tool call="c1" outcome="ok" tool="read"
            tool call="c2" error="denied" outcome="error" tool="locked"
            tool call="c3" error="invalid_arguments" outcome="error" tool="read"
          callback callback="ttsr_triggered" extension="notes" outcome="passed"
          step outcome="completed" step=2
            attempt attempt=1 cache_read_tokens=60 first_chunk_s=… input_tokens=100 outcome="completed" output_tokens=7 response_model="script-1-2026" stop="end_turn"
            callback callback="on_plain_text" extension="notes" outcome="passed"
            callback callback="on_llm_output" error="returned_error" extension="shaky" outcome="error"
    "#]].assert_eq(&tree);
    assert!(!tree.contains("SECRET"));
}

#[tokio::test(start_paused = true)]
async fn ends_of_other_kinds() {
    let (spans, _guard) = Spans::keep();
    let input = |answer: fn() -> InputAnswer| Plugin {
        id: "guard",
        callbacks: vec![(Callback::InputMessages, 50)],
        input: Some(Box::new(move |_| Ok(answer()))),
        ..Plugin::default()
    };
    let none = || rule_set(&[], |_| {});
    let refused = || Script::Refuse(ModelError::new(ErrorClass::Permanent, "no"));
    Scene::new([], vec![input(|| InputAnswer::Reject("no".into()))], none()).turn("a").await;
    Scene::new([], vec![input(|| InputAnswer::Reply("yes".into()))], none()).turn("a").await;
    Scene::new([refused()], Vec::new(), none()).turn("a").await;
    let stop = rule_set(&[("hard", "+++\ncondition = \"FORBIDDEN\"\naction = \"stop\"\n+++\nNo.")], |_| {});
    Scene::new([say("FORBIDDEN")], Vec::new(), stop).turn("a").await;
    let required = Plugin {
        id: "guard",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Rewrite), 50)],
        required: true,
        output: Some(Box::new(|_| Err("x".into()))),
        ..Plugin::default()
    };
    Scene::new([say("Fine.")], vec![required], none()).turn("a").await;
    let skipped = Plugin {
        id: "guard",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Observe), 50)],
        skipped: Some("open"),
        ..Plugin::default()
    };
    let late = Plugin {
        id: "late",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Observe), 40)],
        output: Some(Box::new(|_| Ok(OutputAnswer { replace: Some("x".into()), ..OutputAnswer::default() }))),
        ..Plugin::default()
    };
    Scene::new([say("Fine.")], vec![skipped, late], none()).turn("a").await;
    expect![[r#"
        turn model="script-1" outcome="rejected" provider="script" session="test" turn=1
          callback callback="on_input_messages" extension="guard" outcome="changed"
        turn model="script-1" outcome="completed" provider="script" session="test" turn=1
          callback callback="on_input_messages" extension="guard" outcome="changed"
          step outcome="completed" step=1
        turn error="permanent" model="script-1" outcome="failed" provider="script" session="test" turn=1
          step error="permanent" outcome="failed" step=1
            attempt attempt=1 error="permanent" outcome="failed"
        turn model="script-1" outcome="stopped_by_rule" provider="script" session="test" turn=1
          step outcome="stopped_by_rule" step=1
            attempt attempt=1 first_chunk_s=… outcome="interrupted" rules="hard"
        turn error="permanent" model="script-1" outcome="failed" provider="script" session="test" turn=1
          step error="required_extension" outcome="failed" step=1
            attempt attempt=1 first_chunk_s=… outcome="completed" stop="end_turn"
            callback callback="on_llm_output" error="returned_error" extension="guard" outcome="error"
        turn model="script-1" outcome="completed" provider="script" session="test" stop="end_turn" turn=1
          step outcome="completed" step=1
            attempt attempt=1 first_chunk_s=… outcome="completed" stop="end_turn"
            callback callback="on_llm_output" extension="guard" outcome="not_permitted"
            callback callback="on_llm_output" extension="late" outcome="ignored"
    "#]]
    .assert_eq(&tree(&spans.take("the turns")));
}

#[tokio::test(start_paused = true)]
async fn log_lines_name_their_session_and_turn() {
    for (filter, callback) in [("warn", false), ("info", true)] {
        let (lines, guard) = logged(filter);
        scene().turn("SECRET").await;
        drop(guard);
        let text = String::from_utf8(std::mem::take(&mut lines.lock().unwrap())).unwrap();
        let failed = text.lines().filter(|line| line.contains("the words of the model")).collect::<Vec<_>>();
        assert_eq!(failed.len(), 2, "{text}");
        for line in text.lines() {
            assert!(line.contains("turn{session=\"test\" turn=1 "), "{line}");
        }
        assert!(failed[1].contains("step{step=2}"), "{}", failed[1]);
        let registered = text.contains("the session has the extension plugin=shaky");
        assert_eq!(registered, callback, "{text}");
    }
}
