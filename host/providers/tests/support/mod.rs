//! A server that sends exactly the given bytes, at the given times, and notes what its client does.
//!
//! For what independent servers cannot do: errors inside a stream, chunks that end inside a character, silence, sockets
//! that close in the middle. Plain TCP, so that nothing between the script and the wire smooths anything.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server sends for one request.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One chunk of the body.
    Send(Vec<u8>),
    /// Time passes; a client that goes away is noticed.
    Wait(Duration),
    /// Nothing more happens until the client goes away.
    Hang,
    /// The socket closes without the end of the body.
    Abort,
}

/// A request as it came, and what became of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
    /// When the client closed the connection before the script was through.
    pub(crate) dropped: Option<Instant>,
    /// Chunks of the body that were sent.
    pub(crate) sent: usize,
    /// Which connection it came on, counted from 0.
    pub(crate) connection: usize,
}

/// A running server; it stops with its value.
pub(crate) struct Fixture {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Script {
    /// A stream of these chunks, ended well.
    pub(crate) fn stream<B: Into<Vec<u8>>>(chunks: impl IntoIterator<Item = B>) -> Self {
        let steps = chunks.into_iter().map(|chunk| Step::Send(chunk.into())).collect();
        Self { status: 200, headers: vec![("content-type".into(), "text/event-stream".into())], steps }
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// An answer that is not a stream.
    pub(crate) fn plain(status: u16, kind: &str, body: &str) -> Self {
        let steps = vec![Step::Send(body.into())];
        Self { status, headers: vec![("content-type".into(), kind.into())], steps }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl Fixture {
    /// Answers one request after the other with these scripts; after the last, with HTTP 500.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        let scripts: Arc<Mutex<VecDeque<Script>>> = Arc::new(Mutex::new(scripts.into_iter().collect()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let notes = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            for connection in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(socket, connection, Arc::clone(&scripts), Arc::clone(&notes)));
            }
        });
        Self { base_url, seen, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until the client has dropped the connection of request `at`.
    pub(crate) async fn dropped(&self, at: usize) -> Instant {
        for _ in 0..6000 {
            if let Some(when) = self.seen().get(at).and_then(|seen| seen.dropped) {
                return when;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the client did not drop the connection of request {at} within a minute");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// All requests of one connection.
async fn serve(
    mut socket: TcpStream,
    connection: usize,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    while let Some((head, body)) = read_request(&mut socket).await {
        let at = {
            let mut seen = seen.lock().unwrap();
            seen.push(Seen { head, body, dropped: None, sent: 0, connection });
            seen.len() - 1
        };
        let script = scripts.lock().unwrap().pop_front();
        let script = script.unwrap_or_else(|| Script::plain(500, "text/plain", "the script is over"));
        match play(&mut socket, &script, &seen, at).await {
            Played::Whole => {}
            Played::Closed => return,
            Played::Dropped => {
                seen.lock().unwrap()[at].dropped = Some(Instant::now());
                return;
            }
        }
    }
}

enum Played {
    Whole,
    Closed,
    Dropped,
}

async fn play(socket: &mut TcpStream, script: &Script, seen: &Mutex<Vec<Seen>>, at: usize) -> Played {
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", script.status);
    for (name, value) in &script.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    if socket.write_all(head.as_bytes()).await.is_err() {
        return Played::Dropped;
    }
    for step in &script.steps {
        match step {
            Step::Send(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(bytes);
                chunk.extend_from_slice(b"\r\n");
                if socket.write_all(&chunk).await.is_err() || socket.flush().await.is_err() {
                    return Played::Dropped;
                }
                seen.lock().unwrap()[at].sent += 1;
                // Each chunk its own packet: the client is to see the cuts.
                if went_away(socket, Duration::from_millis(3)).await {
                    return Played::Dropped;
                }
            }
            Step::Wait(time) => {
                if went_away(socket, *time).await {
                    return Played::Dropped;
                }
            }
            Step::Hang => {
                went_away(socket, Duration::from_secs(3600)).await;
                return Played::Dropped;
            }
            Step::Abort => return Played::Closed,
        }
    }
    if socket.write_all(b"0\r\n\r\n").await.is_err() { Played::Dropped } else { Played::Whole }
}

/// Waits, and returns whether the client closed meanwhile. It sends nothing before its answer is complete, so any
/// read reveals it.
async fn went_away(socket: &mut TcpStream, time: Duration) -> bool {
    let mut byte = [0; 1];
    matches!(tokio::time::timeout(time, socket.read(&mut byte)).await, Ok(Ok(0) | Err(_)))
}

async fn read_request(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut part = [0; 8192];
    loop {
        let got = socket.read(&mut part).await.ok().filter(|got| *got > 0)?;
        bytes.extend_from_slice(&part[..got]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let whole = end + 4 + length.unwrap_or(0);
        if bytes.len() >= whole {
            return Some((head, String::from_utf8_lossy(&bytes[end + 4..whole]).into_owned()));
        }
    }
}
