//! Compiles a condition to an NFA (Thompson's construction).

use std::collections::HashMap;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Repetition};
use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};

use super::nfa::{Nfa, NfaState, Range, UNBOUNDED};
use super::split::{self, Cut};

/// The maximum number of states of one condition. `\w{1000}` has 1,000; larger ones make each computed transition slow.
pub(crate) const MAX_STATES: usize = 10_000;

/// The condition has more than [`MAX_STATES`] states.
#[derive(Debug)]
pub(crate) struct TooLarge;

/// Compiles a condition.
pub(crate) fn compile(hir: &Hir) -> Result<Nfa, TooLarge> {
    let mut compiler = Compiler { nfa: Nfa::default(), shared: HashMap::new() };
    let nodes = split::nodes(hir);
    let begin = Depth::at_start(&nodes);
    let max_hidden = begin.behind(&nodes);
    let end = compiler.push(NfaState::Match, max_hidden)?;
    let (lead, rest) = nodes.split_at(split::lead(&nodes));
    let search_start = compiler.divided(rest, end, begin.behind(lead), 0.0)?;
    let start = compiler.concat(lead, search_start, begin)?;
    let mut nfa = compiler.finish();
    (nfa.start, nfa.search_start, nfa.max_len, nfa.max_hidden) = (start, search_start, length(hir), max_hidden.bytes());
    nfa.looks = hir.properties().look_set();
    Ok(nfa)
}

/// The lead of a condition: optional repetitions at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    hir: Hir,
    /// What a search starts with behind it: states up to those that consume a byte, which end here, with their depths.
    end: Vec<(NfaState, u32)>,
}

impl Lead {
    /// The lead of a condition that `compile` has compiled to `nfa`. There is none where what is hidden begins behind it: then
    /// nothing is held back for it.
    pub(crate) fn of(hir: &Hir, nfa: &Nfa) -> Option<Self> {
        let nodes = split::nodes(hir);
        if Depth::at_start(&nodes) == Depth::Shown {
            return None;
        }
        let lead: Vec<Hir> = nodes[..split::lead(&nodes)].iter().copied().cloned().collect();
        (!lead.is_empty()).then(|| Self { hir: Hir::concat(lead), end: nfa.start_image() })
    }

    /// Compiles it alone. It never matches; its states have the depths that they have within the condition.
    pub(crate) fn compile(&self) -> Result<Nfa, TooLarge> {
        let mut compiler = Compiler { nfa: Nfa::default(), shared: HashMap::new() };
        for (state, depth) in &self.end {
            compiler.push(*state, Depth::Hidden(*depth))?;
        }
        let is_look = |(state, _): &(NfaState, u32)| matches!(state, NfaState::Look(..));
        let start = match self.end.iter().any(is_look) {
            true => compiler.node(&self.hir, 0, Depth::Hidden(0))?,
            false => self.any_count(&mut compiler)?,
        };
        let mut nfa = compiler.finish();
        (nfa.start, nfa.search_start, nfa.max_len, nfa.counts) = (start, start, length(&self.hir), true);
        for (state, _) in &self.end {
            if let NfaState::Look(look, _) = state {
                nfa.looks.set_insert(*look);
            }
        }
        Ok(nfa)
    }

    /// Compiles it without its counts. A search starts at each character of the classes, so what follows the lead can go on behind each of
    /// them, however many came before: one state counts for all numbers. Its depth is that behind the lead.
    fn any_count(&self, compiler: &mut Compiler) -> Result<u32, TooLarge> {
        let (most, classes) = (length(&self.hir), self.classes());
        // The last character can be one of the shortest class; then the others had the most bytes.
        let last = classes.iter().map(length).min().unwrap_or(0);
        let turn = compiler.push(NfaState::Union(0, 0), Depth::Hidden(most))?;
        let start = compiler.node(&Hir::alternation(classes), turn, Depth::Hidden(most.saturating_sub(last)))?;
        compiler.nfa.states[turn as usize] = NfaState::Union(start, 0);
        Ok(start)
    }

    /// The classes that it repeats.
    fn classes(&self) -> Vec<Hir> {
        let class = |node: &Hir| match node.kind() {
            HirKind::Repetition(repetition) => Some((*repetition.sub).clone()),
            _ => None,
        };
        split::nodes(&self.hir).into_iter().filter_map(class).collect()
    }
}

/// Where a state is in the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// Before the group `hide`: bytes up to there are shown.
    Shown,
    /// At most this number of bytes behind the beginning of what is hidden: of the group, or of the condition without one.
    Hidden(u32),
}

impl Depth {
    /// That of the beginning of a condition.
    fn at_start(nodes: &[&Hir]) -> Self {
        if nodes.iter().any(|node| from_mark(node).is_some()) { Self::Shown } else { Self::Hidden(0) }
    }

    fn plus(self, bytes: u32) -> Self {
        match self {
            Self::Shown => Self::Shown,
            Self::Hidden(before) => Self::Hidden(before.saturating_add(bytes)),
        }
    }

    /// That behind nodes which follow one another.
    fn behind(self, nodes: &[&Hir]) -> Self {
        nodes.iter().fold(self, |depth, node| match depth {
            Self::Shown => from_mark(node).map_or(Self::Shown, Self::Hidden),
            Self::Hidden(_) => depth.plus(length(node)),
        })
    }

    /// The bytes that are held back in the state.
    fn bytes(self) -> u32 {
        match self {
            Self::Shown => 0,
            Self::Hidden(bytes) => bytes,
        }
    }
}

/// The maximum number of bytes that an expression consumes behind the mark in it; `None` if it has none.
fn from_mark(hir: &Hir) -> Option<u32> {
    match hir.kind() {
        HirKind::Capture(_) => Some(0),
        HirKind::Concat(parts) => parts.iter().fold(None, |known, part| match known {
            None => from_mark(part),
            Some(bytes) => Some(bytes.saturating_add(length(part))),
        }),
        HirKind::Alternation(parts) => parts.iter().filter_map(from_mark).max(),
        _ => None,
    }
}

/// Compiles from the end to the start, so that each state knows its target.
struct Compiler {
    nfa: Nfa,
    /// States within one character class, by their transitions.
    shared: HashMap<Box<[Range]>, u32>,
}

impl Compiler {
    fn push(&mut self, step: NfaState, depth: Depth) -> Result<u32, TooLarge> {
        let at = self.nfa.states.len();
        if at >= MAX_STATES {
            return Err(TooLarge);
        }
        self.nfa.states.push(step);
        self.nfa.depth.push(depth.bytes());
        if depth == Depth::Shown {
            self.nfa.shown.resize(at + 1, false);
            self.nfa.shown[at] = true;
        }
        Ok(at as u32)
    }

    fn finish(self) -> Nfa {
        let mut nfa = self.nfa;
        for state in &nfa.states {
            if let NfaState::ByteRange { low, high, .. } = state {
                nfa.ends.cut(*low, *high);
            }
        }
        nfa.ranges.iter().for_each(|(low, high, _)| nfa.ends.cut(*low, *high));
        nfa.states.shrink_to_fit();
        nfa.ranges.shrink_to_fit();
        nfa.depth.shrink_to_fit();
        nfa
    }

    /// Nodes that follow one another, divided into a head and a tail where that is of use; `selectivity` is that of what is
    /// before them.
    fn divided(&mut self, nodes: &[&Hir], next: u32, depth: Depth, selectivity: f32) -> Result<u32, TooLarge> {
        match split::cut(nodes, selectivity) {
            Cut::None => self.concat(nodes, next, depth),
            Cut::Unselective => {
                self.nfa.counts = true;
                self.concat(nodes, next, depth)
            }
            Cut::Before(at) => {
                let (head, tail) = nodes.split_at(at);
                let between = depth.behind(head);
                self.add_tail_looks(tail);
                let tail = self.concat(tail, next, between)?;
                let cut = self.push(NfaState::Cut(tail), between)?;
                head.iter().for_each(|node| self.nfa.head.push_str(&node.to_string()));
                self.nfa.head.push('|');
                self.concat(head, cut, depth)
            }
            Cut::Within(at) => {
                let (before, after) = (depth.behind(&nodes[..at]), depth.behind(&nodes[..=at]));
                let selectivity = selectivity + split::selectivity(&nodes[..at]);
                self.nfa.counts |= nodes[at + 1..].iter().any(|node| split::counts(node));
                // The tails of the branches continue with what follows the alternation.
                self.add_tail_looks(&nodes[at + 1..]);
                let next = self.concat(&nodes[at + 1..], next, after)?;
                let HirKind::Alternation(branches) = nodes[at].kind() else { return Ok(next) };
                let start = self.alternation(branches, before, |compiler, branch| {
                    compiler.divided(&split::nodes(branch), next, before, selectivity)
                })?;
                self.concat(&nodes[..at], start, depth)
            }
        }
    }

    fn add_tail_looks(&mut self, nodes: &[&Hir]) {
        nodes.iter().for_each(|node| self.nfa.tail_looks.set_union(node.properties().look_set()));
    }

    fn concat(&mut self, nodes: &[&Hir], next: u32, depth: Depth) -> Result<u32, TooLarge> {
        let depths = nodes.iter().scan(depth, |depth, node| {
            let own = *depth;
            *depth = depth.behind(&[node]);
            Some(own)
        });
        let nodes: Vec<(&Hir, Depth)> = nodes.iter().copied().zip(depths).collect();
        nodes.into_iter().rev().try_fold(next, |next, (node, depth)| self.node(node, next, depth))
    }

    fn alternation(
        &mut self,
        branches: &[Hir],
        depth: Depth,
        mut branch: impl FnMut(&mut Self, &Hir) -> Result<u32, TooLarge>,
    ) -> Result<u32, TooLarge> {
        let mut start = None;
        for node in branches.iter().rev() {
            let own = branch(self, node)?;
            start = Some(match start {
                None => own,
                Some(other) => self.push(NfaState::Union(own, other), depth)?,
            });
        }
        start.map_or_else(|| self.bytes(&[], depth), Ok)
    }

    fn node(&mut self, hir: &Hir, next: u32, depth: Depth) -> Result<u32, TooLarge> {
        match hir.kind() {
            HirKind::Empty | HirKind::Capture(_) => Ok(next),
            HirKind::Literal(literal) => literal.0.iter().enumerate().rev().try_fold(next, |to, (at, byte)| {
                self.push(NfaState::ByteRange { low: *byte, high: *byte, to }, depth.plus(at as u32))
            }),
            HirKind::Class(Class::Bytes(class)) => {
                let ranges: Vec<Range> = class.ranges().iter().map(|r| (r.start(), r.end(), next)).collect();
                self.bytes(&ranges, depth)
            }
            HirKind::Class(Class::Unicode(class)) => self.unicode(class, next, depth),
            HirKind::Look(look) => self.push(NfaState::Look(*look, next), depth),
            HirKind::Concat(nodes) => self.concat(&nodes.iter().collect::<Vec<_>>(), next, depth),
            HirKind::Alternation(nodes) => {
                self.alternation(nodes, depth, |compiler, node| compiler.node(node, next, depth))
            }
            HirKind::Repetition(repetition) => self.repetition(repetition, next, depth),
        }
    }

    fn repetition(&mut self, repetition: &Repetition, next: u32, depth: Depth) -> Result<u32, TooLarge> {
        let Repetition { min, max, sub, .. } = repetition;
        let length = length(sub);
        let at = |times: u32| depth.plus(length.saturating_mul(times));
        let (mut start, copies) = match max {
            None => {
                // Behind a loop that consumes bytes, the distance to the start has no bound.
                let inside = depth.plus(if length == 0 { 0 } else { UNBOUNDED });
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

    fn bytes(&mut self, ranges: &[Range], depth: Depth) -> Result<u32, TooLarge> {
        if let [(low, high, to)] = *ranges {
            return self.push(NfaState::ByteRange { low, high, to }, depth);
        }
        let from = self.nfa.ranges.len() as u32;
        self.nfa.ranges.extend_from_slice(ranges);
        self.push(NfaState::Sparse { from, len: ranges.len() as u32 }, depth)
    }

    fn unicode(&mut self, class: &ClassUnicode, next: u32, depth: Depth) -> Result<u32, TooLarge> {
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
    fn any_wide(&mut self, next: u32, depth: Depth) -> Result<[Range; 3], TooLarge> {
        let mut follow =
            |to: u32, before: u32| self.push(NfaState::ByteRange { low: 0x80, high: 0xBF, to }, depth.plus(before));
        let last = follow(next, 3)?;
        let last_two = follow(last, 2)?;
        let last_three = follow(last_two, 1)?;
        Ok([(0xC2, 0xDF, last), (0xE0, 0xEF, last_two), (0xF0, 0xF4, last_three)])
    }

    /// The branches of a trie of byte sequences, which are sorted; sequences with the same end share states.
    fn branches(&mut self, sequences: &[&[Utf8Range]], next: u32, depth: Depth) -> Result<Vec<Range>, TooLarge> {
        let deeper = depth.plus(1);
        let mut out = Vec::new();
        for branch in sequences.chunk_by(|one, other| one[0] == other[0]) {
            let rests: Vec<&[Utf8Range]> = branch.iter().map(|s| &s[1..]).filter(|rest| !rest.is_empty()).collect();
            let to = if rests.is_empty() { next } else { self.shared(&rests, next, deeper)? };
            out.push((branch[0][0].start, branch[0][0].end, to));
        }
        Ok(out)
    }

    fn shared(&mut self, sequences: &[&[Utf8Range]], next: u32, depth: Depth) -> Result<u32, TooLarge> {
        let ranges = self.branches(sequences, next, depth)?.into_boxed_slice();
        if let Some(state) = self.shared.get(&ranges) {
            let known = &mut self.nfa.depth[*state as usize];
            *known = depth.bytes().max(*known);
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
