//! What the protocol for editors costs: a delta of the model as a line to an editor, compared with the events of the session alone, and
//! sessions that one process has open for an editor.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use flow::ports::{BoxFuture, Model, ModelStream};
use flow::{Delta, EventKind, ModelError, Prompt, StopReason, StreamKind, TurnStatus};
use serde_json::{Value, json};
use serve::acp::Server;
use tempfile::TempDir;
use tidegate::trust::SettingsReader;
use tidegate::{Host, HostBuilder, Operator, Session, SessionOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use crate::support::{Aim, Lane, Table, criterion, memory_kb, race};

/// Deltas of one answer.
const DELTAS: usize = 4_000;
/// Deltas between two moments at which the model has nothing to give.
const AT_ONCE: usize = 16;
const SESSIONS: usize = 1_000;
/// Sessions that are opened before the first measurement of memory: what is set up once is not what a session takes.
const FIRST: usize = 50;

pub(crate) fn bench() {
    let mut table = Table::new("editors");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    per_delta(&mut table, &runtime, &folder);
    memory(&mut table, &runtime, &folder);
    table.finish();
}

fn per_delta(table: &mut Table, runtime: &tokio::runtime::Runtime, folder: &TempDir) {
    let host = runtime.block_on(builder(DELTAS).open()).unwrap();
    let mut editor = runtime.block_on(Editor::connect(DELTAS));
    let lanes = vec![
        Lane::new("events of a session", || runtime.block_on(events(&host, folder.path()))),
        Lane::new("lines to an editor", || {
            let chunks = runtime.block_on(async {
                let session = editor.open(folder.path()).await;
                let chunks = editor.ask(&session).await;
                editor.request("session/close", &json!({"sessionId": session})).await;
                chunks
            });
            assert_eq!(chunks, DELTAS);
        }),
    ];
    let times = race(&mut criterion(), "editors", 31, lanes);
    let (events, lines) = (times.of(0) / DELTAS as f64, times.of(1) / DELTAS as f64);
    table.row("a delta as a line to an editor, more than its event", Aim::AtMost(20.0), (lines - events) / 1e3, "µs");
    table.row("– a turn with an editor ÷ with a subscriber", Aim::None, times.ratio(1, 0), "×");
    table.row("– a delta of a turn with a subscriber", Aim::None, events / 1e3, "µs");
}

/// A session of one turn, and a subscriber of its events.
async fn events(host: &Host, folder: &Path) {
    let session = host.session(SessionOptions::new(folder)).await.unwrap();
    let (mut events, mut deltas) = (session.subscribe(), 0);
    let turn = session.prompt("Write a lot.");
    loop {
        match events.next().await.unwrap().kind {
            // Those that a subscriber lags behind are joined.
            EventKind::CognitionOutDelta { text, .. } => deltas += text.len() / WORD.len(),
            EventKind::TurnFinish { .. } => break,
            _ => {}
        }
    }
    assert_eq!((turn.report().await.status, deltas), (TurnStatus::Completed, DELTAS));
    session.close();
    session.closed().await;
}

fn memory(table: &mut Table, runtime: &tokio::runtime::Runtime, folder: &TempDir) {
    let (own, own_ms) = runtime.block_on(async {
        let host = builder(1).open().await.unwrap();
        let mut all: Vec<Session> = Vec::new();
        let mut open = async |count: usize| {
            for _ in 0..count {
                let session = host.session(SessionOptions::new(folder.path())).await.unwrap();
                assert_eq!(session.prompt("Answer.").report().await.status, TurnStatus::Completed);
                all.push(session);
            }
        };
        open(FIRST).await;
        let (before, begin) = (memory_kb(), Instant::now());
        open(SESSIONS).await;
        (memory_kb() - before, begin.elapsed().as_secs_f64() * 1e3)
    });
    let (editor, editor_ms) = runtime.block_on(async {
        let mut editor = Editor::connect(1).await;
        let mut open = async |count: usize| {
            for _ in 0..count {
                let session = editor.open(folder.path()).await;
                assert_eq!(editor.ask(&session).await, 1);
            }
        };
        open(FIRST).await;
        let (before, begin) = (memory_kb(), Instant::now());
        open(SESSIONS).await;
        (memory_kb() - before, begin.elapsed().as_secs_f64() * 1e3)
    });
    let each = SESSIONS as f64;
    table.row("memory per session of an editor after one prompt, 1000 sessions", Aim::None, editor / each, "KB");
    table.row("– per session without an editor", Aim::None, own / each, "KB");
    table.row("– opening a session and its prompt, with an editor", Aim::None, editor_ms / each, "ms");
    table.row("– opening a session and its prompt, without one", Aim::None, own_ms / each, "ms");
}

/// Hosts whose model answers with so many deltas.
fn builder(deltas: usize) -> HostBuilder {
    Host::builder(Operator::default()).user_rules(None).model(Arc::new(Words(deltas)))
}

/// An editor that reads lines and looks at none but the responses.
struct Editor {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
}

impl Editor {
    async fn connect(deltas: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = Server::new(SettingsReader::new(), move |_| Ok(builder(deltas)));
        tokio::spawn(server.streams(output, input, std::future::pending()));
        let (output, input) = tokio::io::split(ours);
        let mut editor = Self { input, output: BufReader::new(output).lines(), next: 0 };
        editor.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
        editor
    }

    async fn open(&mut self, folder: &Path) -> Value {
        let (opened, _) = self.request("session/new", &json!({"cwd": folder, "mcpServers": []})).await;
        opened["sessionId"].clone()
    }

    /// Sends a prompt; returns how many words its answer had.
    async fn ask(&mut self, session: &Value) -> usize {
        let prompt = json!([{"type": "text", "text": "Write a lot."}]);
        let (ended, chunks) = self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt})).await;
        assert_eq!(ended["stopReason"], "end_turn");
        chunks
    }

    /// Sends a request; returns its result, and the number of words of messages before it.
    async fn request(&mut self, method: &str, params: &Value) -> (Value, usize) {
        self.next += 1;
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.input.write_all(line.as_bytes()).await.unwrap();
        let mut chunks = 0;
        loop {
            let line = self.output.next_line().await.unwrap().unwrap();
            if !line.contains("\"method\":\"session/update\"") {
                let mut response: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(response["id"], self.next, "{line}");
                return (response["result"].take(), chunks);
            }
            if line.contains("\"agent_message_chunk\"") {
                chunks += line.matches(WORD).count();
            }
        }
    }
}

/// The text of a delta.
const WORD: &str = "word ";

/// A model that answers with this many deltas at once.
struct Words(usize);

impl Model for Words {
    fn provider(&self) -> &str {
        "bench"
    }

    fn name(&self) -> &str {
        "words"
    }

    fn start<'a>(&'a self, _: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let stream = Stream { sent: 0, words: self.0, has_waited: false };
        Box::pin(async { Ok(Box::new(stream) as Box<dyn ModelStream>) })
    }
}

struct Stream {
    sent: usize,
    words: usize,
    has_waited: bool,
}

impl ModelStream for Stream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        let block = 0;
        if self.sent.is_multiple_of(AT_ONCE) && !std::mem::replace(&mut self.has_waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_waited = false;
        let delta = match self.sent {
            0 => Delta::Start { model: None },
            1 => Delta::BlockStart { block, kind: StreamKind::Text },
            at if at < self.words + 2 => Delta::Piece { block, text: WORD.to_owned() },
            at if at == self.words + 2 => Delta::BlockEnd { block },
            at if at == self.words + 3 => Delta::Stop { reason: StopReason::EndTurn },
            _ => return Poll::Ready(None),
        };
        self.sent += 1;
        Poll::Ready(Some(Ok(delta)))
    }
}
