//! When entries expire: a function of their times, of the last activity of the session, and of the moment that is asked about.

use flow::ports::{StateEntry, StateLifetime};

/// Decides which entries have expired at a moment. All times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpiryCheck {
    /// The moment that is asked about.
    pub(crate) at_ms: u64,
    /// Until when the session had been active: the end of its last turn, or the moment itself while a turn runs.
    pub(crate) active_ms: u64,
    /// How long the state of an idle session is kept.
    pub(crate) session_ttl_ms: u64,
}

impl ExpiryCheck {
    /// When an entry expires if it stays unused and the session idle; `None` where only the end of the session bounds it.
    pub(crate) fn expiry(&self, lifetime: StateLifetime, expires_ms: Option<u64>) -> Option<u64> {
        match lifetime {
            StateLifetime::Default { ttl_ms } => {
                let by_session = self.active_ms.saturating_add(ttl_ms);
                Some(expires_ms.map_or(by_session, |own| own.max(by_session)))
            }
            // An entry of its own time without an end is one that was written wrongly: it expires rather than staying for ever.
            StateLifetime::Own { .. } => Some(expires_ms.unwrap_or(0)),
            StateLifetime::Session => None,
        }
    }

    /// When everything in the session expires if it stays idle.
    pub(crate) fn session_end(&self) -> u64 {
        self.active_ms.saturating_add(self.session_ttl_ms)
    }

    /// Whether an entry with these times has expired.
    pub(crate) fn is_expired(&self, lifetime: StateLifetime, expires_ms: Option<u64>) -> bool {
        let end = self.expiry(lifetime, expires_ms).unwrap_or(u64::MAX).min(self.session_end());
        end <= self.at_ms
    }

    /// Whether an entry had expired at the moment, which has passed. One that was used since then was alive: after an idle time that no
    /// entry outlives, new ones can be written before the old ones are removed.
    pub(crate) fn had_expired(&self, lifetime: StateLifetime, expires_ms: Option<u64>, used_ms: u64) -> bool {
        used_ms < self.at_ms && self.is_expired(lifetime, expires_ms)
    }

    /// Keeps what has not expired, each entry with the expiry that it has now.
    pub(crate) fn retain(&self, entries: &mut Vec<StateEntry>) {
        entries.retain_mut(|entry| {
            let keep = !self.is_expired(entry.lifetime, entry.expires_ms);
            entry.expires_ms = self.expiry(entry.lifetime, entry.expires_ms);
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::ExpiryCheck;
    use flow::ports::StateLifetime::{Default, Own, Session};

    #[test]
    fn the_last_activity_extends_default_times_only() {
        let check = |at_ms, active_ms| ExpiryCheck { at_ms, active_ms, session_ttl_ms: 1_000 };
        // Written at 0, with 100 ms to live: (moment, last activity, lifetime, expired).
        for (at, active, lifetime, expected) in [
            (99, 0, Default { ttl_ms: 100 }, false),
            (100, 0, Default { ttl_ms: 100 }, true),
            (149, 50, Default { ttl_ms: 100 }, false),
            (150, 50, Default { ttl_ms: 100 }, true),
            (149, 50, Own { ttl_ms: 100 }, true),
            (99, 50, Own { ttl_ms: 100 }, false),
            (999, 0, Session, false),
            (1_000, 0, Session, true),
            (1_049, 50, Session, false),
            (5_000, 5_000, Default { ttl_ms: 100 }, false),
        ] {
            let expires = lifetime.expires_after(0);
            assert_eq!(
                check(at, active).is_expired(lifetime, expires),
                expected,
                "{lifetime:?} at {at}, active {active}"
            );
        }
    }

    #[test]
    fn what_is_used_after_a_check_is_not_removed_by_it() {
        let check = ExpiryCheck { at_ms: 2_000, active_ms: 0, session_ttl_ms: 1_000 };
        for (used, expected) in [(0, true), (1_999, true), (2_000, false), (3_000, false)] {
            assert_eq!(check.had_expired(Session, None, used), expected, "used at {used}");
        }
    }

    #[test]
    fn the_session_bounds_longer_times() {
        let check = ExpiryCheck { at_ms: 1_000, active_ms: 0, session_ttl_ms: 1_000 };
        assert!(check.is_expired(Own { ttl_ms: 5_000 }, Some(5_000)));
        assert!(check.is_expired(Default { ttl_ms: u64::MAX }, Some(u64::MAX)));
    }
}
