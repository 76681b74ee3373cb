//! When a session was active: what the default time to live is counted from.

use flow::ports::StateLifetime;

use crate::lifetime::ExpiryCheck;

/// A running turn is recorded this often, unless there is something else to write. After a crash, entries with the default time to
/// live can expire this much too early.
const RECORD_EVERY_MS: u64 = 60_000;
/// Expired entries are removed from the backend this often, in passing; they are invisible from the moment at which they expire.
const SWEEP_EVERY_MS: u64 = 600_000;

/// What the backend knows about the activity of a session when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Until when the session was active, in milliseconds since 1970.
    pub(crate) active_ms: u64,
    /// The shortest default time to live of its entries; an idle time below it expires none.
    pub(crate) shortest_ttl_ms: Option<u64>,
    /// Whether anything is stored: of a session that keeps nothing, nothing is recorded.
    pub(crate) has_state: bool,
}

/// Follows the turns of an open session.
#[derive(Debug)]
pub(crate) struct Activity {
    running: bool,
    active_ms: u64,
    shortest_ttl_ms: Option<u64>,
    session_ttl_ms: u64,
    has_state: bool,
    /// What the backend has.
    recorded_ms: u64,
    swept_ms: u64,
}

impl Activity {
    pub(crate) fn new(recorded: Recorded, session_ttl_ms: u64) -> Self {
        let Recorded { active_ms, shortest_ttl_ms, has_state } = recorded;
        let (recorded_ms, swept_ms) = (active_ms, 0);
        Self { running: false, active_ms, shortest_ttl_ms, session_ttl_ms, has_state, recorded_ms, swept_ms }
    }

    /// What has expired now.
    pub(crate) fn check(&self, now_ms: u64) -> ExpiryCheck {
        let active_ms = if self.running { now_ms } else { self.active_ms };
        ExpiryCheck { at_ms: now_ms, active_ms, session_ttl_ms: self.session_ttl_ms }
    }

    /// A turn starts. Returns the check for what expired in the idle time before it, if something can have.
    pub(crate) fn start(&mut self, now_ms: u64) -> Option<ExpiryCheck> {
        if self.running {
            return None;
        }
        let idle_ms = now_ms.saturating_sub(self.active_ms);
        let bound = self.shortest_ttl_ms.unwrap_or(u64::MAX).min(self.session_ttl_ms);
        let check = (self.has_state && idle_ms >= bound).then(|| self.check(now_ms));
        (self.running, self.active_ms) = (true, now_ms);
        check
    }

    pub(crate) fn end(&mut self, now_ms: u64) {
        if self.running {
            (self.running, self.active_ms) = (false, now_ms);
        }
    }

    /// An entry is written.
    pub(crate) fn has_entry(&mut self, lifetime: StateLifetime) {
        self.has_state = true;
        if let StateLifetime::Default { ttl_ms } = lifetime {
            self.shortest_ttl_ms = Some(self.shortest_ttl_ms.map_or(ttl_ms, |shortest| shortest.min(ttl_ms)));
        }
    }

    /// The check for a sweep, where one is due.
    pub(crate) fn sweep(&mut self, now_ms: u64) -> Option<ExpiryCheck> {
        if !self.has_state || now_ms.saturating_sub(self.swept_ms) < SWEEP_EVERY_MS {
            return None;
        }
        self.swept_ms = now_ms;
        Some(self.check(now_ms))
    }

    /// Whether the activity has to be recorded although nothing else is written.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        let active_ms = self.check(now_ms).active_ms;
        // The end of a turn is recorded at once; the same millisecond is recorded already.
        let step = if self.running { RECORD_EVERY_MS } else { 1 };
        self.has_state && active_ms.saturating_sub(self.recorded_ms) >= step
    }

    /// What to record.
    pub(crate) fn to_record(&self, now_ms: u64) -> Recorded {
        let active_ms = self.check(now_ms).active_ms;
        Recorded { active_ms, shortest_ttl_ms: self.shortest_ttl_ms, has_state: true }
    }

    /// The backend has this now.
    pub(crate) fn recorded(&mut self, recorded: Recorded) {
        self.recorded_ms = recorded.active_ms;
        self.has_state = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, RECORD_EVERY_MS, Recorded};

    fn idle_since_zero(shortest_ttl_ms: Option<u64>) -> Activity {
        Activity::new(Recorded { active_ms: 0, shortest_ttl_ms, has_state: true }, 10_000)
    }

    #[test]
    fn only_an_idle_time_as_long_as_the_shortest_ttl_is_checked() {
        assert_eq!(idle_since_zero(Some(100)).start(99), None);
        assert_eq!(idle_since_zero(None).start(9_999), None);
        let check = idle_since_zero(Some(100)).start(100).map(|check| (check.at_ms, check.active_ms));
        assert_eq!(check, Some((100, 0)));
        assert!(idle_since_zero(None).start(10_000).is_some(), "the session itself has expired");
    }

    #[test]
    fn a_running_turn_is_activity_however_long_it_takes() {
        let mut activity = idle_since_zero(Some(100));
        activity.start(50);
        assert_eq!(activity.check(5_000).active_ms, 5_000);
        activity.end(6_000);
        assert_eq!(activity.check(6_099).active_ms, 6_000);
        assert_eq!(activity.start(6_099), None);
        assert_eq!(activity.start(9_000), None, "the turn runs already");
    }

    #[test]
    fn activity_is_recorded_at_the_end_of_a_turn_and_now_and_then_while_it_runs() {
        let mut activity = idle_since_zero(None);
        activity.start(10);
        assert!(!activity.is_due(20));
        assert!(activity.is_due(RECORD_EVERY_MS));
        activity.end(30);
        assert!(activity.is_due(40));
        activity.recorded(activity.to_record(40));
        assert!(!activity.is_due(1_000_000));
    }

    #[test]
    fn of_a_session_without_state_nothing_is_recorded() {
        let mut activity = Activity::new(Recorded { active_ms: 0, shortest_ttl_ms: None, has_state: false }, 10_000);
        assert_eq!(activity.start(20_000), None);
        assert_eq!(activity.sweep(10_000_000), None);
        activity.end(20_001);
        assert!(!activity.is_due(30_000));
    }
}
