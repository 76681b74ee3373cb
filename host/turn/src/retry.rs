//! When a request that failed is sent again: only where it can help, only before anything of it was shown.

use std::time::Duration;

use flow::{EventKind, ModelError};

use crate::events::Hub;
use crate::ports::EventSink;

/// First wait, doubled each time.
const BASE: Duration = Duration::from_secs(1);
/// The longest wait of our own choosing.
const MAX: Duration = Duration::from_secs(30);
/// The longest wait a provider may ask for; beyond it the error is the turn's.
const MAX_ASKED: Duration = Duration::from_secs(120);

/// The retries of one step.
#[derive(Debug)]
pub(crate) struct Retry {
    max: u32,
    count: u32,
    waited: Duration,
    first_error: Option<String>,
}

impl Retry {
    pub(crate) fn new(max: u32) -> Self {
        Self { max, count: 0, waited: Duration::ZERO, first_error: None }
    }

    /// Decides about an attempt that failed: how long to wait before the next one. `unseen`: nothing of its answer was
    /// shown.
    ///
    /// # Errors
    /// It is not retried: the error, and where a retry would have been possible, why there is none.
    pub(crate) fn decide(&mut self, mut error: ModelError, unseen: bool, hub: &Hub) -> Result<Duration, ModelError> {
        if !unseen || !error.class.retryable() {
            return Err(error);
        }
        let asked = error.retry_after_ms.map(Duration::from_millis);
        if let Some(wait) = asked.filter(|wait| *wait > MAX_ASKED) {
            let (wait, longest) = (words(wait), words(MAX_ASKED));
            let why = format!(
                " (the provider asks to wait {wait} before the next request; no wait is longer than {longest})"
            );
            error.message.push_str(&why);
            return Err(error);
        }
        if self.count == self.max {
            if self.count > 0 {
                let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
                error.message.push_str(&format!(" (retried {times} within {})", words(self.waited)));
            }
            return Err(error);
        }
        let own = BASE.saturating_mul(1 << self.count.min(10)).min(MAX);
        let delay = asked.unwrap_or(own);
        self.count += 1;
        self.waited += delay;
        self.first_error.get_or_insert(error.message);
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let (retry, max_retries) = (self.count, self.max);
        hub.emit(EventKind::RetryScheduled { retry, max_retries, delay_ms, asked: asked.is_some() });
        Ok(delay)
    }

    /// An answer was received: reports it if it took more than one try, and resets the count.
    pub(crate) fn succeeded(&mut self, hub: &Hub) {
        if let Some(original_error) = self.first_error.take() {
            let total_delay_ms = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
            hub.emit(EventKind::RetrySucceeded { original_error, retry_count: self.count, total_delay_ms });
        }
        *self = Self::new(self.max);
    }
}

/// A duration in the largest unit that is precise enough.
fn words(time: Duration) -> String {
    match time.as_millis() {
        ms @ 1..1000 => format!("{ms} ms"),
        ms @ ..120_000 => format!("{} s", ms.div_ceil(1000)),
        ms @ ..7_200_000 => format!("{} min", ms.div_ceil(60_000)),
        ms @ ..172_800_000 => format!("{} h", ms.div_ceil(3_600_000)),
        ms => format!("{} days", ms.div_ceil(86_400_000)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::sync::Arc;

    use flow::ErrorClass;

    use super::*;
    use crate::ports::{BoxFuture, Clock};

    /// A clock for unused events.
    struct Still;

    impl Clock for Still {
        fn now_ms(&self) -> u64 {
            0
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    fn hub() -> Hub {
        Hub::new(Arc::new(Still))
    }

    fn decide(retry: &mut Retry, error: &ModelError) -> Result<Duration, String> {
        retry.decide(error.clone(), true, &hub()).map_err(|error| error.message)
    }

    #[test]
    fn waits_double_up_to_the_limit_and_obey_the_provider() {
        let mut retry = Retry::new(7);
        let error = ModelError::new(ErrorClass::Transient, "away");
        let waits: Vec<u64> =
            std::iter::from_fn(|| decide(&mut retry, &error).ok()).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(decide(&mut retry, &error).unwrap_err(), "away (retried 7 times within 91 s)");
        let asked = ModelError { retry_after_ms: Some(7000), ..error.clone() };
        assert_eq!(decide(&mut Retry::new(1), &asked), Ok(Duration::from_secs(7)));
        let permanent = ModelError::new(ErrorClass::Permanent, "no");
        assert_eq!(decide(&mut Retry::new(1), &permanent).unwrap_err(), "no");
        assert_eq!(decide(&mut Retry::new(0), &error).unwrap_err(), "away");
        assert!(Retry::new(1).decide(error, false, &hub()).is_err(), "something was shown");
    }

    #[test]
    fn a_wait_that_is_too_long_is_told() {
        for (ms, wait) in [(120_001, "3 min"), (3_600_000, "60 min"), (86_400_000, "24 h"), (400_000_000, "5 days")] {
            let error = ModelError { retry_after_ms: Some(ms), ..ModelError::new(ErrorClass::RateLimited, "slow") };
            let told = format!(
                "slow (the provider asks to wait {wait} before the next request; no wait is longer than 2 min)"
            );
            assert_eq!(decide(&mut Retry::new(3), &error).unwrap_err(), told);
        }
        let longest = ModelError { retry_after_ms: Some(120_000), ..ModelError::new(ErrorClass::RateLimited, "slow") };
        assert_eq!(decide(&mut Retry::new(3), &longest), Ok(MAX_ASKED));
    }
}
