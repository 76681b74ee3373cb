//! The oracle of the engine: the automata of the `regex` crate, on the whole text, with a limit where a search can
//! end while it still sees what follows.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, meta};

/// One pattern, in Rust's own dialect. No match of it begins or ends within a character.
pub(crate) struct Judge {
    any: meta::Regex,
    longest: PikeVM,
}

impl Judge {
    pub(crate) fn new(pattern: &str) -> Self {
        let syntax = syntax::Config::new().utf8(false);
        let any = meta::Regex::builder().syntax(syntax).configure(meta::Config::new().utf8_empty(true)).build(pattern);
        let thompson = regex_automata::nfa::thompson::Config::new().utf8(false);
        let config = PikeVM::config().match_kind(MatchKind::All);
        let longest = PikeVM::builder().configure(config).syntax(syntax).thompson(thompson).build(pattern).unwrap();
        Self { any: any.unwrap(), longest }
    }

    /// The smallest end of any match.
    pub(crate) fn first_end(&self, text: &[u8]) -> Option<usize> {
        // Not `is_match`: it stops at the first match state it sees, and where that is the empty match of a `\B` inside a
        // character, it skips a longer match that began before the character.
        let ends_by = |end: usize| self.any.search_half(&Input::new(text).span(0..end)).is_some();
        if !ends_by(text.len()) {
            return None;
        }
        // Who has a match that ends by a place has one that ends by any later place.
        let (mut none, mut some) = (0, text.len());
        while none < some {
            let middle = none.midpoint(some);
            if ends_by(middle) {
                some = middle;
            } else {
                none = middle + 1;
            }
        }
        Some(some)
    }

    /// The smallest start of any match that has bytes.
    pub(crate) fn first_start(&self, text: &[u8]) -> Option<usize> {
        let mut cache = self.longest.create_cache();
        (0..text.len()).find(|start| {
            let input = Input::new(text).span(*start..text.len()).anchored(Anchored::Yes);
            self.longest.find_iter(&mut cache, input).next().is_some_and(|found| found.end() > *start)
        })
    }

    /// Whether a match begins at `start` and ends at `end`, however far others reach.
    pub(crate) fn reaches(&self, text: &[u8], start: usize, end: usize) -> bool {
        let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
        self.longest.find_iter(&mut self.longest.create_cache(), input).next().is_some_and(|found| found.end() == end)
    }

    /// Whether `start..end` is a match.
    pub(crate) fn is_match_at(&self, text: &[u8], start: usize, end: usize) -> bool {
        self.any.search_half(&Input::new(text).span(start..end).anchored(Anchored::Yes)).is_some()
    }
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// The number of random cases: as usual, or `TIDEGATE_TIMES` as many, as in the night.
pub(crate) fn cases(usual: usize) -> usize {
    usual * std::env::var("TIDEGATE_TIMES").map_or(1, |times| times.parse().unwrap())
}
