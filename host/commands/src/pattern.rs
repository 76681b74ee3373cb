//! Patterns of permissions, held against commands of which some parts are only known when they run.
//!
//! A pattern becomes a deterministic automaton. Known text moves it from one state to the next; a part that can be anything moves it to every
//! state that can be reached from there. Where all states that are left accept, the pattern matches whatever the unknown parts are; where some
//! do, it can match.

use std::collections::BTreeSet;

use globset::GlobBuilder;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};

/// The most bytes of an automaton, and of what making it takes: enough for the patterns of people.
const MAX_BYTES: usize = 1 << 20;

/// Whether a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// It does not, whatever the parts are that are only known when the command runs.
    No,
    /// It depends on what is only known when the command runs.
    Maybe,
    /// It does, whatever they are.
    Yes,
}

/// A part of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// Any text, or none.
    Any,
}

/// A pattern of a permission of `shell`.
pub struct Pattern {
    glob: String,
    automaton: dense::DFA<Vec<u32>>,
    /// The text before the first wildcard, without escapes.
    start: String,
    /// It has no wildcard.
    is_exact: bool,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pattern").field("glob", &self.glob).finish_non_exhaustive()
    }
}

impl Pattern {
    /// Compiles a glob.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn compile(glob: &str) -> Result<Self, String> {
        flow::text::check_glob(glob)?;
        let built = GlobBuilder::new(glob).build().map_err(|error| error.kind().to_string())?;
        let config = dense::Config::new()
            .start_kind(regex_automata::dfa::StartKind::Anchored)
            .dfa_size_limit(Some(MAX_BYTES))
            .determinize_size_limit(Some(MAX_BYTES));
        let automaton = dense::Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().utf8(false).dot_matches_new_line(true))
            .thompson(thompson::Config::new().utf8(false))
            .build(built.regex())
            .map_err(|_| "it has too many wildcards".to_owned())?;
        let (start, is_exact) = literal_start(glob);
        Ok(Self { glob: glob.to_owned(), automaton, start, is_exact })
    }

    /// As it is written.
    pub(crate) fn glob(&self) -> &str {
        &self.glob
    }

    /// The text before the first wildcard.
    pub(crate) fn start(&self) -> &str {
        &self.start
    }

    /// Whether it is this very text.
    pub(crate) fn is_exactly(&self, text: &str) -> bool {
        self.is_exact && self.start == text
    }

    /// Whether it matches what these pieces are together.
    pub(crate) fn matches<'a>(&self, pieces: impl IntoIterator<Item = Piece<'a>>) -> Match {
        let config = start::Config::new().anchored(regex_automata::Anchored::Yes);
        // It fails only for automata with assertions about what is before the text, which a glob has none of.
        let Ok(first) = self.automaton.start_state(&config) else { return Match::Maybe };
        let mut states = BTreeSet::from([first]);
        for piece in pieces {
            match piece {
                Piece::Text(text) => states = self.after(states, text.as_bytes()),
                Piece::Any => self.reach(&mut states),
            }
        }
        let accepts = |state: &StateID| self.automaton.is_match_state(self.automaton.next_eoi_state(*state));
        let accepting = states.iter().filter(|state| accepts(state)).count();
        match accepting {
            0 => Match::No,
            all if all == states.len() => Match::Yes,
            _ => Match::Maybe,
        }
    }

    fn after(&self, states: BTreeSet<StateID>, text: &[u8]) -> BTreeSet<StateID> {
        let step = |state: StateID| text.iter().fold(state, |state, byte| self.automaton.next_state(state, *byte));
        states.into_iter().map(step).collect()
    }

    /// Adds all states that can be reached.
    fn reach(&self, states: &mut BTreeSet<StateID>) {
        let mut new: Vec<StateID> = states.iter().copied().collect();
        while let Some(state) = new.pop() {
            let next = (0..=u8::MAX).map(|byte| self.automaton.next_state(state, byte));
            new.extend(next.filter(|next| states.insert(*next)).collect::<Vec<_>>());
        }
    }
}

/// The text of a glob before its first wildcard, and whether that is all of it.
fn literal_start(glob: &str) -> (String, bool) {
    let (mut start, mut rest) = (String::new(), glob.chars());
    while let Some(c) = rest.next() {
        match c {
            '\\' => start.extend(rest.next()),
            // A class of one character is how `globset::escape` writes it.
            '[' => match (rest.next(), rest.next()) {
                (Some(only), Some(']')) if !matches!(only, '!' | '^') => start.push(only),
                _ => return (start, false),
            },
            '*' | '?' | '{' => return (start, false),
            _ => start.push(c),
        }
    }
    (start, true)
}
