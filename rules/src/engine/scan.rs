//! The fast loop: one look into the transition table for each byte and part.

use std::sync::atomic::AtomicU32;

use super::cache::{QUIET, Transitions, line_of, load};
use super::part_cursor::PartCursor;

/// Takes bytes as long as all transitions are known and lead to quiet states, and returns how many it took. `lookback` is one
/// more than the maximum number of bytes ago at which a live match of a held pattern started.
// Not inlined: this leaves all registers to the loop, which saves more than the call costs.
#[inline(never)]
pub(crate) fn scan<const N: usize>(mut parts: [&mut PartCursor; N], bytes: &[u8], lookback: &mut u32) -> usize {
    let tables: [Transitions<'_>; N] = std::array::from_fn(|at| parts[at].transitions());
    // As `usize` each has a register of its own: two of 32 bits would share one, and wait for each other.
    let (mut states, mut passed): ([usize; N], usize) = (std::array::from_fn(|at| parts[at].state as usize), 0);
    let limits: [Option<&[AtomicU32]>; N] = std::array::from_fn(|at| parts[at].limits());
    if limits.iter().all(Option::is_some) {
        let (mut back, limits) = (*lookback, limits.map(Option::unwrap_or_default));
        'bytes: for byte in bytes {
            let (mut next, mut greatest) = ([0; N], 0);
            for at in 0..N {
                let Some(transition) = tables[at].next(states[at], *byte) else { break 'bytes };
                // Not on the dependency chain from transition to transition, which determines the time. The limit of
                // states that are not quiet is 0.
                let Some(limit) = load(limits[at], line_of(transition)) else { break 'bytes };
                if limit == 0 {
                    break 'bytes;
                }
                (next[at], greatest) = (transition as usize, greatest.max(limit));
            }
            (states, back, passed) = (next, (back + 1).min(greatest), passed + 1);
        }
        *lookback = back;
    } else {
        'bytes: for byte in bytes {
            let mut next = [0; N];
            for at in 0..N {
                let Some(transition) = tables[at].next(states[at], *byte) else { break 'bytes };
                if transition & QUIET == 0 {
                    break 'bytes;
                }
                next[at] = transition as usize;
            }
            (states, passed) = (next, passed + 1);
        }
    }
    for (part, state) in parts.iter_mut().zip(states) {
        // It was loaded from a transition.
        part.state = state as u32;
    }
    passed
}
