//! Work on many items, divided over the cores: compiling the conditions of hundreds of rules takes tens of milliseconds, and the first turn
//! waits for it.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Fewer items are not worth a thread.
const LEAST: usize = 16;

/// Applies `each` to the items; the results are in their order. Where the system gives no thread, this one does it all.
pub(super) fn map<T: Send, R: Send>(items: Vec<T>, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len() / LEAST);
    let (waiting, done) = (Mutex::new(items.into_iter().enumerate()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((at, item)) = next() {
            let result = each(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 15, 16, 33, 1_000] {
            let squares: Vec<usize> = (0..count).map(|at| at * at).collect();
            assert_eq!(map((0..count).collect(), |at: usize| at * at), squares, "{count}");
        }
    }
}
