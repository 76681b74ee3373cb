//! The corpus of `tests/corpus/segments`, each case at every chunking, and the law that pass-through changes no byte.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};

use flow::{Callback, Message, TagAnswer, TagPattern, TextAnswer, TextUnit};
use proptest::prelude::*;
use serde::Deserialize;
use tidegate_kit::{Plugin, ScriptedModel, drain, rule_set, session, text};
use tidegate_turn as turn;
use turn::CancellationToken;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    plugins: Vec<String>,
    text: String,
    shown: String,
    calls: Option<Vec<String>>,
    withheld: Option<Vec<String>>,
}

type Calls = Arc<Mutex<Vec<String>>>;

/// Runs a turn with an answer in chunks of `cut` characters; returns what was shown.
fn run(plugins: Vec<Plugin>, words: &str, cut: usize) -> String {
    run_all(plugins, words, cut).0
}

/// As [`run`]; returns also what was withheld, an entry for each event.
fn run_all(plugins: Vec<Plugin>, words: &str, cut: usize) -> (String, Vec<String>) {
    let model = ScriptedModel::new([text(words, cut)]);
    let mut session = session(&model, plugins, rule_set(&[], |_| {}));
    let mut events = session.subscribe();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let report = runtime.block_on(session.run(vec![Message::user("go")], &CancellationToken::new()));
    let events = drain(&mut events);
    let shown = tidegate_kit::shown(&events);
    assert_eq!(report.text, shown, "the report and the events have the same text");
    let withheld = events.iter().filter_map(|event| match &event.kind {
        flow::EventKind::ExtensionWithheld { plugin, callback, bytes, reason } => {
            Some(format!("{plugin} {} {bytes}: {reason}", callback.as_str()))
        }
        _ => None,
    });
    (shown, withheld.collect())
}

fn plugin(line: &str, calls: &Calls) -> Plugin {
    let (head, rest) = line.split_once(": ").unwrap();
    let (handler, answer) = rest.split_once(" -> ").unwrap();
    let (head, closed) = head.strip_suffix('!').map_or((head, false), |head| (head, true));
    let (name, priority) = head.split_once('/').unwrap_or((head, "50"));
    let id: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let priority = priority.parse().unwrap();
    let (how, template) = answer.split_once(' ').unwrap_or((answer, ""));
    let (how, template, calls) = (how.to_owned(), template.to_owned(), Arc::clone(calls));
    let mut plugin = Plugin { id, closed, ..Plugin::default() };
    match handler.split_once(' ').unwrap() {
        ("tag", patterns) => {
            let pattern = |text: &str| match text.strip_suffix('*') {
                Some(prefix) => TagPattern::Prefix(prefix.into()),
                None => TagPattern::Exact(text.into()),
            };
            plugin.callbacks = vec![(Callback::Tag(patterns.split(',').map(pattern).collect()), priority)];
            plugin.tag = Some(Box::new(move |(tag, place)| {
                calls.lock().unwrap().push(format!("{id} <{}> {}", tag.name, tag.content).replace('\n', "\\n"));
                let mut out = template.replace("{content}", &tag.content).replace("{name}", &tag.name);
                for (name, value) in &tag.attributes {
                    out = out.replace(&format!("{{{name}}}"), value);
                }
                out = out.replace("{inside}", &place.inside.join("/"));
                match how.as_str() {
                    "pass" | "keep" => Ok(TagAnswer::Keep),
                    "content" => Ok(TagAnswer::Content(out)),
                    "replace" => Ok(TagAnswer::Replace(out)),
                    "fail" if !tag.content.contains(&template) => Ok(TagAnswer::Keep),
                    _ => Err("it fails".into()),
                }
            }));
        }
        ("text", unit) => {
            let unit = match unit {
                "line" => TextUnit::Line,
                "paragraph" => TextUnit::Paragraph,
                _ => TextUnit::Whole,
            };
            plugin.callbacks = vec![(Callback::PlainText(unit.into()), priority)];
            plugin.text = Some(Box::new(move |(unit, place)| {
                calls.lock().unwrap().push(format!("{id} {unit}").replace('\n', "\\n"));
                match how.as_str() {
                    "pass" => Ok(TextAnswer::Pass),
                    "replace" => {
                        let out = template.replace("{content}", &unit).replace("{inside}", &place.inside.join("/"));
                        Ok(TextAnswer::Replace(out))
                    }
                    "fail" if !unit.contains(&template) => Ok(TextAnswer::Pass),
                    _ => Err("it fails".into()),
                }
            }));
        }
        other => panic!("no such handler: {other:?}"),
    }
    plugin
}

#[test]
fn the_corpus_at_every_chunking() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/segments/cases.toml");
    let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(file.case.len() >= 20, "only {} cases were read", file.case.len());
    for case in &file.case {
        for cut in 1..=case.text.chars().count() {
            let calls = Calls::default();
            let plugins = case.plugins.iter().map(|line| plugin(line, &calls)).collect();
            let (shown, withheld) = run_all(plugins, &case.text, cut);
            assert_eq!(shown, case.shown, "{} in pieces of {cut}", case.name);
            assert_eq!(withheld, case.withheld.clone().unwrap_or_default(), "{} in pieces of {cut}", case.name);
            if let Some(expected) = &case.calls {
                assert_eq!(*calls.lock().unwrap(), *expected, "{} in pieces of {cut}", case.name);
            }
        }
    }
}

#[test]
fn a_section_that_is_too_large_is_shown_unhandled_and_reported() {
    let calls = Calls::default();
    let words = format!("<a>{}</a><a>y</a>", "x".repeat(guard::MAX_SECTION + 1));
    let model = ScriptedModel::new([text(&words, 4096)]);
    let mut session = session(&model, vec![plugin("a: tag a -> replace A", &calls)], rule_set(&[], |_| {}));
    let mut events = session.subscribe();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(session.run(vec![Message::user("go")], &CancellationToken::new()));
    let events = drain(&mut events);
    assert_eq!(tidegate_kit::shown(&events), words.replace("<a>y</a>", "A"));
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.kind, flow::EventKind::Notice { message } if message.contains("<a>")))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Case 7: with pass-through plugins of every kind, output is input for any text and any chunking.
    #[test]
    fn pass_through_changes_no_byte(words in "([<>/a-c=\"'` \n!\\-\\[\\]é~]|<a>|</a>|<b x='1'>|```|<!--|-->){0,60}", cut in 1usize..7) {
        let calls = Calls::default();
        let lines = ["t: text line -> pass", "p/90: text paragraph -> pass", "w/10: text whole -> pass", "a: tag a,b -> keep", "c: tag c* -> keep"];
        let plugins = lines.iter().map(|line| plugin(line, &calls)).collect();
        prop_assert_eq!(run(plugins, &words, cut), words);
    }

    /// Handlers that change things see the same units and sections for any chunking.
    #[test]
    fn chunking_changes_nothing(words in "([<>/a-c=\"'` \n~]|<a>|</a>|<b x='1'>|</b>|```\n|``){0,40}", cut in 1usize..7) {
        let lines = ["t: text line -> replace [{content}]", "a: tag a -> content ({content})", "b: tag b* -> replace {name}{content}"];
        let [whole, cut] = [1000, cut].map(|cut| {
            let calls = Calls::default();
            let shown = run(lines.iter().map(|line| plugin(line, &calls)).collect(), &words, cut);
            let calls = calls.lock().unwrap().clone();
            (shown, calls)
        });
        prop_assert_eq!(whole, cut);
    }
}

/// A model that falls into repeating a tag must not keep the host busy: the work grows with the text, not with its square.
#[test]
fn tags_that_are_opened_again_and_again_cost_no_more_than_their_bytes() {
    let calls = Calls::default();
    let plugins = vec![plugin("t: tag a -> keep", &calls), plugin("p: text line -> pass", &calls)];
    let words = "<a>".repeat(100_000);
    let began = std::time::Instant::now();
    assert_eq!(run(plugins, &words, 1000), words);
    assert!(began.elapsed() < std::time::Duration::from_secs(120), "{:?}", began.elapsed());
}
