//! When a request that failed is sent again: only where it can help, only before anything of it was shown.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use flow::{ErrorClass, EventKind, FailureKind, ModelError, RetryPolicy, RetryTable, RetryWait, SessionId};

use crate::events::Hub;
use flow::ports::EventSink;

/// The longest wait, whoever asks for it; beyond it the error is the turn's.
const LONGEST: Duration = Duration::from_secs(120);

/// The retries of one step.
#[derive(Debug)]
pub(crate) struct Retry {
    table: Arc<RetryTable>,
    count: u32,
    waited: Duration,
    first_error: Option<String>,
}

impl Retry {
    pub(crate) fn new(table: &Arc<RetryTable>) -> Self {
        Self { table: Arc::clone(table), count: 0, waited: Duration::ZERO, first_error: None }
    }

    /// Gives an error its class, and reports both.
    pub(crate) fn classify(&self, error: &mut ModelError, hub: &Hub) {
        let classified = self.table.classify(error);
        let class = classified.class;
        if class == ErrorClass::Quota && error.facts.kind == Some(FailureKind::Http) {
            error.message.push_str(" (the account has no credit left; see its billing page)");
        }
        let status = || error.status.map(|status| status.to_string());
        hub.emit(EventKind::ErrorClassified {
            class,
            code: error.code.clone().or_else(status).unwrap_or_else(|| "unknown".into()),
            message: error.message.clone(),
            retryable: self.table.policy(class).is_some(),
            metadata: classified.metadata(error),
        });
        error.class = Some(class);
    }

    /// Decides about an attempt that failed with a classified error: how long to wait before the next one. `unseen`: nothing of its
    /// answer was shown. `random`: for the jitter, of [`random`].
    ///
    /// # Errors
    /// It is not retried: the error, and where a retry would have been possible, why there is none.
    pub(crate) fn decide(
        &mut self,
        mut error: ModelError,
        unseen: bool,
        hub: &Hub,
        random: u64,
    ) -> Result<Duration, ModelError> {
        let policy = error.class.and_then(|class| self.table.policy(class));
        let Some(policy) = policy.filter(|_| unseen) else { return Err(error) };
        let asked = asked(policy, &error);
        if let Some(wait) = asked.filter(|wait| *wait > LONGEST) {
            let (wait, longest) = (words(wait), words(LONGEST));
            let why = format!(
                " (the provider asks to wait {wait} before the next request; no wait is longer than {longest})"
            );
            error.message.push_str(&why);
            return Err(error);
        }
        let Some(delay) = asked.or_else(|| own(policy, self.count, random)) else { return Err(error) };
        if self.count >= policy.max_retries {
            if self.count > 0 {
                let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
                error.message.push_str(&format!(" (retried {times} within {})", words(self.waited)));
            }
            return Err(error);
        }
        let (max_retries, asked) = (policy.max_retries, asked.is_some());
        self.count += 1;
        self.waited += delay;
        self.first_error.get_or_insert(error.message);
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        hub.emit(EventKind::RetryScheduled { retry: self.count, max_retries, delay_ms, asked });
        Ok(delay)
    }

    /// The shortest wait before the next attempt, where there is one after this error.
    pub(crate) fn wait(&self, error: &ModelError) -> Option<Duration> {
        let policy = error.class.and_then(|class| self.table.policy(class))?;
        asked(policy, error).or_else(|| own(policy, self.count, u64::MAX))
    }

    /// An answer was received: reports it if it took more than one try, and resets the count.
    pub(crate) fn succeeded(&mut self, hub: &Hub) {
        if let Some(original_error) = self.first_error.take() {
            let total_delay_ms = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
            hub.emit(EventKind::RetrySucceeded { original_error, retry_count: self.count, total_delay_ms });
        }
        *self = Self::new(&self.table);
    }
}

/// The wait that the provider asks for, where the policy follows it.
fn asked(policy: &RetryPolicy, error: &ModelError) -> Option<Duration> {
    let follows = policy.wait == RetryWait::UseHeader;
    error.asked_wait_ms(&policy.headers).filter(|_| follows).map(Duration::from_millis)
}

/// The wait that the policy chooses before the retry after `count` others: `min(base · 2^count, max)` where it grows. Jitter only ever
/// shortens it, so that neither the maximum nor the host's own limit is exceeded. `None`: there is no retry.
fn own(policy: &RetryPolicy, count: u32, random: u64) -> Option<Duration> {
    let wait = if policy.wait == RetryWait::UseHeader { policy.fallback } else { policy.wait };
    let delay = match wait {
        RetryWait::Exponential => {
            policy.base.saturating_mul(1_u32.checked_shl(count).unwrap_or(u32::MAX)).min(policy.max)
        }
        RetryWait::Fixed => policy.base,
        RetryWait::UseHeader | RetryWait::None => return None,
    };
    let share = policy.jitter.clamp(0.0, 1.0) * (random as f64 / u64::MAX as f64);
    // In whole milliseconds, as waits are reported.
    let shorter = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX) as f64 * (1.0 - share);
    Some(if share > 0.0 { Duration::from_millis(shorter.round() as u64) } else { delay }.min(LONGEST))
}

/// A number for the jitter of a retry. Jitter is there to spread the retries of sessions that failed at the same time, which needs no
/// randomness: sessions differ by their ids, and processes by their clocks. Derived from both, the number is the same in each run of
/// a test that owns the clock.
pub(crate) fn random(session: &SessionId, now_ms: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (session.as_str(), now_ms).hash(&mut hasher);
    hasher.finish()
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
    use flow::RetryHeader;
    use proptest::prelude::*;

    use super::*;
    use flow::ports::{BoxFuture, Clock};

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
        retry.decide(error.clone(), true, &hub(), u64::MAX).map_err(|error| error.message)
    }

    fn with(policy: RetryPolicy) -> Retry {
        Retry::new(&Arc::new(RetryTable::new(vec![], [(ErrorClass::Transient, policy)].into())))
    }

    fn retries(max: u32) -> Retry {
        Retry::new(&Arc::new(RetryTable::default().with_max_retries(max)))
    }

    fn policy(change: impl FnOnce(&mut RetryPolicy)) -> RetryPolicy {
        let mut policy = RetryPolicy::default();
        change(&mut policy);
        policy
    }

    /// The waits for the same error, in milliseconds, and what it says at the end.
    fn waits(mut retry: Retry, error: &ModelError) -> (Vec<u128>, String) {
        let mut found = Vec::new();
        loop {
            match decide(&mut retry, error) {
                Ok(wait) => found.push(wait.as_millis()),
                Err(message) => return (found, message),
            }
        }
    }

    #[test]
    fn waits_double_up_to_the_limit_and_obey_the_provider() {
        let error = ModelError::new(ErrorClass::Transient, "away");
        let expected = vec![1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
        assert_eq!(waits(retries(7), &error), (expected, "away (retried 7 times within 91 s)".into()));
        let asked = ModelError { retry_after_ms: Some(7000), ..error.clone() };
        assert_eq!(waits(retries(2), &asked), (vec![7000, 7000], "away (retried 2 times within 14 s)".into()));
        let permanent = ModelError::new(ErrorClass::Permanent, "no");
        assert_eq!(decide(&mut retries(1), &permanent).unwrap_err(), "no");
        assert_eq!(decide(&mut retries(0), &error).unwrap_err(), "away");
        assert!(retries(1).decide(error, false, &hub(), 0).is_err(), "something was shown");
    }

    /// Each field of a policy changed: the waits change.
    #[test]
    fn every_field_of_a_policy_counts() {
        type Change = fn(&mut RetryPolicy);
        let mut error = ModelError::new(ErrorClass::Transient, "away");
        let cases: [(Change, &[u128]); 11] = [
            (|_| (), &[1000, 2000, 4000]),
            (|p| p.wait = RetryWait::Fixed, &[1000, 1000, 1000]),
            (|p| p.wait = RetryWait::None, &[]),
            (|p| p.fallback = RetryWait::Fixed, &[1000, 1000, 1000]),
            (|p| p.fallback = RetryWait::None, &[]),
            (|p| p.base = Duration::from_millis(300), &[300, 600, 1200]),
            (|p| p.max = Duration::from_millis(1500), &[1000, 1500, 1500]),
            (|p| p.jitter = 0.25, &[750, 1500, 3000]),
            (|p| p.jitter = 1.0, &[0, 0, 0]),
            (|p| p.max_retries = 1, &[1000]),
            (|p| (p.wait, p.max_retries) = (RetryWait::Exponential, 2), &[1000, 2000]),
        ];
        for (number, (change, expected)) in cases.into_iter().enumerate() {
            assert_eq!(waits(with(policy(change)), &error).0, expected, "case {number}");
        }
        error.facts.waits = vec![(RetryHeader::RetryAfter, 7000), (RetryHeader::RetryAfterMs, 6500)];
        let headers: [(Change, &[u128]); 6] = [
            (|_| (), &[6500, 6500, 6500]),
            (|p| p.jitter = 1.0, &[6500, 6500, 6500]),
            (|p| p.headers.reverse(), &[7000, 7000, 7000]),
            (|p| p.headers = vec![RetryHeader::RetryAfter], &[7000, 7000, 7000]),
            (|p| p.headers.clear(), &[1000, 2000, 4000]),
            (|p| p.wait = RetryWait::Exponential, &[1000, 2000, 4000]),
        ];
        for (number, (change, expected)) in headers.into_iter().enumerate() {
            assert_eq!(waits(with(policy(change)), &error).0, expected, "headers, case {number}");
        }
    }

    #[test]
    fn a_wait_that_is_too_long_is_told() {
        for (ms, wait) in [(120_001, "3 min"), (3_600_000, "60 min"), (86_400_000, "24 h"), (400_000_000, "5 days")] {
            let error = ModelError { retry_after_ms: Some(ms), ..ModelError::new(ErrorClass::RateLimited, "slow") };
            let told = format!(
                "slow (the provider asks to wait {wait} before the next request; no wait is longer than 2 min)"
            );
            assert_eq!(decide(&mut retries(3), &error).unwrap_err(), told);
        }
        let longest = ModelError { retry_after_ms: Some(120_000), ..ModelError::new(ErrorClass::RateLimited, "slow") };
        assert_eq!(decide(&mut retries(3), &longest), Ok(LONGEST));
        // A table that was made without a file has no limit of its own.
        let endless = policy(|p| (p.base, p.max) = (Duration::MAX, Duration::MAX));
        assert_eq!(own(&endless, 31, 0), Some(LONGEST));
    }

    /// The count is that of retries in a row, whatever the classes of the errors are.
    #[test]
    fn each_class_has_its_own_number_of_retries() {
        let policies = [(ErrorClass::Transient, 3), (ErrorClass::RateLimited, 1)];
        let policies = policies.map(|(class, max)| (class, policy(|p| p.max_retries = max)));
        let mut retry = Retry::new(&Arc::new(RetryTable::new(vec![], policies.into())));
        let error = |class| ModelError::new(class, "no");
        assert!(decide(&mut retry, &error(ErrorClass::Transient)).is_ok());
        assert!(decide(&mut retry, &error(ErrorClass::RateLimited)).is_err());
        assert!(decide(&mut retry, &error(ErrorClass::Transient)).is_ok());
        retry.succeeded(&hub());
        assert!(decide(&mut retry, &error(ErrorClass::RateLimited)).is_ok());
    }

    #[test]
    fn an_account_without_credit_is_told() {
        let mut error = ModelError::of_kind(FailureKind::Http, "HTTP 402");
        let quota = [flow::ErrorPattern::new("q", ErrorClass::Quota)];
        Retry::new(&Arc::new(RetryTable::new(quota.into(), [].into()))).classify(&mut error, &hub());
        assert_eq!(error.message, "HTTP 402 (the account has no credit left; see its billing page)");
        assert_eq!(error.class, Some(ErrorClass::Quota));
    }

    #[test]
    fn jitter_differs_by_session_and_time_and_is_repeatable() {
        let (one, other) = (SessionId::new("one"), SessionId::new("other"));
        assert_eq!(random(&one, 1), random(&one, 1));
        assert_ne!(random(&one, 1), random(&one, 2));
        assert_ne!(random(&one, 1), random(&other, 1));
    }

    proptest! {
        #[test]
        fn waits_are_within_their_bounds(
            base in 0_u64..200_000, max in 0_u64..200_000, count in 0_u32..100, jitter in 0.0..=1.0_f64, random: u64, grows: bool
        ) {
            let wait = if grows { RetryWait::Exponential } else { RetryWait::Fixed };
            let policy = policy(|p| {
                (p.wait, p.base, p.max) = (wait, Duration::from_millis(base), Duration::from_millis(max));
                p.jitter = jitter;
            });
            let exact = if grows { (u128::from(base) << count.min(60)).min(max.into()) } else { base.into() } as f64;
            let found = own(&policy, count, random).unwrap().as_millis() as f64;
            let longest = LONGEST.as_millis() as f64;
            prop_assert!(found <= exact.min(longest), "{found} is longer than {exact}");
            prop_assert!(found + 1.0 >= (exact * (1.0 - jitter)).min(longest), "{found} is too short for {exact}");
        }
    }
}
