//! A browser that reads the events of a session, and notes when it gets which delta.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// The turns whose end a browser has.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    ended: u64,
    failed: u64,
}

/// A connected browser.
pub(super) struct Browser {
    lags: Arc<Mutex<Vec<u32>>>,
    turns: watch::Receiver<Turns>,
}

impl Browser {
    /// Opens the stream of events of a session. Times are counted from `began`.
    ///
    /// # Errors
    /// The server refuses the stream.
    pub(super) async fn connect(server: SocketAddr, session: &str, began: Instant) -> Result<Self> {
        let mut socket = TcpStream::connect(server).await?;
        let request = format!("GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: {server}\r\n\r\n");
        socket.write_all(request.as_bytes()).await?;
        let mut input = BufReader::new(socket);
        let mut status = String::new();
        input.read_line(&mut status).await?;
        ensure!(status.starts_with("HTTP/1.1 200 "), "a stream of events was answered with {}", status.trim());
        let lags = Arc::<Mutex<Vec<u32>>>::default();
        let (sender, turns) = watch::channel(Turns::default());
        tokio::spawn(read(input, Arc::clone(&lags), sender, began));
        Ok(Self { lags, turns })
    }

    /// Waits until it has the end of so many turns.
    ///
    /// # Errors
    /// The server has closed the stream.
    pub(super) async fn turns(&self, count: u64) -> Result<()> {
        let mut turns = self.turns.clone();
        turns.wait_for(|turns| turns.ended >= count).await.context("the stream of events has ended")?;
        Ok(())
    }

    /// The number of turns that have failed.
    pub(super) fn failed(&self) -> u64 {
        self.turns.borrow().failed
    }

    /// The number of deltas so far.
    pub(super) fn deltas(&self) -> u64 {
        lock(&self.lags).len() as u64
    }

    /// Of each delta the microseconds from the provider to here.
    pub(super) fn take_lags(&self) -> Vec<u32> {
        std::mem::take(&mut lock(&self.lags))
    }
}

async fn read(input: BufReader<TcpStream>, lags: Arc<Mutex<Vec<u32>>>, turns: watch::Sender<Turns>, began: Instant) {
    let mut lines = input.lines();
    // An event is a chunk of its own: the lines between are the sizes of chunks.
    while let Ok(Some(line)) = lines.next_line().await {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let now = began.elapsed().as_micros();
        let Ok(event) = serde_json::from_str::<Value>(data) else { continue };
        match event["type"].as_str() {
            Some("cognition_out_delta") => {
                let text = event["payload"]["text"].as_str().unwrap_or_default();
                let sent = text.lines().filter_map(|line| line.strip_prefix("sent ")?.parse::<u128>().ok());
                let each = sent.map(|sent| u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX));
                lock(&lags).extend(each);
            }
            Some("turn_finish") => turns.send_modify(|turns| {
                turns.ended += 1;
                turns.failed += u64::from(event["payload"]["status"] != "completed");
            }),
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
