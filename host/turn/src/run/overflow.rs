//! A request that the provider has refused because of its size: what that says about the context, and the request again with a smaller
//! conversation.
//!
//! A refusal that names no other fault is taken for one of size where the request has grown since the last one that was accepted: servers
//! have many ways to say it, and some say nothing.

use flow::{CompactionCause, ErrorClass, EventKind, ModelError, NamedSizes, Retained};

use super::{Phase, Stop, Turn};
use crate::context::{Capacity, Gauge, Refusal};
use crate::retry::Retry;
use crate::run::compact::Need;
use flow::ports::EventSink;

/// How often in a row a request is made smaller.
const MAX_SMALLER: u32 = 5;

/// How often a refusal that does not say what is wrong is taken for one of size.
const MAX_GUESSES: u32 = 2;

/// The share of a refused request that the next one has at most.
const SAID: (u64, u64) = (4, 5);
const GUESSED: (u64, u64) = (3, 5);

/// The share of the capacity for a prompt that such a request has at least, and its tokens where the context is not known.
const LARGE_SHARE: u64 = 4;
const LARGE: u64 = 2_000;

/// The refusals of one step.
#[derive(Default)]
pub(super) struct Refusals {
    smaller: u32,
    guesses: u32,
    /// What was known of the context before the first guess.
    before_guess: Option<Gauge>,
}

/// What a refusal is.
enum TooLarge {
    Said(NamedSizes),
    Guessed,
}

impl Turn<'_> {
    /// Whether a request was refused because of its size. It was not seen then.
    fn is_too_large(&self, error: &ModelError, refusals: &Refusals) -> Option<TooLarge> {
        if !self.is_unseen() {
            return None;
        }
        let classified = self.session.parts.settings.retries.classify(error);
        if classified.class == ErrorClass::ContextOverflow {
            return (refusals.smaller < MAX_SMALLER).then_some(TooLarge::Said(classified.sizes));
        }
        let is_unsaid =
            classified.class == ErrorClass::Permanent && classified.pattern.is_none() && error.status == Some(400);
        let sent = self.session.thread.gauge.tokens(self.sent);
        let has_grown = self.session.thread.accepted.is_none_or(|accepted| sent > accepted);
        let is_large = sent >= self.session.capacity().map_or(LARGE, |capacity| capacity.prompt / LARGE_SHARE);
        (is_unsaid && has_grown && is_large && refusals.guesses < MAX_GUESSES).then_some(TooLarge::Guessed)
    }

    /// Makes the conversation smaller where a request was refused because of its size. Returns the error where that is not what is wrong
    /// with it. Where the user interrupts the summary, the inputs are in `halted`.
    ///
    /// # Errors
    /// Nothing is left that could be left out, the transcript cannot be written, or a limit would be exceeded.
    pub(super) async fn overflowed(
        &mut self,
        mut error: ModelError,
        refusals: &mut Refusals,
        retry: &Retry,
    ) -> Result<Option<ModelError>, Stop> {
        let Some(too_large) = self.is_too_large(&error, refusals) else {
            // A guess that was wrong has taught nothing.
            if let Some(gauge) = refusals.before_guess.take() {
                self.session.thread.gauge = gauge;
            }
            return Ok(Some(error));
        };
        let is_guess = matches!(too_large, TooLarge::Guessed);
        if self.session.parts.settings.compaction.is_none() {
            if matches!(too_large, TooLarge::Said(_)) {
                error
                    .message
                    .push_str(" (the conversation is not made smaller: `enabled` under `[compaction]` is false)");
            }
            return Ok(Some(error));
        }
        let sizes = match too_large {
            TooLarge::Said(sizes) => {
                (refusals.smaller, refusals.before_guess) = (refusals.smaller + 1, None);
                retry.classify(&mut error, &self.session.handles.hub);
                sizes
            }
            TooLarge::Guessed => {
                refusals.guesses += 1;
                refusals.before_guess.get_or_insert_with(|| self.session.thread.gauge.clone());
                NamedSizes::default()
            }
        };
        let before = self.session.request_estimate();
        self.discard_refused(&error);
        // The next one is another request.
        self.spending.end_request();
        let Some(need) = self.learn(sizes, if is_guess { GUESSED } else { SAID }) else {
            return Err(Stop::Model(error));
        };
        self.make_smaller(need).await?;
        let is_smaller = self.session.request_estimate() < before;
        // An answer of fewer tokens can be all that is needed.
        let is_shorter = self.session.lowered_answer(before).is_some() && sizes.limit.is_some();
        if is_guess && is_smaller {
            let message = format!(
                "the provider has refused a large request, and names no fault: it is sent again with a smaller conversation ({error})"
            );
            self.session.handles.hub.emit(EventKind::Notice { message });
        }
        if self.halted.is_some() || is_smaller || (is_shorter && refusals.smaller == 1) {
            return Ok(None);
        }
        if let Some(gauge) = refusals.before_guess.take().filter(|_| is_guess) {
            self.session.thread.gauge = gauge;
            return Err(self.classified(error, retry));
        }
        Err(Stop::Model(ModelError {
            message: format!("{} ({error})", self.too_large(need.capacity).message),
            ..error
        }))
    }

    /// The end of a turn for an error that no retry helps against.
    fn classified(&self, mut error: ModelError, retry: &Retry) -> Stop {
        retry.classify(&mut error, &self.session.handles.hub);
        Stop::Model(error)
    }

    /// Takes up what a refusal says about the context of the model.
    fn learn(&mut self, sizes: NamedSizes, (part, of): (u64, u64)) -> Option<Need> {
        let settings = self.session.parts.settings.compaction?;
        let refusal = Refusal {
            sent: self.sent,
            sizes,
            answer: self.session.answer_tokens(),
            known: settings.context_tokens,
            frame: self.session.frame_tokens(),
        };
        self.session.thread.gauge.refuse(refusal);
        let capacity: Capacity = self.session.capacity()?;
        let sent = self.session.thread.gauge.tokens(self.sent);
        Some(Need { cause: CompactionCause::Overflow, capacity, aim: capacity.aim.min(sent / of * part) })
    }

    /// Nothing of a refused attempt remains.
    fn discard_refused(&mut self, error: &ModelError) {
        self.phase = Phase::Between;
        let mut attempt = std::mem::take(&mut self.attempt);
        if attempt.answer.has_begun() {
            let kept = self.beginning.shown().len() as u64;
            self.emit_cut(&attempt.answer, &error.message, kept, (Retained::Nothing, false));
        }
        attempt.noted.roll_back(&mut self.session.rules);
        self.discard_attempt();
    }
}
