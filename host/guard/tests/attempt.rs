//! Random answers through the attempt core: blocks of every kind in any order, every chunking, pauses and ticks anywhere. No
//! byte of a match of an interrupting rule is ever shown, and what is shown, what fires and what the next request contains
//! is the same for every chunking and every placement of ticks. The oracle is the `regex` crate, over the text that a user
//! would read. For conditions without a bounded length the time counts: then the same holds for every chunking between
//! pauses at the same bytes.
//!
//! `TIDEGATE_TIMES=50 cargo test -p tidegate-guard --test it attempt::` runs so many times the usual 20,000 cases.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says what it ran")]

#[path = "../../../rules/tests/judge/mod.rs"]
mod judge;

use std::sync::Arc;
use std::time::Duration;

use flow::{Action, CallId, Delta, StopReason, StreamKind};
use judge::{Judge, Random};
use rules::{ContextMode, InterruptMode, Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleSpec};
use tidegate_guard::attempt::{Attempt, Context, Effect, Ending, Kept, Prefix};

/// Rule sets that the cases share.
const SETS: usize = 500;

/// One rule of a set, as the oracle sees it.
struct Known {
    judge: Judge,
    text: bool,
    thinking: bool,
    tool: bool,
    interrupts: bool,
}

struct Set {
    rules: Arc<RuleSet>,
    known: Vec<Known>,
    shown: String,
}

/// What a case comes to.
#[derive(Debug, PartialEq)]
struct Outcome {
    text: String,
    thinking: String,
    fired: Vec<(String, Action, StreamKind, u64, u64)>,
    /// The reminder and what is kept.
    stopped: Option<(String, Kept)>,
}

fn pick<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    list[random.below(list.len())]
}

/// A condition of bounded length that does not match the empty string: in the rules' dialect, and in that of the
/// oracle.
fn condition(random: &mut Random) -> (String, String) {
    let mut out = String::new();
    for at in 0..1 + random.below(4) {
        out.push_str(pick(random, &["a", "b", "c", "ab", "é", " ", "[ab]", ".", r"\s", "[^a]", "(?:a|bc)", "1"]));
        if at > 0 {
            out.push_str(pick(random, &["", "", "", "?", "{0,2}", "{1,3}"]));
        }
    }
    if random.below(4) == 0 {
        out = format!("(?:{out}|{})", pick(random, &["abc", "a b", "ca", r"c$", r"(?m)^b"]));
    }
    let before = pick(random, &["", "", "", r"\b", "^", "(?m:^)"]);
    let after = pick(random, &["", "", "", r"\b", "$", "(?m:$)"]);
    let ours = format!("(?:{before}{out}{after})");
    (ours.clone(), ours.replace(r"\b", r"(?-u:\b)").replace(r"\s", "[\\t\\n\\v\\f\\r ]"))
}

/// `unbounded`: half of the conditions have no bounded length, and what is held back for them is limited.
fn set(random: &mut Random, unbounded: bool) -> Set {
    let (mut used, mut known, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..1 + random.below(4) {
        let (mut ours, mut theirs) = condition(random);
        if unbounded && random.below(2) == 0 {
            let loops = pick(random, &["a[^c]*c", "(?s:b.*1)", "[ab ]+c", "a b+", "c.*$"]);
            (ours, theirs) = (loops.to_owned(), loops.to_owned());
        }
        let scope = pick(random, &["text", "text", "thinking", "text, thinking", "tool", "text, tool"]);
        let interrupts = random.below(3) > 0;
        let spec = RuleSpec {
            condition: [ours.as_str()].into_iter().collect(),
            scope: scope.split(", ").collect(),
            interrupt: (!interrupts).then_some(InterruptMode::Never),
            body: Some(format!("Do not {at}.")),
            ..RuleSpec::default()
        };
        let source = RuleOrigin { layer: RuleLayer::Project, path: "test".into() };
        let (rule, found) = Rule::from_spec(&format!("r{at}"), &source, &spec, None);
        assert_eq!(found, [], "{ours}");
        used.extend(rule);
        let [text, thinking, tool] = ["text", "thinking", "tool"].map(|word| scope.contains(word));
        known.push(Known { judge: Judge::new(&theirs), text, thinking, tool, interrupts });
        shown.push(format!("{ours} on {scope}, {}", if interrupts { "interrupts" } else { "reminds" }));
    }
    let context_mode = [ContextMode::Discard, ContextMode::Keep, ContextMode::Rewind][random.below(3)];
    let hold_max_bytes = if unbounded { 1 + random.below(8) as u64 } else { RuleSettings::default().hold_max_bytes };
    let settings = RuleSettings { context_mode, hold_max_bytes, ..RuleSettings::default() };
    let (rules, found) = RuleSet::build(used, settings, "/w");
    assert_eq!(found, []);
    Set { rules, known, shown: shown.join("; ") }
}

fn words(random: &mut Random) -> String {
    let pieces = ["a", "b", "c", "ab", "abc", " ", "_", "\n", "é", "1", ".", "a b"];
    (0..random.below(7)).map(|_| pick(random, &pieces)).collect()
}

/// Blocks of an answer: what they are and what is in them (for a call, what its argument decodes to).
fn blocks(random: &mut Random) -> Vec<(StreamKind, String)> {
    let mut block = |at: usize| {
        let kind = match random.below(8) {
            0..4 => StreamKind::Text,
            4..7 => StreamKind::Thinking,
            _ => StreamKind::Tool { call: CallId::new(format!("c{at}")), name: "write".into() },
        };
        (kind, words(random))
    };
    let count = 1 + block(0).1.len() % 6;
    (0..count).map(&mut block).collect()
}

/// How an answer is cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    Characters,
    /// At random, with pauses that are longer than anything is held back for.
    Random(u64),
}

impl Cut {
    fn pieces(self, text: &str) -> Vec<String> {
        let mut random = Random(if let Self::Random(seed) = self { seed | 1 } else { 1 });
        let (mut chars, mut out) = (text.chars().peekable(), Vec::new());
        while chars.peek().is_some() {
            let count = match self {
                Self::Whole => usize::MAX,
                Self::Characters => 1,
                Self::Random(_) => 1 + random.below(6),
            };
            out.push(chars.by_ref().take(count).collect());
        }
        out
    }
}

/// One step of an attempt.
enum Step {
    Delta(Delta),
    /// Time passes, and the core gets the current time.
    Pause(Duration),
}

/// The steps of an answer. `pauses` gives the pause behind each character of prose, in order; chunks end there.
fn steps(blocks: &[(StreamKind, String)], cut: Cut, pauses: &[u64]) -> Vec<Step> {
    let mut pauses = pauses.iter().copied().chain(std::iter::repeat(0));
    let mut out = vec![Step::Delta(Delta::Start { model: None })];
    for (block, (kind, words)) in (0..).zip(blocks) {
        out.push(Step::Delta(Delta::BlockStart { block, kind: kind.clone() }));
        let chunks = |text: &str, out: &mut Vec<Step>| {
            out.extend(cut.pieces(text).into_iter().map(|text| Step::Delta(Delta::Piece { block, text })));
        };
        if kind.is_tool() {
            chunks(&serde_json::json!({ "t": words }).to_string(), &mut out);
        } else {
            let mut rest = String::new();
            for (char, pause) in words.chars().zip(&mut pauses) {
                rest.push(char);
                if pause > 0 {
                    chunks(&std::mem::take(&mut rest), &mut out);
                    out.push(Step::Pause(Duration::from_millis(pause)));
                }
            }
            chunks(&rest, &mut out);
        }
        out.push(Step::Delta(Delta::BlockEnd { block }));
    }
    out.push(Step::Delta(Delta::Stop { reason: StopReason::EndTurn }));
    out
}

/// What an answer comes to, and after each pause the bytes of text and thinking that were shown.
fn play(set: &Set, steps: Vec<Step>, ticks: Option<u64>) -> (Outcome, Vec<(usize, usize)>) {
    let mut random = ticks.map(|seed| Random(seed | 1));
    let mut session = RuleSession::new(Arc::clone(&set.rules));
    session.begin_turn();
    let (mut effects, mut clock, mut seen) = (Vec::new(), Duration::ZERO, Vec::new());
    let mut core = Attempt::new(&session, Prefix::default(), &mut effects);
    let mut outcome = Outcome { text: String::new(), thinking: String::new(), fired: Vec::new(), stopped: None };
    for step in steps {
        // A tick at a time at which no deadline has passed does nothing, wherever it is.
        if random.as_mut().is_some_and(|random| random.below(2) == 0) {
            core.tick(clock, &mut effects);
        }
        let over = match step {
            Step::Delta(delta) => {
                core.delta(delta, &mut Context { rules: &mut session, now: &|| clock, effects: &mut effects })
            }
            Step::Pause(time) => {
                clock += time;
                core.tick(clock, &mut effects);
                collect(&mut effects, &mut outcome);
                seen.push((outcome.text.len(), outcome.thinking.len()));
                false
            }
        };
        collect(&mut effects, &mut outcome);
        if over {
            break;
        }
    }
    if let Some(Ending::Stopped(stopped)) = core.take_ending() {
        let reminders: Vec<_> = stopped.reminders().into_iter().map(|(found, _)| found).collect();
        outcome.stopped = Some((session.reminder(&reminders), core.answer.kept(&stopped)));
    }
    (outcome, seen)
}

fn collect(effects: &mut Vec<Effect>, outcome: &mut Outcome) {
    for effect in effects.drain(..) {
        match effect {
            Effect::ShowText(text) => outcome.text.push_str(&text),
            Effect::ShowThinking(text) => outcome.thinking.push_str(&text),
            Effect::Fired { matches, judgement } => {
                for (found, action) in matches.into_iter().zip(judgement.actions) {
                    let evidence = found.evidence;
                    outcome.fired.push((found.rule, action, found.stream, evidence.start, evidence.end));
                }
            }
            Effect::Report(_) | Effect::Held { .. } | Effect::Restarted(_) => {}
        }
    }
}

/// Pauses behind the characters of an answer, most of them none.
fn pauses(random: &mut Random) -> Vec<u64> {
    (0..40).map(|_| if random.below(4) == 0 { 1 + random.below(3000) as u64 } else { 0 }).collect()
}

fn joined(blocks: &[(StreamKind, String)], wanted: &StreamKind) -> String {
    blocks.iter().filter(|(kind, _)| kind == wanted).map(|(_, words)| words.as_str()).collect()
}

/// Compares an outcome with the oracle.
fn judge(set: &Set, blocks: &[(StreamKind, String)], outcome: &Outcome) -> Result<(), String> {
    let (text, thinking) = (joined(blocks, &StreamKind::Text), joined(blocks, &StreamKind::Thinking));
    let calls: Vec<&str> = blocks.iter().filter(|(kind, _)| kind.is_tool()).map(|(_, words)| words.as_str()).collect();
    let matches = |known: &Known, words: &str| !words.is_empty() && known.judge.first_end(words.as_bytes()).is_some();
    let mut must_stop = false;
    for known in set.known.iter().filter(|known| known.interrupts) {
        must_stop |= known.text && matches(known, &text) || known.thinking && matches(known, &thinking);
        must_stop |= known.tool && calls.iter().any(|words| matches(known, words));
        for (watched, whole, shown) in
            [(known.text, &text, &outcome.text), (known.thinking, &thinking, &outcome.thinking)]
        {
            let first = known.judge.first_start(whole.as_bytes()).filter(|_| watched);
            if first.is_some_and(|first| shown.len() > first) {
                return Err(format!("{shown:?} was shown of {whole:?}"));
            }
        }
    }
    if outcome.stopped.is_some() != must_stop {
        return Err(format!("stopped: {}, expected: {must_stop}", outcome.stopped.is_some()));
    }
    if !must_stop && (outcome.text != text || outcome.thinking != thinking) {
        return Err("not all of an answer without a violation was shown".to_owned());
    }
    if !text.starts_with(&outcome.text) || !thinking.starts_with(&outcome.thinking) {
        return Err("what was shown is no prefix of what was sent".to_owned());
    }
    for (rule, _, stream, _, end) in &outcome.fired {
        let known = &set.known[rule[1..].parse::<usize>().unwrap()];
        let whole = match stream {
            StreamKind::Text => &text,
            StreamKind::Thinking => &thinking,
            StreamKind::Tool { .. } => continue,
        };
        if known.judge.first_end(whole.as_bytes()) != Some(*end as usize) {
            return Err(format!("{rule} fired at byte {end} of {whole:?}"));
        }
    }
    Ok(())
}

#[test]
fn nothing_of_a_match_is_shown_and_neither_chunking_nor_ticks_make_a_difference() {
    let cases = judge::cases(20_000);
    let mut random = Random(std::env::var("TIDEGATE_SEED").map_or(7, |seed| seed.parse().unwrap()));
    let sets: Vec<Set> = (0..SETS).map(|_| set(&mut random, false)).collect();
    let (mut stopped, mut reminded) = (0, 0);
    for number in 0..cases {
        let (set, blocks) = (&sets[random.below(SETS)], blocks(&mut random));
        let (whole, _) = play(set, steps(&blocks, Cut::Whole, &[]), None);
        let context = || format!("case {number}: {} on {blocks:?}", set.shown);
        if let Err(problem) = judge(set, &blocks, &whole) {
            panic!("{}: {problem}: {whole:?}", context());
        }
        for cut in [Cut::Characters, Cut::Random(number as u64)] {
            let pauses = pauses(&mut random);
            let (outcome, _) = play(set, steps(&blocks, cut, &pauses), Some(number as u64));
            assert_eq!(outcome, whole, "{}, cut {cut:?}, pauses {pauses:?}", context());
        }
        stopped += usize::from(whole.stopped.is_some());
        reminded += usize::from(whole.stopped.is_none() && !whole.fired.is_empty());
    }
    println!("{cases} answers, {stopped} of them stopped, {reminded} with reminders only");
    assert!(stopped > cases / 10 && reminded > cases / 50, "{stopped} stopped, {reminded} reminded of {cases}");
}

#[test]
fn between_the_same_pauses_no_chunking_makes_a_difference_to_what_a_limit_releases() {
    let cases = judge::cases(6_000);
    let mut random = Random(std::env::var("TIDEGATE_SEED").map_or(5, |seed| seed.parse().unwrap()));
    let sets: Vec<Set> = (0..SETS).map(|_| set(&mut random, true)).collect();
    let (mut stopped, mut released) = (0, 0);
    for number in 0..cases {
        let (set, blocks, pauses) = (&sets[random.below(SETS)], blocks(&mut random), pauses(&mut random));
        let whole = play(set, steps(&blocks, Cut::Whole, &pauses), None);
        for cut in [Cut::Characters, Cut::Random(number as u64)] {
            let context = || format!("case {number}: {} on {blocks:?}, pauses {pauses:?}, cut {cut:?}", set.shown);
            assert_eq!(play(set, steps(&blocks, cut, &pauses), Some(number as u64)), whole, "{}", context());
        }
        let (unpaused, _) = play(set, steps(&blocks, Cut::Whole, &[]), None);
        // A limit changes when bytes are shown, never what fires.
        assert_eq!(whole.0.fired, unpaused.fired, "case {number}: {} on {blocks:?}, pauses {pauses:?}", set.shown);
        stopped += usize::from(whole.0.stopped.is_some());
        released += usize::from(whole.0.stopped.is_some() && whole.0 != unpaused);
    }
    println!("{cases} answers, {stopped} of them stopped, in {released} of them a pause released more");
    assert!(stopped > cases / 10 && released > cases / 1000, "{stopped} stopped, {released} released of {cases}");
}
