//! The loop of one turn: attempts until an answer is accepted, steps until the model asks for nothing more.
//!
//! Stages return what they found; only this loop stops, goes back and starts again.

mod accept;
mod additions;
mod calls;
pub(crate) mod compact;
pub(crate) mod deadline;
mod given;
mod halt;
mod interrupt;
mod limits;
mod overflow;
mod reopened;
pub(crate) mod repeats;
pub(crate) mod saving;
mod spending;
mod steer;
mod stop;
mod traced;
mod watching;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use flow::{
    EventKind, Limit, Message, ModelError, Retained, RunPosition, StepEnd, StopReason, ToolResult, TurnStatus, Usage,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use self::compact::Summary;
use self::overflow::Refusals;
use self::repeats::Repeats;
use self::spending::Spending;
use self::steer::Steered;
use self::stop::Stop;
use self::watching::Watching;
use crate::context::Estimate;
use crate::inputs::Claim;
use crate::rebuild::OpenCalls;
use crate::retry::{self, Retry};
use crate::session::{Given, Session, TurnReport};
use crate::stream::{Driver, End};
use flow::ports::{AttemptEnd, EventSink};
use guard::attempt::{Answer, Attempt, Effect};
use guard::calls::Checked;
use guard::{Beginning, Relay, RelayParts, Segments};

/// A turn under way. All that must survive its being dropped midway lives here and not in its future.
pub(crate) struct Turn<'a> {
    session: &'a mut Session,
    cancel: &'a CancellationToken,
    place: RunPosition,
    /// The attempt under way, or the one that was just accepted.
    attempt: Attempt,
    phase: Phase,
    spending: Spending,
    /// What is kept of an answer that was stopped: where the next attempt begins.
    beginning: Beginning,
    report: TurnReport,
    /// Its own span, which ends with it.
    span: Span,
    /// How long the first chunk of the answer under way took.
    first_chunk: Option<Duration>,
    /// The request under way, estimated.
    sent: Estimate,
    /// What the model repeats.
    repeats: Repeats,
    /// How the turn ends, because the model does not get any further.
    no_progress: Option<TurnStatus>,
    /// The summary of the conversation that the turn asks for.
    summary: Summary,
    /// Calls of an earlier process, until something has become of one of them in this turn.
    reopened: Option<OpenCalls>,
    /// The inputs for which an answer or a call was aborted, until they are delivered.
    halted: Option<Claim>,
    /// The limit about which a decision is waited for.
    undecided: Option<Limit>,
    /// The last request was ended by the time of the thread.
    is_out_of_time: bool,
}

/// What the turn is doing, and with it what is to be settled when it ends now.
#[derive(Default)]
enum Phase {
    /// No answer is under way: before the first attempt, between attempts, and between steps.
    #[default]
    Between,
    /// The model is answering, or its answer is being accepted. What was received is in the attempt.
    Answering,
    /// A rule stopped the answer, which is not recorded yet.
    Stopped {
        answer: Answer,
        /// What stopped it, for the record.
        why: String,
    },
    /// The tool calls of an accepted answer are running.
    Calling {
        answer: Message,
        /// Its calls, until they run.
        calls: Vec<Checked>,
        /// The results so far, in the order in which the calls ran.
        results: Vec<ToolResult>,
    },
    /// The end of the turn was emitted.
    Ended,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(session: &'a mut Session, cancel: &'a CancellationToken, place: RunPosition, span: Span) -> Self {
        let report = TurnReport::new(place);
        let spending = Spending::new(session.parts.clock.now_ms());
        let repeats = Repeats::new(session.parts.settings.max_repeats);
        Self {
            session,
            cancel,
            place,
            attempt: Attempt::default(),
            phase: Phase::default(),
            spending,
            beginning: Beginning::default(),
            report,
            span,
            first_chunk: None,
            sent: Estimate::default(),
            repeats,
            no_progress: None,
            summary: Summary::default(),
            reopened: None,
            halted: None,
            undecided: None,
            is_out_of_time: false,
        }
    }

    /// Runs the turn. Without an input the conversation continues as it is.
    pub(crate) async fn run(&mut self, input: Given) -> TurnStatus {
        self.steps(input).await.unwrap_or_else(Stop::into_status)
    }

    /// Puts everything in order, however the turn ended.
    pub(crate) async fn finish(mut self, status: TurnStatus) -> TurnReport {
        // A notice that is slow outlives the turn: it reports what has happened, whatever becomes of the turn.
        self.session.notices.turn_over(self.place.turn);
        let status = self.save(status).await;
        self.close(status);
        if let Err(error) = self.recorded().await {
            self.report.status = error.into_status();
        }
        self.report.clone()
    }

    /// The answer, or what was shown of it, remains in the conversation, and so does what callbacks wrote for it.
    fn accept_attempt(&self) {
        self.session.caller.extensions().end_attempt(AttemptEnd::Accepted);
    }

    /// The turn ends: of an answer that did not complete, what was shown remains; of one that a rule stopped, nothing does.
    fn end_attempt(&self) {
        match self.phase {
            Phase::Answering => self.accept_attempt(),
            Phase::Between | Phase::Stopped { .. } | Phase::Calling { .. } | Phase::Ended => self.discard_attempt(),
        }
    }

    /// The answer is written again: what callbacks wrote for it is undone.
    fn discard_attempt(&self) {
        self.session.caller.extensions().end_attempt(AttemptEnd::Discarded);
    }

    /// A barrier: what accepted callbacks wrote must be durable before the world outside learns of it. A store that is away
    /// does not stop the turn, which reports at its end what was not saved.
    async fn barrier(&self) -> Result<(), Stop> {
        self.settled().await?;
        self.recorded().await
    }

    /// Waits until the state of extensions is durable.
    async fn settled(&self) -> Result<(), Stop> {
        match self.session.caller.extensions().settle(Duration::ZERO).await {
            Err(error) if !error.is_retryable() => Err(Stop::State(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits until the transcript has everything critical that has happened so far.
    async fn recorded(&self) -> Result<(), Stop> {
        match &self.session.journal {
            Some(journal) => journal.durable().await.map_err(Stop::Journal),
            None => Ok(()),
        }
    }

    /// The end of the turn, emitted once. What was under way is settled first.
    fn close(&mut self, status: TurnStatus) {
        self.count_tokens();
        self.settle_summary(&status);
        self.leave_open_calls();
        self.session.handles.questions.expect_no_more();
        match self.phase {
            Phase::Between | Phase::Ended => {}
            Phase::Answering => self.settle_answer(&status),
            Phase::Stopped { .. } => self.emit_stopped(0, Retained::Nothing),
            // They are the next process's.
            Phase::Calling { .. } if halt::is_waiting(&status) => {}
            Phase::Calling { .. } => self.settle_calls(),
        }
        self.phase = Phase::Ended;
        if self.spending.end_step() {
            let is_stopped = matches!(status, TurnStatus::Cancelled | TurnStatus::Suspended { .. });
            let end = if is_stopped { StepEnd::Cancelled } else { StepEnd::Failed };
            self.finish_step(end);
        }
        self.session.handles.budget.end_turn(self.spending.has_asked(), self.duration());
        self.session.caller.end_turn();
        self.session.thread.usage.add(self.report.usage);
        self.session.thread.ended(&status);
        self.session.end_turn();
        self.report.place = self.place;
        self.report.status = status.clone();
        self.end_span(&status);
        self.session.handles.hub.emit(EventKind::TurnFinish { status });
        self.session.emit_suspended();
    }

    /// The end of a step.
    fn finish_step(&self, end: StepEnd) {
        let (usage, spend, context_tokens) =
            (self.spending.step, self.spending.step_spend(), self.session.thread.context);
        let charged = self.session.handles.budget.charged();
        self.session.handles.hub.emit(EventKind::StepFinish { usage, spend, charged, end, context_tokens });
    }

    fn count_tokens(&mut self) {
        if let Some(usage) = self.spending.count(self.attempt.answer.usage()) {
            self.report.usage.add(usage);
            // A request that was refused is not billed.
            if usage != Usage::default() || self.attempt.answer.has_begun() {
                let bytes = self.attempt.answer.text().len() as u64;
                let spend = self.session.spend(usage, None, bytes);
                self.spending.priced(spend);
            }
            let answer = self.attempt.answer.own_message();
            self.session.count_request(usage, self.sent, answer.as_ref());
        }
    }

    /// Steps until the model asks for nothing more.
    async fn all_steps(&mut self) -> Result<TurnStatus, Stop> {
        loop {
            if self.place.step == self.session.parts.settings.max_steps {
                return Ok(TurnStatus::StepLimit { steps: self.place.step });
            }
            checkpoint(self.cancel).await;
            let was_halted = self.halted.is_some();
            match self.steer().await? {
                // The model was stopped for something that it is not asked about: there is nothing to continue with.
                Steered::Rejected { by, reason } if was_halted => return Ok(TurnStatus::Rejected { by, reason }),
                Steered::TooLarge(error) if was_halted => return Err(Stop::Model(error)),
                Steered::Done if was_halted => return Ok(TurnStatus::Completed),
                Steered::Ask | Steered::Rejected { .. } | Steered::TooLarge(_) | Steered::Done => {}
            }
            self.compact().await?;
            if self.halted.is_none() {
                self.within_limits().await?;
            }
            if self.halted.is_some() {
                continue;
            }
            // What was handed over meanwhile is read with the same request: a decision about a limit can take hours.
            let _joined = self.steer().await?;
            checkpoint(self.cancel).await;
            let again = self.step().await?;
            if let Some(status) = self.no_progress.take() {
                return Ok(status);
            }
            if !again && !matches!(self.steer().await?, Steered::Ask) {
                return Ok(TurnStatus::Completed);
            }
        }
    }

    async fn one_step(&mut self) -> Result<bool, Stop> {
        self.place.step += 1;
        self.place.attempt = 0;
        self.spending.begin_step();
        self.session.set_place(self.place);
        self.session.thread.steps += 1;
        self.session.handles.hub.emit(EventKind::StepStart { number: self.session.thread.steps });
        self.choose_additions();
        self.repeats.begin_step();
        self.attempts().await?;
        if std::mem::take(&mut self.is_out_of_time) || self.halted.is_some() {
            self.spending.end_step();
            self.finish_step(StepEnd::Cancelled);
            return Ok(true);
        }
        let stop = self.attempt.answer.stop().cloned().unwrap_or(StopReason::EndTurn);
        let calls = if let Phase::Calling { calls, .. } = &mut self.phase { std::mem::take(calls) } else { Vec::new() };
        if calls.is_empty() {
            self.recorded().await?;
        } else {
            self.barrier().await?;
        }
        self.run_calls(&calls, Vec::new()).await?;
        self.attempt.answer = Answer::default();
        let reminded = self.remind().await;
        self.no_progress = self.repeats.end_step(&stop, calls.len());
        self.report.stop = Some(stop.clone());
        self.spending.end_step();
        self.finish_step(StepEnd::Answered(stop.clone()));
        self.session.handles.budget.end_step();
        Ok(!calls.is_empty() || reminded || stop == StopReason::Pause)
    }

    /// Asks the model until an answer is accepted, or until somebody interrupts it.
    async fn attempts(&mut self) -> Result<(), Stop> {
        let mut retry = Retry::new(&self.session.parts.settings.retries);
        let mut refusals = Refusals::default();
        loop {
            self.place.attempt += 1;
            self.session.set_place(self.place);
            let mut effects = Vec::new();
            let most_tokens = self.session.parts.settings.max_tokens.map(u64::from);
            let (rules, caller) = (&self.session.rules, &self.session.caller);
            self.attempt = self.beginning.attempt(rules, caller, most_tokens, &mut effects);
            self.phase = Phase::Answering;
            if self.place.attempt > 1 {
                self.within_limits().await?;
                if let Some(claim) = self.halted.take() {
                    self.halt(claim);
                    return Ok(());
                }
            }
            self.session.emit_system();
            self.barrier().await?;
            self.begin_attempt();
            self.session.caller.extensions().begin_attempt();
            let caller = Arc::clone(&self.session.caller);
            let mut segments = self.beginning.segments(&caller, !caller.has_rewriter()).await?;
            let end = self.request(&mut segments, effects).await;
            self.count_tokens();
            if !matches!(end, End::Broken(_)) {
                self.spending.end_request();
            }
            match end {
                End::Complete => {
                    retry.succeeded(&self.session.handles.hub);
                    self.session.thread.accepted = Some(self.session.thread.gauge.tokens(self.sent));
                    return self.accept(segments).await;
                }
                End::Interrupted(stopped) => {
                    retry.succeeded(&self.session.handles.hub);
                    self.interrupt(stopped).await?;
                }
                End::Halted(claim) => {
                    self.halt(claim);
                    return Ok(());
                }
                End::Broken(error) => {
                    let Some(error) = self.overflowed(error, &mut refusals, &retry).await? else {
                        if let Some(claim) = self.halted.take() {
                            self.halt(claim);
                            return Ok(());
                        }
                        continue;
                    };
                    if self.rejects_prefill(&error) {
                        self.state_beginning(&error).await?;
                    } else {
                        self.broken(error, &mut retry).await?;
                    }
                }
                End::OutOfTime => {
                    self.end_of_time();
                    return Ok(());
                }
                End::Refused(failure) => return Err(failure.into()),
            }
        }
    }

    /// Asks the model once.
    async fn ask(&mut self, segments: &mut Segments, effects: Vec<Effect>) -> End {
        checkpoint(self.cancel).await;
        let asked = Instant::now();
        self.spending.begin_request(self.session.parts.clock.now_ms());
        let mut deadline = self.deadline();
        let out_of_time = |error: Option<ModelError>| error.map_or(End::OutOfTime, End::Broken);
        let timed_out = Self::timed_out(&deadline);
        let session = &mut *self.session;
        let mut messages = session.handles.history.messages();
        messages.extend(Answer::partial_message(self.beginning.prefill().unwrap_or_default().to_owned()));
        self.sent = session.estimate(&messages);
        let mut prompt = session.frame.prompt(messages, session.parts.tools.specs());
        prompt.max_tokens = session.lowered_answer(self.sent).or(prompt.max_tokens);
        let stream = tokio::select! {
            biased;
            claim = session.handles.inputs.interrupting() => return End::Halted(claim),
            () = poll_fn(|cx| deadline.poll(cx)) => return out_of_time(timed_out),
            started = session.parts.model.start(&prompt) => match started {
                Ok(stream) => stream,
                Err(error) => return End::Broken(error),
            },
        };
        self.summary.answer_begins();
        if let Some(note) = stream.note() {
            session.handles.hub.emit(EventKind::Notice { message: note.to_owned() });
        }
        let log = stream.log();
        if let Some(log) = &log {
            log.watched(self.beginning.prefill().unwrap_or_default());
        }
        let mut watcher = Watching {
            metrics: &mut session.metrics,
            log: log.as_deref(),
            notices: &mut session.notices,
            notified: (&session.caller, &session.parts.tools),
            place: self.place,
            turn: &self.span,
        };
        let since = Instant::now();
        let now = move || since.elapsed();
        let parts = RelayParts {
            caller: &session.caller,
            rules: &mut session.rules,
            attempt: &mut self.attempt,
            segments: if session.caller.has_rewriter() { None } else { Some(segments) },
            beginning: &mut self.beginning,
            watcher: &mut watcher,
            now: &now,
        };
        let mut driver = Driver {
            relay: Relay::new(parts, effects),
            cancel: self.cancel,
            inputs: &session.handles.inputs,
            since,
            asked,
            first_chunk: &mut self.first_chunk,
            deadline,
        };
        match driver.run(stream).await {
            End::OutOfTime => out_of_time(timed_out),
            end => end,
        }
    }

    /// Counts what rules have found in a whole call, and notifies extensions.
    fn count_found(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Fired { matches, judgement } = effect {
                self.session.metrics.count(matches, judgement);
                let session = &mut *self.session;
                let told = (&session.caller, &session.parts.tools);
                session.notices.send(told, (matches, judgement), self.place, &self.span);
            }
        }
    }

    /// An attempt begins: the cost of a discarded attempt before it is known now.
    fn begin_attempt(&mut self) {
        if let Some((rule, ms)) = self.spending.begin_attempt(self.session.parts.clock.now_ms()) {
            self.session.metrics.delayed(&rule, ms);
        }
    }

    /// Whether nobody has seen anything of the attempt.
    fn is_unseen(&self) -> bool {
        let answer = &self.attempt.answer;
        !self.session.parts.settings.live || answer.is_unseen()
    }

    /// The stream broke: repeats the attempt where nothing of it was seen and it can help; else the turn ends.
    async fn broken(&mut self, mut error: ModelError, retry: &mut Retry) -> Result<(), Stop> {
        retry.classify(&mut error, &self.session.handles.hub);
        let message = error.message.clone();
        let unseen = self.is_unseen();
        let random = retry::random(&self.session.parts.id, self.session.parts.clock.now_ms());
        let delay = self.decide(error, unseen, retry, random).map_err(Stop::Model)?;
        self.phase = Phase::Between;
        let mut attempt = std::mem::take(&mut self.attempt);
        if attempt.answer.has_begun() {
            let kept = self.beginning.shown().len() as u64;
            self.emit_cut(&attempt.answer, &message, kept, (Retained::Nothing, false));
        }
        attempt.noted.roll_back(&mut self.session.rules);
        self.discard_attempt();
        let delay = self.session.parts.clock.sleep(delay);
        tokio::select! {
            () = delay => {}
            // The next request is not sent before it is delivered.
            () = self.session.handles.inputs.interrupt_waits() => {}
        }
        Ok(())
    }
}

impl Drop for Turn<'_> {
    /// A turn whose future was dropped was cancelled.
    fn drop(&mut self) {
        if !matches!(self.phase, Phase::Ended) {
            self.end_attempt();
            self.session.caller.extensions().end_turn();
            self.close(TurnStatus::Cancelled);
        }
    }
}

/// Returns at once, or never if the turn is cancelled: its future is then dropped by the caller that waits for the
/// token.
pub(crate) async fn checkpoint(cancel: &CancellationToken) {
    if cancel.is_cancelled() {
        std::future::pending::<()>().await;
    }
}
