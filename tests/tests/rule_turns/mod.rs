//! Whole turns under stream rules: every case of `tests/corpus/rules/turns` in all three wire formats, the answers cut
//! by server and network into single bytes, at random, and not at all. Each must come to the same.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says what it ran")]

mod case;
mod replayed;
mod scene;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::wire::Wire;
use flow::ports::Tools as _;
use flow::{Action, Event, EventKind, Message, SessionId, StreamKind, TurnStatus};
use rules::{Rule, RuleLayer, RuleOrigin, RuleSet, RuleSpec};
use serde::Deserialize as _;
use serde_json::Value;
use trial::Trial;
use turn::{CancellationToken, MemoryRecords, Session, SessionParts, TurnReport};

use self::case::{Case, File, Turn};
use self::replayed::Recorded;
use self::scene::{Echo, Edited, Listener, Nobody, Sudden, WireModel};
use self::wire::{CUTS, Cut};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/rules/turns")
}

fn cases() -> Vec<Case> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        toml::from_str::<File>(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())).case
    };
    files.iter().flat_map(read).collect()
}

fn rule_set(case: &Case, rules: &[case::RuleCase]) -> Arc<RuleSet> {
    let mut settings = case.settings.clone();
    settings.entry("builtin_rules").or_insert(false.into());
    let settings = rules::RuleSettings::deserialize(settings).unwrap();
    let source = |name: &str| RuleOrigin { layer: RuleLayer::Project, path: format!("rules/{name}.md") };
    let one = |rule: &case::RuleCase| {
        let mut spec = RuleSpec::deserialize(rule.spec.clone()).unwrap();
        spec.body.get_or_insert_with(|| format!("The reminder of {}.", rule.name));
        let (made, found) = Rule::from_spec(&rule.name, &source(&rule.name), &spec, None);
        assert!(found.is_empty(), "{}: {found:?}", case.name);
        made.unwrap()
    };
    let (set, found) = RuleSet::build(rules.iter().map(one).collect(), settings, "/workspace");
    assert!(found.is_empty(), "{}: {found:?}", case.name);
    set
}

/// A case in one wire format and one cut.
struct Run<'a> {
    case: &'a Case,
    label: String,
    model: Arc<WireModel>,
    listener: Listener,
    clock: Arc<Sudden>,
    tools: Arc<Echo>,
    rules: Arc<Edited>,
    /// Opens the session, or takes it up again.
    open: Box<dyn Fn() -> Session>,
    session: Session,
    recorded: Recorded,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, wire: Wire, cut: Cut) -> Self {
        let (recorded, recording) = Recorded::new(wire);
        let model = WireModel::new(wire, case.prefill, cut, recording);
        let (listener, clock, tools) = (Listener::default(), Arc::new(Sudden::default()), Arc::new(Echo::default()));
        let rules = Arc::new(Edited(rule_set(case, &case.rule).into()));
        let (records, told) = (Arc::new(MemoryRecords::default()), listener.clone());
        let (asked, echo, source, time) = (model.clone(), tools.clone(), rules.clone(), clock.clone());
        let open = move || {
            let session = tidegate_kit::ready(Session::open(SessionParts {
                id: SessionId::new("case"),
                model: asked.clone(),
                extensions: Arc::new(told.clone()),
                tools: echo.clone(),
                confirm: Arc::new(Nobody),
                rules: source.clone(),
                clock: time.clone(),
                settings: turn::SessionSettings { workspace: "/workspace".into(), ..turn::SessionSettings::default() },
            }))
            .unwrap();
            session.with_records(records.clone())
        };
        let session = open();
        let label = format!("{} ({}, cut {cut:?})", case.name, wire.as_str());
        Self { case, label, model, listener, clock, tools, rules, open: Box::new(open), session, recorded }
    }

    /// Another run of the program takes the session up, with its conversation.
    fn resume(&mut self) {
        let history = self.session.history();
        self.session = (self.open)();
        let rearmed = self.session.replace_history(history);
        assert!(rearmed.is_empty(), "{}: {rearmed:?}", self.label);
    }

    async fn turn(&mut self, number: usize, turn: &Turn) {
        let label = format!("{}, turn {}", self.label, number + 1);
        let cancel = CancellationToken::new();
        if let Some(when) = &turn.cancel {
            assert_eq!(when, "between", "{label}: no such moment");
            *self.clock.cancel.lock().unwrap() = Some(cancel.clone());
        }
        if let Some(edited) = &turn.rule {
            *self.rules.0.lock().unwrap() = rule_set(self.case, edited);
        }
        if turn.resumed {
            self.resume();
        }
        self.model.will_say(&turn.answer);
        let mut events = self.session.subscribe();
        let report = self.session.run(vec![Message::user("Go on.")], &cancel).await;
        self.session.notified().await;
        let events: Vec<Event> = std::iter::from_fn(|| events.try_next()).collect();
        self.recorded.take(&events);
        check_report(&label, turn, &report);
        check_events(&label, turn, &events);
        let ran = std::mem::take(&mut *self.tools.0.lock().unwrap());
        assert_eq!(ran, turn.ran, "{label}: tools");
        self.check_told(&label, turn);
        self.is_nowhere(&label, &format!("{events:?}"));
        self.is_nowhere(&label, &format!("{report:?}"));
        let requests = self.model.take_requests();
        self.is_nowhere(&label, &format!("{requests:?}"));
        assert_eq!(requests.len(), turn.answer.len(), "{label}: requests");
        check_requests(&label, turn, &requests);
        if self.case.settings.get("hold").is_none() {
            nothing_of_a_match_is_shown(&label, self.case.prefill, &events);
        }
    }

    fn is_nowhere(&self, label: &str, text: &str) {
        for secret in &self.case.nowhere {
            assert!(!text.contains(secret), "{label}: {secret:?} is in {text}");
        }
    }

    /// No page about the session contains what it must not.
    fn check_pages(&self) {
        let records = self.recorded.records();
        self.is_nowhere(&self.label, &format!("{records:?}"));
        let page = report::Report::of(records.into_iter());
        self.is_nowhere(&self.label, &report::markdown(&page));
        self.is_nowhere(&self.label, &report::html(&page));
        for turn in 1.. {
            let Some(explanation) = report::explain(&page, Some(turn)) else { break };
            self.is_nowhere(&self.label, &explanation.text());
        }
    }

    /// A replay of the session with its own rules reports what fired in it.
    fn check_replay(&self) {
        let trial = Trial::of_session(rule_set(self.case, &self.case.rule), self.tools.specs());
        let edited = (1..).zip(&self.case.turn).filter_map(|(number, turn)| Some((number, turn.rule.as_ref()?)));
        let trial =
            edited.fold(trial, |trial, (number, rules)| trial.edited_before(number, rule_set(self.case, rules)));
        self.recorded.check(&self.label, &trial);
    }

    fn check_told(&self, label: &str, turn: &Turn) {
        let told = std::mem::take(&mut *self.listener.0.lock().unwrap());
        let told: Vec<&str> = told.iter().flat_map(|event| &event.matches).map(|found| &*found.rule).collect();
        // Several come in any order, and after a cancel perhaps none.
        let (mut told, mut wanted) = (told, turn.told.iter().map(String::as_str).collect::<Vec<_>>());
        told.sort_unstable();
        wanted.sort_unstable();
        assert!(told == wanted || turn.cancel.is_some(), "{label}: told of {told:?}, expected {wanted:?}");
    }
}

fn check_report(label: &str, turn: &Turn, report: &TurnReport) {
    let status = match &report.status {
        TurnStatus::Completed => "completed".to_owned(),
        TurnStatus::Cancelled => "cancelled".to_owned(),
        TurnStatus::StoppedByRule { rule } => format!("stopped by {rule}"),
        TurnStatus::Failed { message, .. } => format!("failed: {message}"),
        other => format!("{other:?}"),
    };
    // Providers wrap the server's message in text of their own.
    assert!(
        status == turn.status || turn.status.strip_prefix("failed: ").is_some_and(|words| status.contains(words)),
        "{label}: {status}, expected {}",
        turn.status
    );
    if let Some(text) = &turn.text {
        assert_eq!(&report.text, text, "{label}: the report's text");
    }
}

fn check_events(label: &str, turn: &Turn, events: &[Event]) {
    let (mut shown, mut fires, mut injected) = (String::new(), Vec::new(), Vec::new());
    for event in events {
        match &event.kind {
            EventKind::CognitionOutDelta { text, .. } => shown.push_str(text),
            EventKind::RuleFired { found, action, .. } => fires.push(format!("{} {}", found.rule, action.as_str())),
            EventKind::TtsrInjection { rules, .. } => injected.extend(rules.iter().cloned()),
            _ => {}
        }
    }
    assert_eq!(shown, turn.shown, "{label}: shown");
    assert_eq!(fires, turn.fires, "{label}: fires");
    assert_eq!(injected, turn.injected, "{label}: injected");
}

fn check_requests(label: &str, turn: &Turn, requests: &[Value]) {
    for request in &turn.request {
        let mut said = String::new();
        strings(&requests[request.number - 1], &mut said);
        for words in &request.holds {
            assert!(said.contains(words), "{label}: request {} lacks {words:?}:\n{said}", request.number);
        }
        for words in &request.lacks {
            assert!(!said.contains(words), "{label}: request {} holds {words:?}:\n{said}", request.number);
        }
    }
}

/// All strings of a body, in order.
fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, out)),
        _ => {}
    }
}

/// Case 34: of an attempt that a rule stopped in its text, no byte of the match was shown.
fn nothing_of_a_match_is_shown(label: &str, goes_on: bool, events: &[Event]) {
    // Shown in this attempt; its kept prefix; the start of the first match.
    let (mut shown, mut prefix, mut first) = (0_u64, 0_u64, None::<u64>);
    for event in events {
        match &event.kind {
            EventKind::CognitionOutDelta { text, .. } => shown += text.len() as u64,
            EventKind::RuleFired { found, action: Action::Interrupt | Action::Stop, .. }
                if found.stream == StreamKind::Text =>
            {
                first = Some(first.map_or(found.evidence.start, |first| first.min(found.evidence.start)));
            }
            EventKind::CognitionOut { partial, .. } => {
                if let (Some(first), Some(partial)) = (first, partial) {
                    assert_eq!(partial.shown_bytes, prefix + shown, "{label}");
                    // A model that continues from the kept prefix writes in the same block. The prefix had been shown
                    // when nothing forbade it: of a match that begins there only the rest can be kept back.
                    let (shown, first) = if goes_on { (prefix + shown, first.max(prefix)) } else { (shown, first) };
                    assert!(shown <= first, "{label}: {shown} bytes were shown, a match begins at {first}");
                }
                prefix = partial.as_ref().map_or(0, |partial| partial.kept_bytes);
                (shown, first) = (0, None);
            }
            _ => {}
        }
    }
}

#[test]
fn every_case_in_every_wire_format_at_every_cut() {
    let cases = cases();
    let (mut runs, mut failed) = (0, Vec::new());
    for case in &cases {
        for wire in WIRES {
            if !case.wires.is_empty() && !case.wires.iter().any(|name| name == wire.as_str()) {
                continue;
            }
            for cut in CUTS.into_iter().filter(|cut| is_about(case, *cut)) {
                runs += 1;
                // One that fails leaves the others to be seen.
                if std::panic::catch_unwind(|| play(case, wire, cut)).is_err() {
                    failed.push(format!("{} ({}, {cut:?})", case.name, wire.as_str()));
                }
            }
        }
    }
    println!("{} cases, {runs} runs", cases.len());
    assert!(failed.is_empty(), "{} of {runs} runs failed:\n{}", failed.len(), failed.join("\n"));
    assert!(cases.len() >= 20 && runs >= 10 * cases.len(), "{} cases, {runs} runs", cases.len());
}

fn is_about(case: &Case, cut: Cut) -> bool {
    match case.cuts.as_deref() {
        None => true,
        Some("whole") => cut == Cut::Whole,
        Some("pieces") => cut != Cut::Whole,
        Some(other) => panic!("{}: no such cuts: {other}", case.name),
    }
}

fn play(case: &Case, wire: Wire, cut: Cut) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut run = Run::new(case, wire, cut);
        for (number, turn) in case.turn.iter().enumerate() {
            run.turn(number, turn).await;
        }
        run.check_pages();
        run.check_replay();
    });
}

#[test]
fn the_cases_that_need_a_provider_are_all_there() {
    let have: Vec<u32> = cases().iter().flat_map(|case| case.spec.clone()).collect();
    let wanted = [14, 15, 16, 17, 18, 19, 20, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34];
    let missing: Vec<u32> = wanted.into_iter().filter(|number| !have.contains(number)).collect();
    assert!(missing.is_empty(), "no case for {missing:?} of the specification");
}
