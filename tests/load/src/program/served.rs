//! The shipped program as a server: browsers read the events of sessions of `tidegate serve`, several of them those of one session.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tidegate_servers::post as send;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::browser::Browser;
use super::measured::Step;
use super::process::Sample;
use super::{place, recorded_turns, server};
use crate::plan::Plan;

const LIMITS: &str = "[serve.limits]\nstreams = 100000\nconnections = 100000\nconcurrent = 100000\n";
/// How long the last deltas can take after the last turn.
const LAST: Duration = Duration::from_secs(10);

/// What a run has measured.
pub(crate) struct Served {
    sessions: u32,
    browsers: u32,
    connecting: Duration,
    /// With the sessions, and with the browsers.
    empty: Sample,
    connected: Sample,
    step: Step,
    /// Turns that failed.
    failed: u64,
    /// Deltas that browsers did not get.
    missing: u64,
    /// Turns whose end was in the transcripts after the program was killed.
    durable: u64,
}

/// Runs turns in the sessions of the plan, which so many browsers read.
///
/// # Errors
/// The program cannot be started, ends, or refuses something.
pub(crate) async fn run(plan: &Plan, program: &Path, browsers: u32) -> Result<Served> {
    let began = Instant::now();
    let (folder, config) = place(&server::start(began, plan.answer).await?, LIMITS)?;
    let mut host = Host::start(program, folder.path(), &config).await?;
    let mut sessions = Vec::new();
    for _ in 0..plan.sessions {
        let created = post(host.address, "/v1/sessions".to_owned(), json!({})).await?;
        sessions.push(created["id"].as_str().context("a session has no id")?.to_owned());
    }
    let (empty, connecting) = (host.sample()?, Instant::now());
    let mut readers = Vec::new();
    for session in sessions.iter().cycle().take(browsers as usize) {
        readers.push(Arc::new(Browser::connect(host.address, session, began).await?));
    }
    let (connecting, connected, start) = (connecting.elapsed(), host.sample()?, Instant::now());
    let warm = async {
        tokio::time::sleep(Duration::from_secs_f64(plan.seconds as f64 / 4.0)).await;
        host.sample()
    };
    let (turns, warm) = tokio::join!(turns(host.address, &sessions, &readers, plan), warm);
    let (turns, took, end) = (turns?, start.elapsed(), host.sample()?);
    let expected = readers.iter().zip(turns.iter().cycle()).map(|(one, turns)| (one, turns * plan.answer * 50));
    let missing = missing(expected.collect()).await;
    let failed = readers.iter().take(sessions.len()).map(|one| one.failed()).sum();
    host.child.kill().await?;
    let mut lags: Vec<u32> = readers.iter().flat_map(|one| one.take_lags()).collect();
    lags.sort_unstable();
    let processor = end.processor.saturating_sub(connected.processor);
    let active = plan.active.unwrap_or(plan.sessions);
    let step = Step { active, turns: turns.iter().sum(), took, lags, warm: warm?, end, processor };
    let durable = recorded_turns(folder.path())?;
    Ok(Served { sessions: plan.sessions, browsers, connecting, empty, connected, step, failed, missing, durable })
}

/// Runs turns until the time is over, at least one in each session; returns how many each session has had.
async fn turns(host: SocketAddr, sessions: &[String], readers: &[Arc<Browser>], plan: &Plan) -> Result<Vec<u64>> {
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let gate = Arc::new(Semaphore::new(plan.active.unwrap_or(plan.sessions) as usize));
    let mut running = JoinSet::new();
    // The first browsers have one session each.
    for (at, (session, reader)) in sessions.iter().zip(readers).enumerate() {
        let (gate, reader) = (Arc::clone(&gate), Arc::clone(reader));
        let path = format!("/v1/sessions/{session}/commands");
        running.spawn(async move {
            let mut done = 0;
            loop {
                let one = gate.acquire().await?;
                done += 1;
                let message = json!({"id": format!("m-{done}"), "text": "Go on."});
                post(host, path.clone(), json!({"command": "prompt", "messages": [message]})).await?;
                reader.turns(done).await?;
                drop(one);
                if Instant::now() >= end {
                    return anyhow::Ok((at, done));
                }
            }
        });
    }
    let mut turns = vec![0; sessions.len()];
    while let Some(one) = running.join_next().await {
        let (at, done) = one??;
        turns[at] = done;
    }
    Ok(turns)
}

/// Returns how many deltas are missing, each browser with the number that it should get.
async fn missing(expected: Vec<(&Arc<Browser>, u64)>) -> u64 {
    let missing = || expected.iter().map(|(one, all)| all.saturating_sub(one.deltas())).sum();
    let arrived = async {
        while missing() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LAST, arrived).await.map_or_else(|_| missing(), |()| 0)
}

async fn post(host: SocketAddr, path: String, body: Value) -> Result<Value> {
    spawn_blocking(move || send(&format!("http://{host}"), &path, &body)?.json()).await?
}

/// The running server.
struct Host {
    child: Child,
    process: u32,
    address: SocketAddr,
}

impl Host {
    async fn start(program: &Path, home: &Path, config: &PathBuf) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(config).current_dir(home);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = child.context("the program cannot be started")?;
        let process = child.id().context("it has ended")?;
        let mut lines = BufReader::new(child.stdout.take().context("it has no output")?).lines();
        let url = lines.next_line().await?.context("it has ended before it listened")?;
        let address = url.strip_prefix("http://").context("it prints no address")?.parse()?;
        // It ends when nobody reads what it prints.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { child, process, address })
    }

    fn sample(&self) -> Result<Sample> {
        Sample::of(self.process)
    }
}

impl Served {
    /// What must not be.
    pub(crate) fn problems(&self) -> Vec<String> {
        let (turns, failed, missing, durable) = (self.step.turns, self.failed, self.missing, self.durable);
        let broken = (failed > 0).then(|| format!("{failed} turns failed"));
        let lost = (missing > 0).then(|| format!("browsers did not get {missing} deltas"));
        let unrecorded = (durable < turns).then(|| format!("{turns} turns ended, and the transcripts have {durable}"));
        broken.into_iter().chain(lost).chain(unrecorded).collect()
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, browsers, connecting, empty, connected, step, .. } = self;
        writeln!(f, "sessions {}, browsers {browsers}, connected in {} ms", sessions, connecting.as_millis())?;
        writeln!(f, "{step}")?;
        let (durable, failed, missing) = (self.durable, self.failed, self.missing);
        writeln!(f, "turns {}, in transcripts {durable}, failed {failed}, missing deltas {missing}", step.turns)?;
        let each = connected.resident.saturating_sub(empty.resident) / u64::from(*browsers).max(1) / 1024;
        write!(f, "without browsers: {empty}\nwith all: {connected}, {each} KiB a browser more")
    }
}
