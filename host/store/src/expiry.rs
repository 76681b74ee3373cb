//! What a run removes of the sessions that are too old: a bounded number, and nothing where the clock may be wrong.

/// The most sessions that one run removes.
pub const MAX_REMOVED: usize = 100;

/// The longest time without a session that the clock is trusted with, in days.
pub const MAX_PAUSE_DAYS: u64 = 14;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What one run does about the sessions that are too old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expiry<T> {
    /// They are removed.
    Remove {
        /// The oldest first, [`MAX_REMOVED`] at most.
        sessions: Vec<T>,
        /// How many are left to later runs.
        left: usize,
    },
    /// Nothing is removed: the clock can be wrong.
    Distrust {
        /// How many would be removed.
        due: usize,
        /// The days since the last use before the last 24 hours.
        pause_days: u64,
    },
}

impl<T> Expiry<T> {
    /// Decides at `now_ms`. `used_ms`: when each session of the store was last used. `due`: those that are too old, with the same time.
    ///
    /// A clock that was set ahead makes all sessions old at once, but for those that are recorded with it. So the sessions of the last 24
    /// hours say nothing, and if all others are older than [`MAX_PAUSE_DAYS`], nothing is removed. After a real pause, that ends on the next
    /// day on which the program is used.
    pub fn decide(used_ms: impl IntoIterator<Item = u64>, mut due: Vec<(u64, T)>, now_ms: u64) -> Self {
        let ages = used_ms.into_iter().map(|used| now_ms.saturating_sub(used));
        let pause = ages.filter(|age| *age > DAY_MS).min().unwrap_or(0);
        if pause > MAX_PAUSE_DAYS * DAY_MS && !due.is_empty() {
            return Self::Distrust { due: due.len(), pause_days: pause / DAY_MS };
        }
        due.sort_by_key(|(used, _)| *used);
        let left = due.len().saturating_sub(MAX_REMOVED);
        let sessions = due.into_iter().take(MAX_REMOVED).map(|(_, session)| session).collect();
        Self::Remove { sessions, left }
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, Expiry};

    const NOW: u64 = 20_000 * DAY_MS;

    fn decided(ages: impl IntoIterator<Item = u64>, keep: u64) -> Expiry<u64> {
        let ages: Vec<u64> = ages.into_iter().collect();
        let used = |age: &u64| NOW - age * DAY_MS;
        let due = ages.iter().filter(|age| **age > keep).map(|age| (used(age), *age)).collect();
        Expiry::decide(ages.iter().map(used), due, NOW)
    }

    /// One row per case: the ages of the sessions in days, how many days they are kept, and the ages of those that are removed, or the
    /// days of the pause.
    #[test]
    fn a_clock_that_was_set_ahead_removes_nothing() {
        type Case<'a> = (&'a str, &'a [u64], u64, Result<&'a [u64], u64>);
        let cases: &[Case<'_>] = &[
            ("nothing is there", &[], 30, Ok(&[])),
            ("nothing is old", &[0, 1, 2, 29], 30, Ok(&[])),
            ("used each week", &[0, 7, 14, 31, 45], 30, Ok(&[45, 31])),
            ("one day is kept", &[0, 2, 3], 1, Ok(&[3, 2])),
            ("the longest pause", &[0, 14, 40], 30, Ok(&[40])),
            ("46 days ahead", &[0, 46, 47, 48, 60], 30, Err(46)),
            ("46 days ahead, for a few runs", &[0, 0, 0, 46, 47], 30, Err(46)),
            ("15 days ahead", &[0, 15, 16, 40], 30, Err(15)),
            ("a month ahead with nothing that is old", &[0, 29], 30, Ok(&[])),
            ("the day after a pause", &[0, 2, 46, 47], 30, Ok(&[47, 46])),
            ("nothing but today", &[0, 1], 0, Ok(&[1])),
        ];
        for (name, ages, keep, expected) in cases {
            let expected = match expected {
                Ok(sessions) => Expiry::Remove { sessions: sessions.to_vec(), left: 0 },
                Err(pause) => {
                    let due = ages.iter().filter(|age| *age > keep).count();
                    Expiry::Distrust { due, pause_days: *pause }
                }
            };
            assert_eq!(decided(ages.iter().copied(), *keep), expected, "{name}");
        }
    }

    #[test]
    fn a_run_removes_a_bounded_number_the_oldest_first() {
        let Expiry::Remove { sessions, left } = decided(0..350, 30) else { panic!("the clock is right") };
        assert_eq!((sessions.len(), sessions[0], left), (100, 349, 219));
    }

    #[test]
    fn a_session_that_was_used_in_the_future_says_nothing() {
        let due = vec![(NOW - 46 * DAY_MS, 46)];
        let used = [NOW + 46 * DAY_MS, NOW, NOW - 46 * DAY_MS];
        assert_eq!(Expiry::decide(used, due, NOW), Expiry::Distrust { due: 1, pause_days: 46 });
    }
}
