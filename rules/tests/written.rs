//! Loads the rule files under `tests/corpus/rules/written`, as people write them for this host and for others, and compares
//! what becomes of each: whether it is used, what it fires on, what is reported.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::Path;
use std::sync::Arc;

use flow::{CallId, Diagnostic, StreamKind, ToolSpec};
use rules::{Bucket, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleState, parse_rule_file};
use serde::Deserialize;
use tidegate_rules as rules;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    host: String,
    file: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    text: String,
    is: String,
    #[serde(default)]
    fires: Vec<String>,
    #[serde(default)]
    quiet: Vec<String>,
    /// The line of the rulebook, without the name.
    listed: Option<String>,
    #[serde(default)]
    says: Vec<String>,
}

/// What is written where a case asks for a write of a file.
const CONTENT: &str = "zz";

fn tools() -> [ToolSpec; 2] {
    let spec = |name: &str, properties: serde_json::Value| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: serde_json::json!({ "type": "object", "properties": properties, "additionalProperties": false }),
    };
    let text = serde_json::json!({ "type": "string" });
    let path = serde_json::json!({ "type": "string", "format": "path" });
    [
        spec("shell", serde_json::json!({ "command": text, "timeout_ms": { "type": ["integer", "null"] } })),
        spec("write_file", serde_json::json!({ "path": path, "content": text })),
    ]
}

fn says(found: &Diagnostic) -> String {
    let at = found.location().unwrap();
    let under = match &at.file.text[at.span.clone()] {
        "" => String::new(),
        marked => format!(" `{marked}`"),
    };
    format!("{}[{}]{under}: {}", found.severity.as_str(), found.code, found.message)
}

fn load(case: &Case) -> (Option<Arc<RuleSet>>, Vec<Diagnostic>) {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
    let (rule, mut found) = parse_rule_file("r", &source, &case.text);
    let Some(mut rule) = rule else { return (None, found) };
    found.extend(rule.try_on(&tools()));
    let (set, more) = RuleSet::build(vec![rule], RuleSettings::default(), "/work");
    found.extend(more);
    (Some(set), found)
}

fn state(set: Option<&RuleSet>) -> &'static str {
    let Some(info) = set.and_then(|set| set.rules().next()) else { return "refused" };
    match (info.state, info.rule.bucket) {
        (RuleState::Active, Bucket::Stream) => "active",
        (RuleState::Active, Bucket::AlwaysApply) => "always",
        (RuleState::Active, Bucket::Rulebook) => "rulebook",
        (RuleState::Unreachable(_), _) => "unreachable",
        (RuleState::Disabled(_) | RuleState::Shadowed(_), _) => "disabled",
    }
}

/// Whether the rule fires on `text TEXT`, `thinking TEXT`, `write PATH` or `shell COMMAND`.
fn fires(set: &Arc<RuleSet>, what: &str) -> bool {
    let (kind, value) = what.split_once(' ').unwrap();
    let tool = |name: &str| StreamKind::Tool { call: CallId::new("a"), name: name.into() };
    let (stream, text) = match kind {
        "text" => (StreamKind::Text, value.to_owned()),
        "thinking" => (StreamKind::Thinking, value.to_owned()),
        "write" => (tool("write_file"), serde_json::json!({ "path": value, "content": CONTENT }).to_string()),
        "edit" => (tool("edit_file"), serde_json::json!({ "path": value, "new_text": CONTENT }).to_string()),
        "shell" => (tool("shell"), serde_json::json!({ "command": value }).to_string()),
        other => panic!("unknown stream {other}"),
    };
    let mut session = RuleSession::new(Arc::clone(set));
    session.declare_paths(&tools());
    session.begin_turn();
    let mut gate = session.gate();
    gate.block_start(0, &stream);
    let matched = !gate.piece(0, &text).matches.is_empty();
    matched || !gate.end(0).matches.is_empty()
}

fn check(case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    let (set, found) = load(case);
    let state = state(set.as_deref());
    if state != case.is {
        wrong.push(format!("is {state}, not {}", case.is));
    }
    let said: Vec<String> = found.iter().map(says).collect();
    if said != case.says {
        wrong.push(format!("says {}", serde_json::to_string(&said).unwrap()));
    }
    for one in found.iter().filter(|one| one.is_error() && one.help.is_none()) {
        let follows = ["rule-no-valid-condition", "rule-no-valid-glob", "rule-invalid-condition"];
        if !follows.contains(&one.code.as_str()) {
            wrong.push(format!("an error without what to do: {one}"));
        }
    }
    let expected = case.fires.iter().map(|what| (what, true)).chain(case.quiet.iter().map(|what| (what, false)));
    for (what, wanted) in expected {
        let fired = set.as_ref().is_some_and(|set| fires(set, what));
        if fired != wanted {
            wrong.push(format!("{} on `{what}`", if fired { "fires" } else { "does not fire" }));
        }
    }
    let book = set.as_ref().and_then(|set| set.system_blocks("main").into_iter().next());
    let line =
        book.filter(|_| state == "rulebook").and_then(|block| Some(block.text.split_once("\n- `r`")?.1.to_owned()));
    if line != case.listed {
        wrong.push(format!("is listed as {line:?}"));
    }
    wrong
}

#[test]
fn every_file_as_it_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/rules/written");
    let (mut wrong, mut files, mut hosts, mut dead) = (Vec::new(), 0, Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let table: Table = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        files += table.file.len();
        for case in &table.file {
            wrong.extend(check(case).into_iter().map(|what| format!("{}: {}: {what}", table.host, case.name)));
            if case.is == "active" && case.fires.is_empty() {
                dead.push(case.name.clone());
            }
        }
        hosts.push(table.host);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(dead, Vec::<String>::new(), "an active file needs something that it fires on");
    assert!(files >= 150 && hosts.len() >= 5, "only {files} files of {hosts:?}");
}
