//! Prometheus: the tool that checks its text format, and a server that reads an endpoint.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::apt;
use crate::http;
use crate::install::folder;
use crate::process::Server;

const PACKAGE: &str = "prometheus";
/// How long the server may take to read an endpoint that it reads every second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Installs `prometheus` and `promtool` with the system's package manager where they are missing.
///
/// # Errors
/// They cannot be installed. The message says what to do.
pub fn ensure_prometheus() -> Result<()> {
    apt::ensure_installed(PACKAGE, "promtool")?;
    apt::check(PACKAGE, "prometheus")
}

/// Returns what `promtool check metrics` finds in a text, a line each: syntax errors and breaches of conventions.
///
/// # Errors
/// It is not installed.
pub fn promtool_check(text: &str) -> Result<Vec<String>> {
    apt::check(PACKAGE, "promtool")?;
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start promtool")?;
    let mut input = child.stdin.take().context("promtool has no input")?;
    input.write_all(text.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let said = [output.stdout, output.stderr].concat();
    let lines: Vec<String> = String::from_utf8_lossy(&said).lines().map(str::to_owned).collect();
    ensure!(output.status.success() || !lines.is_empty(), "promtool failed without a word ({})", output.status);
    Ok(lines)
}

/// A Prometheus server that reads one endpoint every second.
#[derive(Debug)]
pub struct Prometheus {
    server: Server,
    folder: PathBuf,
}

impl Prometheus {
    /// Starts a server that reads `http://TARGET/metrics`.
    ///
    /// # Errors
    /// It is not installed, or does not answer. The message says what to do.
    pub fn start(target: SocketAddr) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        apt::check(PACKAGE, "prometheus")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let data = std::env::temp_dir().join(format!("tidegate-prometheus-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        let config = data.join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: tidegate\n    static_configs:\n      - targets: [\"{target}\"]\n"
        );
        std::fs::write(&config, text)?;
        let server = Server::start_at("prometheus", &folder("logs"), "/-/ready", |port| {
            vec![
                "prometheus".to_owned(),
                format!("--config.file={}", config.display()),
                format!("--storage.tsdb.path={}", data.join("data").display()),
                format!("--web.listen-address=127.0.0.1:{port}"),
            ]
        })?;
        Ok(Self { server, folder: data })
    }

    /// Returns what it last read of the endpoint: the media type's error if it could not be read, and the values of `query`, each
    /// with its labels. Waits until it has read the endpoint once.
    ///
    /// # Errors
    /// It has not read the endpoint in time: its own error is in the message.
    pub fn query(&self, query: &str) -> Result<Vec<(Value, String)>> {
        let began = Instant::now();
        loop {
            let target = self.get("/api/v1/targets")?["data"]["activeTargets"][0].clone();
            if target["health"] == "up" {
                break;
            }
            ensure!(began.elapsed() < PATIENCE, "Prometheus cannot read the endpoint: {}", target["lastError"]);
            std::thread::sleep(Duration::from_millis(100));
        }
        let found = self.get(&format!("/api/v1/query?query={query}"))?;
        let results = found["data"]["result"].as_array().with_context(|| format!("no result: {found}"))?;
        let value = |result: &Value| Some((result["metric"].clone(), result["value"][1].as_str()?.to_owned()));
        Ok(results.iter().filter_map(value).collect())
    }

    fn get(&self, path: &str) -> Result<Value> {
        http::get(self.server.base_url(), path)?.json()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The server is killed when its field is dropped, after this; what it still writes goes to files that have no name.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
