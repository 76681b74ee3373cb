//! A Redis server without persistence, on a free port and with a folder of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::apt;
use crate::process::{LAUNCHER, free_port};

/// The system's package, and its program.
const PACKAGE: &str = "redis-server";
/// How long it may take to answer. It needs about 20 milliseconds on a quiet machine.
const START: Duration = Duration::from_secs(30);
/// A free port can be taken by another process before the server binds it; then another is tried.
const TRIES: u32 = 3;

/// Installs `redis-server` with the system's package manager where it is missing.
///
/// # Errors
/// It cannot be installed. The message says what to do.
pub fn ensure_redis() -> Result<()> {
    apt::ensure_installed(PACKAGE, PACKAGE)
}

/// A Redis server, which can be killed and started again on its port. Dropping it kills it.
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    port: u16,
    folder: PathBuf,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts a server and waits until it answers. It keeps its data in memory only.
    ///
    /// # Errors
    /// It is not installed, or does not answer. The message says what to do.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with options of the caller's choice, such as `--appendonly yes`.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_with(options: &[&str]) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        apt::check(PACKAGE, PACKAGE)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tidegate-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut server =
            Self { child: None, port: 0, folder, options: options.iter().map(|&word| word.to_owned()).collect() };
        let mut tried = 0;
        loop {
            tried += 1;
            server.port = free_port()?;
            match server.start_again() {
                Ok(()) => return Ok(server),
                Err(error) if tried == TRIES => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Starts the server on its port again: without its former data, unless an option says otherwise.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_again(&mut self) -> Result<()> {
        self.kill();
        let port = self.port.to_string();
        let child = Command::new("sh")
            .args(["-c", LAUNCHER, "sh", "redis-server", "--port", &port, "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--enable-debug-command", "yes", "--dir"])
            .arg(&self.folder)
            .args(&self.options)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start redis-server")?;
        self.child = Some(child);
        let began = Instant::now();
        loop {
            if self.answers() {
                return Ok(());
            }
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().transpose()).transpose()? {
                bail!("redis-server ended at its start on port {} ({status})", self.port);
            }
            ensure!(began.elapsed() < START, "redis-server did not answer within {} s", START.as_secs());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn answers(&self) -> bool {
        let ping = || -> std::io::Result<[u8; 5]> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(START))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            Ok(answer)
        };
        ping().is_ok_and(|answer| &answer == b"+PONG")
    }

    /// Kills the server, as a crash of its machine does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Returns the address, `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::RedisServer;

    #[test]
    fn it_answers_after_a_restart_and_not_after_a_kill() {
        let mut server = RedisServer::start().unwrap();
        assert!(server.answers());
        server.kill();
        assert!(!server.answers());
        server.start_again().unwrap();
        assert!(server.answers());
    }
}
