//! Side requests, such as for a title: nothing of them is stored, but a client can continue one, because the first turn of a conversation without
//! tools looks the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Heritage;

/// The maximum number of them in memory; beyond it, the oldest one is dropped.
const MOST: usize = 256;

/// The time after which one is dropped.
const AGE: Duration = Duration::from_secs(10 * 60);

/// The latest ones, the oldest first.
pub(super) struct SideRequests<D = Heritage> {
    all: VecDeque<SideRequest<D>>,
    /// The maximum of their total size, in bytes.
    most_bytes: usize,
}

struct SideRequest<D> {
    /// The point behind its answer.
    point: String,
    data: D,
    since: Instant,
    size: Counted,
}

/// A number of bytes that is part of a total until this is dropped.
pub(super) struct Counted {
    total: Arc<AtomicUsize>,
    bytes: usize,
}

impl Counted {
    pub(super) fn new(total: &Arc<AtomicUsize>, bytes: usize) -> Self {
        total.fetch_add(bytes, Ordering::Relaxed);
        Self { total: Arc::clone(total), bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl SideRequests {
    /// Adds one whose answer is complete.
    pub(super) fn insert(&mut self, point: String, data: Heritage, size: Counted) {
        self.add(point, data, size, Instant::now());
    }

    /// Drops those that are too old.
    pub(super) fn drop_expired(&mut self) {
        self.drop_old(Instant::now());
    }

    /// Returns the one behind whose answer this point is.
    pub(super) fn get(&mut self, point: &str) -> Option<Heritage> {
        self.find(point, Instant::now())
    }
}

impl<D: Clone> SideRequests<D> {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { all: VecDeque::new(), most_bytes }
    }

    fn add(&mut self, point: String, data: D, size: Counted, since: Instant) {
        self.drop_old(since);
        self.all.push_back(SideRequest { point, data, since, size });
        while self.all.len() > MOST || self.bytes() > self.most_bytes {
            self.all.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.all.iter().map(|request| request.size.bytes).sum()
    }

    fn find(&mut self, point: &str, now: Instant) -> Option<D> {
        self.drop_old(now);
        self.all.iter().rev().find(|request| request.point == point).map(|request| request.data.clone())
    }

    fn drop_old(&mut self, now: Instant) {
        let old = self.all.partition_point(|request| now.saturating_duration_since(request.since) > AGE);
        self.all.drain(..old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_for_a_while() {
        let (mut side_requests, total) = (SideRequests::new(1000), Arc::default());
        let begin = Instant::now();
        for number in 0..=MOST {
            side_requests.add(number.to_string(), number, Counted::new(&total, 1), begin);
        }
        side_requests.add("1".to_owned(), 1000, Counted::new(&total, 1), begin + AGE / 2);
        for (point, after, found) in [
            ("0", 0, None),
            ("1", 0, Some(1000)),
            ("3", 2, Some(3)),
            ("3", 3, None),
            ("1", 3, Some(1000)),
            ("1", 4, None),
        ] {
            assert_eq!(side_requests.find(point, begin + AGE / 2 * after), found, "{point} {after}");
        }
    }

    #[test]
    fn they_are_as_large_as_the_limit_says() {
        let (mut side_requests, total) = (SideRequests::new(100), Arc::default());
        let now = Instant::now();
        for (number, bytes, remain, sum) in [(1, 40, 1, 40), (2, 50, 2, 90), (3, 30, 2, 80), (4, 101, 0, 0)] {
            side_requests.add(number.to_string(), number, Counted::new(&total, bytes), now);
            assert_eq!((side_requests.all.len(), total.load(Ordering::Relaxed)), (remain, sum), "{number}");
        }
    }
}
