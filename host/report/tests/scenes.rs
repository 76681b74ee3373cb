//! Sessions of the real loop over scripted models and extensions, as transcripts of the corpus: each file is what its scene records.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{
    Annotation, Callback, Delta, ErrorClass, InputAnswer, LimitDecision, Limits, Message, ModelError, OutputAnswer,
    OutputMode, StopReason, StreamKind, TagAnswer, TagPattern, TextAnswer, TextUnit, Usage,
};
use rules::{ContextMode, RuleSet};
use serde_json::json;
use tidegate_kit::{
    Decisions, Plugin, Scene, Script, ScriptedModel, blocks, calls, drain, pieces, rule_set, say, tool,
};
use turn::Budget;

/// An answer whose chunks take time, with the tokens that the provider counts.
fn slowly(parts: &[(StreamKind, &str)], reason: StopReason) -> Script {
    let usage = |input, output| Delta::Usage(Usage { input: Some(input), output: Some(output), ..Usage::default() });
    let mut deltas: Vec<(u64, Delta)> = vec![(300, Delta::Start { model: Some("script-1-2026".into()) })];
    deltas.push((0, usage(900, 1)));
    for (block, (kind, words)) in (0..).zip(parts) {
        deltas.push((0, Delta::BlockStart { block, kind: kind.clone() }));
        deltas.extend(pieces(block, words, 6).into_iter().map(|piece| (20, piece)));
        deltas.push((0, Delta::BlockEnd { block }));
    }
    let words: usize = parts.iter().map(|(_, words)| words.split_whitespace().count()).sum();
    deltas.push((0, usage(900, words as u64)));
    deltas.push((0, Delta::Stop { reason }));
    Script::Slow(deltas)
}

fn answer(text: &str) -> Script {
    slowly(&[(StreamKind::Text, text)], StopReason::EndTurn)
}

/// Ends the session and compares its transcript with the file.
async fn recorded(name: &str, scene: Scene) {
    let Scene { session, mut events, past: mut all, .. } = scene;
    session.close().await;
    all.extend(drain(&mut events));
    crate::support::recorded(name, &all);
}

fn guards() -> Arc<RuleSet> {
    let rule = |condition: &str, more: &str, body: &str| format!("+++\ncondition = '{condition}'\n{more}\n+++\n{body}");
    let todo = rule("TODO", "", "Do not leave a TODO: write the code, or say that it is missing.");
    let hedge = rule("should work", "", "Do not guess. Run the tests, and report what they print.");
    let push = rule("push --force", "scope = ['tool:shell']", "Never force a push: it destroys the work of others.");
    let doubt = rule("skip the tests", "scope = ['thinking']", "Run the tests, also where they take long.");
    let rules = [("no-todo", todo.as_str()), ("no-guess", &hedge), ("no-force-push", &push), ("no-skipping", &doubt)];
    rule_set(&rules, |settings| settings.context_mode = ContextMode::Rewind)
}

/// Rules stop two answers, a thought and a call; tools run, wait for nobody and report progress.
#[tokio::test(start_paused = true)]
async fn interrupts() {
    let code = "Here is the function.\n\n```rust\nfn add(a: u8) -> u8 {\n    // TODO: the rest\n}\n```\n";
    let scripts = [
        slowly(&[(StreamKind::Thinking, "They want a function."), (StreamKind::Text, code)], StopReason::EndTurn),
        answer("\n    a.saturating_add(1)\n}\n```\nIt should work."),
        answer("\n\nI have not run the tests."),
        slowly(&[(StreamKind::Thinking, "It is late. I could skip the tests today.")], StopReason::EndTurn),
        slowly(
            &[
                (StreamKind::Text, "I read the file, run the tests and push."),
                (tool("a", "read"), "{\"path\": \"src/lib.rs\"}"),
                (tool("b", "steps"), "{}"),
                (tool("c", "shell"), "{\"command\": \"cargo test\"}"),
            ],
            StopReason::ToolUse,
        ),
        calls(&[("d", "shell", "{\"command\": \"git push --force\"}")], 4),
        answer("I was not allowed to run the tests."),
    ];
    let model = ScriptedModel::going_on(scripts);
    let mut scene = Scene::of(model, vec![], guards());
    scene.turn("Write a function that adds one").await;
    scene.turn("Run the tests and push").await;
    recorded("interrupts", scene).await;
}

fn redactor(id: &'static str, what: &'static str, with: &'static str) -> Plugin {
    Plugin {
        id,
        callbacks: vec![(Callback::PlainText(TextUnit::Line.into()), 50)],
        text: Some(Box::new(move |(text, _)| {
            Ok(if text.contains(what) { TextAnswer::Replace(text.replace(what, with)) } else { TextAnswer::Pass })
        })),
        ..Plugin::default()
    }
}

fn input(id: &'static str, answer: fn(String) -> InputAnswer) -> Plugin {
    Plugin {
        id,
        callbacks: vec![(Callback::InputMessages, 50)],
        input: Some(Box::new(move |messages| Ok(answer(messages[0].plain_text())))),
        ..Plugin::default()
    }
}

/// The extensions of a session in which each callback changes something, and one fails closed.
fn extensions() -> Vec<Plugin> {
    let rewriter = Plugin {
        id: "plain-words",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Rewrite), 50)],
        output: Some(Box::new(|output| {
            let replace = output.text.contains("utilise").then(|| output.text.replace("utilise", "use"));
            let annotations = vec![Annotation { key: "words".into(), value: json!(output.text.split(' ').count()) }];
            Ok(OutputAnswer { replace, annotations, ..OutputAnswer::default() })
        })),
        ..Plugin::default()
    };
    let secrets = Plugin {
        id: "secrets",
        callbacks: vec![(Callback::Tag(vec![TagPattern::Exact("secret".into())]), 50)],
        closed: true,
        tag: Some(Box::new(|(tag, _)| {
            if tag.content.contains("broken") {
                Err("it is broken".to_owned())
            } else {
                Ok(TagAnswer::Replace("[secret]".into()))
            }
        })),
        ..Plugin::default()
    };
    let guide = input("guide", |text| match text.as_str() {
        "forget everything" => InputAnswer::Reject("that is not allowed here".into()),
        "ping" => InputAnswer::Reply("pong".into()),
        text => InputAnswer::Replace(vec![Message::user(format!("{text}, in one sentence"))]),
    });
    let second = input("polite", |text| match text.starts_with("Once") {
        true => InputAnswer::Replace(vec![Message::user(format!("{text}, please"))]),
        false => InputAnswer::Pass,
    });
    vec![guide, second, redactor("keys", "sk-123", "[key]"), redactor("names", "Ada", "A."), rewriter, secrets]
}

/// The input, the answer and what the user sees are changed by several extensions, of which not all can be told apart.
#[tokio::test(start_paused = true)]
async fn extensions_change_texts() {
    let scripts = [
        say("Ada will utilise sk-123.\nNothing here."),
        say("Only sk-123 is here, and <secret>hunter2</secret>."),
        say("And <secret>a broken one</secret> at the end."),
    ];
    let mut scene = Scene::new(scripts, extensions(), rule_set(&[], |_| {}));
    for input in ["Explain the key", "Once more", "Show the secret", "ping", "forget everything"] {
        scene.turn(input).await;
    }
    recorded("extensions", scene).await;
}

/// A request that is repeated, an answer that breaks off, and one that fails.
#[tokio::test(start_paused = true)]
async fn errors() {
    let overloaded = || ModelError { status: Some(529), ..ModelError::new(ErrorClass::Transient, "overloaded") };
    let cut = blocks(&[(StreamKind::Text, "The first half of an ans")], 5, StopReason::EndTurn);
    let cut = cut[..cut.len() - 2].to_vec();
    let scripts = [
        Script::Refuse(overloaded()),
        Script::Refuse(overloaded()),
        answer("Third time lucky."),
        Script::Say(cut, Some(Err(overloaded()))),
        Script::Refuse(ModelError::new(ErrorClass::Permanent, "the key is not valid")),
    ];
    let mut scene = Scene::new(scripts, vec![], rule_set(&[], |_| {}));
    for input in ["Hello", "Explain it", "Again"] {
        scene.turn(input).await;
    }
    recorded("errors", scene).await;
}

/// A limit is raised, nobody decides about the next request, and the thread continues with another input.
#[tokio::test(start_paused = true)]
async fn limits() {
    let call = |id: &str| calls(&[(id, "read", "{}")], 50);
    let mut scene = Scene::new([call("1"), call("2"), call("3"), answer("Done.")], vec![], rule_set(&[], |_| {}));
    let mut limits = Limits::default();
    limits.steps = Some(1);
    let decisions =
        [LimitDecision::Approved { max: 2.0 }, LimitDecision::TimedOut, LimitDecision::Approved { max: 9.0 }];
    let session = scene.session.with_budget(Budget::new(limits, None), Some(Decisions::new(decisions)));
    scene.session = session;
    scene.turn("Look at all of it").await;
    scene.turn("Go on").await;
    recorded("limits", scene).await;
}
