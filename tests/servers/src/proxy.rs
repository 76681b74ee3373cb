//! Proxies (`pproxy`) and a server behind them whose name only they can resolve.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::http;
use crate::install::{ensure_proxy, folder, sources};
use crate::process::Server;

/// The name of the server, which is not found without a proxy.
pub const BEHIND: &str = "provider.example";

/// Running proxies, and a server that speaks the Messages API behind them.
#[derive(Debug)]
pub struct ProxyServers {
    server: Server,
    facts: Value,
}

impl ProxyServers {
    /// Starts them; installs what they consist of first where it is missing.
    ///
    /// # Errors
    /// They cannot be installed or do not answer. The message holds the end of their log.
    pub fn start() -> Result<Self> {
        let python = ensure_proxy()?.join("bin/python").display().to_string();
        let script = sources().join("proxy.py").display().to_string();
        let logs = folder("logs");
        let server = Server::start("pproxy", &logs, |port| {
            vec![python.clone(), "-u".to_owned(), script.clone(), port.to_string(), logs.display().to_string()]
        })?;
        let facts = http::get(server.base_url(), "/facts")?.json()?;
        Ok(Self { server, facts })
    }

    /// The port of a part: `proxy` (HTTP and SOCKS 5), `guarded` (for `user` with `pass-word-1`), `behind_tls`; `tls` and `plain` of the server.
    ///
    /// # Errors
    /// There is no such part.
    pub fn port(&self, part: &str) -> Result<u64> {
        self.facts[part].as_u64().with_context(|| format!("no part {part}"))
    }

    /// The file with the authority that has signed the certificates of the server and of the proxy behind TLS.
    ///
    /// # Errors
    /// The servers did not name it.
    pub fn authority(&self) -> Result<&str> {
        self.facts["authority"].as_str().context("no authority")
    }

    /// How often the proxies have connected to something so far.
    ///
    /// # Errors
    /// They do not answer.
    pub fn connected(&self) -> Result<usize> {
        let facts = http::get(self.server.base_url(), "/facts")?.json()?;
        Ok(facts["connected"].as_array().context("no list")?.len())
    }
}
