//! A loop that is no turn: it has a model's deltas and a reader, no runtime, no conversation and no clock. What a proxy or a replay builds on
//! must not need more.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{EventSink, ExtensionHost as _, Extensions};
use flow::{
    CallAnswer, CallId, Callback, Delta, EventKind, Origin, RuleMatch, RunPosition, StopReason, StreamKind, TextAnswer,
    TextUnit, ToolCall,
};
use rules::{ContextMode, Judgement, RuleSession, RuleSet};
use tidegate_guard::attempt::{Attempt, Stopped};
use tidegate_guard::{Beginning, Caller, Completed, Events, Prefilled, Relay, RelayParts, Segments, Watcher, calls};
use tidegate_kit::{CUTS, Plugin, Plugins, blocks, pieces, ready, rule_set, tool};

/// Who reads what a model writes.
#[derive(Default)]
struct Reader(Mutex<Vec<EventKind>>);

impl EventSink for Reader {
    fn emit(&self, kind: EventKind) {
        self.0.lock().unwrap().push(kind);
    }
}

impl Events for Reader {
    fn place(&self) -> RunPosition {
        RunPosition { turn: 1, step: 1, attempt: 1 }
    }
}

impl Reader {
    fn seen(&self) -> String {
        let text = |event: &EventKind| match event {
            EventKind::CognitionOutDelta { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(text).collect()
    }
}

/// The rules that have fired, and those for which something was held back.
#[derive(Default)]
struct Noted {
    fired: Vec<String>,
    held: Vec<String>,
}

impl Watcher for Noted {
    fn fired(&mut self, matches: &[RuleMatch], _: &Judgement) {
        self.fired.extend(matches.iter().map(|found| found.rule.clone()));
    }

    fn held(&mut self, rules: &[String]) {
        self.held.extend(rules.iter().cloned());
    }
}

/// The loop: attempts of one answer.
struct Own {
    reader: Arc<Reader>,
    caller: Arc<Caller>,
    rules: RuleSession,
    beginning: Beginning,
    noted: Noted,
    /// The time of the loop, in milliseconds.
    now: AtomicU64,
}

impl Own {
    fn new(rules: Arc<RuleSet>, plugins: Vec<Plugin>) -> Self {
        let plugins = Plugins::new(plugins);
        let registered = plugins.registrations();
        let reader = Arc::new(Reader::default());
        let caller = Caller::new(registered, plugins as Arc<dyn Extensions>, Arc::<Reader>::clone(&reader));
        let mut rules = RuleSession::new(rules);
        rules.begin_turn();
        let (beginning, noted, now) = (Beginning::default(), Noted::default(), AtomicU64::new(0));
        Self { reader, caller: Arc::new(caller), rules, beginning, noted, now }
    }

    /// Relays an attempt; `between` is called before each delta. Returns what stopped it.
    fn attempt(
        &mut self,
        deltas: Vec<Delta>,
        mut between: impl FnMut(&AtomicU64, &mut Relay<'_>),
    ) -> (Attempt, Segments, Option<Stopped>) {
        let mut effects = Vec::new();
        let mut attempt = self.beginning.attempt(&self.rules, &self.caller, None, &mut effects);
        let mut segments = ready(self.beginning.segments(&self.caller, true)).unwrap();
        let now = || Duration::from_millis(self.now.load(Ordering::Relaxed));
        let parts = RelayParts {
            caller: &self.caller,
            rules: &mut self.rules,
            attempt: &mut attempt,
            segments: Some(&mut segments),
            beginning: &mut self.beginning,
            watcher: &mut self.noted,
            now: &now,
        };
        let mut relay = Relay::new(parts, effects);
        ready(relay.perform()).unwrap();
        let mut stopped = None;
        for delta in deltas {
            between(&self.now, &mut relay);
            if relay.delta(delta) {
                stopped = ready(relay.end()).unwrap();
                break;
            }
            if !relay.show_at_once() {
                ready(relay.show()).unwrap();
            }
        }
        ready(relay.close()).unwrap();
        drop(relay);
        (attempt, segments, stopped)
    }
}

fn upper() -> Plugin {
    Plugin {
        id: "upper",
        callbacks: vec![(Callback::PlainText(TextUnit::Line.into()), 50)],
        text: Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.to_uppercase())))),
        ..Plugin::default()
    }
}

fn say(text: &str, cut: usize) -> Vec<Delta> {
    blocks(&[(StreamKind::Text, text)], cut, StopReason::EndTurn)
}

fn forbidden(lines: &str) -> Arc<RuleSet> {
    let rule = format!("+++\ncondition = \"forbidden\"\n{lines}\n+++\nNever say it.");
    rule_set(&[("no-forbidden", &rule)], |settings| settings.context_mode = ContextMode::Rewind)
}

#[test]
fn a_stopped_answer_continues_as_one_text_for_the_reader() {
    for cut in CUTS {
        for (plugins, seen) in [(vec![], "One line.\nFine.\n"), (vec![upper()], "ONE LINE.\nFINE.\n")] {
            let mut own = Own::new(forbidden(""), plugins);
            let (attempt, _, stopped) = own.attempt(say("One line.\nforbidden words\n", cut), |_, _| ());
            let kept = attempt.answer.kept(&stopped.expect("a rule stops it"));
            assert_eq!(
                (kept.text.as_str(), own.noted.fired.as_slice()),
                ("One line.\n", &["no-forbidden".to_owned()][..])
            );
            let prefilled = ready(Prefilled::new(kept.text, (kept.released, kept.decided), &own.caller, true));
            own.beginning = Beginning::Prefilled(Box::new(prefilled.unwrap()));

            let (mut attempt, segments, stopped) = own.attempt(say("Fine.\n", cut), |_, _| ());
            assert!(stopped.is_none());
            let completed = ready(Completed::new(&own.caller, &mut attempt.answer, segments, true)).unwrap();
            assert_eq!(
                (completed.text.as_str(), own.reader.seen().as_str()),
                ("One line.\nFine.\n", seen),
                "cut {cut}"
            );
            let event = completed.event(&attempt.answer, Origin::Model, true);
            let EventKind::CognitionOut { text, shown, .. } = event else { panic!("{event:?}") };
            assert_eq!((text.as_str(), shown.as_deref().unwrap_or(&text)), ("One line.\nFine.\n", seen));
        }
    }
}

#[test]
fn bytes_are_held_back_for_as_long_as_the_loop_says() {
    let rule = "+++\ncondition = \"A.*Z\"\n+++\nNever.";
    let rules = rule_set(&[("endless", rule)], |settings| settings.hold_max_ms = 1_500);
    let mut own = Own::new(rules, vec![]);
    let mut seen = Vec::new();
    let reader = Arc::clone(&own.reader);
    let mut deltas = vec![Delta::BlockStart { block: 0, kind: StreamKind::Text }];
    deltas.extend(pieces(0, "x Ab", 1));
    own.attempt(deltas, |now, relay| {
        if let Some(due) = relay.deadline() {
            now.store(u64::try_from(due.as_millis()).unwrap(), Ordering::Relaxed);
            ready(relay.release()).unwrap();
        }
        seen.push(reader.seen());
    });
    assert_eq!(seen, ["", "", "x", "x ", "x A"]);
    assert_eq!(
        (own.reader.seen().as_str(), own.noted.held.len()),
        ("x A", 1),
        "nobody says that the time of `b` is over"
    );
}

#[test]
fn a_call_is_judged_whole_and_extensions_get_it_whole() {
    for cut in CUTS {
        let replace = |_| Ok(CallAnswer::Replace(r#"{"path":"b"}"#.to_owned()));
        let callbacks = vec![(Callback::ToolCall, 50)];
        let plugin = Plugin { id: "p", callbacks, call: Some(Box::new(replace)), ..Plugin::default() };
        let mut own = Own::new(forbidden("scope = [\"tool:write\"]\naction = \"block\""), vec![plugin]);
        let answer = [(tool("1", "write"), r#"{"path":"forbidden"}"#), (tool("2", "write"), r#"{"path":"a"}"#)];
        let (mut attempt, _, stopped) = own.attempt(blocks(&answer, cut, StopReason::ToolUse), |_, _| ());
        assert!(stopped.is_none());
        let refused = |attempt: &mut Attempt, id: &str| attempt.noted.take_call(&CallId::new(id)).refusals.len();
        assert_eq!((refused(&mut attempt, "1"), refused(&mut attempt, "2")), (1, 0), "cut {cut}");
        let all: Vec<ToolCall> = attempt.answer.calls();
        let checked = ready(calls::check(&own.caller, &all[1], false)).unwrap();
        assert_eq!((checked.call.arguments.as_str(), checked.refusal.is_none()), (r#"{"path":"b"}"#, true));
        assert_eq!(own.reader.seen(), "");
    }
}

#[test]
fn an_attempt_that_breaks_off_leaves_what_was_received() {
    let mut own = Own::new(forbidden(""), vec![]);
    let mut deltas = vec![Delta::BlockStart { block: 0, kind: StreamKind::Text }];
    deltas.extend(pieces(0, "One line.\nTwo", 4));
    let (mut attempt, _, stopped) = own.attempt(deltas, |_, _| ());
    assert!(stopped.is_none());
    let left = attempt.cut(&own.rules, "the connection is lost", false).expect("something was received");
    let text = left.message.expect("it stays").plain_text();
    assert_eq!(text, "One line.\nTwo\n\n[Stream interrupted: the connection is lost]");
    assert!(matches!(left.events.as_slice(), [EventKind::CognitionOut { partial: Some(_), .. }]));
    assert!(attempt.cut(&own.rules, "again", false).is_none(), "it has left all");
}
