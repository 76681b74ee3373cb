//! The task that has the session while turns run: one after the other, until nothing is left that starts one.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::{InputId, TurnStatus};
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};
use turn::{CancellationToken, Claim, Feed, RuleMetrics, Ticket, TurnReport};

use super::{Shared, State, lock};
use crate::session::turn_handle::Turn;

/// A turn that was asked for.
pub(super) struct Job {
    /// Orders it among what waits.
    pub(super) ticket: Ticket,
    start: Start,
    pub(super) cancel: CancellationToken,
    /// Where its events go; dropping it ends them.
    feed: Option<Feed>,
    report: Option<oneshot::Sender<TurnReport>>,
    /// The span of the caller who asked for it, which contains that of the turn.
    span: Span,
}

/// What a turn starts with.
pub(super) enum Start {
    /// The conversation continues without an input.
    Continue,
    /// Inputs that are the turn's already.
    Claimed(Claim),
    /// The inputs with the ticket of the job, which wait until then.
    Prompt,
}

impl Job {
    /// A turn whose caller has a handle of it.
    pub(super) fn with_handle(
        ticket: Ticket,
        start: Start,
        cancel: CancellationToken,
        inputs: Vec<InputId>,
    ) -> (Self, Turn) {
        let (feed, events) = turn::channel();
        let (report, reported) = oneshot::channel();
        let turn = Turn::new(events, reported, cancel.clone(), inputs);
        (Self { ticket, start, cancel, feed: Some(feed), report: Some(report), span: Span::current() }, turn)
    }

    /// A turn that nobody waits for.
    pub(super) fn without_handle(claim: Claim) -> Self {
        let (cancel, span) = (CancellationToken::new(), Span::current());
        Self { ticket: 0, start: Start::Claimed(claim), cancel, feed: None, report: None, span }
    }

    /// It was cancelled before it began.
    pub(super) fn cancelled(self) {
        self.end(TurnReport::cancelled());
    }

    /// It cannot begin.
    pub(super) fn failed(self, why: &str) {
        self.end(TurnReport::failed(why));
    }

    fn end(mut self, report: TurnReport) {
        drop(self.feed.take());
        if let Some(reported) = self.report.take() {
            // Nobody may want it any more.
            let _ = reported.send(report);
        }
    }
}

/// A task that has the session.
pub(super) struct Runner {
    shared: Arc<Shared>,
    session: Option<Box<turn::Session>>,
}

impl Runner {
    pub(super) fn new(shared: Arc<Shared>, session: Box<turn::Session>) -> Self {
        Self { shared, session: Some(session) }
    }

    pub(super) async fn run(mut self, first: Job) {
        let mut next = Some(first);
        while let (Some(mut job), Some(session)) = (next.take(), self.session.as_mut()) {
            if let Some(feed) = &job.feed {
                self.shared.handles.hub.attach(feed);
            }
            self.shared.forget_cancel_file();
            let start = std::mem::replace(&mut job.start, Start::Continue);
            let turn = async {
                match start {
                    Start::Claimed(claim) => session.run_claimed(claim, &job.cancel).await,
                    // One that waited has its claim by now, and so has one that begins at once.
                    Start::Prompt => TurnReport::failed("the inputs of the prompt are not claimed"),
                    Start::Continue => {
                        let by = if self.shared.desk.has_approval() { "approval" } else { "continue" };
                        session.resume(by, &job.cancel).await
                    }
                }
            };
            let report = tokio::select! {
                report = turn.instrument(job.span.clone()) => report,
                never = self.shared.watch_cancel_file() => match never {},
            };
            let metrics = session.rule_metrics().clone();
            // Before the report is out: who has it finds the session idle.
            next = self.next(metrics, &report, job.feed.take());
            job.end(report);
        }
    }

    /// The next turn; `None` where there is none, and the session is idle again.
    ///
    /// The feed of the turn that has ended is closed under the lock, so that it gets no event of a turn that begins now.
    fn next(&mut self, metrics: BTreeMap<String, RuleMetrics>, report: &TurnReport, feed: Option<Feed>) -> Option<Job> {
        let shared = Arc::clone(&self.shared);
        let mut state = lock(&shared.state);
        drop(feed);
        (state.metrics, state.running) = (metrics, None);
        if state.closed {
            self.session.take().into_iter().for_each(|session| shared.end(*session));
            return None;
        }
        // A turn that did not complete sends nothing on its own.
        let completed = report.status == TurnStatus::Completed;
        let next = shared.pick(&mut state, completed);
        match &next {
            Some(job) => state.running = Some(job.cancel.clone()),
            None => {
                state.idle = self.session.take();
                state.release = Some(shared.release_later());
            }
        }
        next
    }
}

impl Shared {
    /// Returns the input of the next turn: steering messages that the last turn did not deliver, then the oldest of prompts and queued inputs.
    fn pick(&self, state: &mut State, completed: bool) -> Option<Job> {
        if completed && let Some(claim) = self.handles.inputs.claim_steering() {
            return Some(Job::without_handle(claim));
        }
        loop {
            let queued = if completed { self.handles.inputs.oldest_queued() } else { None };
            let waiting = state.waiting.front().map(|job| job.ticket);
            if queued.is_some_and(|queued| waiting.is_none_or(|waiting| queued < waiting))
                && let Some(claim) = self.handles.inputs.claim_queued(self.flush_mode)
            {
                return Some(Job::without_handle(claim));
            }
            let mut job = state.waiting.pop_front()?;
            if job.cancel.is_cancelled() {
                self.handles.inputs.give_back(job.ticket);
                job.cancelled();
                continue;
            }
            if matches!(job.start, Start::Prompt) {
                let Some(claim) = self.handles.inputs.claim_prompt(job.ticket) else {
                    // Somebody has removed all of it.
                    job.cancelled();
                    continue;
                };
                job.start = Start::Claimed(claim);
            }
            return Some(job);
        }
    }
}

impl Drop for Runner {
    /// The task ended with the session in its hands: the runtime was shut down, or a turn panicked. Nothing can begin any more,
    /// and nobody waits in vain.
    fn drop(&mut self) {
        if self.session.is_some() {
            let mut state = lock(&self.shared.state);
            (state.closed, state.running) = (true, None);
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.iter().for_each(|job| self.shared.handles.inputs.give_back(job.ticket));
            self.shared.handles.inputs.close();
            self.shared.handles.questions.expect_no_more();
            // Its transcript is released with it.
            drop(self.session.take());
            self.shared.handles.hub.close();
            self.shared.released.cancel();
        }
    }
}
