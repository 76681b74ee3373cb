//! Answers as providers send them (`tests/corpus/providers/streams`) decode to the deltas stored next to them, for
//! every way the bytes may be cut.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use flow::{Delta, ModelError, StreamKind, Usage};
use proptest::prelude::*;
use wire::{AnswerDecoder, Wire};

use crate::classes::class_of;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

struct Case {
    wire: Wire,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/providers/streams");
    let mut cases = Vec::new();
    for wire in WIRES {
        let folder = PathBuf::from(root).join(wire.as_str());
        let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|end| end == "sse"));
        cases.extend(paths.into_iter().map(|path| Case { wire, bytes: fs::read(&path).unwrap(), path }));
    }
    assert!(cases.len() >= 40, "only {} cases were found", cases.len());
    cases
}

/// The deltas of these chunks, a line each; with `end`, also what the end of the stream makes of them.
fn decode<'b>(wire: Wire, chunks: impl IntoIterator<Item = &'b [u8]>, end: bool) -> Vec<String> {
    let mut decoder = AnswerDecoder::new(wire);
    let mut lines = Vec::new();
    let mut failed = None;
    for chunk in chunks {
        failed = decoder.push(chunk).err();
        lines.extend(std::iter::from_fn(|| decoder.next_delta()).map(|delta| line(&delta)));
        if failed.is_some() {
            break;
        }
    }
    if end && failed.is_none() {
        failed = decoder.finish().err();
        lines.extend(std::iter::from_fn(|| decoder.next_delta()).map(|delta| line(&delta)));
    }
    lines.extend(failed.map(|error| error_line(&error)));
    lines
}

fn line(delta: &Delta) -> String {
    match delta {
        Delta::Start { model } => format!("start {}", model.as_deref().unwrap_or("-")),
        Delta::BlockStart { block, kind: StreamKind::Text } => format!("begin {block} text"),
        Delta::BlockStart { block, kind: StreamKind::Thinking } => format!("begin {block} thinking"),
        Delta::BlockStart { block, kind: StreamKind::Tool { call, name } } => {
            format!("begin {block} tool {call} {name}")
        }
        Delta::Piece { block, text } => {
            assert!(!text.is_empty(), "an empty piece");
            format!("piece {block} {}", serde_json::to_string(text).unwrap())
        }
        Delta::Signature { block, data, redacted } => {
            let word = if *redacted { "redacted" } else { "signature" };
            format!("{word} {block} {}", serde_json::to_string(data).unwrap())
        }
        Delta::BlockEnd { block } => format!("end {block}"),
        Delta::Usage(usage) => usage_line(*usage),
        Delta::Stop { reason } => format!("stop {}", reason.as_str()),
    }
}

fn usage_line(usage: Usage) -> String {
    let fields = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
    ];
    let told = fields.into_iter().filter_map(|(name, count)| Some(format!(" {name}={}", count?)));
    format!("usage{}", told.collect::<String>())
}

fn error_line(error: &ModelError) -> String {
    let code = error.code.as_deref().unwrap_or("-");
    format!("error {} {code} {}", class_of(error), serde_json::to_string(&error.message).unwrap())
}

#[test]
fn answers_decode_to_the_deltas_beside_them() {
    let bless = std::env::var_os("BLESS").is_some();
    for Case { wire, path, bytes } in cases() {
        let got = decode(wire, [bytes.as_slice()], true).join("\n") + "\n";
        let beside = path.with_extension("deltas");
        if bless {
            fs::write(&beside, &got).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap_or_else(|cause| panic!("{}: {cause}", beside.display()));
        assert_eq!(got, expected, "{}", path.display());
        assert_eq!(decode(wire, bytes.chunks(1), true).join("\n") + "\n", expected, "byte by byte: {}", path.display());
    }
}

/// Blocks are numbered in order, have one end each, get nothing after it, and a good answer has one stop at its end.
#[test]
fn answers_keep_the_promises_of_deltas() {
    for Case { wire, path, bytes } in cases() {
        let lines = decode(wire, [bytes.as_slice()], true);
        let place = path.display();
        let mut open: Vec<String> = Vec::new();
        let mut next = 0;
        for (at, line) in lines.iter().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[0] {
                "start" => (next, open) = (0, Vec::new()),
                "begin" => {
                    assert_eq!(words[1], next.to_string(), "{place}");
                    next += 1;
                    open.push(words[1].to_owned());
                }
                "piece" | "signature" | "redacted" => assert!(open.iter().any(|id| id == words[1]), "{place}: {line}"),
                "end" => {
                    let before = open.len();
                    open.retain(|id| id != words[1]);
                    assert_eq!(open.len() + 1, before, "{place}: {line}");
                }
                "stop" => assert!(open.is_empty() && at == lines.len() - 1, "{place}: {lines:?}"),
                "error" => assert_eq!(at, lines.len() - 1, "{place}"),
                "usage" => assert!(words.len() > 1, "{place}: an empty report"),
                other => panic!("{place}: {other}"),
            }
        }
        let ends = lines.iter().filter(|line| line.starts_with("stop") || line.starts_with("error")).count();
        assert_eq!(ends, 1, "{place}: {lines:?}");
    }
}

#[test]
fn a_beginning_of_the_bytes_gives_a_beginning_of_the_deltas() {
    for Case { wire, path, bytes } in cases() {
        let whole = decode(wire, [bytes.as_slice()], false);
        for end in 0..bytes.len() {
            let part = decode(wire, [&bytes[..end]], false);
            assert!(whole.starts_with(&part), "{} cut at {end}: {part:?}", path.display());
            // Whatever is missing, the end is reported and nothing panics.
            let told = decode(wire, [&bytes[..end]], true);
            let last = told.last().map(String::as_str).unwrap_or_default();
            assert!(last.starts_with("stop") || last.starts_with("error"), "{} cut at {end}: {last}", path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_change_nothing(seed in prop::collection::vec(any::<usize>(), 1..30)) {
        for Case { wire, path, bytes } in cases() {
            let mut at: Vec<usize> = seed.iter().map(|at| at % (bytes.len() + 1)).collect();
            at.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for end in at.into_iter().chain([bytes.len()]) {
                chunks.push(&bytes[from..end]);
                from = end;
            }
            prop_assert_eq!(decode(wire, chunks, true), decode(wire, [bytes.as_slice()], true), "{}", path.display());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), flips in prop::collection::vec(any::<(usize, u8)>(), 1..6)) {
        for Case { wire, bytes: good, .. } in cases() {
            decode(wire, [bytes.as_slice()], true);
            let mut bad = good.clone();
            for (at, byte) in &flips {
                if let Some(len) = std::num::NonZeroUsize::new(bad.len()) {
                    bad[*at % len] = *byte;
                }
            }
            decode(wire, [bad.as_slice()], true);
        }
    }
}
