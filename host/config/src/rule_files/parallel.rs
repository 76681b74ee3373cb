//! Work on many items, divided over the cores: compiling the conditions of hundreds of rules takes tens of milliseconds, and the first turn
//! waits for it.

use std::num::NonZero;
use std::thread;

/// Fewer items are not worth a thread.
const LEAST: usize = 16;

/// Applies `each` to the items; the results are in their order.
pub(super) fn map<T: Send, R: Send>(items: Vec<T>, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len() / LEAST);
    if threads < 2 {
        return items.into_iter().map(each).collect();
    }
    let (share, each) = (items.len().div_ceil(threads), &each);
    let mut items = items.into_iter();
    let shares: Vec<Vec<T>> = (0..threads).map(|_| items.by_ref().take(share).collect()).collect();
    thread::scope(|scope| {
        let running: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || share.into_iter().map(each).collect::<Vec<R>>()))
            .collect();
        let joined = running.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
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
