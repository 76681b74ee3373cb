//! A server as a child process: found reachable, its log kept, and never left behind.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::http;

/// How long a server may take to answer. The real model loads in about 2 seconds on a quiet machine.
const START: Duration = Duration::from_secs(120);
/// A free port can be taken by another process before the server binds it; then another is tried.
const TRIES: u32 = 3;

/// Becomes the server (`exec`) and leaves a watcher process that reads our end of a pipe. When that end closes, however
/// this process came to its end, the watcher kills the group of both.
pub(crate) const LAUNCHER: &str =
    r#"exec 3<&0; (read -r _ <&3; kill -s KILL -- "-$$") & exec 3<&-; exec "$@" </dev/null"#;

/// A port of 127.0.0.1 that was free a moment ago.
///
/// # Errors
/// No port can be bound.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

/// A running server. Dropping it kills it and everything it started.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    name: &'static str,
    base_url: String,
    log: PathBuf,
}

impl Server {
    /// Starts what `command` gives for a port and waits until `GET /health` answers 200.
    pub(crate) fn start(name: &'static str, logs: &Path, command: impl Fn(u16) -> Vec<String>) -> Result<Self> {
        Self::start_at(name, logs, "/health", command)
    }

    /// As [`Server::start`], for a server with another path than `/health`.
    pub(crate) fn start_at(
        name: &'static str,
        logs: &Path,
        health: &str,
        command: impl Fn(u16) -> Vec<String>,
    ) -> Result<Self> {
        let mut tried = 0;
        loop {
            tried += 1;
            let port = free_port()?;
            let mut server = Self::spawn(name, logs, port, &command(port))?;
            match server.wait_until_reachable(health) {
                Ok(()) => return Ok(server),
                Err(_) if tried < TRIES && server.log().contains("address already in use") => {}
                Err(error) => return Err(error.context(server.describe_log())),
            }
        }
    }

    /// Starts a server that has its port from elsewhere, and waits until `GET` of a path answers 200.
    pub(crate) fn start_on(port: u16, name: &'static str, logs: &Path, health: &str, command: &[&str]) -> Result<Self> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let mut server = Self::spawn(name, logs, port, &command)?;
        server.wait_until_reachable(health).map_err(|error| error.context(server.describe_log()))?;
        Ok(server)
    }

    fn spawn(name: &'static str, logs: &Path, port: u16, command: &[String]) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        std::fs::create_dir_all(logs).with_context(|| format!("cannot make {}", logs.display()))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = logs.join(format!("{name}-{}-{number}.log", std::process::id()));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new("sh")
            .args(["-c", LAUNCHER, "sh"])
            .args(command)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {name}: {command:?}"))?;
        Ok(Self { child, name, base_url: format!("http://127.0.0.1:{port}"), log })
    }

    fn wait_until_reachable(&mut self, health: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            let answer = http::get(&self.base_url, health);
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at its start ({status})", self.name);
            }
            if answer.as_ref().is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            if began.elapsed() > START {
                bail!("{} did not answer within {} s; last: {answer:?}", self.name, START.as_secs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// `http://127.0.0.1:PORT`, without a slash at its end.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// What the server has written so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read(&self.log)
            .map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into_owned())
    }

    fn describe_log(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(20)..].join("\n  ");
        format!("{} failed; its log is {}, which ends with\n  {last}", self.name, self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closing the pipe makes the watcher kill the whole group; the child itself we end and reap at once.
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
        // A failing test keeps the log, so that the place named in its message can be read.
        if !std::thread::panicking() {
            drop(std::fs::remove_file(&self.log));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{LAUNCHER, Server};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Command, Stdio};

    #[test]
    fn a_server_ends_with_the_process_that_holds_its_pipe() {
        let mut launcher = Command::new("sh");
        launcher.args(["-c", LAUNCHER, "sh", "sleep", "60"]).process_group(0).stdin(Stdio::piped());
        let mut child = launcher.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(child.try_wait().unwrap(), None);
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_server_that_ends_at_its_start_is_named_with_its_last_words() {
        let command = ["sh", "-c", "echo no fixtures here; exit 7"].map(str::to_owned).to_vec();
        let error = Server::start("broken", &std::env::temp_dir(), |_| command.clone()).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("broken ended at its start (exit status: 7)"), "{text}");
        assert!(text.contains("no fixtures here"), "{text}");
    }
}
