//! Servers that refuse requests of the wrong shape: by the types of the vendors' own SDKs, and by the OpenAPI documents that the vendors
//! publish (`judge.py`).

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::http;
use crate::install::{ensure_judge, folder, sources};
use crate::process::Server;

/// The running servers. They end with their value.
#[derive(Debug)]
pub struct Judge(Server);

impl Judge {
    /// Starts them; installs them first where they are missing.
    ///
    /// # Errors
    /// They cannot be installed or do not answer. The message holds the end of their log.
    pub fn start() -> Result<Self> {
        let python = ensure_judge()?.join("bin/python").display().to_string();
        let script = sources().join("judge.py").display().to_string();
        let server =
            Server::start("judge", &folder("logs"), |port| vec![python.clone(), script.clone(), port.to_string()])?;
        Ok(Self(server))
    }

    /// The addresses of both, each with its name.
    pub fn base_urls(&self) -> [(&'static str, String); 2] {
        ["sdk", "openapi"].map(|name| (name, format!("{}/{name}/v1", self.0.base_url())))
    }

    /// Judges the body of a request for an answer that streams, by both. `wire`: `anthropic`, `openai-chat`, `openai-responses`. Returns
    /// what is not allowed, keys that the SDK's types do not have included; empty where all is well.
    ///
    /// # Errors
    /// They do not answer.
    pub fn problems(&self, wire: &str, body: &Value) -> Result<Vec<String>> {
        let path = match wire {
            "anthropic" => "/v1/messages",
            "openai-chat" => "/v1/chat/completions",
            "openai-responses" => "/v1/responses",
            _ => bail!("no wire format {wire}"),
        };
        let mut found = Vec::new();
        for name in ["sdk", "openapi"] {
            let answer = http::post(self.0.base_url(), &format!("/{name}{path}"), body)?;
            if answer.status != 200 {
                let refused: Value = serde_json::from_str(&answer.body).context("the judge wrote no JSON")?;
                let problems = refused["problems"].as_array().context("no list of problems")?;
                found.extend(problems.iter().map(|problem| format!("{name}: {problem}")));
            }
        }
        Ok(found)
    }
}
