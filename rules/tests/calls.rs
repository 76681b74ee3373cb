//! Tool calls beyond the bounds of what is read: what rules see of them, and that it is reported.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use flow::{CallId, StreamKind};
use rules::{Gate, Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleSpec, Strings};
use tidegate_rules as rules;

fn gate() -> Gate {
    let spec = RuleSpec {
        condition: Strings(vec!["FORBIDDEN".into()]),
        scope: Strings(vec!["tool:edit(*.rs)".into()]),
        body: Some("Do not.".into()),
        ..RuleSpec::default()
    };
    let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
    let (rule, found) = Rule::from_spec("r", &source, &spec, None);
    assert_eq!(found, []);
    let (set, _) = RuleSet::build(rule.into_iter().collect(), RuleSettings::default(), "/work");
    let mut gate = RuleSession::new(set).gate();
    gate.block_start(0, &StreamKind::Tool { call: CallId::new("a"), name: "edit".into() });
    gate
}

/// Whether the rule fires on the arguments, and the diagnostics, for chunks of `size` bytes.
fn run(json: &str, size: usize) -> (bool, Option<String>) {
    let mut gate = gate();
    let pieces = json.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap());
    let fired = pieces.fold(false, |fired, piece| fired | !gate.piece(0, piece).matches.is_empty());
    (fired, gate.decode_error(0).map(str::to_owned))
}

#[test]
fn more_paths_than_are_read_are_said() {
    let call = |before: usize| {
        let paths = vec!["\"a.ts\""; before].join(",");
        format!("{{\"paths\":[{paths},\"b.rs\"],\"text\":\"FORBIDDEN\"}}")
    };
    for size in [1, 7, usize::MAX >> 1] {
        assert_eq!(run(&call(255), size), (true, None));
        let (fired, said) = run(&call(256), size);
        assert!(!fired);
        assert_eq!(said.unwrap(), "more than 256 file paths: rules that ask for a file see the first of them");
    }
}

#[test]
fn a_path_longer_than_is_read_is_said() {
    let call = |bytes: usize| format!("{{\"path\":\"{}/a.rs\",\"text\":\"FORBIDDEN\"}}", "d".repeat(bytes - 5));
    for size in [1, 7, usize::MAX >> 1] {
        assert_eq!(run(&call(4096), size), (true, None));
        let (fired, said) = run(&call(4097), size);
        assert!(!fired);
        assert_eq!(said.unwrap(), "a file path of more than 4096 bytes, of which rules see no more");
    }
}

#[test]
fn arguments_nested_too_deep_are_said() {
    let deep = format!("{{\"path\":\"a.rs\",\"l\":{}\"FORBIDDEN\"", "[".repeat(64));
    for size in [1, usize::MAX >> 1] {
        assert_eq!(run(&deep, size), (false, Some("nested deeper than 64".into())));
    }
}
