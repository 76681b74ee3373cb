//! The ways to misbehave. Each is kept from the optimiser, which would see through an endless loop that does nothing.

use std::hint::black_box;

/// Loops without end.
pub fn spin() -> ! {
    let mut turns = 0u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Works for `millions` of turns of a loop, then returns.
pub fn work(millions: u64) {
    for turn in 0..millions.saturating_mul(1_000_000) {
        black_box(turn);
    }
}

/// Calls itself until the stack is used up.
#[expect(unconditional_recursion, reason = "that is the damage")]
pub fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    black_box(recurse(depth + 1)) + frame[(depth % 16) as usize]
}

/// Takes `mebibytes` of memory and writes to each page of it.
pub fn take(mebibytes: usize) -> Vec<u8> {
    let mut memory = vec![0u8; mebibytes << 20];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(memory)
}

/// Takes memory until there is none.
pub fn take_all() -> ! {
    let mut taken = Vec::new();
    loop {
        taken.push(take(1));
        black_box(&taken);
    }
}
