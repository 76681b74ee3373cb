//! The shipped program under load: sessions of `tidegate acp` with three plugins and 100 rules, on answers of 50 deltas a second.

mod editor;
mod process;
mod server;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::editor::{Editor, Seen};
use self::process::{Sample, quantile};
use crate::place::{PLUGINS, install, source_of};
use crate::plan::Plan;

/// Plugins of the run: the first ones of the table.
const WITH: usize = 3;
const RULES: u32 = 100;
/// Sessions that are opened at once.
const OPENING: usize = 32;
/// When instances of idle sessions have been dropped.
const IDLE: Duration = Duration::from_secs(65);

/// What a run has measured.
pub(crate) struct Measured {
    opened: usize,
    refused: Vec<String>,
    open_ms: u128,
    turns: u64,
    seconds: f64,
    seen: Seen,
    empty: Sample,
    at_rest: Sample,
    busy: Sample,
    idle: Option<Sample>,
}

/// Runs the sessions of the plan in the program.
///
/// # Errors
/// The program cannot be started, or ends.
pub(crate) async fn run(plan: &Plan, program: PathBuf) -> Result<Measured> {
    let began = Instant::now();
    let (folder, config) = place(&server::start(began, plan.answer).await?)?;
    let editor = Editor::start(&program, folder.path(), &config, plan.descriptors, began).await?;
    let editor = Arc::new(editor);
    editor.request("initialize", serde_json::json!({"protocolVersion": 1, "clientCapabilities": {}})).await??;
    // What the host itself takes is there with the first session.
    let first =
        editor.open(folder.path()).await?.map_err(anyhow::Error::msg).context("the first session cannot be opened")?;
    let empty = editor.sample()?;
    let (opening, mut sessions, mut refused) = (Instant::now(), vec![first], Vec::new());
    for opened in open(&editor, folder.path(), plan.sessions - 1).await? {
        match opened {
            Ok(session) => sessions.push(session),
            Err(why) => refused.push(why),
        }
    }
    let open_ms = opening.elapsed().as_millis();
    let at_rest = editor.sample()?;
    let opened = sessions.len();
    let work = Instant::now();
    let watch = tokio::spawn(process::most(Arc::clone(&editor)));
    let turns = turns(&editor, sessions, plan).await?;
    watch.abort();
    let busy = watch.await.ok().transpose()?.unwrap_or_else(|| editor.most());
    let seconds = work.elapsed().as_secs_f64();
    let idle = if plan.idle {
        tokio::time::sleep(IDLE).await;
        Some(editor.sample()?)
    } else {
        None
    };
    let seen = editor.take_seen();
    editor.end().await;
    Ok(Measured { opened, refused, open_ms, turns, seconds, seen, empty, at_rest, busy, idle })
}

/// The folder of the run with its file for the operator.
fn place(url: &str) -> Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let rules = folder.path().join(".config/tidegate/rules");
    fs::create_dir_all(&rules)?;
    for rule in 0..RULES {
        let condition = format!(r"(?i)\bforbidden[ -]{{0,3}}word[ -]?{rule}\b|\bnever_call_{rule}\(");
        let text = format!("+++\ncondition = '{condition}'\nscope = \"text\"\n+++\nDo not write it.\n");
        fs::write(rules.join(format!("load-{rule}.md")), text)?;
    }
    let mut toml = format!(
        "[provider]\nkind = \"anthropic\"\nmodel = \"load\"\nbase_url = {url:?}\napi_key_env = \"\"\n[compaction]\nenabled = false\n"
    );
    for (source, grants, _) in &PLUGINS[..WITH] {
        let path = install(&source_of(source), folder.path())?;
        toml += &format!("[[plugin]]\npath = {path:?}\ngrants = [{grants}]\n");
    }
    let config = folder.path().join("tidegate.toml");
    fs::write(&config, toml)?;
    Ok((folder, config))
}

async fn open(
    editor: &Arc<Editor>,
    folder: &std::path::Path,
    count: u32,
) -> Result<Vec<std::result::Result<String, String>>> {
    let (mut opening, gate) = (JoinSet::new(), Arc::new(Semaphore::new(OPENING)));
    for _ in 0..count {
        let (editor, folder, gate) = (Arc::clone(editor), folder.to_owned(), Arc::clone(&gate));
        opening.spawn(async move {
            let _one = gate.acquire().await?;
            editor.open(&folder).await
        });
    }
    let mut done = Vec::new();
    while let Some(one) = opening.join_next().await {
        done.push(one??);
    }
    Ok(done)
}

/// Turns until the time of the plan is over, at least one in each session; returns how many ended well.
async fn turns(editor: &Arc<Editor>, sessions: Vec<String>, plan: &Plan) -> Result<u64> {
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let gate = Arc::new(Semaphore::new(plan.active.unwrap_or(plan.sessions) as usize));
    let mut running = JoinSet::new();
    for session in sessions {
        let (editor, gate) = (Arc::clone(editor), Arc::clone(&gate));
        running.spawn(async move {
            let mut done = 0;
            loop {
                let one = gate.acquire().await?;
                done += u64::from(editor.turn(&session).await?);
                drop(one);
                if Instant::now() >= end {
                    return anyhow::Ok(done);
                }
            }
        });
    }
    let mut done = 0;
    while let Some(one) = running.join_next().await {
        done += one??;
    }
    Ok(done)
}

impl Measured {
    /// What must not be: nothing is wrong with the answers, so that each of them is shown.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.refused.is_empty() {
            problems.push(format!("{} sessions were refused, such as: {}", self.refused.len(), self.refused[0]));
        }
        for (what, count) in [("answers were withheld", self.seen.withheld), ("turns failed", self.seen.failed)] {
            if count > 0 {
                problems.push(format!("{count} {what}"));
            }
        }
        problems.extend(self.seen.notices.iter().map(|(notice, count)| format!("{notice} ({count} times)")));
        problems
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opened, refused, open_ms, turns, seconds, seen, .. } = self;
        writeln!(f, "sessions opened {opened} in {open_ms} ms, refused {}", refused.len())?;
        let timeouts: u64 = seen.notices.iter().filter(|(text, _)| text.contains("took longer")).map(|(_, n)| n).sum();
        let rate = seen.lags.len() as f64 / seconds;
        writeln!(
            f,
            "turns {turns} in {seconds:.1} s, failed {}, withheld {}, time-outs {timeouts}, deltas a second {rate:.0}",
            seen.failed, seen.withheld
        )?;
        let mut lags = seen.lags.clone();
        lags.sort_unstable();
        let ms = |part| f64::from(quantile(&lags, part)) / 1000.0;
        writeln!(f, "lag of a delta p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms", ms(0.5), ms(0.99), ms(1.0))?;
        writeln!(f, "one session: {}", self.empty)?;
        let others = u64::try_from(opened.saturating_sub(1)).unwrap_or(1).max(1);
        let each = |sample: &Sample| sample.resident.saturating_sub(self.empty.resident) / others / 1024;
        writeln!(f, "all open: {}, {} KiB a session more", self.at_rest, each(&self.at_rest))?;
        write!(f, "at most meanwhile: {}", self.busy)?;
        match &self.idle {
            Some(idle) => write!(f, "\nidle after {IDLE:?}: {idle}, {} KiB a session more", each(idle)),
            None => Ok(()),
        }
    }
}
