//! The size of everything that the extensions of one session keep.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of all areas of a session, with a limit. Two callbacks of one session can write at the same time, so bytes are
/// reserved before they are committed.
#[derive(Debug)]
pub(crate) struct SessionTotal {
    bytes: AtomicU64,
    max: u64,
    /// The size is above the mark, and that was reported.
    alerted: AtomicBool,
}

/// A part of the limit, in percent, whose upward crossing is reported once.
const ALERT_PERCENT: u64 = 80;

impl SessionTotal {
    pub(crate) fn new(max: u64) -> Self {
        Self { bytes: AtomicU64::new(0), max, alerted: AtomicBool::new(false) }
    }

    /// Adds `bytes` where that is within the limit. Otherwise returns what there would be, and the limit.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), (u64, u64)> {
        let within = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= self.max);
        match self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(now) => Err((now.saturating_add(bytes), self.max)),
        }
    }

    /// Adds what is there already, whatever the limit: it was loaded, or restored.
    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, bytes: u64) {
        let without = |now: u64| Some(now.saturating_sub(bytes));
        // The closure always returns a value, so this does not fail.
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, without);
    }

    /// The size and the limit, if the size has crossed the mark since it was last below it.
    pub(crate) fn alert(&self) -> Option<(u64, u64)> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let above = bytes.saturating_mul(100) >= self.max.saturating_mul(ALERT_PERCENT);
        let before = self.alerted.swap(above, Ordering::Relaxed);
        (above && !before).then_some((bytes, self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::SessionTotal;

    #[test]
    fn each_upward_crossing_is_reported_once() {
        let total = SessionTotal::new(100);
        let steps = [(79, None), (1, Some((80, 100))), (10, None)];
        for (add, alert) in steps {
            total.reserve(add).expect("within the limit");
            assert_eq!(total.alert(), alert);
        }
        assert_eq!(total.reserve(11), Err((101, 100)));
        total.release(20);
        assert_eq!(total.alert(), None);
        total.reserve(10).expect("within the limit");
        assert_eq!(total.alert(), Some((80, 100)));
    }
}
