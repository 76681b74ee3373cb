//! A judge of our request bodies: the types of the vendors' own SDKs (`judge.py`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::install::{ensure_judge, sources};

/// A running judge. It ends with its value.
#[derive(Debug)]
pub struct Judge {
    child: Child,
    given: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Judge {
    /// Starts it; installs it first where it is missing.
    ///
    /// # Errors
    /// It cannot be installed or does not start.
    pub fn start() -> Result<Self> {
        let python = ensure_judge()?.join("bin/python");
        let mut child = Command::new(&python)
            .arg(sources().join("judge.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let given = child.stdin.take().context("the judge has no input")?;
        let said = BufReader::new(child.stdout.take().context("the judge has no output")?);
        Ok(Self { child, given, said })
    }

    /// Judges the body of a request for an answer that streams. `wire`: `anthropic`, `openai-chat`, `openai-responses`. Returns what
    /// the SDK's types do not allow, keys that they do not have included; empty where all is well.
    ///
    /// # Errors
    /// The judge has ended; what it wrote is on standard error.
    pub fn problems(&mut self, wire: &str, body: &Value) -> Result<Vec<String>> {
        writeln!(self.given, "{}", json!({"wire": wire, "body": body})).context("the judge has ended")?;
        let mut line = String::new();
        self.said.read_line(&mut line).context("the judge has ended")?;
        serde_json::from_str(&line).with_context(|| format!("the judge wrote no list: {line:?}"))
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
