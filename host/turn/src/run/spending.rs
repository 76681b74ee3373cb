//! What a turn spends: the tokens of its steps, and the time of discarded attempts.

use std::time::Duration;

use flow::{Spend, Usage};

/// The tokens of a step and the time of its attempts.
#[derive(Debug, Default)]
pub(super) struct Spending {
    /// The tokens of the attempts of this step that are over.
    pub(super) step: Usage,
    /// What they cost, as far as it is known.
    step_spend: Spend,
    /// Of some tokens of the step, the cost is not known.
    is_unpriced: bool,
    /// When the turn began, by the clock of the session.
    turn_began_ms: u64,
    /// Milliseconds of the turn in which decisions about limits were waited for.
    waited_ms: u64,
    /// Since when one is waited for.
    waiting_since_ms: Option<u64>,
    /// When the last attempt began, by the clock of the session.
    began_ms: u64,
    /// When the first attempt of the request began; `None`: no request is under way.
    request_began_ms: Option<u64>,
    /// The tokens of the last attempt are not counted yet.
    open: bool,
    /// A step has begun and is not over.
    in_step: bool,
    /// A step has begun: the turn has asked the model.
    has_asked: bool,
    /// The rule for which the last attempt was discarded.
    thrown_away_for: Option<String>,
}

impl Spending {
    /// A turn begins at this time of the clock.
    pub(super) fn new(now_ms: u64) -> Self {
        Self { turn_began_ms: now_ms, ..Self::default() }
    }

    /// Milliseconds of the turn until this time of the clock, without waiting for decisions.
    pub(super) fn turn_ms(&self, now_ms: u64) -> u64 {
        let waiting = self.waiting_since_ms.map_or(0, |since| now_ms.saturating_sub(since));
        now_ms.saturating_sub(self.turn_began_ms).saturating_sub(self.waited_ms + waiting)
    }

    /// An attempt is sent: the first one begins the request.
    pub(super) fn begin_request(&mut self, now_ms: u64) {
        self.request_began_ms.get_or_insert(now_ms);
    }

    /// The request is over: it was answered, or somebody has stopped it.
    pub(super) fn end_request(&mut self) {
        self.request_began_ms = None;
    }

    /// How long the request has taken, with all its attempts.
    pub(super) fn request_time(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.request_began_ms.map_or(0, |began| now_ms.saturating_sub(began)))
    }

    /// A decision is waited for from now on. Where the turn is dropped meanwhile, it has waited until then.
    pub(super) fn begin_wait(&mut self, now_ms: u64) {
        self.waiting_since_ms = Some(now_ms);
    }

    /// There is a decision.
    pub(super) fn end_wait(&mut self, now_ms: u64) {
        self.waited_ms += self.waiting_since_ms.take().map_or(0, |since| now_ms.saturating_sub(since));
    }

    /// What the step costs; `None` where that is not known of all of it.
    pub(super) fn step_spend(&self) -> Option<Spend> {
        (!self.is_unpriced).then_some(self.step_spend)
    }

    /// Adds what an attempt of the step costs; `None`: it is not known.
    pub(super) fn priced(&mut self, spend: Option<Spend>) {
        self.step_spend = self.step_spend.plus(spend.unwrap_or_default());
        self.is_unpriced |= spend.is_none();
    }

    pub(super) fn begin_step(&mut self) {
        self.step = Usage::default();
        (self.step_spend, self.is_unpriced) = (Spend::default(), false);
        (self.in_step, self.has_asked) = (true, true);
    }

    /// Whether the turn has asked the model.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// The step is over. Returns whether one was under way.
    pub(super) fn end_step(&mut self) -> bool {
        std::mem::take(&mut self.in_step)
    }

    /// An attempt begins at this time of the clock. If the previous one was discarded: for which rule, and the
    /// milliseconds since it began.
    pub(super) fn begin_attempt(&mut self, now_ms: u64) -> Option<(String, u64)> {
        let before = std::mem::replace(&mut self.began_ms, now_ms);
        self.open = true;
        self.thrown_away_for.take().map(|rule| (rule, now_ms.saturating_sub(before)))
    }

    /// The rule stopped the attempt, and its answer is discarded.
    pub(super) fn thrown_away_for(&mut self, rule: String) {
        self.thrown_away_for = Some(rule);
    }

    /// Counts the tokens of the attempt, once, and returns them if it did.
    pub(super) fn count(&mut self, usage: Usage) -> Option<Usage> {
        let counts = std::mem::take(&mut self.open);
        counts.then(|| {
            self.step.add(usage);
            usage
        })
    }
}
