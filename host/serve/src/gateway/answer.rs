//! Guarded answers on their way to the client.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use gateway::{Next, Then};
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::body::Frame;
use hyper::header::HeaderMap;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use super::conversations::Begun;
use super::forward::Sent;
use super::head::{self, Kind};
use super::progress::Progress;
use super::received::Answer;
use super::trailers;

/// The body of a response.
pub(super) type Body = BoxBody<Bytes, io::Error>;

/// The capacity of the channel to a client, in chunks. When it is full, the model's answer is not read (backpressure).
const WAITING: usize = 8;

/// A client that is being answered.
#[derive(Debug)]
pub(super) struct Client {
    sender: mpsc::Sender<io::Result<Item>>,
}

/// Returns a body and its sender. A body that is dropped without [`Client::end`] breaks off.
pub(super) fn channel() -> (Client, Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let frames = Received { receiver, has_ended: false, failure: None };
    (Client { sender }, BoxBody::new(StreamBody::new(frames)))
}

impl Client {
    /// Waits until the client has disconnected.
    pub(super) async fn gone(&self) {
        self.sender.closed().await;
    }

    /// Sends bytes, if there are any. Returns whether the client is still connected.
    pub(super) async fn send(&self, bytes: Bytes) -> bool {
        bytes.is_empty() || self.put(Ok(Item::Bytes(bytes))).await
    }

    /// Ends the body, with these trailers.
    pub(super) async fn end(&self, trailers: HeaderMap) -> bool {
        self.put(Ok(Item::End(trailers))).await
    }

    /// Breaks the body off.
    pub(super) async fn break_off(&self, cause: String) {
        self.put(Err(io::Error::other(cause))).await;
    }

    /// The connection ends where the client takes nothing for too long.
    async fn put(&self, item: io::Result<Item>) -> bool {
        self.sender.send(item).await.is_ok()
    }
}

/// A part of a body.
#[derive(Debug)]
enum Item {
    Bytes(Bytes),
    /// The end, with the trailers.
    End(HeaderMap),
}

/// The parts of a body for a client.
#[derive(Debug)]
struct Received {
    receiver: mpsc::Receiver<io::Result<Item>>,
    has_ended: bool,
    /// The reason why the body breaks off.
    failure: Option<io::Error>,
}

impl Stream for Received {
    type Item = io::Result<Frame<Bytes>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        if let Some(failure) = self.failure.take() {
            self.has_ended = true;
            return Poll::Ready(Some(Err(failure)));
        }
        let failure = match ready!(self.receiver.poll_recv(cx)) {
            Some(Ok(Item::End(trailers))) => {
                self.has_ended = true;
                let trailers = (!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers)));
                return Poll::Ready(trailers);
            }
            Some(Ok(Item::Bytes(bytes))) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Some(Err(failure)) => failure,
            None => io::Error::other("the answer broke off"),
        };
        // On a failure the connection drops unwritten bytes: it writes them while no chunk arrives.
        self.failure = Some(failure);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// An answer that is guarded.
pub(super) struct Guarded {
    pub(super) begun: Box<Begun>,
    pub(super) sent: Sent,
    pub(super) client: Client,
    pub(super) progress: Progress,
    /// Whether the client gets the trailers of the answer.
    pub(super) has_trailers: bool,
}

/// The times at which something happens although nothing comes.
struct Deadlines {
    /// Held bytes have waited for as long as they may.
    due: Option<Instant>,
    /// A keep-alive is due, or the server has been silent for too long.
    silence: Instant,
    /// The time limit of the request is over.
    late: Instant,
}

/// A timer that is set again only for an earlier time: times of an answer move on with each of its parts, and setting a timer takes the
/// lock of all timers.
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(super) fn new(time: Instant) -> Self {
        Self(Box::pin(sleep_until(time)))
    }

    /// Waits until this time.
    async fn at(&mut self, time: Instant) {
        std::future::poll_fn(|cx| self.poll_at(cx, time)).await;
    }

    pub(super) fn poll_at(&mut self, cx: &mut Context<'_>, time: Instant) -> Poll<()> {
        while Instant::now() < time {
            if self.0.deadline() > time || self.0.is_elapsed() {
                self.0.as_mut().reset(time);
            }
            ready!(self.0.as_mut().poll(cx));
        }
        Poll::Ready(())
    }
}

/// An event of the client's or the server's connection.
enum Came {
    /// The client has closed its connection.
    Gone,
    Bytes(Bytes),
    End,
    Broken,
    /// Held bytes have waited for as long as they may.
    Due,
    /// Nothing was sent or received for a while.
    Silence,
    /// The time limit of the request is over.
    Late,
}

impl Guarded {
    /// Relays an answer and what continues it, to the end.
    pub(super) async fn run(mut self, response: Answer, is_stream: bool) {
        let mut response = Ok(response);
        let mut outcome = "ended";
        let mut is_over = false;
        self.begun.begin(is_stream);
        let mut alarm = Alarm::new(self.progress.late());
        loop {
            let next = match &mut response {
                Err(closing) => Next { then: Then::End, ..std::mem::take(closing) },
                Ok(upstream) => match self.came(upstream, is_stream, &mut alarm).await {
                    Came::Gone => {
                        outcome = "abandoned";
                        break;
                    }
                    came => self.next(came, &mut outcome).await,
                },
            };
            self.begun.sends(&next.send);
            self.notify();
            if next.then == Then::End {
                is_over = true;
                // A client does not keep an answer that failed in its middle.
                self.begun.end(self.ended() != "broken").await;
            }
            let size = next.send.len();
            if !self.client.send(next.send.into()).await {
                outcome = "abandoned";
                break;
            }
            self.progress.sent(size);
            self.progress.noted(&self.begun);
            match next.then {
                Then::More => {}
                Then::End => {
                    let trailers = self.trailers(response).await;
                    // Who has read the end finds the request counted.
                    self.progress.guarded(&self.begun, outcome);
                    self.client.end(trailers).await;
                    return;
                }
                Then::Break => {
                    self.client.break_off("the model's answer broke off".to_owned()).await;
                    outcome = "broken";
                    break;
                }
                Then::Ask => {
                    // The stopped answer is dropped before anything that could wait.
                    drop(std::mem::replace(&mut response, Err(Next::default())));
                    response = self.again(is_stream).await;
                    self.progress.received();
                }
            }
        }
        if !is_over {
            self.begun.end(false).await;
        }
        self.progress.guarded(&self.begun, outcome);
    }

    /// Returns the trailers of the answer that has ended the message; none where the gateway has ended it.
    async fn trailers(&self, response: Result<Answer, Next>) -> HeaderMap {
        let is_passed = self.has_trailers && self.ended() == "checked";
        let (Ok(mut upstream), true) = (response, is_passed) else { return HeaderMap::new() };
        let mut trailers = upstream.end().await;
        trailers::without_digests(&mut trailers);
        trailers
    }

    /// Notifies plugins of matches, for which nothing waits.
    fn notify(&mut self) {
        let Some(caller) = self.begun.own.caller().cloned() else { return };
        for event in self.begun.own.take_notices() {
            let caller = Arc::clone(&caller);
            self.progress.shared.tasks.spawn(async move { caller.notify(&event).await });
        }
    }

    /// Handles an event of the connections.
    async fn next(&mut self, came: Came, outcome: &mut &'static str) -> Next {
        let now = self.progress.since().elapsed();
        let begun = Instant::now();
        match came {
            Came::Bytes(bytes) => {
                self.progress.received();
                let next = self.begun.own.receive(&bytes, now).await;
                self.progress.worked(begun.elapsed());
                if next.then == Then::End {
                    *outcome = self.ended();
                }
                next
            }
            Came::End => {
                let next = self.begun.own.end(now).await;
                *outcome = self.ended();
                next
            }
            Came::Due => self.begun.own.release(now).await,
            Came::Silence if self.progress.is_silent() => {
                *outcome = "silent";
                self.begun.own.give_up(&self.progress.limits().idle_words()).await
            }
            Came::Silence => Next { send: self.begun.own.keep_alive().to_vec(), ..Next::default() },
            Came::Late => {
                *outcome = "late";
                self.begun.own.give_up(&self.progress.limits().late_words()).await
            }
            Came::Broken | Came::Gone => Next { then: Then::Break, ..Next::default() },
        }
    }

    /// The outcome of a message that is over.
    fn ended(&self) -> &'static str {
        match self.begun.own.exchange() {
            exchange if exchange.is_closed() => "ended",
            exchange if exchange.is_accepted() => "checked",
            _ => "broken",
        }
    }

    /// Waits for the next event of the connections.
    async fn came(&self, upstream: &mut Answer, is_stream: bool, alarm: &mut Alarm) -> Came {
        let due = self.begun.own.deadline().map(|due| self.progress.since() + due);
        let times = Deadlines { due, silence: self.progress.quiet(is_stream), late: self.progress.late() };
        came(upstream, &self.client, times, alarm).await
    }

    /// Sends the request again.
    ///
    /// # Errors
    /// The action that ends the message instead.
    async fn again(&mut self, is_stream: bool) -> Result<Answer, Next> {
        self.progress.asked_again();
        let refused = match self.ask(is_stream).await {
            Ok(response) => {
                self.begun.own.begin(is_stream);
                return Ok(response);
            }
            Err(cause) => cause,
        };
        Err(self.begun.own.give_up(&refused).await)
    }

    async fn ask(&mut self, is_stream: bool) -> Result<Answer, String> {
        self.sent.without_digests();
        let body = self.begun.own.request().ok_or("the request cannot be continued")?;
        let response = self.wait_for(self.sent.send_again(body), is_stream).await?;
        let response =
            response.map_err(|error| format!("the model could not be asked again ({})", net::cause(&error)))?;
        let expected = if is_stream { Kind::Events } else { Kind::Json };
        let (status, headers) = (response.status, &response.headers);
        if !status.is_success() {
            return Err(format!("the model was asked again and its server answered with status {}", status.as_u16()));
        }
        if let Some(why) = head::unreadable(headers) {
            return Err(format!("the model was asked again and answered in a way that cannot be checked: {why}"));
        }
        if head::kind(headers) != expected {
            return Err("the model was asked again and answered in another way".to_owned());
        }
        Ok(response)
    }

    /// Waits for an answer and sends keep-alives to the client meanwhile.
    async fn wait_for<T>(&self, asked: impl Future<Output = T>, is_stream: bool) -> Result<T, String> {
        let mut asked = std::pin::pin!(asked);
        let (silent, limits) = (Instant::now() + self.progress.limits().idle, self.progress.limits());
        loop {
            let life = Instant::now() + limits.keep_alive;
            tokio::select! {
                biased;
                () = self.client.gone() => return Err("the client has disconnected".to_owned()),
                answered = &mut asked => return Ok(answered),
                () = sleep_until(self.progress.late()) => return Err(limits.late_words()),
                () = sleep_until(silent) => return Err(limits.idle_words()),
                () = sleep_until(life) => {
                    let sign = if is_stream { self.begun.own.keep_alive() } else { &[] };
                    if !self.client.send(Bytes::from_static(sign)).await {
                        return Err("the client has disconnected".to_owned());
                    }
                }
            }
        }
    }
}

/// Waits for the next event or deadline, whichever is first.
async fn came(upstream: &mut Answer, client: &Client, times: Deadlines, alarm: &mut Alarm) -> Came {
    let Deadlines { due, silence, late } = times;
    // A server that always has more must not postpone it.
    if Instant::now() >= late {
        return Came::Late;
    }
    let next = late.min(silence).min(due.unwrap_or(late));
    tokio::select! {
        biased;
        () = client.gone() => Came::Gone,
        read = upstream.chunk() => match read {
            Ok(Some(bytes)) => Came::Bytes(bytes),
            Ok(None) => Came::End,
            Err(error) => {
                tracing::debug!("a guarded answer broke off: {}", net::cause(&error));
                Came::Broken
            }
        },
        () = alarm.at(next) => match () {
            () if next == late => Came::Late,
            () if Some(next) == due => Came::Due,
            () => Came::Silence,
        },
    }
}
