//! The cost of a turn without work: recorded bytes through a decoder and a turn without plugins, rules
//! and subscribers, compared with decoding alone.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flow::ports::{
    BoxFuture, Clock, Confirm, ExtensionHost, Model, ModelStream, PreparedCall, Progress, Question, Tools,
};
use flow::{
    Answer, Delta, Message, ModelError, Permission, Preview, Prompt, SessionId, ToolCall, ToolOutput, ToolSpec,
    TurnStatus,
};
use rules::RuleSet;
use sandbox::SandboxHost;
use turn::sources::FixedRules;
use turn::{CancellationToken, Session, SessionParts, SessionSettings};
use wire::{AnswerDecoder, Wire};

use crate::support::guests::store;
use crate::support::text::{pieces, text};
use crate::support::{Aim, Lane, Table, criterion, race};

/// Words of one long answer, in deltas of four bytes.
const BYTES: usize = 40_000;

pub(crate) fn bench() {
    let mut table = Table::new("turn");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let text = text(BYTES);
    for (wire, name) in
        [(Wire::Anthropic, "anthropic"), (Wire::OpenAiChat, "openai-chat"), (Wire::OpenAiResponses, "openai-responses")]
    {
        let model = Arc::new(Recorded { wire, chunks: record(wire, &text) });
        let lanes = vec![
            Lane::new("decoding alone", || runtime.block_on(decode(&model, text.len()))),
            Lane::new("turn", || runtime.block_on(run(&model, &text))),
        ];
        let times = race(&mut criterion(), &format!("turn, {name}"), 101, lanes);
        let deltas = (BYTES / 4) as f64;
        table.row(&format!("turn without plugins ÷ decoding alone, {name}"), Aim::AtMost(1.05), times.ratio(1, 0), "×");
        table.row("– decoding a delta", Aim::None, times.of(0) / deltas, "ns");
    }
    table.finish();
}

/// Takes every delta of the answer.
async fn decode(model: &Recorded, expected: usize) {
    let mut stream = model.start(&Prompt::default()).await.unwrap();
    let mut length = 0;
    while let Some(delta) = std::future::poll_fn(|cx| stream.poll_next(cx)).await {
        if let Delta::Piece { text, .. } = black_box(delta.unwrap()) {
            length += text.len();
        }
    }
    assert_eq!(length, expected);
}

/// Runs a whole session of one turn.
async fn run(model: &Arc<Recorded>, expected: &str) {
    let mut session = Session::open(SessionParts {
        id: SessionId::new("s"),
        model: Arc::<Recorded>::clone(model),
        extensions: Arc::new(SandboxHost::new(Vec::new(), store()).unwrap()) as Arc<dyn ExtensionHost>,
        tools: Arc::new(Nothing),
        confirm: Arc::new(Nothing),
        rules: Arc::new(FixedRules(RuleSet::build(Vec::new(), rules::RuleSettings::default(), "").0)),
        clock: Arc::new(Nothing),
        settings: SessionSettings::default(),
    })
    .await
    .unwrap();
    let report = session.run(vec![Message::user("Write a lot.")], &CancellationToken::new()).await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, expected));
    session.close().await;
}

/// Answers with recorded bytes, decoded as those of a real provider are.
struct Recorded {
    wire: Wire,
    chunks: Vec<Bytes>,
}

impl Model for Recorded {
    fn provider(&self) -> &str {
        "recording"
    }

    fn name(&self) -> &str {
        "bench"
    }

    fn start<'a>(&'a self, _prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let chunks = self.chunks.clone().into_iter();
        let stream = Stream { decoder: AnswerDecoder::new(self.wire), chunks };
        Box::pin(async { Ok(Box::new(stream) as Box<dyn ModelStream>) })
    }
}

struct Stream {
    decoder: AnswerDecoder,
    chunks: std::vec::IntoIter<Bytes>,
}

impl ModelStream for Stream {
    fn poll_next(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        loop {
            if let Some(delta) = self.decoder.next_delta() {
                return Poll::Ready(Some(Ok(delta)));
            }
            let Some(chunk) = self.chunks.next() else { return Poll::Ready(None) };
            if let Err(error) = self.decoder.push(&chunk) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

/// The bytes of an answer, one chunk for each event, as providers send them.
fn record(wire: Wire, text: &str) -> Vec<Bytes> {
    let pieces = pieces(text);
    let json = |piece: &&str| serde_json::to_string(piece).unwrap();
    type Each<'a> = &'a dyn Fn(&&str) -> String;
    let (head, each, tail): (&[&str], Each<'_>, &[&str]) = match wire {
        Wire::Anthropic => (&anthropic::HEAD, &|piece| anthropic::delta(&json(piece)), &anthropic::TAIL),
        Wire::OpenAiChat => (&chat::HEAD, &|piece| chat::delta(&json(piece)), &chat::TAIL),
        Wire::OpenAiResponses => (&responses::HEAD, &|piece| responses::delta(&json(piece)), &responses::TAIL),
    };
    let middle = pieces.iter().map(each);
    let events = head.iter().map(|one| (*one).to_owned()).chain(middle).chain(tail.iter().map(|one| (*one).to_owned()));
    events.map(|event| Bytes::from(sse(&event))).collect()
}

/// An event as it goes over the wire; its name, where it has one, is its `type`.
fn sse(data: &str) -> String {
    let mut event = String::new();
    if let Some(name) = data.strip_prefix(r#"{"type":""#).and_then(|rest| rest.split('"').next()) {
        writeln!(event, "event: {name}").unwrap();
    }
    event + "data: " + data + "\n\n"
}

mod anthropic {
    pub(super) const HEAD: [&str; 2] = [
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    ];
    pub(super) const TAIL: [&str; 3] = [
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9000}}"#,
        r#"{"type":"message_stop"}"#,
    ];

    pub(super) fn delta(text: &str) -> String {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{text}}}}}"#)
    }
}

mod chat {
    pub(super) const HEAD: [&str; 1] = [
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    ];
    pub(super) const TAIL: [&str; 3] = [
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":9000,"total_tokens":9012}}"#,
        "[DONE]",
    ];

    pub(super) fn delta(text: &str) -> String {
        format!(
            r#"{{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}]}}"#
        )
    }
}

mod responses {
    pub(super) const HEAD: [&str; 3] = [
        r#"{"type":"response.created","sequence_number":0,"response":{"id":"r1","object":"response","model":"m","status":"in_progress","output":[]}}"#,
        r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"i1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
        r#"{"type":"response.content_part.added","sequence_number":2,"item_id":"i1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
    ];
    pub(super) const TAIL: [&str; 2] = [
        r#"{"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":{"id":"i1","type":"message","status":"completed","role":"assistant","content":[]}}"#,
        r#"{"type":"response.completed","sequence_number":5,"response":{"id":"r1","object":"response","model":"m","status":"completed","output":[],"usage":{"input_tokens":12,"output_tokens":9000,"total_tokens":9012}}}"#,
    ];

    pub(super) fn delta(text: &str) -> String {
        format!(
            r#"{{"type":"response.output_text.delta","sequence_number":3,"item_id":"i1","output_index":0,"content_index":0,"delta":{text}}}"#
        )
    }
}

/// No tools, no questions, no clock: none of them is needed.
struct Nothing;

impl Tools for Nothing {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn prepare<'a>(&'a self, _call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(Nothing)
    }
}

impl PreparedCall for Nothing {
    fn permission(&self) -> Permission {
        Permission::Allow
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(async { Preview::default() })
    }

    fn run<'a>(&'a mut self, _progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async { ToolOutput::default() })
    }
}

impl Confirm for Nothing {
    fn confirm<'a>(&'a self, _question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Approve })
    }
}

impl Clock for Nothing {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, _time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
