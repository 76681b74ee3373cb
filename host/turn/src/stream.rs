//! Stage: drives one attempt: reads its deltas and relays them, until it is over or something else ends it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{self, Poll, ready};
use std::time::Duration;

use flow::{CallFailure, Delta, ErrorClass, ModelError};
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::inputs::{Claim, Inputs};
use crate::run::deadline::Deadline;
use flow::ports::ModelStream;
use guard::Relay;
use guard::attempt::Stopped;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The answer is complete and passed the gate.
    Complete,
    /// Rules stopped it.
    Interrupted(Stopped),
    /// The user stopped it, for these inputs.
    Halted(Claim),
    /// It was not over when its time was.
    OutOfTime,
    /// The stream broke.
    Broken(ModelError),
    /// A required extension failed.
    Refused(CallFailure),
}

/// Everything one attempt works with.
pub(crate) struct Driver<'a> {
    /// What its deltas go through.
    pub(crate) relay: Relay<'a>,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) inputs: &'a Inputs,
    /// The start of the attempt, from which the time of the relay counts.
    pub(crate) since: Instant,
    /// When the request was sent.
    pub(crate) asked: Instant,
    /// How long the first chunk of the answer took; `None` before it.
    pub(crate) first_chunk: &'a mut Option<Duration>,
    /// When the request has to be over.
    pub(crate) deadline: Deadline,
}

/// What a stream of deltas is continued with.
enum Next {
    /// The next delta; `None`: the stream has ended.
    Delta(Option<Result<Delta, ModelError>>),
    /// The user stops the answer, for these inputs.
    Interrupt(Claim),
    /// The time of the request is over.
    OutOfTime,
    /// Held bytes have waited for as long as they may.
    Due,
}

/// What stops an answer on behalf of the user. Polling for it at each delta costs as much as everything else that a turn does with the delta.
struct Interrupts<'a, I> {
    inputs: &'a Inputs,
    /// How often there was an interrupt when it was polled last.
    seen: Option<u64>,
    next: Pin<&'a mut I>,
}

impl<I: Future<Output = Claim>> Interrupts<'_, I> {
    /// Polls if there can be something new.
    fn poll_new(&mut self, cx: &mut task::Context<'_>) -> Poll<Claim> {
        let times = Some(self.inputs.times_interrupted());
        if self.seen == times {
            return Poll::Pending;
        }
        self.seen = times;
        self.next.as_mut().poll(cx)
    }
}

impl Driver<'_> {
    /// Runs the stream to its end, to a verdict, or to its break, and drops it.
    pub(crate) async fn run(&mut self, stream: Box<dyn ModelStream>) -> End {
        let end = match self.drive(stream).await {
            Ok(end) => end,
            Err(failure) => End::Refused(failure),
        };
        match self.relay.close().await {
            Ok(()) => end,
            Err(failure) => End::Refused(failure),
        }
    }

    async fn drive(&mut self, mut stream: Box<dyn ModelStream>) -> Result<End, CallFailure> {
        self.relay.perform().await?;
        let mut interrupts = Interrupts { inputs: self.inputs, seen: None, next: pin!(self.inputs.interrupting()) };
        loop {
            let delta = match self.next(&mut *stream, &mut interrupts).await {
                Next::Delta(Some(Ok(delta))) => delta,
                Next::Delta(Some(Err(error))) => return Ok(End::Broken(error)),
                Next::Delta(None) => return Ok(End::Broken(unfinished())),
                Next::Interrupt(claim) => return Ok(End::Halted(claim)),
                Next::OutOfTime => return Ok(End::OutOfTime),
                Next::Due => {
                    self.relay.release().await?;
                    continue;
                }
            };
            self.first_chunk.get_or_insert_with(|| self.asked.elapsed());
            if self.relay.delta(delta) {
                // This is the abort: it comes before anything that could wait.
                drop(stream);
                return Ok(self.relay.end().await?.map_or(End::Complete, End::Interrupted));
            }
            if !self.relay.show_at_once() {
                self.relay.show().await?;
            }
        }
    }

    async fn next<I>(&mut self, stream: &mut dyn ModelStream, interrupts: &mut Interrupts<'_, I>) -> Next
    where
        I: Future<Output = Claim>,
    {
        let deadline = &mut self.deadline;
        let next = poll_fn(|cx| {
            // A stream that is always ready must not keep a cancelled turn, which is dropped by whoever waits for the token, or the
            // other tasks of its thread, from going on.
            if self.cancel.is_cancelled() {
                return Poll::Pending;
            }
            let budget = ready!(poll_proceed(cx));
            if let Poll::Ready(claim) = interrupts.poll_new(cx) {
                return Poll::Ready(Next::Interrupt(claim));
            }
            if deadline.poll_seldom(cx).is_ready() {
                return Poll::Ready(Next::OutOfTime);
            }
            match stream.poll_next(cx) {
                Poll::Ready(delta) => {
                    budget.made_progress();
                    Poll::Ready(Next::Delta(delta))
                }
                Poll::Pending if deadline.poll(cx).is_ready() => Poll::Ready(Next::OutOfTime),
                Poll::Pending => interrupts.next.as_mut().poll(cx).map(Next::Interrupt),
            }
        });
        match self.relay.deadline() {
            None => next.await,
            Some(deadline) => tokio::time::timeout_at(self.since + deadline, next).await.unwrap_or(Next::Due),
        }
    }
}

fn unfinished() -> ModelError {
    ModelError::new(ErrorClass::Transient, "the model's stream ended before its answer was complete")
}
