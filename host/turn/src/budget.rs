//! What a thread may spend, and what it has spent.
//!
//! A child thread has a budget of its own inside that of its parent: what it spends, its parent spends too, and it ends at the limits of
//! either.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::{Charged, Limit, Limits, Spend};

/// The budget of a thread. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    parent: Option<Budget>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: Limits,
    /// The limits as they were configured: an approval adds one of them.
    configured: Limits,
    spent: Spent,
    /// The time of the turn under way.
    running: Duration,
    /// Of that turn, the time in which tools have waited for approvals.
    waited: Duration,
}

/// What a thread has spent, in all its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// Turns that are over and have asked the model.
    pub turns: u64,
    /// Steps that are over.
    pub steps: u64,
    /// Tokens of prompts and answers, those of children included; estimated where a provider did not count them.
    pub tokens: u64,
    /// Money, that of children included; estimated where a provider did not count tokens.
    pub spend: Spend,
    /// Child threads that were started.
    pub spawns: u64,
    /// The time of the turns that are over.
    pub duration: Duration,
}

/// What the next request adds to what is spent, at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// It is the first of its turn.
    pub(crate) is_first: bool,
    /// Tokens of its prompt.
    pub(crate) tokens: u64,
    /// What they cost.
    pub(crate) spend: Spend,
    /// The time of the turn so far.
    pub(crate) duration: Duration,
}

/// A limit that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exceeded {
    pub(crate) limit: Limit,
    pub(crate) current: f64,
    pub(crate) max: f64,
    /// The next limit that would do: one more of what is configured, and enough for the next request.
    pub(crate) proposed: f64,
    /// It is a limit of the parent, or of its parent: this thread cannot ask for more.
    pub(crate) is_inherited: bool,
}

impl Budget {
    /// A budget with these limits. `parent`: that of the thread that starts this one as its child.
    pub fn new(limits: Limits, parent: Option<Self>) -> Self {
        let state = State { configured: limits.clone(), limits, ..State::default() };
        Self(Arc::new(Shared { parent, state: Mutex::new(state) }))
    }

    /// The limits as they are now.
    pub fn limits(&self) -> Limits {
        self.state().limits.clone()
    }

    /// What is spent so far.
    pub fn spent(&self) -> Spent {
        self.state().spent
    }

    /// What a child of this thread can spend at most: what is left of its steps and time, its other limits being shared, one level
    /// less of depth, and not more than `own`.
    #[must_use]
    pub fn for_child(&self, own: &Limits) -> Self {
        let mut limits = own.clone();
        let state = self.state();
        let mut left = Limits::default();
        left.steps = state.limits.steps.map(|steps| steps.saturating_sub(state.spent.steps));
        left.duration =
            state.limits.duration.map(|most| most.saturating_sub(state.spent.duration.saturating_add(state.running)));
        left.spawns = state.limits.spawns.map(|spawns| spawns.saturating_sub(state.spent.spawns));
        left.depth = state.limits.depth.map(|depth| depth.saturating_sub(1));
        drop(state);
        limits.lower_to(&left);
        Self::new(limits, Some(self.clone()))
    }

    /// Counts a child thread, for this thread and its parents, unless there may be no more.
    ///
    /// # Errors
    /// [`Limit::Depth`] or [`Limit::Spawns`], and the limit. Nothing is counted then.
    pub fn spawn(&self) -> Result<(), (Limit, u64)> {
        if self.limits().depth == Some(0) {
            return Err((Limit::Depth, 0));
        }
        self.count_spawn()
    }

    /// Counts a child thread here and above.
    fn count_spawn(&self) -> Result<(), (Limit, u64)> {
        let mut state = self.state();
        if let Some(most) = state.limits.spawns.filter(|most| state.spent.spawns >= *most) {
            return Err((Limit::Spawns, most));
        }
        // From the child to its parents, always: there is no order in which two of them wait for each other.
        self.0.parent.as_ref().map_or(Ok(()), Self::count_spawn)?;
        state.spent.spawns += 1;
        Ok(())
    }

    /// Whether money is limited, here or in a parent.
    pub fn limits_spend(&self) -> bool {
        self.state().limits.spend.is_some() || self.0.parent.as_ref().is_some_and(Self::limits_spend)
    }

    /// Sets a limit.
    pub fn set(&self, limit: Limit, max: f64) {
        self.state().limits.set(limit, max);
    }

    /// Restores what earlier processes have spent, and the limits that were raised then.
    pub(crate) fn restore(&self, spent: Spent, raised: &[(Limit, f64)]) {
        let mut state = self.state();
        state.spent = spent;
        for (limit, max) in raised {
            // A configuration that has since raised the limit further, or removed it, takes precedence.
            if state.limits.value(*limit).is_some_and(|now| now < *max) {
                state.limits.set(*limit, *max);
            }
        }
    }

    /// Counts what a request took, also for the parents.
    pub(crate) fn add(&self, tokens: u64, spend: Spend) {
        let mut state = self.state();
        state.spent.tokens = state.spent.tokens.saturating_add(tokens);
        state.spent.spend = state.spent.spend.plus(spend);
        drop(state);
        self.0.parent.iter().for_each(|parent| parent.add(tokens, spend));
    }

    pub(crate) fn end_step(&self) {
        self.state().spent.steps += 1;
    }

    /// The turn under way has taken this so far.
    pub(crate) fn set_running(&self, running: Duration) {
        self.state().running = running;
    }

    /// A tool has waited for an approval: the time does not count for the turn under way.
    pub fn add_wait(&self, waited: Duration) {
        let mut state = self.state();
        state.waited = state.waited.saturating_add(waited);
    }

    /// The time that does not count for the turn under way, because tools have waited for approvals.
    pub(crate) fn waited(&self) -> Duration {
        self.state().waited
    }

    /// A turn is over. `has_asked`: it has asked the model.
    pub(crate) fn end_turn(&self, has_asked: bool, took: Duration) {
        let mut state = self.state();
        (state.running, state.waited) = (Duration::ZERO, Duration::ZERO);
        state.spent.turns += u64::from(has_asked);
        state.spent.duration = state.spent.duration.saturating_add(took);
    }

    /// What is left of the limit `duration` in a turn that has taken this so far; `None`: there is no limit.
    pub(crate) fn time_left(&self, running: Duration) -> Option<Duration> {
        let state = self.state();
        Some(state.limits.duration?.saturating_sub(state.spent.duration.saturating_add(running)))
    }

    /// What is recorded of what is spent.
    pub(crate) fn charged(&self) -> Charged {
        let Spent { tokens, spend, spawns, .. } = self.spent();
        let mut charged = Charged::default();
        (charged.tokens, charged.spend, charged.spawns) = (tokens, spend, spawns);
        charged
    }

    /// The first limit that the next request would exceed: of this thread, and then of its parents.
    pub(crate) fn exceeded(&self, next: &Next) -> Option<Exceeded> {
        let own = [Limit::Turns, Limit::Steps, Limit::Duration, Limit::Tokens, Limit::Spend];
        let inherited = || {
            let mut above = self.0.parent.as_ref();
            std::iter::from_fn(move || {
                let this = above?;
                above = this.0.parent.as_ref();
                Some(this)
            })
        };
        own.iter().find_map(|limit| self.state().exceeded(*limit, next)).or_else(|| {
            let shared = [Limit::Tokens, Limit::Spend];
            let found =
                inherited().find_map(|parent| shared.iter().find_map(|limit| parent.state().exceeded(*limit, next)));
            found.map(|found| Exceeded { is_inherited: true, ..found })
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn exceeded(&self, limit: Limit, next: &Next) -> Option<Exceeded> {
        let max = self.limits.value(limit)?;
        let spent = &self.spent;
        let seconds = spent.duration.saturating_add(next.duration).as_secs_f64();
        let (current, needed, is_exceeded) = match limit {
            Limit::Turns => {
                let needed = spent.turns + u64::from(next.is_first);
                (spent.turns as f64, needed as f64, self.limits.turns < Some(needed))
            }
            Limit::Steps => {
                let needed = spent.steps + 1;
                (spent.steps as f64, needed as f64, self.limits.steps < Some(needed))
            }
            Limit::Tokens => {
                let needed = spent.tokens.saturating_add(next.tokens);
                (spent.tokens as f64, needed as f64, self.limits.tokens < Some(needed))
            }
            Limit::Spend => {
                let needed = spent.spend.plus(next.spend);
                (spent.spend.dollars(), needed.dollars(), self.limits.spend < Some(needed))
            }
            Limit::Duration => (seconds, seconds, seconds >= max),
            // Counted where a child is started.
            Limit::Spawns | Limit::Depth => return None,
        };
        let more = self.configured.value(limit).unwrap_or(max).max(0.0);
        let proposed = (max + more).max(needed + more);
        is_exceeded.then_some(Exceeded { limit, current, max, proposed, is_inherited: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(tokens: Option<u64>, steps: Option<u64>) -> Limits {
        let mut limits = Limits::default();
        (limits.tokens, limits.steps) = (tokens, steps);
        limits
    }

    fn next(tokens: u64) -> Next {
        Next { tokens, ..Next::default() }
    }

    #[test]
    fn a_request_that_just_fits_is_sent() {
        let budget = Budget::new(limits(Some(100), None), None);
        budget.add(60, Spend::default());
        assert_eq!(budget.exceeded(&next(40)), None);
        let found = budget.exceeded(&next(41)).map(|found| (found.limit, found.current, found.max, found.proposed));
        assert_eq!(found, Some((Limit::Tokens, 60.0, 100.0, 201.0)));
        budget.set(Limit::Tokens, 101.0);
        assert_eq!(budget.exceeded(&next(41)), None);
    }

    #[test]
    fn what_a_child_spends_its_parent_spends() {
        let parent = Budget::new(limits(Some(100), Some(5)), None);
        parent.end_step();
        let child = parent.for_child(&limits(None, Some(9)));
        assert_eq!(child.limits().steps, Some(4));
        child.add(90, Spend::default());
        assert_eq!(parent.spent().tokens, 90);
        let found = child.exceeded(&next(20)).map(|found| (found.limit, found.is_inherited));
        assert_eq!(found, Some((Limit::Tokens, true)));
    }

    #[test]
    fn children_are_counted_and_nested_only_so_deep() {
        let mut limits = Limits::default();
        (limits.spawns, limits.depth) = (Some(2), Some(1));
        let budget = Budget::new(limits, None);
        let child = budget.for_child(&Limits::default());
        assert_eq!(child.spawn(), Err((Limit::Depth, 0)));
        assert_eq!([budget.spawn(), budget.spawn(), budget.spawn()], [Ok(()), Ok(()), Err((Limit::Spawns, 2))]);
    }

    #[test]
    fn what_children_start_is_counted_for_all_above_them() {
        let mut limits = Limits::default();
        (limits.spawns, limits.depth) = (Some(3), Some(2));
        let budget = Budget::new(limits, None);
        let children = [budget.for_child(&Limits::default()), budget.for_child(&Limits::default())];
        assert_eq!([budget.spawn(), children[0].spawn(), children[0].spawn()], [Ok(()); 3]);
        assert_eq!(children[1].spawn(), Err((Limit::Spawns, 3)));
        assert_eq!((budget.spent().spawns, children[0].spent().spawns, children[1].spent().spawns), (3, 2, 0));
    }

    #[test]
    fn waiting_for_an_approval_counts_for_no_turn() {
        let budget = Budget::default();
        budget.add_wait(Duration::from_secs(60));
        budget.add_wait(Duration::from_secs(30));
        assert_eq!(budget.waited(), Duration::from_secs(90));
        budget.end_turn(true, Duration::from_secs(5));
        assert_eq!((budget.waited(), budget.spent().duration), (Duration::ZERO, Duration::from_secs(5)));
    }

    #[test]
    fn every_limit_that_is_checked_before_a_request_can_be_exceeded() {
        for limit in [Limit::Turns, Limit::Steps, Limit::Tokens, Limit::Spend, Limit::Duration] {
            let budget = Budget::default();
            assert_eq!(budget.exceeded(&next(u64::MAX)), None);
            budget.set(limit, 0.0);
            let next = Next { is_first: true, tokens: 1, spend: Spend::of_dollars(1.0), ..Next::default() };
            assert_eq!(budget.exceeded(&next).map(|found| found.limit), Some(limit));
        }
    }
}
