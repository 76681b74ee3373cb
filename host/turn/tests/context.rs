//! Random sessions with a server whose context is small, which counts tokens in its own way and refuses what does not fit: they always go
//! on.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use flow::ports::{BoxFuture, Model, ModelStream};
use flow::{
    CallId, Delta, ErrorClass, Event, EventKind, FailureKind, Image, Message, ModelError, Part, Prompt, StopReason,
    StreamKind, ToolCall, TurnStatus, Usage,
};
use proptest::prelude::*;
use tidegate_kit::{Fetch, assert_rebuilt, assert_valid, drain, ready, rule_set};
use tidegate_turn as turn;
use turn::{CancellationToken, Compaction, Session, SessionParts, SessionSettings};

/// What the server says of a request that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Sizes,
    Limit,
    Class,
    /// A status, and nothing else.
    Nothing,
}

/// What it answers to a request for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Summary {
    Good,
    Empty,
    CutOff,
    Refused,
    Endless,
}

#[derive(Clone, Debug)]
struct Setting {
    /// Tokens that the server takes, prompt and answer together.
    context: u64,
    /// What the host takes it for, as a multiple.
    known: Option<f64>,
    answer: u64,
    /// Tokens of the server for a quarter of a byte.
    density: f64,
    says: Says,
    summary: Summary,
    /// Whether it counts.
    counts: bool,
    at: f64,
    keep_turns: u32,
    turns: Vec<Turn>,
}

#[derive(Clone, Debug)]
struct Turn {
    input: usize,
    images: usize,
    /// The bytes of the results of each step.
    steps: Vec<Vec<usize>>,
}

/// The server, and what it was asked.
struct Server {
    setting: Setting,
    /// The answers that follow.
    script: Mutex<VecDeque<Vec<(String, usize)>>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    accepted: usize,
    refused: usize,
    summaries: usize,
    /// Refused although the server had counted before and its context is known.
    avoidable: usize,
    has_counted: bool,
}

impl Server {
    fn tokens(&self, prompt: &Prompt) -> u64 {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Thinking { text, .. } => text.len(),
            Part::Image(_) => 4_000,
            Part::ToolCall(call) => call.name.len() + call.arguments.len() + 20,
            Part::ToolResult(result) => result.content.iter().map(String::len).sum::<usize>() + 20,
        };
        let messages: usize = prompt.messages.iter().flat_map(|message| &message.parts).map(part).sum();
        let system: usize = prompt.system.iter().map(|block| block.text.len()).sum();
        let tools: usize =
            prompt.tools.iter().map(|tool| tool.name.len() + tool.parameters.to_string().len() + 30).sum();
        ((messages + system + tools) as f64 / 4.0 * self.setting.density) as u64
    }

    fn refusal(&self, tokens: u64) -> ModelError {
        let limit = self.setting.context;
        let mut error = ModelError::of_kind(FailureKind::Http, "the provider answered HTTP 400");
        (error.status, error.facts.said) = (
            Some(400),
            Some(match self.setting.says {
                Says::Sizes => format!("prompt is too long: {tokens} tokens > {limit} maximum"),
                Says::Limit => format!("This model's maximum context length is {limit} tokens."),
                Says::Class => "Your input exceeds the context window of this model.".to_owned(),
                Says::Nothing => "Bad request".to_owned(),
            }),
        );
        error
    }

    fn answer(&self, prompt: &Prompt) -> Result<Vec<Delta>, ModelError> {
        let is_summary = prompt.tools.is_empty();
        let tokens = self.tokens(prompt);
        let answer = prompt.max_tokens.map_or(self.setting.answer, u64::from);
        let mut seen = self.seen.lock().unwrap();
        if !is_summary {
            assert_valid(&prompt.messages);
        }
        if tokens + answer > self.setting.context {
            seen.refused += 1;
            seen.avoidable += usize::from(seen.has_counted && !is_summary && self.setting.known == Some(1.0));
            return Err(self.refusal(tokens));
        }
        assert!(answer > 0);
        let usage = Delta::Usage(Usage { input: Some(tokens), output: Some(20), ..Usage::default() });
        let mut deltas = vec![Delta::Start { model: None }];
        if self.setting.counts {
            deltas.push(usage);
        }
        if is_summary {
            seen.summaries += 1;
            let (text, reason) = match self.setting.summary {
                Summary::Good => ("Things were done.".to_owned(), StopReason::EndTurn),
                Summary::Empty => (String::new(), StopReason::EndTurn),
                Summary::CutOff => ("Things were".to_owned(), StopReason::MaxTokens),
                Summary::Refused => return Err(ModelError::new(ErrorClass::Permanent, "no")),
                Summary::Endless => ("Done. ".repeat(answer as usize / 2), StopReason::EndTurn),
            };
            deltas.extend(block(0, StreamKind::Text, &text));
            deltas.push(Delta::Stop { reason });
            return Ok(deltas);
        }
        seen.accepted += 1;
        seen.has_counted |= self.setting.counts;
        let calls = self.script.lock().unwrap().pop_front().unwrap_or_default();
        if calls.is_empty() {
            deltas.extend(block(0, StreamKind::Text, "Done."));
            deltas.push(Delta::Stop { reason: StopReason::EndTurn });
            return Ok(deltas);
        }
        for (number, (id, bytes)) in (0..).zip(&calls) {
            let kind = StreamKind::Tool { call: CallId::new(id.as_str()), name: "fetch".into() };
            deltas.extend(block(number, kind, &format!("{{\"bytes\":{bytes}}}")));
        }
        deltas.push(Delta::Stop { reason: StopReason::ToolUse });
        Ok(deltas)
    }
}

fn block(number: u32, kind: StreamKind, text: &str) -> Vec<Delta> {
    let mut deltas = vec![Delta::BlockStart { block: number, kind }];
    if !text.is_empty() {
        deltas.push(Delta::Piece { block: number, text: text.to_owned() });
    }
    deltas.push(Delta::BlockEnd { block: number });
    deltas
}

impl Model for Server {
    fn provider(&self) -> &str {
        "server"
    }

    fn name(&self) -> &str {
        "small"
    }

    fn image_tokens(&self, _: &Image) -> u64 {
        1_000
    }

    fn answer_tokens(&self, asked: Option<u32>) -> Option<u64> {
        Some(asked.map_or(self.setting.answer, u64::from))
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let answer = self.answer(prompt);
        Box::pin(async move { answer.map(|deltas| Box::new(Stream(deltas.into())) as Box<dyn ModelStream>) })
    }
}

struct Stream(VecDeque<Delta>);

impl ModelStream for Stream {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// The table of error classes, as far as this server needs it.
fn table() -> Arc<flow::RetryTable> {
    let entry = |id: &str, message: &str| {
        let mut entry = flow::ErrorPattern::new(id, ErrorClass::ContextOverflow);
        entry.message = Some(flow::MessagePattern::new(message).unwrap());
        entry
    };
    let patterns = vec![
        entry("sizes", r"too long: (?<tokens>\d+) tokens > (?<limit>\d+)"),
        entry("limit", r"length is (?<limit>\d+)"),
        entry("class", "context window"),
    ];
    Arc::new(flow::RetryTable::new(patterns, BTreeMap::new()))
}

fn session(setting: &Setting, server: &Arc<Server>) -> Session {
    let context_tokens = setting.known.map(|known| (setting.context as f64 * known) as u64);
    let compaction = Some(Compaction { context_tokens, at: setting.at, keep_turns: setting.keep_turns });
    let model = tidegate_kit::ScriptedModel::new([]);
    let parts = SessionParts {
        model: Arc::<Server>::clone(server),
        tools: Arc::new(Fetch),
        settings: SessionSettings { compaction, retries: table(), ..SessionSettings::default() },
        ..tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {}))
    };
    ready(Session::open(parts)).unwrap()
}

fn input(turn: &Turn) -> Message {
    let mut message = Message::user("go ".repeat(turn.input / 3 + 1));
    let image = Image::new("image/gif", "R0lGODlhAAAA").unwrap();
    message.parts.extend(std::iter::repeat_n(Part::Image(image), turn.images));
    message
}

/// Runs the session, and one turn more. Returns how often each thing was done.
async fn run(setting: Setting) -> Result<Seen, TestCaseError> {
    let server = Arc::new(Server { setting: setting.clone(), script: Mutex::default(), seen: Mutex::default() });
    let mut session = session(&setting, &server);
    let mut events = session.subscribe();
    let mut past: Vec<Event> = Vec::new();
    let mut number = 0;
    for (at, turn) in setting.turns.iter().enumerate() {
        let mut script: VecDeque<Vec<(String, usize)>> = VecDeque::new();
        for step in &turn.steps {
            let call = |bytes: &usize| {
                number += 1;
                (format!("c{number}"), *bytes)
            };
            script.push_back(step.iter().map(call).collect());
        }
        *server.script.lock().unwrap() = script;
        let report = session.run(vec![input(turn)], &CancellationToken::new()).await;
        assert_valid(&session.history());
        past.extend(drain(&mut events));
        assert_rebuilt(&past, &session.history());
        let is_named = match &report.status {
            TurnStatus::Completed | TurnStatus::StepLimit { .. } => true,
            // The input of this turn is what does not fit, or the refusal says nothing.
            TurnStatus::Failed { class: ErrorClass::ContextOverflow, message } => {
                message.contains("does not fit the context") || message.contains("is too large")
            }
            TurnStatus::Failed { class: ErrorClass::Permanent, .. } => setting.says == Says::Nothing,
            _ => false,
        };
        prop_assert!(is_named, "turn {at}: {:?}", report.status);
    }
    // Nothing of what tools gave is missing in the records.
    let output = |event: &Event| match &event.kind {
        EventKind::ToolCallResult { call, output, .. } => Some((call.clone(), output.clone())),
        _ => None,
    };
    let arguments = |event: &Event| match &event.kind {
        EventKind::ToolCallStart { call, arguments, .. } => Some((call.clone(), arguments.clone())),
        _ => None,
    };
    let outputs: BTreeMap<CallId, String> = past.iter().filter_map(output).collect();
    for (id, arguments) in past.iter().filter_map(arguments) {
        let call = ToolCall { id: id.clone(), name: "fetch".into(), arguments };
        prop_assert_eq!(&outputs[&id], &Fetch::fetched(&call));
    }
    // Whatever has happened, the session goes on.
    server.script.lock().unwrap().clear();
    let report = session.run(vec![Message::user("And now?")], &CancellationToken::new()).await;
    // So small a request is not taken for too large where nobody says so.
    if setting.says != Says::Nothing || setting.known.is_some() || setting.context > 8_000 {
        prop_assert_eq!(&report.status, &TurnStatus::Completed);
    }
    drop(session);
    let Ok(server) = Arc::try_unwrap(server) else { panic!("the session is dropped") };
    let seen = server.seen.into_inner().unwrap();
    let steps: usize = setting.turns.iter().map(|turn| turn.steps.len() + 1).sum();
    prop_assert!(seen.refused <= 6 * (steps + 1) + 4 * seen.summaries, "{} requests were refused", seen.refused);
    Ok(seen)
}

fn setting() -> impl Strategy<Value = Setting> {
    let says = prop_oneof![Just(Says::Sizes), Just(Says::Limit), Just(Says::Class), Just(Says::Nothing)];
    let summary = prop_oneof![
        Just(Summary::Good),
        Just(Summary::Empty),
        Just(Summary::CutOff),
        Just(Summary::Refused),
        Just(Summary::Endless)
    ];
    let known = prop_oneof![3 => Just(Some(1.0)), 1 => Just(Some(2.0)), 1 => Just(None)];
    let server = (3_000_u64..16_000, known, 0.02..0.6_f64, 0.6..1.4_f64, says, summary, any::<bool>());
    // In thousandths of the context.
    let turn = |context: u64| {
        let bytes = move |most: u64| (0..most).prop_map(move |share| (context * 4 * share / 1_000) as usize);
        let steps = prop::collection::vec(prop::collection::vec(bytes(700), 1..4), 0..8);
        let turn = (bytes(900), prop_oneof![4 => Just(0_usize), 1 => 1..4_usize], steps);
        turn.prop_map(|(input, images, steps)| Turn { input, images, steps })
    };
    (server, 0.3..1.0_f64, 1..4_u32)
        .prop_flat_map(move |(server, at, keep_turns)| {
            let turns = prop::collection::vec(turn(server.0), 1..6);
            (Just((server, at, keep_turns)), turns)
        })
        .prop_map(|(((context, known, answer, density, says, summary, counts), at, keep_turns), turns)| Setting {
            answer: (context as f64 * answer) as u64,
            context,
            known,
            density,
            says,
            summary,
            counts,
            at,
            keep_turns,
            turns,
        })
}

fn in_runtime(setting: Setting) -> Result<Seen, TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(setting))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_session_always_goes_on(setting in setting()) {
        in_runtime(setting)?;
    }

    /// A server that counts, and whose context is known, refuses hardly anything: what it will count is known before.
    #[test]
    fn what_is_counted_and_known_is_not_exceeded(setting in setting()) {
        let setting = Setting { counts: true, known: Some(1.0), says: Says::Sizes, ..setting };
        let seen = in_runtime(setting)?;
        prop_assert!(seen.avoidable <= 1, "{} of {} requests", seen.avoidable, seen.accepted);
    }
}
