//! Reasoning on its way to the user: extensions that register for it see it in whole units, at every chunking.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};

use flow::{Callback, Event, EventKind, Part, StopReason, StreamKind, TextAnswer, TextOptions, TextStream, TextUnit};
use tidegate_kit::{CUTS, Plugin, Scene, Script, blocks, rule_set, shown};

/// Two blocks of reasoning around text, and one that ends without a line end. `for|bidden` reaches over two blocks.
const BLOCKS: [(StreamKind, &str); 5] = [
    (StreamKind::Thinking, "one\ntwo for"),
    (StreamKind::Thinking, "bear\nthree\n"),
    (StreamKind::Text, "The an"),
    (StreamKind::Thinking, "four"),
    (StreamKind::Text, "swer.\n"),
];

fn reasoned(events: &[Event]) -> String {
    let delta = |event: &Event| match &event.kind {
        EventKind::CognitionReasoningDelta { text } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

type Seen = Arc<Mutex<Vec<String>>>;

/// Puts brackets around each unit, and notes what it was given.
fn bracketing(unit: TextUnit, answer: bool, seen: &Seen) -> Plugin {
    let seen = Arc::clone(seen);
    Plugin {
        id: "brackets",
        callbacks: vec![(Callback::PlainText(TextOptions { unit, answer, thinking: true }), 50)],
        text: Some(Box::new(move |(text, place)| {
            let stream = if place.stream == TextStream::Thinking { "thinking" } else { "answer" };
            seen.lock().unwrap().push(format!("{stream} {} {} {text:?}", place.at.attempt, place.unit));
            Ok(TextAnswer::Replace(format!("[{text}]")))
        })),
        ..Plugin::default()
    }
}

#[tokio::test]
async fn units_of_reasoning_end_with_their_block_at_every_chunking() {
    // Holds `for` back until what follows it has ruled the match out, which is in the next block.
    let held = [("r", "+++\ncondition = \"forbidden\"\nscope = \"thinking\"\n+++\nNo.")];
    for rules in [&held[..], &[]] {
        for cut in CUTS {
            let script = Script::Say(blocks(&BLOCKS, cut, StopReason::EndTurn), Some(Ok(())));
            let seen = Seen::default();
            let plugins = vec![bracketing(TextUnit::Line, true, &seen)];
            let mut scene = Scene::new([script], plugins, rule_set(rules, |_| {}));
            let (report, events) = scene.turn("go").await;
            assert_eq!(reasoned(&events), "[one\n][two for][bear\n][three\n][four]", "{cut}");
            assert_eq!(shown(&events), "[The answer.\n]", "{cut}");
            assert_eq!(report.text, "[The answer.\n]");
            let seen = seen.lock().unwrap().clone();
            let of = |stream: &str| seen.iter().filter(|line| line.starts_with(stream)).cloned().collect::<Vec<_>>();
            assert_eq!(
                of("thinking"),
                [
                    "thinking 1 0 \"one\\n\"",
                    "thinking 1 1 \"two for\"",
                    "thinking 1 2 \"bear\\n\"",
                    "thinking 1 3 \"three\\n\"",
                    "thinking 1 4 \"four\"",
                ],
                "{cut}"
            );
            assert_eq!(of("answer"), ["answer 1 0 \"The answer.\\n\""], "{cut}");
            let kept = scene.session.history();
            let thoughts = kept.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
                Part::Thinking { text, .. } => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(thoughts.collect::<String>(), "one\ntwo forbear\nthree\nfour", "the conversation keeps it");
        }
    }
}

#[tokio::test]
async fn an_extension_that_registers_for_reasoning_alone_does_not_see_the_answer() {
    let script = Script::Say(blocks(&BLOCKS, 3, StopReason::EndTurn), Some(Ok(())));
    let seen = Seen::default();
    let mut scene = Scene::new([script], vec![bracketing(TextUnit::Whole, false, &seen)], rule_set(&[], |_| {}));
    let (_, events) = scene.turn("go").await;
    assert_eq!(reasoned(&events), "[one\ntwo for][bear\nthree\n][four]");
    assert_eq!(shown(&events), "The answer.\n");
}

#[tokio::test]
async fn reasoning_that_was_not_checked_is_withheld() {
    for cut in CUTS {
        let script = Script::Say(blocks(&BLOCKS, cut, StopReason::EndTurn), Some(Ok(())));
        let guard = Plugin {
            id: "guard",
            closed: true,
            callbacks: vec![(
                Callback::PlainText(TextOptions { unit: TextUnit::Line, answer: false, thinking: true }),
                50,
            )],
            text: Some(Box::new(
                |(text, _)| {
                    if text.contains("two") { Err("it fails".into()) } else { Ok(TextAnswer::Pass) }
                },
            )),
            ..Plugin::default()
        };
        let mut scene = Scene::new([script], vec![guard], rule_set(&[], |_| {}));
        let (_, events) = scene.turn("go").await;
        assert_eq!(reasoned(&events), "one\n[withheld: guard did not check this]bear\nthree\nfour", "{cut}");
    }
}

#[tokio::test]
async fn reasoning_of_an_attempt_that_is_discarded_does_not_reach_the_next() {
    let wrong = [(StreamKind::Thinking, "so\nforbidden"), (StreamKind::Text, "x")];
    let rules = [("r", "+++\ncondition = \"forbidden\"\nscope = \"thinking\"\n+++\nNo.")];
    for cut in CUTS {
        let say = |of: &[(StreamKind, &str)]| Script::Say(blocks(of, cut, StopReason::EndTurn), Some(Ok(())));
        let seen = Seen::default();
        let plugins = vec![bracketing(TextUnit::Line, true, &seen)];
        let mut scene = Scene::new([say(&wrong), say(&BLOCKS)], plugins, rule_set(&rules, |_| {}));
        let (report, events) = scene.turn("go").await;
        assert_eq!(report.interrupts, 1);
        assert_eq!(reasoned(&events), "[so\n][one\n][two for][bear\n][three\n][four]", "{cut}");
        assert_eq!(seen.lock().unwrap()[1], "thinking 2 0 \"one\\n\"", "{cut}");
    }
}
