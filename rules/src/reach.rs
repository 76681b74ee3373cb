//! Whether a condition, or a rule, can match any text at all.
//!
//! One condition: reachability of its match state over (state, context, next byte), where the next byte counts as far as
//! assertions distinguish it. Several conditions together: a breadth-first search over sets of their live states (the subset
//! construction), which ends at the shortest text on which the rule fires, or at a budget.

use std::collections::{HashSet, VecDeque};

use crate::engine::{Context, Nfa, NfaState, holds, is_word};

/// What can follow a position, as far as assertions distinguish it: the end, a line feed, a carriage return, a word byte, any
/// other byte of ASCII, and a byte inside or at the beginning of another character.
const NEXT: [Option<u8>; 7] = [None, Some(b'\n'), Some(b'\r'), Some(b'a'), Some(b' '), Some(0x80), Some(0xc3)];

/// The states that are visited before the question remains open.
const BUDGET: usize = 60_000;

/// Whether the condition matches some text.
pub(crate) fn can_match(nfa: &Nfa) -> bool {
    let kinds = kinds_up_to();
    let contexts = Context::ALL;
    let node = |state: u32, context: Context, next: usize| {
        (state as usize * contexts.len() + context as usize) * NEXT.len() + next
    };
    let mut seen = vec![false; nfa.states.len() * contexts.len() * NEXT.len()];
    let mut stack: Vec<(u32, Context, usize)> = Vec::new();
    let everywhere = |state: u32, context: Context| (0..NEXT.len()).map(move |next| (state, context, next));
    contexts.iter().for_each(|context| stack.extend(everywhere(nfa.start, *context)));
    while let Some((state, context, next)) = stack.pop() {
        if std::mem::replace(&mut seen[node(state, context, next)], true) {
            continue;
        }
        match nfa.states[state as usize] {
            NfaState::Match => return true,
            NfaState::Union(one, other) => stack.extend([(other, context, next), (one, context, next)]),
            NfaState::Cut(to) => stack.push((to, context, next)),
            NfaState::Look(look, to) if holds(look, context, NEXT[next]) => stack.push((to, context, next)),
            NfaState::Look(..) => {}
            NfaState::ByteRange { .. } | NfaState::Sparse { .. } => {
                let Some(byte) = NEXT[next] else { continue };
                for (low, high, to) in nfa.ranges_of(state) {
                    let count = |end: usize| kinds[next][end];
                    if count(usize::from(high) + 1) > count(usize::from(low)) {
                        stack.extend(everywhere(to, Context::after(byte)));
                    }
                }
            }
        }
    }
    false
}

/// For each kind of byte: how many bytes below a value are of that kind.
fn kinds_up_to() -> [[u16; 257]; NEXT.len()] {
    let mut counts = [[0; 257]; NEXT.len()];
    for byte in 0..=255_u8 {
        let kind = kind(byte);
        for (at, count) in counts.iter_mut().enumerate() {
            count[usize::from(byte) + 1] = count[usize::from(byte)] + u16::from(at == kind);
        }
    }
    counts
}

/// The position of a byte's kind in [`NEXT`].
fn kind(byte: u8) -> usize {
    match byte {
        b'\n' => 1,
        b'\r' => 2,
        0x80..=0xbf => 5,
        0xc0.. => 6,
        _ if is_word(byte) => 3,
        _ => 4,
    }
}

/// Conditions that have to match together.
pub(crate) struct Together<'a> {
    conditions: Vec<(&'a Nfa, Role)>,
    groups: u32,
    budget: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// One of the conditions of this group has to match.
    Wanted(u32),
    /// None of these may have matched by then.
    Unwanted,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    context: Context,
    /// The groups of which a condition has matched.
    done: u32,
    /// Live states: the condition and the state of it.
    live: Vec<(u32, u32)>,
}

impl<'a> Together<'a> {
    /// Of each group of `wanted` one condition has to match, and none of `unwanted` before or at the byte at which the last
    /// one does. `None`: these are more than can be searched.
    pub(crate) fn new(wanted: &[Vec<&'a Nfa>], unwanted: &[&'a Nfa]) -> Option<Self> {
        let groups = u32::try_from(wanted.len()).ok().filter(|groups| *groups < 32)?;
        let all = wanted.iter().zip(0..).flat_map(|(group, at)| group.iter().map(move |nfa| (*nfa, Role::Wanted(at))));
        let conditions = all.chain(unwanted.iter().map(|nfa| (*nfa, Role::Unwanted))).collect();
        Some(Self { conditions, groups, budget: BUDGET })
    }

    /// The same with another budget.
    pub(crate) fn within(self, budget: usize) -> Self {
        Self { budget, ..self }
    }

    /// Whether there is such a text. `None`: it was not found within the budget.
    pub(crate) fn can_match(&self) -> Option<bool> {
        let bytes = self.bytes();
        let start = Place { context: Context::Start, done: 0, live: Vec::new() };
        let (mut seen, mut queue) = (HashSet::from([start.clone()]), VecDeque::from([start]));
        let mut visited = 0_usize;
        while let Some(place) = queue.pop_front() {
            for next in std::iter::once(None).chain(bytes.iter().copied().map(Some)) {
                visited += place.live.len() + self.conditions.len();
                match self.step(&place, next) {
                    Step::Matches => return Some(true),
                    Step::To(to) if !seen.contains(&to) => {
                        seen.insert(to.clone());
                        queue.push_back(to);
                    }
                    Step::To(_) | Step::Nowhere => {}
                }
            }
            if visited > self.budget {
                return None;
            }
        }
        Some(false)
    }

    /// One byte of each class that the conditions and their assertions distinguish.
    fn bytes(&self) -> Vec<u8> {
        let is_end = |byte: u8| {
            byte == u8::MAX
                || kind(byte) != kind(byte + 1)
                || self.conditions.iter().any(|(nfa, _)| nfa.ends.is_end(byte))
        };
        (0..=u8::MAX).filter(|byte| is_end(*byte)).collect()
    }

    fn all_done(&self) -> u32 {
        (1 << self.groups) - 1
    }

    fn step(&self, place: &Place, next: Option<u8>) -> Step {
        let starts = self.conditions.iter().zip(0..).map(|((nfa, _), at)| (at, nfa.start));
        let from: Vec<(u32, u32)> = place.live.iter().copied().chain(starts).collect();
        let allows = |look| holds(look, place.context, next);
        let Some((active, done)) = self.close(&from, place.done, allows) else { return Step::Nowhere };
        if done == self.all_done() {
            return Step::Matches;
        }
        let Some(byte) = next else { return Step::Nowhere };
        let context = Context::after(byte);
        let to = |(at, state): &(u32, u32)| {
            let at = *at;
            self.conditions[at as usize].0.targets(*state, byte).map(move |to| (at, to))
        };
        let mut live: Vec<(u32, u32)> = active.iter().flat_map(to).collect();
        // What the byte itself completes comes before what the next one decides.
        let behind = |look| crate::engine::looks_behind_only(look) && holds(look, context, None);
        let Some((_, done)) = self.close(&live, done, behind) else { return Step::Nowhere };
        if done == self.all_done() {
            return Step::Matches;
        }
        live.retain(|(at, _)| self.is_open(*at, done));
        live.sort_unstable();
        live.dedup();
        Step::To(Place { context, done, live })
    }

    fn is_open(&self, at: u32, done: u32) -> bool {
        match self.conditions[at as usize].1 {
            Role::Wanted(group) => done >> group & 1 == 0,
            Role::Unwanted => true,
        }
    }

    /// The states that consume bytes in the epsilon closure of `from`, and the groups that have matched. `None`: what must not
    /// match has.
    fn close(
        &self,
        from: &[(u32, u32)],
        mut done: u32,
        allows: impl Fn(regex_syntax::hir::Look) -> bool,
    ) -> Option<(Vec<(u32, u32)>, u32)> {
        let (mut seen, mut active, mut stack) = (HashSet::new(), Vec::new(), from.to_vec());
        stack.retain(|(at, _)| self.is_open(*at, done));
        while let Some((at, state)) = stack.pop() {
            if !seen.insert((at, state)) {
                continue;
            }
            let (nfa, role) = self.conditions[at as usize];
            match (nfa.states[state as usize], role) {
                (NfaState::ByteRange { .. } | NfaState::Sparse { .. }, _) => active.push((at, state)),
                (NfaState::Union(one, other), _) => stack.extend([(at, other), (at, one)]),
                (NfaState::Cut(to), _) => stack.push((at, to)),
                (NfaState::Look(look, to), _) if allows(look) => stack.push((at, to)),
                (NfaState::Look(..), _) => {}
                (NfaState::Match, Role::Wanted(group)) => done |= 1 << group,
                (NfaState::Match, Role::Unwanted) => return None,
            }
        }
        Some((active, done))
    }
}

enum Step {
    /// All that is wanted has matched.
    Matches,
    /// Something that is wanted has not matched yet.
    To(Place),
    /// What must not match has, or the text ends.
    Nowhere,
}
