//! Runs the cases under `tests/corpus/rules` (its README holds the format), each with its streams cut in several ways.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::Path;
use std::sync::Arc;

use flow::{Action, CallId, Diagnostic, RuleMatch, StreamKind};
use rules::{
    Bucket, Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleSpec, RuleState, parse_rule_file,
};
use serde::Deserialize;
use tidegate_rules as rules;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[expect(dead_code, reason = "for readers")]
    spec: Option<u32>,
    #[serde(default)]
    settings: RuleSettings,
    rule: Vec<Typed>,
    active: Option<Vec<String>>,
    always: Option<Vec<String>>,
    rulebook: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    conditions: Option<Vec<String>>,
    #[serde(default)]
    reports: Vec<String>,
    /// The codes of the diagnostics, in order.
    #[serde(default)]
    codes: Vec<String>,
    at: Option<Vec<String>>,
    #[serde(default)]
    step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    name: String,
    from: Option<String>,
    file: Option<String>,
    spec: Option<RuleSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default)]
    turn: bool,
    block: Vec<Block>,
    #[serde(default)]
    fires: Vec<Fires>,
    action: Option<String>,
    inject: Option<bool>,
    /// Rules that matched and were used up, in order; not checked where absent.
    again: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    text: Option<String>,
    thinking: Option<String>,
    tool: Option<String>,
    call: Option<String>,
    json: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fires {
    rule: String,
    block: Option<usize>,
    start: Option<u64>,
    end: Option<u64>,
    text: Option<String>,
    line: Option<u32>,
    field: Option<String>,
    path: Option<String>,
    #[serde(default)]
    unread: bool,
}

#[test]
fn all_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/rules");
    let mut ran = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The dialect has a shape and a runner of its own.
        if path.extension().is_none_or(|extension| extension != "toml") || path.ends_with("dialect.toml") {
            continue;
        }
        let file: File = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in &file.case {
            for cut in [Cut::Whole, Cut::Single, Cut::Random(1), Cut::Random(2), Cut::Random(3)] {
                run(case, cut);
            }
            ran += 1;
        }
    }
    assert!(ran >= 80, "only {ran} cases were found");
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    Single,
    Random(u64),
}

fn pieces(text: &str, cut: Cut) -> Vec<&str> {
    let mut state = if let Cut::Random(seed) = cut { seed } else { 0 };
    let (mut out, mut from) = (Vec::new(), 0);
    for at in text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let here = match cut {
            Cut::Whole => at == text.len(),
            Cut::Single => true,
            Cut::Random(_) => at == text.len() || state >> 62 == 0,
        };
        if here && at > from {
            out.push(&text[from..at]);
            from = at;
        }
    }
    out
}

fn load(case: &Case) -> (Arc<RuleSet>, Vec<Diagnostic>) {
    let (mut used, mut found) = (Vec::new(), Vec::new());
    for typed in &case.rule {
        let layer = match typed.from.as_deref() {
            None | Some("project") => RuleLayer::Project,
            Some("user") => RuleLayer::User,
            Some("plugin") => RuleLayer::Plugin("guard".parse().unwrap()),
            Some("builtin") => RuleLayer::Builtin,
            Some(other) => panic!("{}: unknown layer {other}", case.name),
        };
        let source = RuleOrigin { layer, path: format!("{}.md", typed.name) };
        let (rule, diagnostics) = match (&typed.file, &typed.spec) {
            (Some(text), None) => parse_rule_file(&typed.name, &source, text),
            (None, Some(spec)) => {
                let body = Some(spec.body.clone().unwrap_or_else(|| "Do not.".into()));
                Rule::from_spec(&typed.name, &source, &RuleSpec { body, ..spec.clone() }, None)
            }
            _ => panic!("{}: a rule needs `file` or `spec`", case.name),
        };
        used.extend(rule);
        found.extend(diagnostics);
    }
    let (set, diagnostics) = RuleSet::build(used, case.settings.clone(), "/work");
    found.extend(diagnostics);
    (set, found)
}

fn run(case: &Case, cut: Cut) {
    let name = &case.name;
    let (set, found) = load(case);
    let texts: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
    assert_eq!(texts.len(), case.reports.len(), "{name}: {texts:?}");
    let codes: Vec<&str> = found.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, case.codes, "{name}");
    for (text, part) in texts.iter().zip(&case.reports) {
        assert!(text.contains(part.as_str()), "{name}: {text} does not say {part}");
    }
    if let Some(at) = &case.at {
        let places = found.iter().filter_map(Diagnostic::location);
        // The first byte of the file is the place of what has none.
        let places = places.filter(|at| at.span != (0..0)).map(|at| at.file.text[at.span.clone()].to_owned());
        assert_eq!(&places.collect::<Vec<_>>(), at, "{name}");
    }
    let active = |bucket: Bucket| {
        let used = set.rules().filter(|i| *i.state == RuleState::Active && i.rule.bucket == bucket);
        let mut names: Vec<String> = used.map(|info| info.rule.name.clone()).collect();
        names.sort();
        Some(names)
    };
    for (expected, bucket) in
        [(&case.active, Bucket::Stream), (&case.always, Bucket::AlwaysApply), (&case.rulebook, Bucket::Rulebook)]
    {
        assert!(expected.is_none() || *expected == active(bucket), "{name}: {:?}", active(bucket));
    }
    let first = set.rules().next();
    if let (Some(scopes), Some(first)) = (&case.scopes, &first) {
        assert_eq!(&first.scopes, scopes, "{name}");
    }
    if let (Some(conditions), Some(first)) = (&case.conditions, &first) {
        let texts: Vec<&str> = first.rule.conditions.iter().map(|p| p.as_str()).collect();
        assert_eq!(&texts, conditions, "{name}");
    }
    let mut session = RuleSession::new(set);
    session.begin_turn();
    for (number, step) in case.step.iter().enumerate() {
        if step.turn {
            session.end_turn();
            session.begin_turn();
        }
        run_step(&mut session, step, cut, &format!("{name}, step {number}, cut {cut:?}"));
    }
}

fn run_step(session: &mut RuleSession, step: &Step, cut: Cut, name: &str) {
    let mut gate = session.gate();
    let (mut found, mut actions, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    let mut again: Vec<String> = Vec::new();
    let mut open: Option<(u32, String)> = None;
    'answer: for (at, block) in step.block.iter().enumerate() {
        let (kind, text) = block_of(block);
        let call = if let StreamKind::Tool { call, .. } = &kind { call.as_str().to_owned() } else { String::new() };
        let id = match &open {
            Some((id, known)) if !call.is_empty() && *known == call => *id,
            _ => {
                gate.block_start(at as u32, &kind);
                at as u32
            }
        };
        open = Some((id, call.clone()));
        let joins = step
            .block
            .get(at + 1)
            .is_some_and(|next| next.tool.is_some() && !call.is_empty() && next.call.as_deref().unwrap_or("a") == call);
        let mut feeds: Vec<Feed<'_>> = pieces(text, cut).into_iter().map(Feed::Piece).collect();
        if !joins {
            feeds.push(Feed::BlockEnd);
        }
        if at + 1 == step.block.len() {
            feeds.extend([Feed::Finish(StreamKind::Text), Feed::Finish(StreamKind::Thinking)]);
        }
        for feed in feeds {
            let mut fed = match &feed {
                Feed::Piece(piece) => gate.piece(id, piece),
                Feed::BlockEnd => gate.block_end(id),
                Feed::Finish(stream) => gate.finish(stream),
            };
            while !fed.matches.is_empty() {
                let judged = session.judge(&fed.matches);
                let stops = matches!(judged.action, Action::Interrupt | Action::Stop);
                if stops && !fed.matches[0].stream.is_tool() {
                    let stopping =
                        fed.matches.iter().zip(&judged.actions).filter(|(_, action)| **action == judged.action);
                    let start = stopping.map(|(m, _)| m.evidence.start).min().unwrap();
                    assert!(fed.safe <= start, "{name}: {} bytes shown of {:?}", fed.safe, fed.matches);
                }
                let acted = fed.matches.into_iter().zip(&judged.again);
                for (found_now, was_used) in acted {
                    if *was_used { again.push(found_now.rule) } else { found.push((at, found_now)) }
                }
                if judged.again.contains(&false) {
                    actions.push(judged.action);
                }
                rules.extend(judged.rules);
                if stops {
                    break 'answer;
                }
                fed = gate.more(id).unwrap_or_default();
            }
        }
    }
    if let Some(expected) = &step.again {
        assert_eq!(&again, expected, "{name}");
    }
    check(step, &found, name);
    if let Some(action) = &step.action {
        let strongest = actions.last().map(|a| a.as_str());
        assert_eq!(strongest, Some(action.as_str()), "{name}: {actions:?}");
    }
    if step.inject.unwrap_or(true) { drop(session.injected(&rules)) } else { session.release(&rules) }
}

/// What a gate is given.
enum Feed<'a> {
    Piece(&'a str),
    BlockEnd,
    Finish(StreamKind),
}

fn block_of(block: &Block) -> (StreamKind, &str) {
    match (&block.text, &block.thinking, &block.tool) {
        (Some(text), None, None) => (StreamKind::Text, text),
        (None, Some(text), None) => (StreamKind::Thinking, text),
        (None, None, Some(tool)) => {
            let call = CallId::new(block.call.as_deref().unwrap_or("a"));
            (StreamKind::Tool { call, name: tool.clone() }, block.json.as_deref().unwrap())
        }
        _ => panic!("a block is one of text, thinking and tool"),
    }
}

fn check(step: &Step, found: &[(usize, RuleMatch)], name: &str) {
    let rules: Vec<&str> = found.iter().map(|(_, m)| m.rule.as_str()).collect();
    assert_eq!(rules, step.fires.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), "{name}: {found:?}");
    for (expected, (at, m)) in step.fires.iter().zip(found) {
        let evidence = &m.evidence;
        assert!(expected.block.is_none_or(|block| block == *at), "{name}: block {at}");
        assert!(expected.start.is_none_or(|start| start == evidence.start), "{name}: {m:?}");
        assert!(expected.end.is_none_or(|end| end == evidence.end), "{name}: {m:?}");
        assert!(expected.line.is_none_or(|line| line == evidence.line), "{name}: {m:?}");
        assert!(expected.text.as_ref().is_none_or(|text| *text == evidence.text), "{name}: {m:?}");
        assert!(expected.field.is_none() || expected.field == evidence.field, "{name}: {m:?}");
        assert!(expected.path.is_none() || expected.path == evidence.path, "{name}: {m:?}");
        assert_eq!(evidence.unread, expected.unread, "{name}: {m:?}");
        let in_argument = m.stream.is_tool() && !evidence.unread;
        assert_eq!(evidence.field.is_some(), in_argument, "{name}");
    }
}
