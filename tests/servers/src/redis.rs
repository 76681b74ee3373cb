//! A Redis server without persistence, on a free port and with a folder of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::apt;
use crate::certificates::Certificates;
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
    tls_port: Option<u16>,
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
        let mut server = Self {
            child: None,
            port: 0,
            tls_port: None,
            folder,
            options: options.iter().map(|&word| word.to_owned()).collect(),
        };
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

    /// Starts a server that copies the data of another one.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_replica(primary: &Self) -> Result<Self> {
        Self::start_with(&["--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", &primary.port.to_string()])
    }

    /// Starts a Sentinel that watches a server under this name, and alone decides that it is down, after 300 milliseconds.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_sentinel(primary: &Self, name: &str) -> Result<Self> {
        let monitor = format!("monitor {name} 127.0.0.1 {} 1", primary.port);
        let settings =
            [&monitor, &format!("down-after-milliseconds {name} 300"), &format!("failover-timeout {name} 1000")];
        let file = std::env::temp_dir().join(format!("tidegate-sentinel-{}-{}", std::process::id(), primary.port));
        std::fs::write(&file, settings.map(|line| format!("sentinel {line}\n")).concat())?;
        let started = Self::start_with(&[&file.display().to_string(), "--sentinel"]);
        drop(std::fs::remove_file(&file));
        started
    }

    /// Starts a server that takes connections with TLS on a port of its own, next to those without on [`RedisServer::url`].
    /// `asks_clients`: whether clients there need a certificate.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_tls(certificates: &Certificates, asks_clients: bool) -> Result<Self> {
        Self::start_tls_with(certificates, asks_clients, &[])
    }

    /// Starts a server with TLS and with options of the caller's choice.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_tls_with(certificates: &Certificates, asks_clients: bool, more: &[&str]) -> Result<Self> {
        let file = |name: &str| certificates.path(name).display().to_string();
        let (certificate, key, authority) = (file("server.pem"), file("server.key"), file("authority.pem"));
        let (port, clients) = (free_port()?, if asks_clients { "yes" } else { "no" });
        let options = [
            ["--tls-port", &port.to_string()],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &authority],
            ["--tls-auth-clients", clients],
        ];
        let mut server = Self::start_with(&[&options.concat()[..], more].concat())?;
        server.tls_port = Some(port);
        Ok(server)
    }

    /// Starts the server on its port again: without its former data, unless an option says otherwise.
    ///
    /// # Errors
    /// As for [`RedisServer::start`].
    pub fn start_again(&mut self) -> Result<()> {
        self.kill();
        let port = self.port.to_string();
        let data = ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
        let is_sentinel = self.options.iter().any(|option| option == "--sentinel");
        let (file, options) = self.options.split_at(usize::from(is_sentinel));
        let child = Command::new("sh")
            .args(["-c", LAUNCHER, "sh", "redis-server"])
            .args(file)
            .args(["--port", &port, "--bind", "127.0.0.1"])
            .args(if is_sentinel { &[] } else { &data[..] })
            .arg("--dir")
            .arg(&self.folder)
            .args(options)
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

    /// Returns the port for connections without TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the port for connections with TLS, if the server takes them.
    pub fn tls_port(&self) -> Option<u16> {
        self.tls_port
    }

    /// Returns the address, `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the host and port for connections with TLS, whose certificate is for this name.
    pub fn tls_host(&self) -> String {
        format!("localhost:{}", self.tls_port.unwrap_or_default())
    }

    /// Sends a command, without waiting longer than a start takes; returns the first line of the reply.
    ///
    /// # Errors
    /// The server cannot be reached, or replies with an error.
    pub fn command(&self, words: &[&str]) -> Result<String> {
        self.reply(words).map(|(line, _)| line)
    }

    /// Sends a command whose reply is a string of any length.
    ///
    /// # Errors
    /// As for [`RedisServer::command`], or the reply is not a string.
    pub fn text(&self, words: &[&str]) -> Result<String> {
        let (line, mut rest) = self.reply(words)?;
        let length = line.strip_prefix('$').and_then(|length| length.parse().ok()).context("not a string")?;
        let mut bytes = vec![0; length];
        rest.read_exact(&mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }

    fn reply(&self, words: &[&str]) -> Result<(String, BufReader<TcpStream>)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(START))?;
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(command.as_bytes())?;
        let (mut line, mut reader) = (String::new(), BufReader::new(stream));
        reader.read_line(&mut line)?;
        ensure!(!line.starts_with('-'), "redis-server: {line}");
        Ok((line.trim_end().to_owned(), reader))
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
