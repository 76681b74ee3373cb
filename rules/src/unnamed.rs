//! Commands of which the name is only known when they run, and whether a rule about commands can be about one.
//!
//! A rule is about such a command if, with some name, the line of the command matches a condition of it. Of a name of which nothing is
//! known that has to be because of the words after it: a condition that any words fulfil, such as `^rm `, says nothing about `$x y`.
//!
//! Whether a line matches is reachability in the product of the condition's NFA and the lines that the command can have.

use std::cell::Cell;
use std::collections::HashSet;

use commands::{NamePart, Unnamed};

use crate::Rule;
use crate::engine::{Context, Nfa, NfaState, Pattern, holds};

/// The most states of the products that are visited for one call, by all rules together; beyond, a rule counts as being about a command.
pub(crate) const BUDGET: usize = 1_000_000;

/// A word that no rule looks for.
const NEUTRAL: &str = "\u{2423}";

impl Rule {
    /// The first of these commands that its conditions can be about, with the other commands of the line in `list`.
    pub(crate) fn could_mean<'u>(
        &self,
        unnamed: &'u [Unnamed],
        list: &str,
        budget: &Cell<usize>,
    ) -> Option<&'u Unnamed> {
        if unnamed.is_empty() || self.unless.iter().any(|pattern| pattern.is_in(list)) {
            return None;
        }
        let about = |pattern: &Pattern| unnamed.iter().find(|one| self.is_about(pattern, one, budget));
        let first = self.conditions.iter().find_map(|pattern| about(pattern));
        let of_all: Vec<Option<&Unnamed>> = self.all.iter().map(|pattern| about(pattern)).collect();
        let is_met =
            |(pattern, about): (&std::sync::Arc<Pattern>, &Option<&Unnamed>)| about.is_some() || pattern.is_in(list);
        let has_condition =
            first.is_some() || self.conditions.is_empty() || self.conditions.iter().any(|one| one.is_in(list));
        let is_all = has_condition && self.all.iter().zip(&of_all).all(is_met);
        first.or(of_all.into_iter().flatten().next()).filter(|_| is_all)
    }

    fn is_about(&self, pattern: &Pattern, unnamed: &Unnamed, budget: &Cell<usize>) -> bool {
        let fold = |text: &str| self.fold.text(text).into_owned();
        let words: Vec<String> = unnamed.arguments.iter().map(|word| fold(word)).collect();
        let can_be = |name: &[NamePart], words: &[String]| can_match(pattern.nfa(), &Lines::of(name, words), budget);
        if unnamed.has_known_part() {
            return can_be(&unnamed.name, &words) != Some(false);
        }
        let neutral = vec![NEUTRAL.to_owned(); words.len()];
        !words.is_empty()
            && can_be(&unnamed.name, &words) != Some(false)
            && can_be(&unnamed.name, &neutral) != Some(true)
    }
}

/// A step of a line.
#[derive(Clone, Copy)]
enum Step {
    Byte(u8),
    /// Any bytes of a word, or none.
    Word,
}

/// The lines that a command can have.
struct Lines(Vec<Step>);

impl Lines {
    fn of(name: &[NamePart], words: &[String]) -> Self {
        let mut steps = Vec::new();
        for part in name {
            match part {
                NamePart::Text(text) => steps.extend(text.bytes().map(Step::Byte)),
                NamePart::Any => steps.push(Step::Word),
            }
        }
        for word in words {
            steps.extend([b' '].into_iter().chain(word.bytes()).map(Step::Byte));
        }
        steps.push(Step::Byte(b'\n'));
        Self(steps)
    }

    /// The bytes that can be next at a position, each with the position after it; no byte: the end.
    fn next(&self, at: usize, any: &[u8]) -> Vec<(Option<u8>, usize)> {
        match self.0.get(at) {
            None => vec![(None, at)],
            Some(Step::Byte(byte)) => vec![(Some(*byte), at + 1)],
            Some(Step::Word) => any.iter().map(|byte| (Some(*byte), at)).chain(self.next(at + 1, any)).collect(),
        }
    }
}

/// Whether the condition matches one of the lines; `None`: that takes too much to find out.
fn can_match(nfa: &Nfa, lines: &Lines, budget: &Cell<usize>) -> Option<bool> {
    // One byte of each class that the condition and its assertions distinguish.
    let is_end =
        |byte: u8| byte == u8::MAX || Context::after(byte) != Context::after(byte + 1) || nfa.ends.is_end(byte);
    let any: Vec<u8> = (0x21..=u8::MAX).filter(|byte| is_end(*byte) || *byte == 0x7f).collect();
    let mut seen = HashSet::new();
    let mut places = vec![(0, Context::Start, None), (0, Context::Lf, None)];
    while let Some(place) = places.pop() {
        if !seen.insert(place) {
            continue;
        }
        budget.set(budget.get().checked_sub(1)?);
        let (at, context, state) = place;
        for (byte, to) in lines.next(at, &any) {
            let Some(live) = close(nfa, state.unwrap_or(nfa.start), |look| holds(look, context, byte)) else {
                return Some(true);
            };
            let Some(byte) = byte else { continue };
            let context = Context::after(byte);
            let targets = live.iter().flat_map(|live| nfa.targets(*live, byte));
            places.extend(targets.map(|target| (to, context, Some(target))));
            // A match can begin later.
            if state.is_none() {
                places.push((to, context, None));
            }
        }
    }
    Some(false)
}

/// The states that consume bytes in the epsilon closure of a state; `None`: the condition has matched.
fn close(nfa: &Nfa, state: u32, allows: impl Fn(regex_syntax::hir::Look) -> bool) -> Option<Vec<u32>> {
    let (mut seen, mut live, mut stack) = (HashSet::new(), Vec::new(), vec![state]);
    while let Some(state) = stack.pop() {
        if !seen.insert(state) {
            continue;
        }
        match nfa.states[state as usize] {
            NfaState::ByteRange { .. } | NfaState::Sparse { .. } => live.push(state),
            NfaState::Union(one, other) => stack.extend([other, one]),
            NfaState::Cut(to) => stack.push(to),
            NfaState::Look(look, to) if allows(look) => stack.push(to),
            NfaState::Look(..) => {}
            NfaState::Match => return None,
        }
    }
    Some(live)
}
