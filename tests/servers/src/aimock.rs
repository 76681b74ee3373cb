//! `aimock` (Node): answers from fixture files in three wire formats, and a journal of the exact requests.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::install::{ensure_node, folder};
use crate::{http, process::Server};

/// A running `aimock`. Routes below its base address: `/v1/messages`, `/v1/chat/completions`, `/v1/responses`.
///
/// A request that no fixture matches is refused (`--strict`).
#[derive(Debug)]
pub struct Aimock(Server);

impl Aimock {
    /// Starts it on the fixtures in a file or a folder of `*.json`; installs it first where it is missing.
    ///
    /// # Errors
    /// It cannot be installed, the fixtures are not valid, or it does not answer. The message holds the end of its log.
    pub fn start(fixtures: &Path) -> Result<Self> {
        Self::start_with(fixtures, &[])
    }

    /// As [`Aimock::start`], with more of its options, such as `["--chunk-size", "3"]`.
    ///
    /// # Errors
    /// As for [`Aimock::start`].
    pub fn start_with(fixtures: &Path, options: &[&str]) -> Result<Self> {
        let program = ensure_node()?.join("node_modules/@copilotkit/aimock/dist/cli.js").display().to_string();
        let fixtures = fixtures.canonicalize().with_context(|| format!("fixtures {}", fixtures.display()))?;
        let fixtures = fixtures.display().to_string();
        let server = Server::start("aimock", &folder("logs"), |port| {
            let port = port.to_string();
            let fixed = ["node", &program, "--port", &port, "--fixtures", &fixtures, "--strict", "--validate-on-load"];
            fixed.iter().chain(options).map(|word| (*word).to_owned()).collect()
        })?;
        Ok(Self(server))
    }

    /// Returns the address, `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> &str {
        self.0.base_url()
    }

    /// All requests so far, oldest first: `method`, `path`, `headers`, `body`, `response`.
    ///
    /// # Errors
    /// The server is gone or answers no list.
    pub fn journal(&self) -> Result<Vec<Value>> {
        match http::get(self.base_url(), "/__aimock/journal")?.json()? {
            Value::Array(entries) => Ok(entries),
            other => anyhow::bail!("the journal of aimock is not a list: {other}"),
        }
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        self.0.log()
    }
}
