//! One condition, ready to run: its states, the bytes that a match can start with, and the start of a match.

use std::sync::{Arc, OnceLock};

use regex_syntax::hir::{Hir, Look};

use super::automaton::Automaton;
use super::compile::{self, Lead, MAX_STATES};
use super::cursor::Cursor;
use super::look::{Context, holds, looks_behind_only};
use super::nfa::{Nfa, NfaState, UNBOUNDED};
use crate::dialect::{self, PatternError};
use crate::fold::Fold;

/// What follows the position in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Not known yet: assertions that depend on it fail.
    Unseen,
    /// The next byte of the stream.
    Byte(u8),
    /// The end of the stream.
    End,
}

impl Next {
    fn allows(self, look: Look, before: Context) -> bool {
        match self {
            Self::Unseen => looks_behind_only(look) && holds(look, before, None),
            Self::Byte(byte) => holds(look, before, Some(byte)),
            Self::End => holds(look, before, None),
        }
    }
}

/// One condition, to be run on UTF-8 text.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    /// What the stream is folded by before it is run.
    fold: Fold,
    compiled: OnceLock<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    nfa: Nfa,
    lead: Option<Lead>,
    first_bytes: FirstBytes,
}

/// How a pattern begins.
#[derive(Debug, Default)]
pub(crate) struct FirstBytes {
    /// The bytes that a match can start with, ignoring assertions: one bit each.
    bytes: [u64; 4],
    /// It can match the empty string where its assertions hold.
    asserts_only: bool,
    /// It matches the empty string everywhere, without an assertion.
    empty: bool,
}

impl Pattern {
    /// Compiles a condition of the rules' dialect.
    ///
    /// # Errors
    /// The condition is not valid, uses look-around or backreferences, or is too large.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Ok(Self { text: text.to_owned(), fold: Fold::default(), compiled: OnceLock::from(Compiled::of(text)?) })
    }

    /// The same for text that is folded.
    ///
    /// # Errors
    /// The folded condition is too large.
    pub(crate) fn folded(self, fold: Fold) -> Result<Self, PatternError> {
        if fold.is_none() {
            return Ok(self);
        }
        let whole = |error: PatternError| PatternError { span: 0..self.text.len(), ..error };
        let compiled = Compiled::of(&fold.condition(&self.text)).map_err(whole)?;
        Ok(Self { text: self.text, fold, compiled: OnceLock::from(compiled) })
    }

    /// A condition that is known to be valid, which is compiled when it is first used. A condition that is not valid after all
    /// matches everywhere: a rule that fires without cause is noticed, one that never fires is not.
    pub(crate) fn trusted(text: &str, fold: Fold) -> Self {
        Self { text: text.to_owned(), fold, compiled: OnceLock::new() }
    }

    /// The lead of other patterns as a pattern that never matches: its states determine how far back their matches reach.
    pub(crate) fn of_lead(lead: &Lead) -> Self {
        let nfa = lead.compile().unwrap_or_default();
        let compiled = Compiled { first_bytes: FirstBytes::of(&nfa), nfa, lead: None };
        Self { text: String::new(), fold: Fold::default(), compiled: OnceLock::from(compiled) }
    }

    /// Its lead: optional repetitions at its start, which a search does not need (see `split`).
    pub(crate) fn lead(&self) -> Option<&Lead> {
        self.compiled().lead.as_ref()
    }

    fn compiled(&self) -> &Compiled {
        let of_text = || match self.fold.is_none() {
            true => Compiled::of(&self.text),
            false => Compiled::of(&self.fold.condition(&self.text)),
        };
        self.compiled.get_or_init(|| of_text().unwrap_or_else(|_| Compiled::everywhere()))
    }

    pub(crate) fn nfa(&self) -> &Nfa {
        &self.compiled().nfa
    }

    pub(crate) fn first_bytes(&self) -> &FirstBytes {
        &self.compiled().first_bytes
    }

    /// The condition as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The maximum length of a match in bytes; `None` if there is no bound.
    pub fn max_len(&self) -> Option<u32> {
        (self.nfa().max_len != UNBOUNDED).then_some(self.nfa().max_len)
    }

    /// The maximum number of bytes that a match has from its group `hide` on, which are those that are held back; `None` if there is no
    /// bound. Without the group it is [`max_len`](Self::max_len).
    pub fn max_hidden(&self) -> Option<u32> {
        (self.nfa().max_hidden != UNBOUNDED).then_some(self.nfa().max_hidden)
    }

    /// Whether it has a group `hide`, before which a match is shown.
    pub fn has_shown_part(&self) -> bool {
        !self.nfa().shown.is_empty()
    }

    /// The number of its NFA states; at most 10,000.
    pub fn states(&self) -> usize {
        self.nfa().states.len()
    }

    /// Whether it matches the empty string everywhere, without an assertion.
    pub fn matches_empty(&self) -> bool {
        self.first_bytes().empty
    }

    /// Whether it matches the empty string somewhere because an assertion holds there: `^`, `$`, `\b`. A match in an
    /// empty block does not count.
    pub fn matches_no_bytes(&self) -> bool {
        self.first_bytes().asserts_only && FirstBytes::somewhere(self.nfa())
    }

    /// Whether it matches anywhere in a text. It makes an automaton for this alone: for a text that is looked at once.
    pub fn is_in(self: &Arc<Self>, text: &str) -> bool {
        let text = self.fold.text(text);
        let automaton = Automaton::new(vec![Arc::clone(self)]);
        let (mut cursor, mut is_found) = (Cursor::new(&automaton), self.matches_empty());
        let mut found = |_| {
            is_found = true;
            true
        };
        cursor.feed(text.as_bytes(), &mut found);
        cursor.finish(&mut found);
        is_found
    }

    /// The first start of a match that ends where `window` ends; `before` is the context before the window, `next` is
    /// what follows it. Returns `None` if the match started before the window.
    pub(crate) fn start_of_match(&self, window: &[u8], before: Context, next: Next) -> Option<usize> {
        self.earliest(window, before, next, |_| false)
    }

    /// The first place at which the group `hide` of a match that ends where `window` ends can begin; without the group the start of the
    /// match.
    pub(crate) fn start_of_hidden(&self, window: &[u8], before: Context, next: Next) -> Option<usize> {
        self.earliest(window, before, next, |state| self.nfa().is_shown(state))
    }

    /// The first place from which a match that ends where `window` ends leads through states that count.
    fn earliest(&self, window: &[u8], before: Context, next: Next, is_shown: impl Fn(u32) -> bool) -> Option<usize> {
        let (nfa, end) = (self.nfa(), window.len());
        // Threads are kept in order of their places, so the first that reaches a state is the earliest.
        let mut closure = EpsilonClosure { nfa, seen: vec![usize::MAX; nfa.states.len()], stack: Vec::new() };
        let (mut threads, mut arrived) = (Vec::new(), Vec::new());
        let first = self.max_len().map_or(0, |max| end.saturating_sub(max as usize));
        for at in first..=end {
            let context = if at == 0 { before } else { Context::after(window[at - 1]) };
            let next = window.get(at).map_or(next, |byte| Next::Byte(*byte));
            threads.clear();
            arrived.push((nfa.start, at));
            let mut matched = None;
            for (state, start) in arrived.drain(..) {
                let ends =
                    closure.close(state, at, |look| next.allows(look, context), |state| threads.push((state, start)));
                matched = matched.or(ends.then_some(start));
            }
            if at == end {
                return matched;
            }
            for &(state, start) in &threads {
                let place = if is_shown(state) { at + 1 } else { start };
                arrived.extend(nfa.targets(state, window[at]).map(|to| (to, place)));
            }
            arrived.sort_by_key(|(_, place)| *place);
        }
        None
    }
}

impl Compiled {
    fn of(text: &str) -> Result<Self, PatternError> {
        let hir = dialect::parse(text)?;
        let nfa = compile::compile(&hir).map_err(|_| PatternError {
            message: format!("the condition is too large: it has more than {MAX_STATES} states"),
            help: Some("use smaller counts in `{…}` or split the condition".into()),
            span: 0..text.len(),
        })?;
        Ok(Self { first_bytes: FirstBytes::of(&nfa), lead: Lead::of(&hir, &nfa), nfa })
    }

    fn everywhere() -> Self {
        let nfa = compile::compile(&Hir::empty()).unwrap_or_default();
        Self { first_bytes: FirstBytes::of(&nfa), nfa, lead: None }
    }
}

impl FirstBytes {
    fn of(nfa: &Nfa) -> Self {
        let mut out = Self::default();
        let mut closure = EpsilonClosure { nfa, seen: vec![usize::MAX; nfa.states.len()], stack: Vec::new() };
        out.empty = closure.close(nfa.search_start, 0, |_| false, |_| {});
        out.asserts_only = closure.close(
            nfa.search_start,
            1,
            |_| true,
            |state| {
                for (low, high, _) in nfa.ranges_of(state) {
                    (low..=high).for_each(|byte| out.bytes[usize::from(byte >> 6)] |= 1 << (byte & 63));
                }
            },
        );
        out
    }

    /// Whether the NFA matches the empty string at some position of a text that is not empty.
    fn somewhere(nfa: &Nfa) -> bool {
        let mut closure = EpsilonClosure { nfa, seen: vec![usize::MAX; nfa.states.len()], stack: Vec::new() };
        let next = [None, Some(b'\n'), Some(b'\r'), Some(b'a'), Some(b' ')];
        let places = Context::ALL.into_iter().flat_map(|before| next.map(|next| (before, next)));
        places
            .filter(|place| *place != (Context::Start, None))
            .enumerate()
            .any(|(round, (before, next))| closure.close(nfa.start, round, |look| holds(look, before, next), |_| {}))
    }

    /// Whether a match can start at a position that `next` follows; no byte = the end of the stream.
    pub(crate) fn allows(&self, next: Option<u8>) -> bool {
        self.asserts_only || next.is_some_and(|byte| self.bytes[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1)
    }
}

/// Computes epsilon closures; each state is visited once per round.
struct EpsilonClosure<'a> {
    nfa: &'a Nfa,
    seen: Vec<usize>,
    stack: Vec<u32>,
}

impl EpsilonClosure<'_> {
    /// Adds the byte-consuming states in the epsilon closure of `state`; returns whether the pattern has matched.
    fn close(&mut self, state: u32, round: usize, allows: impl Fn(Look) -> bool, mut takes: impl FnMut(u32)) -> bool {
        let mut matched = false;
        self.stack.push(state);
        while let Some(state) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[state as usize], round) == round {
                continue;
            }
            match self.nfa.states[state as usize] {
                NfaState::ByteRange { .. } | NfaState::Sparse { .. } => takes(state),
                NfaState::Union(one, other) => self.stack.extend([other, one]),
                NfaState::Look(look, to) if allows(look) => self.stack.push(to),
                NfaState::Look(..) => {}
                NfaState::Cut(to) => self.stack.push(to),
                NfaState::Match => matched = true,
            }
        }
        matched
    }
}
