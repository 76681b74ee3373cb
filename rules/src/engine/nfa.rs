//! Compiles a condition to an NFA (Thompson's construction): each state consumes a byte, has an assertion, or is an
//! epsilon.

use std::collections::HashMap;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};
use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};

/// The depth of a state behind a loop, which has no bound.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// The maximum number of states of one condition. `\w{1000}` has 1,000; larger ones make each computed transition slow.
pub(crate) const MAX_STATES: usize = 10_000;

/// A state of the NFA.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NfaState {
    /// Consumes a byte from `low` to `high`.
    ByteRange { low: u8, high: u8, to: u32 },
    /// Consumes a byte within one of the ranges `from..from + len`.
    Sparse { from: u32, len: u32 },
    /// Epsilon transitions to both states.
    Union(u32, u32),
    /// An epsilon transition that is only taken where the assertion holds.
    Look(Look, u32),
    /// The match state.
    Match,
}

/// Bytes from the first to the second lead to the third, a state.
pub(crate) type Range = (u8, u8, u32);

/// The Thompson NFA of one condition.
#[derive(Debug, Default)]
pub(crate) struct Nfa {
    pub(crate) states: Vec<NfaState>,
    ranges: Vec<Range>,
    /// By state: its depth, the maximum number of bytes between the start of a match and the state.
    pub(crate) depth: Vec<u32>,
    pub(crate) start: u32,
    /// The maximum length of a match in bytes.
    pub(crate) max_len: u32,
}

/// The condition has more than [`MAX_STATES`] states.
#[derive(Debug)]
pub(crate) struct TooLarge;

/// Compiles a condition.
pub(crate) fn compile(hir: &Hir) -> Result<Nfa, TooLarge> {
    let mut compiler = Compiler { nfa: Nfa::default(), shared: HashMap::new() };
    let max_len = length(hir);
    let end = compiler.push(NfaState::Match, max_len)?;
    let start = compiler.node(hir, end, 0)?;
    let mut nfa = compiler.nfa;
    (nfa.start, nfa.max_len) = (start, max_len);
    nfa.states.shrink_to_fit();
    nfa.ranges.shrink_to_fit();
    nfa.depth.shrink_to_fit();
    Ok(nfa)
}

impl Nfa {
    /// The target states of `state` for `byte`.
    #[inline]
    pub(crate) fn targets(&self, state: u32, byte: u8) -> impl Iterator<Item = u32> {
        self.ranges_of(state).filter(move |(low, high, _)| *low <= byte && byte <= *high).map(|(_, _, to)| to)
    }

    /// The byte ranges that `state` consumes, with their targets.
    #[inline]
    pub(crate) fn ranges_of(&self, state: u32) -> impl Iterator<Item = Range> {
        let (one, many) = match self.states[state as usize] {
            NfaState::ByteRange { low, high, to } => (Some((low, high, to)), &[] as &[Range]),
            NfaState::Sparse { from, len } => (None, &self.ranges[from as usize..(from + len) as usize]),
            NfaState::Union(..) | NfaState::Look(..) | NfaState::Match => (None, &[] as &[Range]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Marks the last byte of each byte class that its states distinguish.
    pub(crate) fn mark_class_ends(&self, ends: &mut [bool; 256]) {
        let ones = self.states.iter().filter_map(|step| match *step {
            NfaState::ByteRange { low, high, .. } => Some((low, high)),
            _ => None,
        });
        for (low, high) in ones.chain(self.ranges.iter().map(|range| (range.0, range.1))) {
            ends[usize::from(high)] = true;
            // Below 0 there is 255, after which nothing follows.
            ends[usize::from(low.wrapping_sub(1))] = true;
        }
    }

    /// The assertions in it.
    pub(crate) fn looks(&self) -> impl Iterator<Item = Look> {
        self.states.iter().filter_map(|step| if let NfaState::Look(look, _) = step { Some(*look) } else { None })
    }

    /// The bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<NfaState>()
            + self.ranges.capacity() * size_of::<Range>()
            + self.depth.capacity() * 4
    }
}

/// Compiles from the end to the start, so that each state knows its target. `depth` is the maximum number of bytes
/// before the state.
struct Compiler {
    nfa: Nfa,
    /// States within one character class, by their transitions.
    shared: HashMap<Box<[Range]>, u32>,
}

impl Compiler {
    fn push(&mut self, step: NfaState, depth: u32) -> Result<u32, TooLarge> {
        let at = self.nfa.states.len();
        if at >= MAX_STATES {
            return Err(TooLarge);
        }
        self.nfa.states.push(step);
        self.nfa.depth.push(depth);
        Ok(at as u32)
    }

    fn node(&mut self, hir: &Hir, next: u32, depth: u32) -> Result<u32, TooLarge> {
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => literal.0.iter().enumerate().rev().try_fold(next, |to, (at, byte)| {
                self.push(NfaState::ByteRange { low: *byte, high: *byte, to }, depth.saturating_add(at as u32))
            }),
            HirKind::Class(Class::Bytes(class)) => {
                let ranges: Vec<Range> = class.ranges().iter().map(|r| (r.start(), r.end(), next)).collect();
                self.bytes(&ranges, depth)
            }
            HirKind::Class(Class::Unicode(class)) => self.unicode(class, next, depth),
            HirKind::Look(look) => self.push(NfaState::Look(*look, next), depth),
            HirKind::Capture(capture) => self.node(&capture.sub, next, depth),
            HirKind::Concat(nodes) => {
                let depths = nodes.iter().scan(depth, |depth, node| {
                    let own = *depth;
                    *depth = depth.saturating_add(length(node));
                    Some(own)
                });
                let nodes: Vec<(&Hir, u32)> = nodes.iter().zip(depths).collect();
                nodes.into_iter().rev().try_fold(next, |next, (node, depth)| self.node(node, next, depth))
            }
            HirKind::Alternation(nodes) => {
                let mut start = None;
                for node in nodes.iter().rev() {
                    let own = self.node(node, next, depth)?;
                    start = Some(match start {
                        None => own,
                        Some(other) => self.push(NfaState::Union(own, other), depth)?,
                    });
                }
                start.map_or_else(|| self.bytes(&[], depth), Ok)
            }
            HirKind::Repetition(repetition) => self.repetition(repetition, next, depth),
        }
    }

    fn repetition(&mut self, repetition: &Repetition, next: u32, depth: u32) -> Result<u32, TooLarge> {
        let Repetition { min, max, sub, .. } = repetition;
        let length = length(sub);
        let at = |times: u32| depth.saturating_add(length.saturating_mul(times));
        let (mut start, copies) = match max {
            None => {
                // Behind a loop that consumes bytes, the distance to the start has no bound.
                let inside = if length == 0 { depth } else { UNBOUNDED };
                let turn = self.push(NfaState::Union(next, next), inside)?;
                let body = self.node(sub, turn, inside)?;
                self.nfa.states[turn as usize] = NfaState::Union(body, next);
                if *min == 0 { (turn, 0) } else { (body, *min - 1) }
            }
            Some(max) => {
                let mut start = next;
                for times in (*min..*max).rev() {
                    let body = self.node(sub, start, at(times))?;
                    start = self.push(NfaState::Union(body, next), at(times))?;
                }
                (start, *min)
            }
        };
        for times in (0..copies).rev() {
            start = self.node(sub, start, at(times))?;
        }
        Ok(start)
    }

    fn bytes(&mut self, ranges: &[Range], depth: u32) -> Result<u32, TooLarge> {
        if let [(low, high, to)] = *ranges {
            return self.push(NfaState::ByteRange { low, high, to }, depth);
        }
        let from = self.nfa.ranges.len() as u32;
        self.nfa.ranges.extend_from_slice(ranges);
        self.push(NfaState::Sparse { from, len: ranges.len() as u32 }, depth)
    }

    fn unicode(&mut self, class: &ClassUnicode, next: u32, depth: u32) -> Result<u32, TooLarge> {
        const FIRST_WIDE: char = '\u{80}';
        let mut heads = Vec::new();
        let mut wide: Vec<(char, char)> = Vec::new();
        for range in class.ranges() {
            if range.start() < FIRST_WIDE {
                heads.push((range.start() as u8, range.end().min('\u{7F}') as u8, next));
            }
            if range.end() >= FIRST_WIDE {
                wide.push((range.start().max(FIRST_WIDE), range.end()));
            }
        }
        if wide == [(FIRST_WIDE, char::MAX)] {
            heads.extend(self.any_wide(next, depth)?);
        } else if !wide.is_empty() {
            self.shared.clear();
            let sequences = wide.iter().flat_map(|(first, last)| Utf8Sequences::new(*first, *last));
            let sequences: Vec<Utf8Sequence> = sequences.collect();
            let rests: Vec<&[Utf8Range]> = sequences.iter().map(Utf8Sequence::as_slice).collect();
            heads.extend(self.branches(&rests, next, depth)?);
        }
        self.bytes(&heads, depth)
    }

    /// All characters beyond ASCII. The text is UTF-8, so the lead byte alone determines how many bytes follow.
    fn any_wide(&mut self, next: u32, depth: u32) -> Result<[Range; 3], TooLarge> {
        let mut follow = |to: u32, before: u32| {
            self.push(NfaState::ByteRange { low: 0x80, high: 0xBF, to }, depth.saturating_add(before))
        };
        let last = follow(next, 3)?;
        let last_two = follow(last, 2)?;
        let last_three = follow(last_two, 1)?;
        Ok([(0xC2, 0xDF, last), (0xE0, 0xEF, last_two), (0xF0, 0xF4, last_three)])
    }

    /// The branches of a trie of byte sequences, which are sorted; sequences with the same end share states.
    fn branches(&mut self, sequences: &[&[Utf8Range]], next: u32, depth: u32) -> Result<Vec<Range>, TooLarge> {
        let deeper = depth.saturating_add(1);
        let mut out = Vec::new();
        for branch in sequences.chunk_by(|one, other| one[0] == other[0]) {
            let rests: Vec<&[Utf8Range]> = branch.iter().map(|s| &s[1..]).filter(|rest| !rest.is_empty()).collect();
            let to = if rests.is_empty() { next } else { self.shared(&rests, next, deeper)? };
            out.push((branch[0][0].start, branch[0][0].end, to));
        }
        Ok(out)
    }

    fn shared(&mut self, sequences: &[&[Utf8Range]], next: u32, depth: u32) -> Result<u32, TooLarge> {
        let ranges = self.branches(sequences, next, depth)?.into_boxed_slice();
        if let Some(state) = self.shared.get(&ranges) {
            let known = &mut self.nfa.depth[*state as usize];
            *known = depth.max(*known);
            return Ok(*state);
        }
        let state = self.bytes(&ranges, depth)?;
        self.shared.insert(ranges, state);
        Ok(state)
    }
}

/// The maximum number of bytes that an expression consumes.
fn length(hir: &Hir) -> u32 {
    hir.properties().maximum_len().and_then(|len| u32::try_from(len).ok()).unwrap_or(UNBOUNDED)
}
