//! A model with scripted answers in three wire formats (`scripted.py`): what it says follows from the request, and it keeps what it was asked.

use anyhow::Result;
use serde_json::Value;

use crate::http;
use crate::install::{folder, sources};
use crate::process::Server;

/// The running server. It ends with its value.
#[derive(Debug)]
pub struct Scripted(Server);

impl Scripted {
    /// Starts it, with the system's Python.
    ///
    /// # Errors
    /// It does not answer. The message holds the end of its log.
    pub fn start() -> Result<Self> {
        let script = sources().join("scripted.py").display().to_string();
        let command = |port: u16| ["python3", &script, &port.to_string()].map(str::to_owned).to_vec();
        Ok(Self(Server::start("scripted", &folder("logs"), command)?))
    }

    /// Returns the address, `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> &str {
        self.0.base_url()
    }

    /// What it was asked so far, oldest first.
    ///
    /// # Errors
    /// It does not answer.
    pub fn requests(&self) -> Result<Vec<Value>> {
        let requests = http::get(self.base_url(), "/requests")?.json()?;
        Ok(requests.as_array().cloned().unwrap_or_default())
    }
}
