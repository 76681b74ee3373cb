//! The queue between the spans of turns and their receiver, and the task that empties it.
//!
//! Nothing that a turn does waits for the task: where the queue is full, a span is dropped and counted. Requests that fail are
//! repeated with a growing pause until the telemetry is finished; then everything is tried once more, within a limit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Metrics;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::otel::fields::Fields;
use crate::otel::genai::Kind;
use crate::otel::http::{Sender, Sent};
use crate::otel::instruments::Instruments;
use crate::otel::layer::Counts;
use crate::otel::otlp::{self, Period};
use crate::otel::settings::{Settings, Target};

/// The most spans that wait for the receiver, each of about 400 bytes.
const QUEUE: usize = 8192;
/// The most spans of one request.
const BATCH: usize = 512;
/// Spans wait at most so long for others to be sent with, while the receiver answers.
const DELAY: Duration = Duration::from_secs(5);
/// The pause after a failed request, doubled with each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// What the layer writes and the task reads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    started_ns: u64,
    state: Mutex<State>,
    instruments: Mutex<Instruments>,
    /// A batch is full, or no span follows.
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Spans that wait, as they are sent.
    queue: VecDeque<Vec<u8>>,
    ended: u64,
    accepted: u64,
    /// Why the last span was not accepted.
    cause: Option<String>,
    /// Why the last metrics were not accepted.
    metrics_cause: Option<String>,
    finishing: bool,
}

/// What was not exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsent {
    pub(crate) spans: u64,
    pub(crate) ended: u64,
    pub(crate) spans_cause: Option<String>,
    pub(crate) metrics_cause: Option<String>,
}

impl Shared {
    pub(crate) fn new(settings: Settings, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self {
            settings,
            metrics,
            started_ns: now_ns(),
            state: Mutex::default(),
            instruments: Mutex::default(),
            wake: Notify::new(),
        })
    }

    /// Queues a span. Never waits.
    pub(crate) fn push(&self, span: Vec<u8>) {
        if self.settings.traces.is_none() {
            return;
        }
        let mut state = self.state();
        state.ended += 1;
        if state.finishing {
            state.cause = Some("they ended after the export was finished".to_owned());
        } else if state.queue.len() < QUEUE {
            state.queue.push_back(span);
            if state.queue.len() == BATCH {
                self.wake.notify_one();
            }
        } else if state.cause.is_none() {
            state.cause = Some(format!("more than {QUEUE} spans waited"));
        }
    }

    /// Counts a span that has ended.
    pub(crate) fn count(&self, kind: Kind, fields: &Fields, turn: &Fields, seconds: f64, counts: Counts) {
        lock(&self.instruments).count(kind, fields, turn, seconds, counts);
    }

    /// No span follows: the queue is sent now.
    pub(crate) fn finish(&self) {
        self.state().finishing = true;
        self.wake.notify_one();
    }

    /// What was not exported so far.
    pub(crate) fn unsent(&self) -> Unsent {
        let state = self.state();
        let spans = state.ended - state.accepted;
        Unsent {
            spans,
            ended: state.ended,
            spans_cause: state.cause.clone().filter(|_| spans > 0),
            metrics_cause: state.metrics_cause.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.state().finishing
    }

    fn body_of_metrics(&self) -> Vec<u8> {
        let period = Period { start_ns: self.started_ns, now_ns: now_ns() };
        otlp::metrics(&self.settings.resource, period, &self.metrics.points(), &lock(&self.instruments))
    }
}

/// Sends spans and metrics until the telemetry is finished.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut traces = Signal::new(shared.settings.traces.clone());
    let mut metrics = Signal::new(shared.settings.metrics.clone());
    let (delay, interval) = (DELAY, shared.settings.interval);
    traces.due = Instant::now() + delay;
    metrics.due = Instant::now() + interval;
    while !shared.is_finishing() {
        let woken = tokio::select! {
            () = shared.wake.notified() => true,
            () = sleep_until(traces.due.min(metrics.due)) => false,
        };
        if (woken && !traces.is_failing()) || traces.due <= Instant::now() {
            traces.send_spans(&shared).await;
            traces.plan(delay);
        }
        if metrics.due <= Instant::now() {
            metrics.send_metrics(&shared).await;
            metrics.plan(interval);
        }
    }
    // At the same time: a receiver that does not answer must not use up the other's time.
    tokio::join!(traces.send_spans(&shared), metrics.send_metrics(&shared));
}

/// One kind of requests, and when the next is due.
struct Signal {
    sender: Option<Result<Sender, String>>,
    due: Instant,
    /// The pause after the last request, which failed; zero: it did not.
    pause: Duration,
    asked: Option<Duration>,
}

impl Signal {
    fn new(target: Option<Target>) -> Self {
        Self { sender: target.map(Sender::new), due: Instant::now(), pause: Duration::ZERO, asked: None }
    }

    fn is_failing(&self) -> bool {
        !self.pause.is_zero()
    }

    /// Plans the next request: after `delay`, or after the pause of a failed one.
    fn plan(&mut self, delay: Duration) {
        // A receiver can ask for a longer pause, and not for none.
        let pause = self.asked.unwrap_or_default().max(self.pause);
        self.due = Instant::now() + if self.is_failing() { pause } else { delay };
    }

    /// Sends a body. Returns what the receiver rejected of it.
    async fn send(&mut self, body: Vec<u8>) -> Result<Accepted, Failed> {
        let sent = match &self.sender {
            Some(Ok(sender)) => sender.send(body).await,
            Some(Err(cause)) => Sent::Refused { cause: cause.clone() },
            None => Sent::Accepted { rejected: None },
        };
        let Sent::Later { cause, after } = sent else {
            self.pause = Duration::ZERO;
            return match sent {
                Sent::Refused { cause } => Err(Failed { cause, again: false }),
                Sent::Accepted { rejected } => Ok(rejected.map(|(count, why)| (count, self.rejection(&why)))),
                Sent::Later { .. } => Ok(None),
            };
        };
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
        self.asked = after.map(|after| after.min(LAST_PAUSE));
        Err(Failed { cause, again: true })
    }

    fn rejection(&self, why: &str) -> String {
        let place = if let Some(Ok(sender)) = &self.sender { sender.place() } else { String::new() };
        format!("{place} rejected them: {why}")
    }

    /// Sends the spans that wait, batch by batch, up to the first that has to be repeated.
    async fn send_spans(&mut self, shared: &Shared) {
        loop {
            let batch: Vec<Vec<u8>> = {
                let mut state = shared.state();
                let count = state.queue.len().min(BATCH);
                state.queue.drain(..count).collect()
            };
            if batch.is_empty() {
                return;
            }
            let answer = self.send(otlp::traces(&shared.settings.resource, batch.iter())).await;
            let mut state = shared.state();
            match answer {
                Ok(rejected) => {
                    let (count, cause) = rejected.unzip();
                    state.accepted += (batch.len() as u64).saturating_sub(count.unwrap_or(0));
                    state.cause = cause.or(state.cause.take());
                }
                Err(Failed { cause, again }) => {
                    tracing::debug!("{} spans were not exported: {cause}", batch.len());
                    state.cause = Some(cause);
                    if again {
                        // They were in the queue before those that have come since.
                        batch.into_iter().rev().for_each(|span| state.queue.push_front(span));
                        state.queue.truncate(QUEUE);
                        return;
                    }
                }
            }
        }
    }

    /// Sends all metrics as they are now.
    async fn send_metrics(&mut self, shared: &Shared) {
        if self.sender.is_none() {
            return;
        }
        let cause = match self.send(shared.body_of_metrics()).await {
            Ok(rejected) => rejected.map(|(_, cause)| cause),
            Err(Failed { cause, .. }) => Some(cause),
        };
        if let Some(cause) = &cause {
            tracing::debug!("metrics were not exported: {cause}");
        }
        // The next export has all that this one had.
        shared.state().metrics_cause = cause;
    }
}

/// How many spans or points of an accepted request were rejected, and why.
type Accepted = Option<(u64, String)>;

/// A request that was not accepted.
struct Failed {
    cause: String,
    /// It can be sent again.
    again: bool,
}

fn now_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}

/// The data are valid after every statement, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_receiver_can_ask_for_a_longer_pause_and_not_for_none() {
        let mut signal = Signal::new(None);
        for (asked, pause) in [(None, FIRST_PAUSE), (Some(0), FIRST_PAUSE), (Some(30), Duration::from_secs(30))] {
            (signal.pause, signal.asked) = (FIRST_PAUSE, asked.map(Duration::from_secs));
            signal.plan(DELAY);
            assert_eq!(signal.due, Instant::now() + pause, "{asked:?}");
        }
        signal.pause = Duration::ZERO;
        signal.plan(DELAY);
        assert_eq!(signal.due, Instant::now() + DELAY);
    }
}
