//! Until when a request may take: the total time of a request with its retries, and what is left of the thread's limit `duration`.

use std::task::{Context, Poll};
use std::time::Duration;

use flow::{ErrorClass, ModelError};

use super::Turn;
use crate::retry::Retry;
use flow::ports::BoxFuture;

/// The cause in the record of an answer that the limit ended.
const OUT_OF_TIME: &str = "the session has reached its limit `duration`";

/// How many deltas a deadline is not looked at for: looking at it costs as much as all else that is done with a delta.
const SELDOM: u32 = 64;

/// What ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndsBy {
    /// The time of a request with all its attempts.
    Request,
    /// The time of the thread.
    Thread,
}

/// When a request ends that is not over by then.
pub(crate) struct Deadline {
    over: Option<BoxFuture<'static, ()>>,
    ends_by: EndsBy,
    deltas: u32,
}

impl Deadline {
    /// Whether it has passed, where nothing is there to be read.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.over.as_mut().map_or(Poll::Pending, |over| over.as_mut().poll(cx))
    }

    /// The same after a delta: a stream that is always ready has an end, too.
    pub(crate) fn poll_seldom(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.deltas += 1;
        if self.deltas.is_multiple_of(SELDOM) { self.poll(cx) } else { Poll::Pending }
    }
}

impl Turn<'_> {
    /// The deadline of the next attempt.
    pub(super) fn deadline(&self) -> Deadline {
        let request = self.request_left().map(|left| (left, EndsBy::Request));
        let thread = self.session.handles.budget.time_left(self.duration()).map(|left| (left, EndsBy::Thread));
        match request.into_iter().chain(thread).min_by_key(|(left, _)| *left) {
            Some((left, ends_by)) => Deadline { over: Some(self.session.parts.clock.sleep(left)), ends_by, deltas: 0 },
            None => Deadline { over: None, ends_by: EndsBy::Thread, deltas: 0 },
        }
    }

    /// What is left of the time of the request; `None`: it has no limit.
    fn request_left(&self) -> Option<Duration> {
        let most = self.session.parts.settings.request_timeout?;
        Some(most.saturating_sub(self.spending.request_time(self.session.parts.clock.now_ms())))
    }

    /// Whether the request has no time for another attempt after this wait.
    pub(super) fn leaves_no_time(&self, wait: Duration) -> bool {
        self.request_left().is_some_and(|left| left <= wait)
    }

    /// The words about that.
    pub(super) fn no_time(&self) -> String {
        let most = self.session.parts.settings.request_timeout.unwrap_or_default().as_secs_f64();
        format!("a request takes at most {most} s with its retries (`request_timeout_ms` of the provider)")
    }

    /// The error of a request that ended by this deadline; `None`: it was the thread's.
    pub(super) fn timed_out(deadline: &Deadline) -> Option<ModelError> {
        let error = || ModelError::new(ErrorClass::Transient, "the answer did not come to its end in time");
        (deadline.ends_by == EndsBy::Request).then(error)
    }

    /// Settles the attempt that the time of the thread has ended. Whether the thread may go on is asked before the next request.
    pub(super) fn end_of_time(&mut self) {
        self.settle_stopped(OUT_OF_TIME);
        self.is_out_of_time = true;
    }

    /// Decides about an attempt that failed: how long to wait before the next one.
    ///
    /// # Errors
    /// It is not repeated, or the request has no time for that.
    pub(super) fn decide(
        &self,
        error: ModelError,
        unseen: bool,
        retry: &mut Retry,
        random: u64,
    ) -> Result<Duration, ModelError> {
        let wait = retry.wait(&error).filter(|_| unseen);
        if self.leaves_no_time(wait.unwrap_or_default()) {
            let message = format!("{} ({})", error.message, self.no_time());
            return Err(ModelError { message, ..error });
        }
        retry.decide(error, unseen, &self.session.handles.hub, random)
    }
}
