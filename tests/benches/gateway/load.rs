//! Clients of a gateway: streams at a fixed rate, and requests one after the other.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use tidegate_servers::KEY;

use super::upstream::Question;

/// Where requests go, and the headers that this server wants.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// Before the path of the format.
    pub(super) path: &'static str,
    /// Each with its line end.
    pub(super) headers: String,
}

/// Delays in microseconds, sorted.
#[derive(Default)]
pub(super) struct Delays(Vec<u64>);

impl Delays {
    pub(super) fn at(&self, quantile: f64) -> f64 {
        let at = ((self.0.len() as f64 * quantile) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or_default() as f64
    }
}

/// Of many streams at once: until the first frame since the request, and of each frame since it was written.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) first: Delays,
    pub(super) frames: Delays,
}

/// Frames at the start of a stream that do not count.
const WARM: u64 = 10;

impl Target {
    fn request(&self, question: Question, number: u32) -> Vec<u8> {
        let body = question.body(number);
        format!(
            "POST {}/v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nauthorization: Bearer {KEY}\r\n{}content-length: {}\r\n\r\n{body}",
            self.path, self.address, self.headers, body.len()
        )
        .into_bytes()
    }

    /// Runs so many streams, which begin one after the other within a second.
    ///
    /// # Errors
    /// The reason why there is no measurement: a stream failed, or they were not done in four times their time.
    pub(super) async fn streams(&self, count: u32, question: Question, start: Instant) -> Result<Measured, String> {
        let whole = question.every * u32::try_from(question.frames).unwrap_or(u32::MAX);
        let streams: Vec<_> = (0..count)
            .map(|number| {
                let (request, address) = (self.request(question, number), self.address);
                // Over a second, so that starts are measured and not a herd.
                let wait = Duration::from_secs(1) * number / count;
                tokio::spawn(async move {
                    sleep(wait).await;
                    stream(address, &request, question, start).await
                })
            })
            .collect();
        let all = async {
            let mut measured = Measured::default();
            for stream in streams {
                let (first, frames) = stream.await.map_err(io::Error::other)??;
                measured.first.0.push(first);
                measured.frames.0.extend(frames);
            }
            io::Result::Ok(measured)
        };
        let measured = timeout(whole * 4 + Duration::from_secs(4), all).await;
        let mut measured = measured.map_err(|_| "it does not keep up")?.map_err(|error| error.to_string())?;
        measured.first.0.sort_unstable();
        measured.frames.0.sort_unstable();
        Ok(measured)
    }

    /// Requests a second of so many clients that ask again at once.
    pub(super) async fn rate(&self, clients: u32, time: Duration) -> Option<f64> {
        let question = Question { frames: 0, every: Duration::ZERO };
        let end = Instant::now() + time;
        let clients: Vec<_> = (0..clients)
            .map(|number| {
                let (request, address) = (self.request(question, number), self.address);
                tokio::spawn(async move {
                    let mut connection = TcpStream::connect(address).await?;
                    connection.set_nodelay(true)?;
                    let (mut count, mut received) = (0_u64, Vec::new());
                    while Instant::now() < end {
                        connection.write_all(&request).await?;
                        whole(&mut connection, &mut received).await?;
                        count += 1;
                    }
                    io::Result::Ok(count)
                })
            })
            .collect();
        let mut all = 0;
        for client in clients {
            all += client.await.ok()?.ok()?;
        }
        Some(all as f64 / time.as_secs_f64())
    }
}

/// Returns one stream: the delay of its first frame, and those of the others.
async fn stream(
    address: SocketAddr,
    request: &[u8],
    question: Question,
    start: Instant,
) -> io::Result<(u64, Vec<u64>)> {
    let mut connection = TcpStream::connect(address).await?;
    connection.set_nodelay(true)?;
    let asked = start.elapsed().as_micros() as u64;
    connection.write_all(request).await?;
    let (mut received, mut delays, mut first) = (Vec::with_capacity(8192), Vec::new(), None);
    let mut number = 0;
    let mut is_answered = false;
    loop {
        if connection.read_buf(&mut received).await? == 0 {
            return Err(io::Error::other("the stream broke off"));
        }
        if !std::mem::replace(&mut is_answered, true) && !received.starts_with(b"HTTP/1.1 200") {
            let head = String::from_utf8_lossy(&received);
            return Err(io::Error::other(format!("it answers `{}`", head.lines().next().unwrap_or_default())));
        }
        let now = start.elapsed().as_micros() as u64;
        let mut from = 0;
        while let Some(end) = received[from..].windows(2).position(|end| end == b"\n\n") {
            let frame = &received[from..from + end];
            from += end + 2;
            if frame.ends_with(b"data: [DONE]") {
                return if number == question.frames {
                    Ok((first.unwrap_or_default(), delays))
                } else {
                    Err(io::Error::other(format!("{number} of {} frames", question.frames)))
                };
            }
            let Some(written) = written(frame) else { continue };
            number += 1;
            first.get_or_insert(now - asked);
            if number > WARM {
                delays.push(now.saturating_sub(written));
            }
        }
        received.drain(..from);
    }
}

/// Returns the time at which a frame was written.
fn written(frame: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(frame).ok()?;
    let content = &text[text.find("\"content\":")? + 10..];
    let digits = content.trim_start_matches([' ', '"']);
    digits[..digits.find(' ')?].parse().ok()
}

/// Reads an answer that is one body.
async fn whole(connection: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<()> {
    received.clear();
    loop {
        if connection.read_buf(received).await? == 0 {
            return Err(io::Error::other("no answer"));
        }
        let Some(head) = received.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
        if !text.starts_with("http/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(received).into_owned()));
        }
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let is_whole = match length {
            Some(length) => received.len() >= head + 4 + length.trim().parse::<usize>().map_err(io::Error::other)?,
            None => received.ends_with(b"0\r\n\r\n"),
        };
        if is_whole {
            return Ok(());
        }
    }
}
