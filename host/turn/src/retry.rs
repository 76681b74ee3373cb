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

    /// How long to wait before the next try; `None`: there is none.
    pub(crate) fn next_delay(&mut self, error: &ModelError) -> Option<Duration> {
        if !error.class.retryable() || self.count == self.max {
            return None;
        }
        let own = BASE.saturating_mul(1 << self.count.min(10)).min(MAX);
        let delay = error.retry_after_ms.map_or(own, Duration::from_millis);
        if delay > MAX_ASKED {
            return None;
        }
        self.count += 1;
        self.waited += delay;
        self.first_error.get_or_insert_with(|| error.message.clone());
        Some(delay)
    }

    /// An answer came: says so where it took more than one try, and counts anew.
    pub(crate) fn succeeded(&mut self, hub: &Hub) {
        if let Some(original_error) = self.first_error.take() {
            let total_delay_ms = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
            hub.emit(EventKind::RetrySucceeded { original_error, retry_count: self.count, total_delay_ms });
        }
        *self = Self::new(self.max);
    }
}

#[cfg(test)]
mod tests {
    use flow::ErrorClass;

    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_obey_the_provider() {
        let mut retry = Retry::new(7);
        let error = ModelError::new(ErrorClass::Transient, "away");
        let waits: Vec<u64> = std::iter::from_fn(|| retry.next_delay(&error)).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        let asked = ModelError { retry_after_ms: Some(7000), ..error.clone() };
        assert_eq!(Retry::new(1).next_delay(&asked), Some(Duration::from_secs(7)));
        assert_eq!(Retry::new(1).next_delay(&ModelError::new(ErrorClass::Permanent, "no")), None);
        assert_eq!(Retry::new(1).next_delay(&ModelError { retry_after_ms: Some(3_600_000), ..error }), None);
    }
}
