//! What a server does with the library: 200 sessions in 20 workspaces, on two hosts that share one engine, all at once.
//!
//! `cargo run -p tidegate --example many`
#![allow(clippy::print_stdout, reason = "an example at the terminal")]

mod support;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate::plugin::EngineOptions;
use tidegate::{Engine, Host, HostError, Operator, SessionOptions, TurnStatus};
use tokio::task::JoinSet;

use support::{Answer, Prepared};

const WORKSPACES: usize = 20;
const SESSIONS: usize = 200;

/// What the run comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Turns that completed.
    pub(crate) completed: usize,
    /// Sessions that read the file of their own workspace and no other.
    pub(crate) at_home: usize,
}

/// One session: its model reads `name.txt` and reports.
async fn session(host: Host, workspace: PathBuf) -> Result<(bool, bool), HostError> {
    let answers = [
        Answer::Call("read_file", r#"{"path": "name.txt"}"#.to_owned()),
        Answer::Text("I have read the name of this workspace.".to_owned()),
    ];
    let name = workspace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let options = SessionOptions::new(workspace).model(Prepared::new(answers, Duration::from_millis(2)));
    let session = host.session(options).await?;
    let report = session.prompt("Which workspace is this?").report().await;
    let read = format!("{:?}", session.history());
    Ok((report.status == TurnStatus::Completed, read.contains(&format!("\"{name}\""))))
}

/// Opens the workspaces in `folder`, and all sessions at once.
pub(crate) async fn many(folder: &Path) -> Result<Outcome, Box<dyn Error>> {
    for number in 0..WORKSPACES {
        let workspace = folder.join(format!("workspace-{number}"));
        std::fs::create_dir_all(&workspace)?;
        std::fs::write(workspace.join("name.txt"), format!("workspace-{number}"))?;
    }
    let engine = Engine::new(&EngineOptions { cache_dir: None, max_instances: 64, ..EngineOptions::default() })?;
    let mut hosts = Vec::new();
    for _ in 0..2 {
        hosts.push(Host::builder(Operator::default()).engine(&engine).user_rules(None).open().await?);
    }
    let mut tasks = JoinSet::new();
    for number in 0..SESSIONS {
        let host = hosts[number % hosts.len()].clone();
        tasks.spawn(session(host, folder.join(format!("workspace-{}", number % WORKSPACES))));
    }
    let mut outcome = Outcome::default();
    while let Some(done) = tasks.join_next().await {
        let (completed, at_home) = done??;
        outcome.completed += usize::from(completed);
        outcome.at_home += usize::from(at_home);
    }
    Ok(outcome)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tidegate-many-{}", std::process::id()));
    let began = Instant::now();
    let outcome = many(&folder).await;
    std::fs::remove_dir_all(&folder)?;
    println!("{:?} of {SESSIONS} sessions in {WORKSPACES} workspaces, in {:?}", outcome?, began.elapsed());
    Ok(())
}
