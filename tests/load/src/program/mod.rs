//! The shipped program under load: sessions of `tidegate acp` with three plugins and 100 rules, on answers of 50 deltas a second.

mod browser;
mod capacity;
mod editor;
mod measured;
mod process;
mod served;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::editor::Editor;
use self::measured::{Measured, Opened, Step};
use crate::place::{PLUGINS, install, source_of};
use crate::plan::Plan;

pub(crate) use self::served::run as serve;

/// Plugins of the run: the first ones of the table.
const WITH: usize = 3;
const RULES: u32 = 100;
/// Sessions that are opened at once.
const OPENING: usize = 32;
/// When instances of idle sessions have been dropped.
const IDLE: Duration = Duration::from_secs(65);

/// Runs the sessions of the plan in the program.
///
/// # Errors
/// The program cannot be started, or ends.
pub(crate) async fn run(plan: &Plan, program: PathBuf) -> Result<Measured> {
    let began = Instant::now();
    let (folder, config) = place(&server::start(began, plan.answer).await?, "")?;
    let editor = Arc::new(Editor::start(&program, folder.path(), &config, plan, began).await?);
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
    let opened =
        Opened { sessions: sessions.len(), refused, took: opening.elapsed(), empty, at_rest: editor.sample()? };
    let active = plan.active.unwrap_or(plan.sessions);
    let steps = if plan.capacity {
        capacity::search(&editor, &sessions, plan.seconds, active).await?
    } else {
        vec![step(&editor, &sessions, plan.seconds, active).await?]
    };
    let idle = if plan.idle {
        tokio::time::sleep(IDLE).await;
        Some(editor.sample()?)
    } else {
        None
    };
    let (most, seen) = (editor.most(), editor.take_seen());
    editor.kill().await?;
    let durable = recorded_turns(folder.path())?;
    Ok(Measured { opened, steps, capacity: plan.capacity, seen, most, idle, durable })
}

/// Turns of some sessions at a time, for so many seconds.
async fn step(editor: &Arc<Editor>, sessions: &[String], seconds: u64, active: u32) -> Result<Step> {
    let (began, start) = (Instant::now(), editor.sample()?);
    let watch = tokio::spawn(process::watch(Arc::clone(editor)));
    let warm = async {
        tokio::time::sleep(Duration::from_secs_f64(seconds as f64 / 4.0)).await;
        editor.sample()
    };
    let (turns, warm) = tokio::join!(turns(editor, sessions, seconds, active), warm);
    watch.abort();
    let (end, took) = (editor.sample()?, began.elapsed());
    let (lags, processor) = (editor.take_lags(), end.processor.saturating_sub(start.processor));
    Ok(Step { active, turns: turns?, took, lags, warm: warm?, end, processor })
}

/// The folder of the run with its file for the operator, which begins with `settings`.
fn place(url: &str, settings: &str) -> Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let rules = folder.path().join(".config/tidegate/rules");
    fs::create_dir_all(&rules)?;
    for rule in 0..RULES {
        let condition = format!(r"(?i)\bforbidden[ -]{{0,3}}word[ -]?{rule}\b|\bnever_call_{rule}\(");
        let text = format!("+++\ncondition = '{condition}'\nscope = \"text\"\n+++\nDo not write it.\n");
        fs::write(rules.join(format!("load-{rule}.md")), text)?;
    }
    let mut toml = format!(
        "{settings}[provider]\nkind = \"anthropic\"\nmodel = \"load\"\nbase_url = {url:?}\napi_key_env = \"\"\n[compaction]\nenabled = false\n"
    );
    for (source, grants, _) in &PLUGINS[..WITH] {
        let path = install(&source_of(source), folder.path())?;
        toml += &format!("[[plugin]]\npath = {path:?}\ngrants = [{grants}]\n");
    }
    let config = folder.path().join("tidegate.toml");
    fs::write(&config, toml)?;
    Ok((folder, config))
}

async fn open(editor: &Arc<Editor>, folder: &Path, count: u32) -> Result<Vec<std::result::Result<String, String>>> {
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

/// Turns until the time is over, at least one in each session, `active` at a time; returns how many ended well.
async fn turns(editor: &Arc<Editor>, sessions: &[String], seconds: u64, active: u32) -> Result<u64> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let gate = Arc::new(Semaphore::new(active as usize));
    let mut running = JoinSet::new();
    for session in sessions {
        let (editor, gate, session) = (Arc::clone(editor), Arc::clone(&gate), session.clone());
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

/// The turns whose end is in a transcript.
fn recorded_turns(folder: &Path) -> Result<u64> {
    let mut turns = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == "transcript.jsonl" {
                let records = fs::read_to_string(entry.path())?;
                turns += records.lines().filter(|record| record.contains(r#""type":"turn_finish""#)).count() as u64;
            }
        }
    }
    Ok(turns)
}
