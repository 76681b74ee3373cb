//! `llmock` (Python): faults on demand, and a record of requests that distinguishes a complete stream from an aborted
//! one.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::install::{ensure_python, folder};
use crate::{http, process::Server};

/// A running `llmock`. Routes below its base address: `/anthropic/v1/messages`, `/v1/chat/completions`, `/v1/responses`.
#[derive(Debug)]
pub struct Llmock(Server);

impl Llmock {
    /// Starts it: answers echo the question, 50 ms between the chunks of a stream. Installs it first where it is missing.
    ///
    /// # Errors
    /// It cannot be installed or does not answer. The message holds the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_with(&["--stream-chunk-delay-ms", "50", "--response-style", "echo"])
    }

    /// Starts it with options of its `serve` command of the caller's choice.
    ///
    /// # Errors
    /// As for [`Llmock::start`].
    pub fn start_with(options: &[&str]) -> Result<Self> {
        let program = ensure_python()?.join("bin/llmock").display().to_string();
        let server = Server::start("llmock", &folder("logs"), |port| {
            let port = port.to_string();
            let fixed = [program.as_str(), "serve", "--port", &port];
            fixed.iter().chain(options).map(|word| (*word).to_owned()).collect()
        })?;
        Ok(Self(server))
    }

    /// Returns the address, `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> &str {
        self.0.base_url()
    }

    /// All requests so far, oldest first: `path`, `body`, `status`, `completed`, `chunks_sent`, `fault`, …
    ///
    /// `completed` is false where the client closed the stream before its end.
    ///
    /// # Errors
    /// The server is gone or answers no list.
    pub fn requests(&self) -> Result<Vec<Value>> {
        let answer = http::get(self.base_url(), "/_llmock/requests")?.json()?;
        let requests = answer.get("requests").and_then(Value::as_array);
        requests.cloned().with_context(|| format!("the record of llmock has no list of requests: {answer}"))
    }

    /// Its judgement on the client's way with faults: `passed`, `findings`, …
    ///
    /// # Errors
    /// The server is gone.
    pub fn verdict(&self) -> Result<Value> {
        http::get(self.base_url(), "/_llmock/verdict")?.json()
    }

    /// Sets what the next requests meet, one behaviour each: `{"type": "fail", "status": 529}`,
    /// `{"type": "reply", "text": "…"}`, `{"type": "stream_fault", "kind": "truncate", "after_chunks": 2}`, …
    ///
    /// # Errors
    /// The server is gone or refuses a behaviour.
    pub fn scenario(&self, behaviors: &[Value]) -> Result<()> {
        http::post(self.base_url(), "/_llmock/scenario", &json!({ "behaviors": behaviors }))?.json()?;
        Ok(())
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        self.0.log()
    }
}
