//! An editor that has many sessions open, and notes when it gets which delta.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as Turn, oneshot};

use super::process::Sample;
use crate::plan::Plan;

/// The answer to a request, or the message of its error.
type Response = std::result::Result<Value, String>;

/// What the editor has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Of each delta the microseconds from the provider to the editor.
    pub(crate) lags: Vec<u32>,
    pub(crate) withheld: u64,
    pub(crate) failed: u64,
    /// Messages about trouble, with how often each was met.
    pub(crate) notices: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, oneshot::Sender<Response>>,
    seen: Seen,
    most: Sample,
}

pub(crate) struct Editor {
    child: Turn<Child>,
    process: u32,
    input: Turn<Option<ChildStdin>>,
    next: AtomicU64,
    state: Arc<Mutex<State>>,
}

impl Editor {
    pub(crate) async fn start(program: &Path, home: &Path, config: &Path, plan: &Plan, began: Instant) -> Result<Self> {
        let limit = plan.descriptors.map(|most| format!("ulimit -n {most}; ")).unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]).arg(program).arg("acp").arg("--config").arg(config);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
        command.current_dir(home).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.kill_on_drop(true).spawn().context("the program cannot be started")?;
        let (input, output) = (child.stdin.take(), child.stdout.take().context("it has no output")?);
        let process = child.id().context("it has ended")?;
        let state = Arc::<Mutex<State>>::default();
        tokio::spawn(read(output, Arc::clone(&state), began));
        let next = AtomicU64::new(1);
        Ok(Self { child: Turn::new(child), process, input: Turn::new(input), next, state })
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Result<Value>> {
        let (id, (sender, response)) = (self.next.fetch_add(1, Ordering::Relaxed), oneshot::channel());
        lock(&self.state).open.insert(id, sender);
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut input = self.input.lock().await;
        input.as_mut().context("the program has ended")?.write_all(line.as_bytes()).await?;
        drop(input);
        let response = response.await.context("the program has ended")?;
        Ok(response.map_err(anyhow::Error::msg))
    }

    /// Opens a session. The inner error is that of the program.
    pub(crate) async fn open(&self, folder: &Path) -> Result<std::result::Result<String, String>> {
        let opened = self.request("session/new", json!({"cwd": folder, "mcpServers": []})).await?;
        Ok(opened.map_err(|error| error.to_string()).map(|new| new["sessionId"].as_str().unwrap_or("").to_owned()))
    }

    /// One turn; returns whether it ended well.
    pub(crate) async fn turn(&self, session: &str) -> Result<bool> {
        let prompt = json!([{"type": "text", "text": "Go on."}]);
        let ended = self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await?;
        let problem = match ended {
            Ok(ended) if ended["stopReason"] == "end_turn" => return Ok(true),
            Ok(ended) => format!("a turn ended: {ended}"),
            Err(error) => format!("a turn failed: {error}"),
        };
        let mut state = lock(&self.state);
        state.seen.failed += 1;
        *state.seen.notices.entry(problem).or_default() += 1;
        Ok(false)
    }

    pub(crate) fn sample(&self) -> Result<Sample> {
        Sample::of(self.process)
    }

    /// Notes what the program takes now.
    pub(crate) fn note(&self) -> Result<()> {
        let now = self.sample()?;
        let mut state = lock(&self.state);
        state.most = state.most.most(now);
        Ok(())
    }

    pub(crate) fn most(&self) -> Sample {
        lock(&self.state).most
    }

    /// The lags since this was last asked, sorted.
    pub(crate) fn take_lags(&self) -> Vec<u32> {
        let mut lags = std::mem::take(&mut lock(&self.state).seen.lags);
        lags.sort_unstable();
        lags
    }

    pub(crate) fn take_seen(&self) -> Seen {
        std::mem::take(&mut lock(&self.state).seen)
    }

    /// Kills the program: what it has acknowledged must be there without a last chance to write it.
    pub(crate) async fn kill(&self) -> Result<()> {
        Ok(self.child.lock().await.kill().await?)
    }
}

async fn read(output: ChildStdout, state: Arc<Mutex<State>>, began: Instant) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let mut state = lock(&state);
        if let Some(id) = message["id"].as_u64().filter(|_| message["method"].is_null()) {
            if let Some(sender) = state.open.remove(&id) {
                let error = message["error"].as_object().map(|_| message["error"]["message"].to_string());
                drop(sender.send(error.map_or_else(|| Ok(message["result"].clone()), Err)));
            }
        } else {
            state.seen.take(&message["params"]["update"], began);
        }
    }
    lock(&state).open.clear();
}

impl Seen {
    fn take(&mut self, update: &Value, began: Instant) {
        let notice = update["_meta"]["tidegate/notice"].as_object();
        if let Some(notice) = notice.filter(|notice| notice["severity"] != "info") {
            let text = |key: &str| notice.get(key).and_then(Value::as_str).unwrap_or_default();
            *self.notices.entry(format!("{}: {}", text("title"), text("description"))).or_default() += 1;
            return;
        }
        if update["sessionUpdate"] != "agent_message_chunk" {
            return;
        }
        let text = update["content"]["text"].as_str().unwrap_or_default();
        let now = began.elapsed().as_micros();
        for line in text.lines() {
            if line.contains("[withheld") {
                self.withheld += 1;
            }
            let sent = line.strip_prefix("sent ").and_then(|sent| sent.parse::<u128>().ok());
            self.lags.extend(sent.map(|sent| u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX)));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
