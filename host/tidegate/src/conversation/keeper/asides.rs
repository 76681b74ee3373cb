//! Questions that were answered next to the conversations: nothing of them is stored, but a client can continue one, because it is the first turn
//! of a conversation without tools.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Conversation;

/// The maximum number of them in memory; beyond it, the oldest one is dropped.
const MOST: usize = 256;

/// The time after which one is dropped.
const AGE: Duration = Duration::from_secs(10 * 60);

/// The latest ones, each with the point behind its answer, the oldest first.
pub(super) struct Asides<C = Conversation>(VecDeque<(String, C, Instant)>);

impl<C> Default for Asides<C> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl Asides {
    /// Adds one whose answer is complete.
    pub(super) fn insert(&mut self, point: String, conversation: Conversation) {
        conversation.release_instances();
        self.add(point, conversation, Instant::now());
    }

    /// Returns the one behind whose answer this point is.
    pub(super) fn get(&mut self, point: &str) -> Option<Conversation> {
        self.find(point, Instant::now())
    }
}

impl<C: Clone> Asides<C> {
    fn add(&mut self, point: String, conversation: C, now: Instant) {
        self.drop_old(now);
        self.0.push_back((point, conversation, now));
        let over = self.0.len().saturating_sub(MOST);
        self.0.drain(..over);
    }

    fn find(&mut self, point: &str, now: Instant) -> Option<C> {
        self.drop_old(now);
        self.0.iter().rev().find(|(own, ..)| own == point).map(|(_, conversation, _)| conversation.clone())
    }

    fn drop_old(&mut self, now: Instant) {
        let old = self.0.partition_point(|(.., since)| now.saturating_duration_since(*since) > AGE);
        self.0.drain(..old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_for_a_while() {
        let mut asides = Asides::default();
        let begin = Instant::now();
        for number in 0..=MOST {
            asides.add(number.to_string(), number, begin);
        }
        asides.add("1".to_owned(), 1000, begin + AGE / 2);
        for (point, after, found) in [
            ("0", 0, None),
            ("1", 0, Some(1000)),
            ("3", 2, Some(3)),
            ("3", 3, None),
            ("1", 3, Some(1000)),
            ("1", 4, None),
        ] {
            assert_eq!(asides.find(point, begin + AGE / 2 * after), found, "{point} {after}");
        }
    }
}
