//! The shown stream has no byte that a rule stopped or that an extension took out: random answers, rules, extensions and chunkings, in which
//! such bytes are of alphabets of their own.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{
    Annotation, CallAnswer, Callback, Event, OutputAnswer, OutputMode, ResultAnswer, StopReason, StreamKind,
    TextAnswer, TextOptions, TextUnit,
};
use record::{Shown, json};
use rules::{OnBudget, RepeatMode, RuleSet};
use tidegate_kit::{Plugin, RANDOM, Random, Scene, Script, blocks, rule_set, shown, tool};

/// Only what rules stop has these.
const STOPPED: [char; 3] = ['Ξ', 'Ψ', 'Ω'];

/// Only what extensions take out, or fail at, has these.
const TAKEN: [char; 3] = ['♠', '♣', '♥'];

fn has(text: &str, alphabet: [char; 3]) -> bool {
    text.contains(alphabet)
}

/// One or two rules, of which each stops every word that begins with `Ξ` and ends with `Ω`.
fn rules(random: &mut Random) -> Arc<RuleSet> {
    let mut written = Vec::new();
    for (name, condition) in [("first", "Ξ[ΞΨΩ]{0,6}Ω"), ("second", "Ξ[ΞΨΩ]*Ω"), ("third", "(?-i)ΞΨ{0,3}[ΞΨΩ]*Ω")]
    {
        if written.len() < 2 && (name == "third" && written.is_empty() || random.once_in(2)) {
            let action = random.pick(&["interrupt", "interrupt", "stop"]);
            let context = random.pick(&["discard", "keep"]);
            let text = format!(
                "+++\ncondition = '{condition}'\naction = \"{action}\"\ncontext = \"{context}\"\n\
                 scope = \"text, thinking, tool\"\n+++\nDo not write it."
            );
            written.push((name, text));
        }
    }
    let written: Vec<(&str, &str)> = written.iter().map(|(name, text)| (*name, text.as_str())).collect();
    rule_set(&written, |settings| {
        settings.repeat_mode = RepeatMode::Always;
        settings.on_budget = OnBudget::Stop;
    })
}

/// Takes its alphabet out of all that it is given, or fails, and quotes what it was given in all that is not for the user. The words of one whose
/// failure ends the turn are left out where it runs, in the sandbox.
fn guard(random: &mut Random) -> Plugin {
    let fails = random.once_in(3);
    let clean = |text: &str| text.replace(TAKEN, "*");
    let quote = |text: &str| vec![Annotation { key: "was".into(), value: text.into() }];
    let mut callbacks = vec![
        (Callback::PlainText(TextOptions { thinking: true, ..TextUnit::Line.into() }), 50),
        (Callback::ToolCall, 50),
        (Callback::ToolResult, 50),
    ];
    if random.once_in(3) {
        callbacks.push((Callback::LlmOutput(OutputMode::Rewrite), 50));
    }
    Plugin {
        id: "guard",
        callbacks,
        closed: true,
        keeps_shown: random.once_in(2),
        text: Some(Box::new(move |(text, _)| match has(&text, TAKEN) {
            true if fails => Err(format!("cannot read {text}")),
            true => Ok(TextAnswer::Replace(clean(&text))),
            false => Ok(TextAnswer::Pass),
        })),
        output: Some(Box::new(move |output| {
            Ok(OutputAnswer {
                replace: Some(clean(&output.text)),
                annotations: quote(&output.text),
                ..OutputAnswer::default()
            })
        })),
        call: Some(Box::new(move |asked| {
            let arguments = asked.call.arguments;
            Ok(match has(&arguments, TAKEN) {
                true if fails => CallAnswer::Deny { reason: format!("not {arguments}"), shown: Some("{}".into()) },
                true => CallAnswer::Replace(clean(&arguments)),
                false => CallAnswer::Pass,
            })
        })),
        result: Some(Box::new(move |result| {
            let text = result.content.join("\n");
            Ok(ResultAnswer {
                replace: Some((vec![clean(&text)], None)),
                annotations: quote(&text),
                ..ResultAnswer::default()
            })
        })),
        ..Plugin::default()
    }
}

/// A text of words, some of which may be those that are stopped or taken out.
fn words(random: &mut Random, is_clean: bool) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(12) {
        match random.below(if is_clean { 3 } else { 5 }) {
            0 => text.push_str("ab "),
            1 => text.push_str("one, \n"),
            2 => text.push('é'),
            3 => {
                let inside: String = (0..random.below(6)).map(|_| random.pick(&STOPPED)).collect();
                text.push_str(&format!("Ξ{inside}Ω"));
            }
            _ => text.extend((0..=random.below(3)).map(|_| random.pick(&TAKEN))),
        }
    }
    text
}

/// An answer of up to three blocks.
fn answer(random: &mut Random, is_last: bool) -> Script {
    let mut all = Vec::new();
    for at in 0..=random.below(3) {
        let kind = match random.below(if is_last { 2 } else { 4 }) {
            0 => StreamKind::Thinking,
            1 => StreamKind::Text,
            call => tool(&format!("c{at}"), ["read", "shell"][call - 2]),
        };
        let text = words(random, is_last);
        let text = if kind.is_tool() { serde_json::json!({"path": "a", "text": text}).to_string() } else { text };
        all.push((kind, text));
    }
    let stop = if all.iter().any(|(kind, _)| kind.is_tool()) { StopReason::ToolUse } else { StopReason::EndTurn };
    let seeded = RANDOM + random.below(99);
    let cut = random.pick(&[1, 2, 5, usize::MAX, seeded]);
    let all: Vec<_> = all.iter().map(|(kind, text)| (kind.clone(), text.as_str())).collect();
    Script::Say(blocks(&all, cut, stop), Some(Ok(())))
}

/// The lines of the shown stream, and those of the records.
fn lines(events: &[Event]) -> (String, String) {
    let line = |event: &Event| Shown::of(event, "thread").map(|shown| shown.json().to_string() + "\n");
    (events.iter().filter_map(line).collect(), events.iter().map(|event| json(event, "thread").to_string()).collect())
}

/// What the deltas of the shown stream are, joined.
fn deltas(lines: &str) -> String {
    let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let delta = |line: serde_json::Value| {
        (line["type"] == "cognition_out_delta").then(|| line["payload"]["text"].as_str().unwrap().to_owned())
    };
    lines.filter_map(delta).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_that_was_stopped_or_taken_out_is_shown() {
    let (mut stopped, mut taken) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let scripts: Vec<Script> = (0..12).map(|at| answer(&mut random, at == 11)).collect();
        let (plugin, rules) = (guard(&mut random), rules(&mut random));
        let mut scene = Scene::new(scripts, vec![plugin], rules);
        let (_, events) = scene.turn("go").await;
        let (on_screen, recorded) = lines(&events);
        for line in on_screen.lines() {
            assert!(!has(line, STOPPED) && !has(line, TAKEN), "seed {seed}: {line}");
        }
        assert_eq!(deltas(&on_screen), shown(&events), "seed {seed}: all that was shown");
        stopped += usize::from(has(&recorded, STOPPED));
        taken += usize::from(has(&recorded, TAKEN));
    }
    // The records have what is missing: the search would find it.
    assert!(stopped > 300 && taken > 300, "{stopped} turns were stopped, from {taken} something was taken out");
}
