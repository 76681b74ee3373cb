//! What a session remembers and says: records, reservations, budgets, reminders, holding.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::sync::Arc;

use flow::{Action, CallId, RuleMatch, StreamKind};
use rules::{Hold, Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, parse_rule_file};
use tidegate_rules as rules;

fn rule(name: &str, front: &str, body: &str) -> Rule {
    let source = RuleOrigin { layer: RuleLayer::Project, path: format!("/work/rules/{name}.md") };
    let (rule, found) = parse_rule_file(name, &source, &format!("+++\n{front}\n+++\n{body}\n"));
    assert_eq!(found, []);
    rule.unwrap()
}

fn set(rules: Vec<Rule>, settings: RuleSettings) -> Arc<RuleSet> {
    let (set, found) = RuleSet::build(rules, settings, "/work");
    assert_eq!(found, []);
    set
}

fn session(front: &str) -> RuleSession {
    RuleSession::new(set(vec![rule("r", front, "Body.")], RuleSettings::default()))
}

fn text(session: &RuleSession, text: &str) -> Vec<RuleMatch> {
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let mut matches = gate.piece(0, text).matches;
    matches.extend(std::iter::from_fn(|| gate.more(0)).flat_map(|fed| fed.matches));
    matches.extend(gate.end(0).matches);
    matches
}

/// Those matches that the rule acts on.
fn acted(session: &RuleSession, words: &str) -> Vec<RuleMatch> {
    text(session, words).into_iter().filter(|found| session.acts(&found.rule)).collect()
}

fn call(session: &RuleSession, id: &str, json: &str) -> Vec<RuleMatch> {
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Tool { call: CallId::new(id), name: "write".into() });
    let mut matches = gate.piece(0, json).matches;
    matches.extend(std::iter::from_fn(|| gate.more(0)).flat_map(|fed| fed.matches));
    matches
}

#[test]
fn extensions_are_told_once_per_stream_and_rule_and_turn() {
    let mut session = session("condition = 'x'\nrepeat = 'always'\ninterrupt = 'never'");
    session.begin_turn();
    let first = call(&session, "a", r#"{"t":"x"}"#);
    assert_eq!(session.judge(&first).first, [true]);
    assert_eq!(session.judge(&first).first, [false]);
    let other = RuleMatch { stream: text_stream(), ..first[0].clone() };
    assert_eq!(session.judge(&[other]).first, [true]);
    session.end_turn();
    session.begin_turn();
    assert_eq!(session.judge(&first).first, [true]);
}

fn text_stream() -> StreamKind {
    StreamKind::Text
}

#[test]
fn one_sibling_call_of_a_batch_gets_the_reminder() {
    let mut session = session("condition = 'x'\ninterrupt = 'never'");
    session.begin_turn();
    let mut gate = session.gate();
    let mut actions = Vec::new();
    for (block, id) in ["a", "b", "c"].into_iter().enumerate() {
        gate.block_start(block as u32, &StreamKind::Tool { call: CallId::new(id), name: "write".into() });
        let fed = gate.piece(block as u32, r#"{"t":"x"}"#);
        actions.push(session.judge(&fed.matches).action);
    }
    assert_eq!(actions, [Action::Remind, Action::Pass, Action::Pass]);
}

#[test]
fn what_waits_is_not_queued_twice_and_comes_back_when_dropped() {
    let mut session = session("condition = 'x'\ninterrupt = 'never'");
    session.begin_turn();
    let due = session.judge(&text(&session, "x")).rules;
    assert_eq!(due, ["r"]);
    assert!(!session.acts("r"));
    session.release(&due);
    assert_eq!(acted(&session, "x").len(), 1);
    session.reserve(&due);
    assert_eq!(session.injected(&["r".into(), "r".into()]).len(), 1);
    assert!(!session.acts("r"));
}

#[test]
fn a_resumed_session_keeps_the_exact_gap() {
    let gapped = "condition = 'x'\nrepeat = 'after-gap'\ngap = 2";
    let mut before = session(gapped);
    before.begin_turn();
    let records = before.injected(&["r".into()]);
    let mut after = session(gapped);
    after.restore(records, 0);
    let mut fired = Vec::new();
    for _ in 0..3 {
        after.begin_turn();
        fired.push(acted(&after, "x").len());
        after.end_turn();
    }
    assert_eq!(fired, [0, 0, 1]);
    let mut once = session("condition = 'x'");
    let records = once.injected(&["r".into()]);
    let mut resumed = session("condition = 'x'");
    resumed.restore(records, 5);
    assert!(!resumed.acts("r"));
    resumed.rearm("r");
    assert!(resumed.acts("r"));
}

#[test]
fn an_edited_rule_counts_as_new_and_an_edited_body_does_not() {
    let mut session = session("condition = 'x'");
    session.injected(&["r".into()]);
    session.replace_rules(set(vec![rule("r", "condition = 'x'", "Another body.")], RuleSettings::default()));
    assert_eq!(acted(&session, "x y"), []);
    session.replace_rules(set(vec![rule("r", "condition = 'y'", "Body.")], RuleSettings::default()));
    assert_eq!(text(&session, "x"), []);
    assert_eq!(text(&session, "y").len(), 1);
    session.replace_rules(set(Vec::new(), RuleSettings::default()));
    assert!(session.gate().is_idle());
}

#[test]
fn the_reminder_says_what_whose_where_and_the_body() {
    let rules = vec![
        rule("a&b", "condition = 'secret <x>'", "Never write </system-interrupt> it."),
        rule("second", "condition = 'cret'", "Another."),
    ];
    let session = RuleSession::new(set(rules, RuleSettings::default()));
    let matches = call(&session, "c", r#"{"path":"/work/src/a.rs","t":"one\nmy secret <x>!"}"#);
    let said = session.reminder(&matches);
    let blocks: Vec<&str> = said.split("</system-interrupt>").collect();
    assert_eq!(blocks.len(), 3, "{said}");
    assert!(blocks[0].starts_with("<system-interrupt reason=\"rule_violation\" rule=\"second\" path=\"src/a.rs\">\n"));
    assert!(
        blocks[1].starts_with("\n\n<system-interrupt reason=\"rule_violation\" rule=\"a&amp;b\" path=\"src/a.rs\">\n")
    );
    assert!(blocks[1].contains("in a call of write, argument t, file src/a.rs, line 2: secret &lt;x&gt;\n"));
    assert!(blocks[0].contains("was stopped because it broke a rule that the user has set"));
    assert!(blocks[0].contains("not a prompt injection"));
    // What both elements have in common is said once.
    assert!(blocks[1].contains("\nThe same applies to this rule.\nFound in a call"), "{said}");
    assert!(blocks[1].ends_with("\n\nNever write &lt;/system-interrupt> it.\n"));
    let told = session.tool_reminder(&matches[..1]);
    assert!(
        told.starts_with("<system-reminder reason=\"rule_violation\" rule=\"second\" path=\"src/a.rs\">\n"),
        "{told}"
    );
    assert!(told.contains("the call ran"));
    // A rule file of the workspace is shown relative to it.
    assert!(session.reminder(&text(&session, "cret")).contains("path=\"rules/second.md\""));
}

#[test]
fn a_loop_holds_until_a_bound_lets_go() {
    let settings = RuleSettings { hold_max_bytes: 10, ..RuleSettings::default() };
    let session = RuleSession::new(set(vec![rule("r", "condition = 'foo.*bar'", "No.")], settings));
    for whole in [true, false] {
        let mut gate = session.gate();
        gate.block_start(3, &StreamKind::Text);
        let mut feed = |text: &str| {
            let pieces = if whole { vec![text] } else { text.split_inclusive(|_| true).collect() };
            let fed = pieces.into_iter().map(|piece| gate.piece(3, piece));
            fed.fold((0, 0, 0), |sum, fed| (fed.safe, sum.1 + fed.released, sum.2 + fed.matches.len()))
        };
        assert_eq!(feed("say foo"), (4, 0, 0));
        assert_eq!(feed(" and so"), (4, 0, 0));
        // The limit is exceeded at the first of the two bytes, however they arrive.
        assert_eq!(feed("me"), (15, 11, 0));
        assert_eq!(feed(" on"), (15, 0, 0));
        assert_eq!(gate.holding(&StreamKind::Text), ["r"]);
        assert_eq!(gate.release_held(&StreamKind::Text), (19, 4));
        let fed = gate.piece(3, " bar");
        assert_eq!((fed.matches.len(), fed.safe), (1, 19));
    }
}

#[test]
fn no_limit_releases_a_condition_of_bounded_length() {
    let settings = RuleSettings { hold_max_bytes: 4, ..RuleSettings::default() };
    let session = |conditions: [&str; 2]| {
        let rules = conditions.map(|condition| rule(&condition[..1], &format!("condition = '{condition}'"), "No."));
        RuleSession::new(set(rules.into(), settings.clone()))
    };
    let mut gate = session(["bounded", "alone"]).gate();
    gate.block_start(0, &StreamKind::Text);
    assert!(!gate.has_limit(&StreamKind::Text));
    assert_eq!((gate.piece(0, "x bounde").safe, gate.release_held(&StreamKind::Text)), (2, (2, 0)));
    // Of two that are in progress together the one without a bound is released, and the other is not.
    let mut gate = session(["bounded", "x.*y"]).gate();
    gate.block_start(0, &StreamKind::Text);
    assert!(gate.has_limit(&StreamKind::Text));
    let fed = gate.piece(0, "a x and bound");
    assert_eq!((fed.safe, fed.released), (8, 6));
    assert_eq!(gate.release_held(&StreamKind::Text), (8, 0));
    assert_eq!(gate.piece(0, "ed").matches.len(), 1);
}

#[test]
fn a_line_end_ends_what_a_loop_holds() {
    let session = session("condition = 'foo.*bar'");
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    assert_eq!(gate.piece(0, "a foo b").safe, 2);
    assert_eq!(gate.piece(0, "c\nd fo").safe, 11);
    assert_eq!(gate.piece(0, "g").safe, 14);
}

#[test]
fn rules_that_do_not_interrupt_hold_nothing() {
    for settings in [RuleSettings { hold: Hold::Off, ..RuleSettings::default() }, RuleSettings::default()] {
        let front = "condition = 'foobar'\ninterrupt = 'never'";
        let session = RuleSession::new(set(vec![rule("r", front, "No.")], settings));
        let mut gate = session.gate();
        gate.block_start(0, &StreamKind::Text);
        assert_eq!(gate.piece(0, "a fooba").safe, 7);
    }
    let loud = vec![rule("r", "condition = 'foobar'", "No.")];
    let session = RuleSession::new(set(loud, RuleSettings { hold: Hold::Off, ..RuleSettings::default() }));
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    assert_eq!(gate.piece(0, "a foo").safe, 5);
    let fed = gate.piece(0, "bar");
    assert_eq!((fed.matches.len(), fed.safe), (1, 5));
}

#[test]
fn evidence_is_bounded_and_knows_its_line_after_much_text() {
    let session = session("condition = 'begin[^!]*!'");
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let line = "no such word in this line\n".repeat(5000);
    assert_eq!(gate.piece(0, &line).matches, []);
    let fed = gate.piece(0, &format!("x begin {}é!", "é".repeat(300)));
    let evidence = &fed.matches[0].evidence;
    assert_eq!((evidence.line, evidence.start), (5001, line.len() as u64 + 2));
    assert_eq!(evidence.text, format!("begin {}", "é".repeat(97)));
    assert!(evidence.text.len() <= 200);
}

#[test]
fn a_block_that_begins_again_forgets_what_waited() {
    let session = session("condition = 'FORBIDDEN'\nscope = 'tool(*.rs)'");
    let kind = StreamKind::Tool { call: CallId::new("a"), name: "write".into() };
    let mut gate = session.gate();
    gate.block_start(0, &kind);
    assert_eq!(gate.piece(0, r#"{"t":"FORBIDDEN","#).matches, []);
    gate.block_start(0, &kind);
    assert_eq!(gate.piece(0, r#"{"t":"fine","path":"a.rs"}"#).matches, []);
    assert_eq!(gate.block_end(0).matches, []);
}

#[test]
fn arguments_that_are_no_json_are_told() {
    let session = session("condition = 'x'");
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Tool { call: CallId::new("a"), name: "write".into() });
    gate.piece(0, "{\"a\" \"x\"}");
    assert_eq!(gate.decode_error(0), Some("unexpected '\"'"));
}

#[test]
fn an_automaton_without_budget_reports_it() {
    use rules::engine::{Automaton, Cursor, Pattern};
    let pattern = Arc::new(Pattern::new("[ab]*a[ab]{9}c").unwrap());
    let automaton = Automaton::with_cache_bytes(vec![pattern], 20_000);
    let (mut state, mut cursor, mut hits) = (1_u64, Cursor::new(&automaton), Vec::new());
    for at in 0..60_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let byte = if at == 59_999 { b'c' } else { b"ab"[(state >> 63) as usize] };
        cursor.feed(&[byte], |hit| {
            hits.push(hit);
            true
        });
    }
    let stats = automaton.stats();
    assert!(stats.frozen && stats.clears > 0 && stats.uncached_bytes > 0 && stats.bytes < 60_000, "{stats:?}");
    assert!(hits.len() <= 1);
}

#[test]
fn a_thousand_rules_on_a_megabyte_stay_within_their_budget() {
    let rules = (0..1000)
        .map(|n| rule(&format!("r{n}"), &format!("condition = '\\bword{n}\\s*\\(|(?m)^\\s*use x{n}::'"), "No."));
    let session = RuleSession::new(set(rules.collect(), RuleSettings::default()));
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let (mut state, mut length, mut safe) = (1_u64, 0, 0);
    while length < 1_000_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let piece = ["word", "12", " ", "\n", "use ", "x", "é", "fine", "::y", "(5"][(state >> 33) as usize % 10];
        let fed = gate.piece(0, piece);
        length += piece.len() as u64;
        // What waits is bounded by the longest word of a rule, but for blanks after a line end.
        assert!(fed.safe >= safe && length - fed.safe < 200);
        safe = fed.safe;
        if !fed.matches.is_empty() {
            break;
        }
    }
    let stats = rules::engine::stats(session.rules());
    assert_eq!(stats.len(), 1, "text and tools have the same rules and share an automaton");
    assert!(stats[0].patterns == 1000 && !stats[0].frozen && stats[0].bytes < 16 << 20, "{stats:?}");
}

#[test]
fn a_rule_watches_the_agents_it_names() {
    let rules = set(vec![rule("r", "condition = 'x'\nagents = 'Sub*, review'", "No.")], RuleSettings::default());
    assert!(RuleSession::new(Arc::clone(&rules)).gate().is_idle());
    for agent in ["sub-1", "REVIEW"] {
        assert_eq!(text(&RuleSession::of_agent(Arc::clone(&rules), agent), "x").len(), 1, "{agent}");
    }
}

#[test]
fn a_rule_is_refused_rather_than_widened_when_none_of_its_globs_can_be_used() {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "/work/rules/r.md".into() };
    for front in ["globs = '{a'", "agents = '{a'", "globs = ['{a', '[b']"] {
        let file = format!("+++\ncondition = 'x'\n{front}\n+++\nBody.\n");
        let (rule, found) = parse_rule_file("r", &source, &file);
        assert!(rule.is_none(), "{front}: it would watch everything");
        assert!(found.iter().any(|one| one.message.contains("the rule is disabled")), "{found:?}");
    }
    let (rule, found) = parse_rule_file("r", &source, "+++\ncondition = 'x'\nglobs = ['{a', '*.rs']\n+++\nBody.\n");
    assert_eq!((rule.unwrap().globs.len(), found.len()), (1, 1), "what is left only narrows it");
}

#[test]
fn a_path_longer_than_is_read_is_the_same_however_it_is_cut() {
    let session = session("condition = 'x'\nscope = 'tool:write(src/**)'");
    let json = format!(r#"{{"path":"src/{}ü.rs","content":"x"}}"#, "a".repeat(4091));
    let whole = call(&session, "a", &json);
    assert_eq!(whole.len(), 1);
    for cut in [1, 7, 4000] {
        let mut gate = session.gate();
        gate.block_start(0, &StreamKind::Tool { call: CallId::new("a"), name: "write".into() });
        let chars: Vec<char> = json.chars().collect();
        let pieces = chars.chunks(cut).map(|piece| piece.iter().collect::<String>());
        let cut_up: Vec<RuleMatch> = pieces.flat_map(|piece| gate.piece(0, &piece).matches).collect();
        assert_eq!(cut_up, whole, "in pieces of {cut}");
    }
}

#[test]
fn a_tool_says_itself_which_arguments_name_files() {
    let tool = |schema: &str| flow::ToolSpec {
        name: "Patch".into(),
        description: String::new(),
        parameters: serde_json::from_str(schema).unwrap(),
    };
    let fires = |session: &RuleSession, arguments: &str| {
        let mut gate = session.gate();
        gate.block_start(0, &StreamKind::Tool { call: CallId::new("1"), name: "patch".into() });
        gate.piece(0, arguments).matches.first().map(|found| found.evidence.path.clone().unwrap_or_default())
    };
    let mut session = session("condition = 'x'\nscope = 'tool(*.ts)'");
    let (by_key, by_tool) = (r#"{"path":"a.ts","text":"x"}"#, r#"{"into":"b.ts","path":"no file","text":"x"}"#);
    assert_eq!((fires(&session, by_key), fires(&session, by_tool)), (Some("a.ts".into()), None));
    session.declare_paths(&[tool(r#"{"properties":{"into":{"type":"string","format":"path"}}}"#)]);
    assert_eq!((fires(&session, by_key), fires(&session, by_tool)), (None, Some("b.ts".into())));
    session.declare_paths(&[tool(r#"{"properties":{"path":{"type":"string"}}}"#)]);
    assert_eq!(fires(&session, by_key), Some("a.ts".into()));
}

#[test]
fn of_rules_that_stop_together_the_one_that_leaves_least_has_its_way() {
    use rules::ContextMode::{Discard, Keep, Rewind};
    for (front, setting, expected) in [
        (["context = 'keep'", "context = 'rewind'"], Discard, Rewind),
        (["context = 'keep'", ""], Discard, Discard),
        (["", "context = 'keep'"], Rewind, Rewind),
        (["context = 'keep'", "context = 'keep'"], Discard, Keep),
        // One that only reminds has no say.
        (["context = 'keep'", "context = 'discard'\ninterrupt = 'tool-only'"], Rewind, Keep),
    ] {
        let rules = [("a", front[0]), ("b", front[1])]
            .map(|(name, front)| rule(name, &format!("condition = 'x'\n{front}"), "No."));
        let settings = RuleSettings { context_mode: setting, ..RuleSettings::default() };
        let mut session = RuleSession::new(set(rules.into(), settings));
        session.begin_turn();
        let found = text(&session, "x");
        assert_eq!(session.judge(&found).context, expected, "{front:?}");
    }
}

#[test]
fn a_turns_end_releases_what_waited_in_it() {
    let mut session = session("condition = 'x'");
    session.begin_turn();
    let found = text(&session, "x");
    assert_eq!(session.judge(&found).rules, ["r"]);
    assert!(!session.acts("r"), "it waits for its reminder");
    session.end_turn();
    assert_eq!(acted(&session, "x").len(), 1);
}

#[test]
fn a_kept_prefix_is_watched_without_being_judged_again() {
    let session = session("condition = 'FORB IDDEN|seen'");
    let mut gate = session.gate();
    assert_eq!(gate.prefix("seen once, now FORB "), 0, "nothing is shown of the match that it had its verdict for");
    gate.block_start(0, &StreamKind::Text);
    assert_eq!(gate.piece(0, "IDDEN").matches, [], "the rule has fired in this answer");
    let mut gate = session.gate();
    assert_eq!(gate.prefix("now FORB "), 4);
    gate.block_start(0, &StreamKind::Text);
    let fed = gate.piece(0, "IDDEN");
    assert_eq!((fed.matches[0].evidence.start, fed.safe), (4, 4), "offsets count from the start of the prefix");
}

#[test]
fn a_rule_that_is_used_up_is_watched_without_acting() {
    let mut session = session("condition = 'x'");
    session.begin_turn();
    session.injected(&["r".into()]);
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let fed = gate.piece(0, "a x b");
    assert_eq!((fed.matches.len(), fed.safe), (1, 5), "it holds nothing back");
    let judged = session.judge(&fed.matches);
    assert_eq!((judged.action, judged.again, judged.first), (Action::Pass, vec![true], vec![true]));
    assert!(judged.rules.is_empty() && judged.over_budget.is_empty());
    assert_eq!(session.interrupts(), 0);
}

/// A rule that comes with a workspace and fires on every word leaves a guard of the operator its interrupts.
#[test]
fn rules_that_nobody_trusts_use_up_their_own_interrupts() {
    let noise = Rule { untrusted: true, ..rule("noise", "condition = 'the'\nrepeat = 'always'", "Body.") };
    let guard = rule("guard", "condition = 'KEY'\nrepeat = 'always'", "Body.");
    let mut session = RuleSession::new(set(vec![noise, guard], RuleSettings::default()));
    session.begin_turn();
    let action = |session: &mut RuleSession, words: &str| {
        let found = text(session, words);
        session.judge(&found).action
    };
    let all: Vec<Action> = (0..4).map(|_| action(&mut session, "the")).collect();
    assert_eq!(all, [Action::Interrupt, Action::Interrupt, Action::Interrupt, Action::Pass]);
    let all: Vec<Action> = (0..4).map(|_| action(&mut session, "KEY")).collect();
    assert_eq!(all, [Action::Interrupt, Action::Interrupt, Action::Interrupt, Action::Pass]);
    assert_eq!(session.interrupts(), 6);
    // The other way round, the rule of the workspace has what the guard has left.
    session.begin_turn();
    let all: Vec<Action> = ["KEY", "KEY", "the", "the", "KEY"].map(|words| action(&mut session, words)).to_vec();
    assert_eq!(all, [Action::Interrupt, Action::Interrupt, Action::Interrupt, Action::Pass, Action::Interrupt]);
}

#[test]
fn reminders_after_an_answer_have_the_budget_of_interrupts() {
    for (most, times) in [(0, 1), (1, 1), (3, 3)] {
        let rules = vec![rule("r", "condition = 'x'\naction = 'remind'\nrepeat = 'always'", "No.")];
        let mut session =
            RuleSession::new(set(rules, RuleSettings { max_interrupts_per_turn: most, ..RuleSettings::default() }));
        for _turn in 0..2 {
            session.begin_turn();
            let mut judged = Vec::new();
            for _answer in 0..times + 3 {
                let found = text(&session, "x");
                let judgement = session.judge(&found);
                judged.push((judgement.action, judgement.over_budget));
                session.injected(&judgement.rules);
            }
            let expected = |at: usize| match at.cmp(&times) {
                std::cmp::Ordering::Less => (Action::Remind, vec![]),
                std::cmp::Ordering::Equal => (Action::Pass, vec!["r".to_owned()]),
                std::cmp::Ordering::Greater => (Action::Pass, vec![]),
            };
            assert_eq!(judged, (0..times + 3).map(expected).collect::<Vec<_>>(), "{most}");
            session.end_turn();
        }
    }
}

#[test]
fn the_latest_of_several_records_counts() {
    let gapped = || session("condition = 'x'\nrepeat = 'after-gap'\ngap = 2");
    let mut before = gapped();
    let mut records = Vec::new();
    for _ in 0..3 {
        before.begin_turn();
        records.extend(before.injected(&["r".into()]));
        before.end_turn();
    }
    for records in [records.clone(), records.iter().rev().cloned().collect()] {
        let mut after = gapped();
        after.restore(records, 3);
        assert_eq!(acted(&after, "x"), []);
        after.end_turn();
        assert_eq!(acted(&after, "x").len(), 1);
    }
}

#[test]
fn a_reminder_is_known_by_the_rules_whole_name() {
    let rules = vec![rule("a&b", "condition = 'x'", "No."), rule("other", "condition = 'x'", "No.")];
    let session = RuleSession::new(set(rules, RuleSettings::default()));
    let found = text(&session, "x");
    for said in [session.reminder(&found), session.tool_reminder(&found)] {
        assert!(RuleSession::holds_reminder(&said, "a&b") && RuleSession::holds_reminder(&said, "other"), "{said}");
        assert!(!RuleSession::holds_reminder(&said, "othe") && !RuleSession::holds_reminder(&said, "a&amp;b"));
    }
    assert!(!RuleSession::holds_reminder("rule=\"other\"", "other"));
}

/// Records of sessions keep this number: an unchanged rule must be the same rule in the next version, too.
#[test]
fn the_hash_of_a_rules_content_never_changes() {
    let rule =
        rule("r", "condition = ['x', 'y+']\nscope = 'text, tool:edit(*.ts)'\nglobs = 'src/*'\nfield = 'a'", "No.");
    assert_eq!(rule.content_hash(), 6_406_020_828_154_520_842);
}
