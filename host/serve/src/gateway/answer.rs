//! Answers on their way to the client: passed on, or guarded.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use gateway::{Exchange, Next, Place, Then};
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::body::Frame;
use reqwest::Response;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::forward::Sent;
use super::head::{self, Kind};

/// A server that sends nothing for so long has gone.
const IDLE: Duration = Duration::from_secs(600);

/// The body of a response.
pub(super) type Body = BoxBody<Bytes, io::Error>;

/// So many chunks wait for a client that reads slowly; then its model is not read either.
const WAITING: usize = 8;

/// Where nothing was sent for so long, something is, so that nobody on the way takes the connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A body that is sent from elsewhere. Empty bytes are its end: without them it has broken off.
pub(super) fn channel() -> (mpsc::Sender<io::Result<Bytes>>, Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let frames = Received { receiver, has_ended: false };
    (sender, BoxBody::new(StreamBody::new(frames)))
}

#[derive(Debug)]
struct Received {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    has_ended: bool,
}

impl futures_core::Stream for Received {
    type Item = io::Result<Frame<Bytes>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = ready!(self.receiver.poll_recv(cx));
        self.has_ended = !matches!(&next, Some(Ok(bytes)) if !bytes.is_empty());
        Poll::Ready(match next {
            Some(Ok(bytes)) if bytes.is_empty() => None,
            Some(bytes) => Some(bytes.map(Frame::data)),
            None => Some(Err(io::Error::other("the answer broke off"))),
        })
    }
}

/// Passes an answer on as it is.
pub(super) async fn pass(mut response: Response, client: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let next = tokio::select! {
            () = client.closed() => return,
            next = response.chunk() => next,
        };
        let sent = match next {
            Ok(Some(bytes)) if bytes.is_empty() => continue,
            Ok(Some(bytes)) => client.send(Ok(bytes)).await,
            Ok(None) => return drop(client.send(Ok(Bytes::new())).await),
            Err(error) => client.send(Err(io::Error::other(net::cause(&error)))).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// An answer that is guarded.
pub(super) struct Guarded {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Place,
    pub(super) exchange: Exchange,
    pub(super) sent: Sent,
    pub(super) client: mpsc::Sender<io::Result<Bytes>>,
}

/// What the connections bring.
enum Came {
    /// The client has closed its connection.
    Gone,
    Bytes(Bytes),
    End,
    Broken,
    /// Held bytes have waited for as long as they may.
    Due,
    /// Nothing was sent for a while.
    Silence,
}

impl Guarded {
    /// Relays an answer and what continues it, to the end.
    pub(super) async fn run(mut self, response: Response, is_stream: bool) {
        let since = Instant::now();
        let mut response = Some(response);
        let (mut silent, mut heard) = (Instant::now(), Instant::now());
        self.exchange.begin(is_stream);
        while let Some(upstream) = &mut response {
            let deadline = self.exchange.deadline().map(|due| since + due);
            let came = came(upstream, &self.client, deadline, is_stream.then_some(silent + KEEP_ALIVE)).await;
            let now = since.elapsed();
            if matches!(came, Came::Bytes(_)) {
                heard = Instant::now();
            }
            let next = match came {
                Came::Silence if heard.elapsed() > IDLE => Next { then: Then::Break, ..Next::default() },
                Came::Gone => break,
                Came::Bytes(bytes) => self.exchange.receive(&bytes, now),
                Came::End => self.exchange.end(now),
                Came::Broken => Next { then: Then::Break, ..Next::default() },
                Came::Due => Next { send: self.exchange.release(now), ..Next::default() },
                Came::Silence => Next { send: self.exchange.keep_alive().to_vec(), ..Next::default() },
            };
            if !next.send.is_empty() {
                silent = Instant::now();
            }
            if !self.send(next.send).await {
                break;
            }
            match next.then {
                Then::More => {}
                Then::End => {
                    drop(self.client.send(Ok(Bytes::new())).await);
                    break;
                }
                Then::Break => {
                    drop(self.client.send(Err(io::Error::other("the model's answer broke off"))).await);
                    break;
                }
                Then::Ask => {
                    // The stopped answer is dropped before anything that could wait.
                    drop(response.take());
                    response = self.again(is_stream).await;
                    heard = Instant::now();
                }
            }
        }
        self.shared.conversations.end(&self.place, &self.exchange);
        for notice in self.exchange.notices() {
            tracing::warn!("{notice}");
        }
        self.shared.report.count(&self.exchange);
    }

    /// Asks once more. `None`: the message has ended instead.
    async fn again(&mut self, is_stream: bool) -> Option<Response> {
        let refused = match self.ask(is_stream).await {
            Ok(response) => {
                self.exchange.begin(is_stream);
                return Some(response);
            }
            Err(cause) => cause,
        };
        let next = self.exchange.give_up(&refused);
        if self.send(next.send).await {
            drop(self.client.send(Ok(Bytes::new())).await);
        }
        None
    }

    async fn ask(&self, is_stream: bool) -> Result<Response, String> {
        let body = self.exchange.request().ok_or("the request cannot be continued")?;
        let asked = self.sent.send(body, true);
        let asked = tokio::select! {
            () = self.client.closed() => return Err("nobody reads it".to_owned()),
            asked = asked => asked,
        };
        let response = asked.map_err(|error| format!("the model could not be asked again ({})", net::cause(&error)))?;
        let expected = if is_stream { Kind::Events } else { Kind::Json };
        let (status, headers) = (response.status(), response.headers());
        if !status.is_success() {
            return Err(format!("the model was asked again and its server answered with status {}", status.as_u16()));
        }
        if head::kind(headers) != expected || head::is_encoded(headers) {
            return Err("the model was asked again and answered in another way".to_owned());
        }
        Ok(response)
    }

    async fn send(&self, bytes: Vec<u8>) -> bool {
        bytes.is_empty() || self.client.send(Ok(Bytes::from(bytes))).await.is_ok()
    }
}

async fn came(
    upstream: &mut Response,
    client: &mpsc::Sender<io::Result<Bytes>>,
    deadline: Option<Instant>,
    silence: Option<Instant>,
) -> Came {
    // Without a time there is nothing to wait for.
    let at = |time: Option<Instant>| async move {
        match time {
            Some(time) => sleep_until(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = client.closed() => Came::Gone,
        next = upstream.chunk() => match next {
            Ok(Some(bytes)) => Came::Bytes(bytes),
            Ok(None) => Came::End,
            Err(_) => Came::Broken,
        },
        () = at(deadline) => Came::Due,
        () = at(silence) => Came::Silence,
    }
}
