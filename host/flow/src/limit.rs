//! Limits of a thread: what it may take, what was spent, and the request to raise a limit.

use std::fmt;
use std::time::Duration;

use crate::{Limit, Usage};

/// The limits of a thread, over all its turns and processes; `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Turns, however they end.
    pub turns: Option<u64>,
    /// Steps of all turns.
    pub steps: Option<u64>,
    /// Tokens of prompts and answers, of all attempts, as far as the provider counts them.
    pub tokens: Option<u64>,
    /// Money for requests to models.
    pub spend: Option<Spend>,
    /// Child threads that it starts.
    pub spawns: Option<u64>,
    /// How deep threads are nested: 1 permits children, but no children of these.
    pub depth: Option<u64>,
    /// The time of its turns, without the time in which a decision about a limit was waited for.
    pub duration: Option<Duration>,
}

impl Limits {
    /// Returns a limit as the number that events have: seconds for a duration, US dollars for money.
    pub fn value(&self, limit: Limit) -> Option<f64> {
        match limit {
            Limit::Turns => self.turns.map(number),
            Limit::Steps => self.steps.map(number),
            Limit::Tokens => self.tokens.map(number),
            Limit::Spend => self.spend.map(Spend::dollars),
            Limit::Spawns => self.spawns.map(number),
            Limit::Depth => self.depth.map(number),
            Limit::Duration => self.duration.map(|time| time.as_secs_f64()),
        }
    }

    /// Replaces a limit by a number as events have it. A fraction of what is counted in whole numbers is left out.
    pub fn set(&mut self, limit: Limit, value: f64) {
        let whole = value.max(0.0) as u64;
        match limit {
            Limit::Turns => self.turns = Some(whole),
            Limit::Steps => self.steps = Some(whole),
            Limit::Tokens => self.tokens = Some(whole),
            Limit::Spend => self.spend = Some(Spend::of_dollars(value)),
            Limit::Spawns => self.spawns = Some(whole),
            Limit::Depth => self.depth = Some(whole),
            Limit::Duration => {
                self.duration = Some(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX));
            }
        }
    }

    /// Lowers each limit to that of `other`, where that is lower.
    pub fn lower_to(&mut self, other: &Self) {
        fn lower<T: Ord + Copy>(own: &mut Option<T>, other: Option<T>) {
            *own = own.iter().chain(&other).min().copied();
        }
        lower(&mut self.turns, other.turns);
        lower(&mut self.steps, other.steps);
        lower(&mut self.tokens, other.tokens);
        lower(&mut self.spend, other.spend);
        lower(&mut self.spawns, other.spawns);
        lower(&mut self.depth, other.depth);
        lower(&mut self.duration, other.duration);
    }
}

/// Precise enough: counts stay far below 2^53.
fn number(count: u64) -> f64 {
    count as f64
}

/// Money: whole picodollars, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spend(u64);

/// Picodollars of a dollar.
const DOLLAR: f64 = 1e12;

impl Spend {
    /// The amount in US dollars, rounded to whole picodollars. What is negative or not a number is 0.
    pub fn of_dollars(dollars: f64) -> Self {
        Self((dollars * DOLLAR).round() as u64)
    }

    /// The amount in US dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / DOLLAR
    }

    /// The sum, at most the greatest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Spend {
    /// In US dollars, to a hundredth of a cent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} USD", self.dollars())
    }
}

/// What counts for the limits of a thread so far, in all its processes, that of its children included; estimated where a provider did not
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Charged {
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Money for them, as far as prices are known.
    pub spend: Spend,
    /// Child threads that were started.
    pub spawns: u64,
}

/// The prices of a model, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// Of the prompt.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
    /// Of the prompt, read from the provider's cache.
    pub cache_read: f64,
    /// Of the prompt, written to the provider's cache.
    pub cache_write: f64,
}

impl Price {
    /// What these tokens cost. `uncached`: those of the prompt that were neither read from the cache nor written to it; without
    /// their count the cost is unknown.
    ///
    /// ```
    /// use tidegate_flow::{Price, Usage};
    /// let mut price = Price::default();
    /// (price.input, price.output, price.cache_read) = (3.0, 15.0, 0.3);
    /// let usage = Usage { output: Some(1_000), cache_read: Some(10_000), ..Usage::default() };
    /// assert_eq!(price.of(Some(2_000), usage).map(|spend| spend.dollars()), Some(0.024));
    /// assert_eq!(price.of(None, usage), None);
    /// ```
    pub fn of(&self, uncached: Option<u64>, usage: Usage) -> Option<Spend> {
        let cost = |tokens: u64, price: f64| Spend::of_dollars(tokens as f64 * (price / 1e6));
        let parts = [
            cost(uncached?, self.input),
            cost(usage.output?, self.output),
            cost(usage.cache_read.unwrap_or(0), self.cache_read),
            cost(usage.cache_write.unwrap_or(0), self.cache_write),
        ];
        Some(parts.into_iter().fold(Spend::default(), Spend::plus))
    }

    /// The least that a prompt of so many tokens costs.
    pub fn of_prompt(&self, tokens: u64) -> Spend {
        let least = if self.cache_read > 0.0 { self.cache_read.min(self.input) } else { self.input };
        Spend::of_dollars(tokens as f64 * (least / 1e6))
    }
}

/// A thread would exceed a limit, and asks whether it may.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LimitRequest {
    /// Its id, unique in the thread.
    pub id: String,
    /// Which limit it is about.
    pub limit: Limit,
    /// What is spent: a count, US dollars or seconds.
    pub current: f64,
    /// The limit so far.
    pub max: f64,
    /// The limit that an approval without another one sets.
    pub proposed: f64,
    /// All of it in one sentence.
    pub message: String,
}

impl LimitRequest {
    /// The request number `number` of a thread.
    pub fn new(number: u64, limit: Limit, current: f64, max: f64, proposed: f64) -> Self {
        let id = format!("limit-{number}");
        let [now, most, next] = [current, max, proposed].map(|value| limit.amount(value));
        let message = format!(
            "the session would exceed its limit `{limit}` of {most}: {now} spent; an approval raises it to {next}"
        );
        Self { id, limit, current, max, proposed, message }
    }
}

/// What was decided about a [`LimitRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum LimitDecision {
    /// The limit is raised.
    Approved {
        /// The new limit.
        max: f64,
    },
    /// The limit stays.
    Denied {
        /// Why, in the words of the person; can be empty.
        reason: String,
    },
    /// Nobody has decided in time.
    TimedOut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_numbers_of_events_and_back() {
        for limit in Limit::ALL {
            let mut limits = Limits::default();
            assert_eq!(limits.value(*limit), None);
            limits.set(*limit, 3.0);
            assert_eq!(limits.value(*limit), Some(3.0), "{limit}");
        }
    }

    #[test]
    fn the_lower_limit_counts() {
        let limits = |turns, tokens| Limits { turns, tokens, ..Limits::default() };
        let mut own = limits(Some(5), None);
        own.lower_to(&limits(Some(3), Some(10)));
        assert_eq!(own, limits(Some(3), Some(10)));
        own.lower_to(&limits(Some(4), None));
        assert_eq!(own, limits(Some(3), Some(10)));
    }

    #[test]
    fn sums_of_small_amounts_are_exact() {
        let cent = Spend::of_dollars(0.01);
        let sum = (0..100).fold(Spend::default(), |sum, _| sum.plus(cent));
        assert_eq!((sum, Spend::of_dollars(-1.0)), (Spend::of_dollars(1.0), Spend::default()));
    }
}
