//! Turns a condition into states: each goes on with a byte, with an assertion, or without either.

use std::collections::HashMap;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};
use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};

/// "More than can be told": the distance of a state behind a loop.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// The most states of one condition. `\w{1000}` has 1,000; a larger one makes every miss of the table slow.
pub(crate) const MAX_STATES: usize = 10_000;

/// One state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Goes on with a byte from `low` to `high`.
    Byte { low: u8, high: u8, to: u32 },
    /// Goes on with a byte within one of the ranges `from..from + len`.
    Bytes { from: u32, len: u32 },
    /// Goes on without a byte, both ways.
    Split(u32, u32),
    /// Goes on without a byte where the assertion holds.
    Look(Look, u32),
    /// The pattern has matched.
    Match,
}

/// Bytes from the first to the second go on to the third.
pub(crate) type Range = (u8, u8, u32);

/// The states of one condition.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    ranges: Vec<Range>,
    /// For each state, the most bytes between the pattern's start and it.
    pub(crate) depth: Vec<u32>,
    pub(crate) start: u32,
    /// The most bytes of a match.
    pub(crate) max_len: u32,
}

/// It has more than [`MAX_STATES`] states.
#[derive(Debug)]
pub(crate) struct TooLarge;

/// Compiles a condition.
pub(crate) fn compile(hir: &Hir) -> Result<Program, TooLarge> {
    let mut compiler = Compiler { program: Program::default(), shared: HashMap::new() };
    let max_len = length(hir);
    let end = compiler.push(Step::Match, max_len)?;
    let start = compiler.node(hir, end, 0)?;
    let mut program = compiler.program;
    (program.start, program.max_len) = (start, max_len);
    program.steps.shrink_to_fit();
    program.ranges.shrink_to_fit();
    program.depth.shrink_to_fit();
    Ok(program)
}

impl Program {
    /// The states that `state` goes on to with `byte`.
    #[inline]
    pub(crate) fn after(&self, state: u32, byte: u8) -> impl Iterator<Item = u32> {
        self.ranges_of(state).filter(move |(low, high, _)| *low <= byte && byte <= *high).map(|(_, _, to)| to)
    }

    /// The bytes that `state` goes on with.
    #[inline]
    pub(crate) fn ranges_of(&self, state: u32) -> impl Iterator<Item = Range> {
        let (one, many) = match self.steps[state as usize] {
            Step::Byte { low, high, to } => (Some((low, high, to)), &[] as &[Range]),
            Step::Bytes { from, len } => (None, &self.ranges[from as usize..(from + len) as usize]),
            Step::Split(..) | Step::Look(..) | Step::Match => (None, &[] as &[Range]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Notes after which bytes its states may take another way.
    pub(crate) fn cut(&self, ends: &mut [bool; 256]) {
        let ones = self.steps.iter().filter_map(|step| match *step {
            Step::Byte { low, high, .. } => Some((low, high)),
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
        self.steps.iter().filter_map(|step| if let Step::Look(look, _) = step { Some(*look) } else { None })
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>()
            + self.ranges.capacity() * size_of::<Range>()
            + self.depth.capacity() * 4
    }
}

/// States are made from the end to the start, so that each knows where it goes on; `depth` is the most bytes before the
/// place a state stands at.
struct Compiler {
    program: Program,
    /// States within one class, by what they go on with.
    shared: HashMap<Box<[Range]>, u32>,
}

impl Compiler {
    fn push(&mut self, step: Step, depth: u32) -> Result<u32, TooLarge> {
        let at = self.program.steps.len();
        if at >= MAX_STATES {
            return Err(TooLarge);
        }
        self.program.steps.push(step);
        self.program.depth.push(depth);
        Ok(at as u32)
    }

    fn node(&mut self, hir: &Hir, next: u32, depth: u32) -> Result<u32, TooLarge> {
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => literal.0.iter().enumerate().rev().try_fold(next, |to, (at, byte)| {
                self.push(Step::Byte { low: *byte, high: *byte, to }, depth.saturating_add(at as u32))
            }),
            HirKind::Class(Class::Bytes(class)) => {
                let ranges: Vec<Range> = class.ranges().iter().map(|r| (r.start(), r.end(), next)).collect();
                self.bytes(&ranges, depth)
            }
            HirKind::Class(Class::Unicode(class)) => self.unicode(class, next, depth),
            HirKind::Look(look) => self.push(Step::Look(*look, next), depth),
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
                        Some(other) => self.push(Step::Split(own, other), depth)?,
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
                // Behind a loop that takes bytes nobody can tell how far the start is.
                let inside = if length == 0 { depth } else { UNBOUNDED };
                let turn = self.push(Step::Split(next, next), inside)?;
                let body = self.node(sub, turn, inside)?;
                self.program.steps[turn as usize] = Step::Split(body, next);
                if *min == 0 { (turn, 0) } else { (body, *min - 1) }
            }
            Some(max) => {
                let mut start = next;
                for times in (*min..*max).rev() {
                    let body = self.node(sub, start, at(times))?;
                    start = self.push(Step::Split(body, next), at(times))?;
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
            return self.push(Step::Byte { low, high, to }, depth);
        }
        let from = self.program.ranges.len() as u32;
        self.program.ranges.extend_from_slice(ranges);
        self.push(Step::Bytes { from, len: ranges.len() as u32 }, depth)
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

    /// All characters beyond ASCII. The text is UTF-8, so the lead byte alone tells how many bytes follow.
    fn any_wide(&mut self, next: u32, depth: u32) -> Result<[Range; 3], TooLarge> {
        let mut follow =
            |to: u32, before: u32| self.push(Step::Byte { low: 0x80, high: 0xBF, to }, depth.saturating_add(before));
        let last = follow(next, 3)?;
        let last_two = follow(last, 2)?;
        let last_three = follow(last_two, 1)?;
        Ok([(0xC2, 0xDF, last), (0xE0, 0xEF, last_two), (0xF0, 0xF4, last_three)])
    }

    /// The branches of a tree of byte sequences, which come sorted; sequences with the same end share its states.
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
            let known = &mut self.program.depth[*state as usize];
            *known = depth.max(*known);
            return Ok(*state);
        }
        let state = self.bytes(&ranges, depth)?;
        self.shared.insert(ranges, state);
        Ok(state)
    }
}

/// The most bytes that an expression takes.
fn length(hir: &Hir) -> u32 {
    hir.properties().maximum_len().and_then(|len| u32::try_from(len).ok()).unwrap_or(UNBOUNDED)
}
