//! A chat at the terminal: each line is a prompt, and the answer streams while it is written.
//!
//! ```text
//! cargo run -p tidegate --example chat                    # a model of the example repeats what you say
//! cargo run -p tidegate --example chat -- tidegate.toml   # the model of that file
//! ```
#![allow(clippy::print_stdout, reason = "an example at the terminal")]

mod support;

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;
use std::time::Duration;

use tidegate::{EventKind, Host, Operator, Session, SessionOptions, TurnStatus};

/// Prompts with each line of `input`; writes what happens to `out`, at the moment it happens.
pub(crate) async fn chat(session: &Session, input: impl BufRead, mut out: impl Write) -> std::io::Result<()> {
    for line in input.lines() {
        let mut turn = session.prompt(line?);
        while let Some(event) = turn.next().await {
            match event.kind {
                // Text that has passed the rules.
                EventKind::CognitionOutDelta { text, .. } => write!(out, "{text}")?,
                // A rule stopped this answer; the next attempt follows.
                EventKind::CognitionOut { partial: Some(partial), .. } => {
                    write!(out, "\n[stopped: {}]\n", partial.error)?;
                }
                EventKind::ToolCallStart { tool, .. } => writeln!(out, "[calls {tool}]")?,
                _ => continue,
            }
            out.flush()?;
        }
        match turn.report().await.status {
            TurnStatus::Completed => writeln!(out)?,
            other => writeln!(out, "\n[{other:?}]")?,
        }
    }
    Ok(())
}

/// A session in the current folder, with the model of an operator's file or that of the example.
pub(crate) async fn open(file: Option<&Path>) -> Result<Session, Box<dyn Error>> {
    let operator = match file {
        Some(file) => Operator::load(file)?,
        None => Operator::default(),
    };
    let mut options = SessionOptions::new(".");
    if file.is_none() {
        options = options.model(support::Prepared::new([], Duration::from_millis(50)));
    }
    let host = Host::builder(operator).open().await?;
    Ok(host.session(options).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1);
    let session = open(file.as_ref().map(Path::new)).await?;
    chat(&session, stdin().lock(), stdout().lock()).await?;
    session.close();
    Ok(())
}
