//! Combines a look-around with the adjacent part of a condition into one expression without look-around (product of
//! automata).
//!
//! Both are walked together, character by character, as machines whose states are expressions (what is still to be
//! matched): the part as it is, the look-around by all its states at once, so that it is also known when it can match no
//! more. The states walked through, with the classes of characters between them, are then put back into one expression.

use std::collections::BTreeMap;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use super::ends::{edge, holds_at_end, spelled_out};
use super::hide::mark;

/// The most parts that both may have.
const MAX_INPUT: usize = 400;

/// The most states of both together.
const MAX_STATES: usize = 200;

/// The most parts of an expression on the way to the result.
const MAX_SIZE: usize = 20_000;

/// The maximum number of states to explore, so that loading a rule takes no noticeable time.
const MAX_WORK: usize = 400_000;

/// The position of the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Behind a look-ahead: both are walked from left to right.
    After,
    /// Before a look-behind: both are walked from right to left.
    Before,
}

/// Why there is no such expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The look-around contains an assertion, and more than its text is required.
    Assertion,
    /// Something matches bytes that are not characters.
    Bytes,
    TooLarge,
    /// No text matches.
    Never,
}

/// What matches where `rest` matches and, from the same place, `inner` does (or does not, where it is `negated`).
pub(super) fn both(rest: Hir, inner: Hir, negated: bool, side: Side) -> Result<Hir, Failure> {
    // If nothing else constrains the text, a look-ahead is the continuation itself.
    if !negated && *rest.kind() == HirKind::Empty {
        return Ok(inner);
    }
    let inner = spelled_out(&inner, side);
    if steps(&inner, side).is_ok_and(|(_, empty)| empty) {
        return if negated { Err(Failure::Never) } else { Ok(rest) };
    }
    if size(&rest) + size(&inner) > MAX_INPUT {
        return Err(Failure::TooLarge);
    }
    let mut walk =
        Walk { side, negated, states: vec![(Some(rest), vec![inner])], ways: BTreeMap::new(), size: 0, work: 0 };
    walk.add(START, FIRST, Hir::empty())?;
    let mut next = 0;
    while next < walk.states.len() {
        walk.explore(next)?;
        next += 1;
    }
    walk.joined()
}

const START: usize = 0;
const END: usize = 1;
/// The first of `Walk::states`.
const FIRST: usize = 2;

struct Walk {
    side: Side,
    negated: bool,
    /// What is left of the part (none: it is done) and of the look-around.
    states: Vec<(Option<Hir>, Vec<Hir>)>,
    /// What leads from one state to another.
    ways: BTreeMap<(usize, usize), Hir>,
    size: usize,
    work: usize,
}

impl Walk {
    fn explore(&mut self, number: usize) -> Result<(), Failure> {
        let from = number + FIRST;
        let (rest, inner) = self.states[number].clone();
        let Some(rest) = rest else { return self.explore_done(from, inner) };
        let (edges, empty) = self.steps(&rest)?;
        if empty {
            let to = self.state(None, inner.clone())?;
            self.add(from, to, Hir::empty())?;
        }
        for (edge, rest) in edges {
            match edge {
                Edge::Look(look) => {
                    let to = self.state(Some(rest), inner.clone())?;
                    self.add(from, to, Hir::look(look))?;
                }
                Edge::Mark => {
                    let to = self.state(Some(rest), inner.clone())?;
                    self.add(from, to, mark())?;
                }
                Edge::Chars(chars) => {
                    for (piece, fate) in self.split(chars, &inner)? {
                        let piece = Hir::class(Class::Unicode(piece));
                        match (fate, self.negated) {
                            (Fate::Matched, true) | (Fate::Missed, false) => {}
                            // No requirement is left: the part continues unchanged.
                            (Fate::Matched, false) | (Fate::Missed, true) => {
                                let label = self.then(piece, rest.clone());
                                self.add(from, END, label)?;
                            }
                            (Fate::Open(inner), _) => {
                                let to = self.state(Some(rest.clone()), inner)?;
                                self.add(from, to, piece)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The part is complete, and the look-around requires more.
    fn explore_done(&mut self, from: usize, inner: Vec<Hir>) -> Result<(), Failure> {
        if !self.negated {
            return self.add(from, END, Hir::alternation(inner));
        }
        if !inner.iter().any(|inner| holds_at_end(inner, self.side)) {
            self.add(from, END, Hir::look(edge(self.side)))?;
        }
        let any = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
        for (piece, fate) in self.split(any, &inner)? {
            let piece = Hir::class(Class::Unicode(piece));
            match fate {
                Fate::Matched => {}
                Fate::Missed => self.add(from, END, piece)?,
                Fate::Open(inner) => {
                    let to = self.state(None, inner)?;
                    self.add(from, to, piece)?;
                }
            }
        }
        Ok(())
    }

    /// Divides `chars` by what they do to the look-around.
    fn split(&mut self, chars: ClassUnicode, inner: &[Hir]) -> Result<Vec<(ClassUnicode, Fate)>, Failure> {
        let mut edges = Vec::new();
        for state in inner {
            for (way, to) in self.steps(state)?.0 {
                match way {
                    Edge::Chars(chars) => edges.push((chars, to)),
                    // The text does not end where a character comes.
                    Edge::Look(look) if look == edge(self.side) => {}
                    Edge::Look(_) | Edge::Mark => return Err(Failure::Assertion),
                }
            }
        }
        let mut pieces = vec![chars];
        for (class, _) in &edges {
            pieces = pieces.iter().flat_map(|piece| [common(piece, class), without(piece, class)]).collect();
            pieces.retain(|piece| !piece.ranges().is_empty());
        }
        let mut out = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let fate = self.fate(&piece, &edges)?;
            out.push((piece, fate));
        }
        Ok(out)
    }

    fn fate(&mut self, piece: &ClassUnicode, edges: &[(ClassUnicode, Hir)]) -> Result<Fate, Failure> {
        let mut next: Vec<Hir> = Vec::new();
        for (_, to) in edges.iter().filter(|(class, _)| !common(piece, class).ranges().is_empty()) {
            if self.steps(to)?.1 {
                return Ok(Fate::Matched);
            }
            if !next.contains(to) {
                next.push(to.clone());
            }
        }
        // The same states in another order are the same.
        next.sort_by_cached_key(ToString::to_string);
        Ok(if next.is_empty() { Fate::Missed } else { Fate::Open(next) })
    }

    fn steps(&mut self, hir: &Hir) -> Result<Steps, Failure> {
        let steps = steps(hir, self.side)?;
        self.work += (1 + steps.0.len()) * size(hir);
        if self.work > MAX_WORK { Err(Failure::TooLarge) } else { Ok(steps) }
    }

    fn state(&mut self, rest: Option<Hir>, inner: Vec<Hir>) -> Result<usize, Failure> {
        let state = (rest, inner);
        let known = self.states.iter().position(|known| *known == state);
        if known.is_none() && self.states.len() == MAX_STATES {
            return Err(Failure::TooLarge);
        }
        let number = known.unwrap_or_else(|| {
            self.states.push(state);
            self.states.len() - 1
        });
        Ok(number + FIRST)
    }

    fn add(&mut self, from: usize, to: usize, label: Hir) -> Result<(), Failure> {
        let label = match self.ways.remove(&(from, to)) {
            Some(known) => Hir::alternation(vec![known, label]),
            None => label,
        };
        self.size += size(&label);
        self.ways.insert((from, to), label);
        if self.size > MAX_SIZE { Err(Failure::TooLarge) } else { Ok(()) }
    }

    /// What is walked through first, and then: from right to left the other way round.
    fn then(&self, first: Hir, second: Hir) -> Hir {
        Hir::concat(if self.side == Side::After { vec![first, second] } else { vec![second, first] })
    }

    /// Takes the states out one by one, until one way is left.
    fn joined(mut self) -> Result<Hir, Failure> {
        let mut left: Vec<usize> = (FIRST..FIRST + self.states.len()).collect();
        let ways_of = |ways: &BTreeMap<(usize, usize), Hir>, state: usize| {
            let (into, out) = ways.keys().fold((0, 0), |(into, out), (from, to)| {
                (into + usize::from(*to == state), out + usize::from(*from == state))
            });
            into * out
        };
        while let Some(at) = (0..left.len()).min_by_key(|at| ways_of(&self.ways, left[*at])) {
            let state = left.swap_remove(at);
            let all = std::mem::take(&mut self.ways);
            let (mut into, mut out, mut again) = (Vec::new(), Vec::new(), Hir::empty());
            for ((from, to), label) in all {
                match (from == state, to == state) {
                    (true, true) => again = star(label),
                    (true, false) => out.push((to, label)),
                    (false, true) => into.push((from, label)),
                    (false, false) => drop(self.ways.insert((from, to), label)),
                }
            }
            for (from, first) in &into {
                for (to, last) in &out {
                    let label = self.then(self.then(first.clone(), again.clone()), last.clone());
                    self.add(*from, *to, label)?;
                }
            }
        }
        self.ways.remove(&(START, END)).ok_or(Failure::Never)
    }
}

/// What a character does to the look-around.
enum Fate {
    Matched,
    /// It can match no more.
    Missed,
    Open(Vec<Hir>),
}

/// The transitions with their remaining expressions, and whether the empty string matches.
pub(super) type Steps = (Vec<(Edge, Hir)>, bool);

/// One way on from an expression.
pub(super) enum Edge {
    Chars(ClassUnicode),
    Look(Look),
    /// Here begins what must never be shown.
    Mark,
}

/// The transitions of an expression with their remaining expressions (derivatives), and whether it matches the empty
/// string.
pub(super) fn steps(hir: &Hir, side: Side) -> Result<Steps, Failure> {
    Ok(match hir.kind() {
        HirKind::Empty => (Vec::new(), true),
        HirKind::Literal(literal) => (literal_steps(&literal.0, side)?, false),
        HirKind::Class(class) => (vec![(Edge::Chars(chars(class)?), Hir::empty())], false),
        HirKind::Look(look) => (vec![(Edge::Look(*look), Hir::empty())], false),
        HirKind::Capture(_) => (vec![(Edge::Mark, Hir::empty())], false),
        HirKind::Repetition(repetition) => {
            if repetition.max == Some(0) {
                return Ok((Vec::new(), true));
            }
            let (edges, empty) = steps(&repetition.sub, side)?;
            let fewer = Repetition {
                min: repetition.min.saturating_sub(1),
                max: repetition.max.map(|max| max - 1),
                ..repetition.clone()
            };
            let fewer = Hir::repetition(fewer);
            (
                edges.into_iter().map(|(edge, to)| (edge, ordered(to, fewer.clone(), side))).collect(),
                empty || repetition.min == 0,
            )
        }
        HirKind::Alternation(parts) => {
            let (mut all, mut any) = (Vec::new(), false);
            for part in parts {
                let (edges, empty) = steps(part, side)?;
                all.extend(edges);
                any |= empty;
            }
            (all, any)
        }
        HirKind::Concat(parts) => {
            let parts: Vec<Hir> =
                if side == Side::After { parts.clone() } else { parts.iter().rev().cloned().collect() };
            let mut all = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                let mut rest = parts[at + 1..].to_vec();
                if side == Side::Before {
                    rest.reverse();
                }
                let rest = Hir::concat(rest);
                let (edges, empty) = steps(part, side)?;
                all.extend(edges.into_iter().map(|(edge, to)| (edge, ordered(to, rest.clone(), side))));
                if !empty {
                    return Ok((all, false));
                }
            }
            (all, true)
        }
    })
}

fn ordered(first: Hir, second: Hir, side: Side) -> Hir {
    Hir::concat(if side == Side::After { vec![first, second] } else { vec![second, first] })
}

fn literal_steps(bytes: &[u8], side: Side) -> Result<Vec<(Edge, Hir)>, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::Bytes)?;
    let mut chars = text.chars();
    let c = if side == Side::After { chars.next() } else { chars.next_back() };
    let rest = Hir::literal(chars.as_str().as_bytes());
    Ok(c.map(|c| (Edge::Chars(ClassUnicode::new([ClassUnicodeRange::new(c, c)])), rest)).into_iter().collect())
}

fn chars(class: &Class) -> Result<ClassUnicode, Failure> {
    match class {
        Class::Unicode(class) => Ok(class.clone()),
        Class::Bytes(class) => class.to_unicode_class().ok_or(Failure::Bytes),
    }
}

fn common(a: &ClassUnicode, b: &ClassUnicode) -> ClassUnicode {
    let mut out = a.clone();
    out.intersect(b);
    out
}

fn without(a: &ClassUnicode, b: &ClassUnicode) -> ClassUnicode {
    let mut out = a.clone();
    out.difference(b);
    out
}

fn star(hir: Hir) -> Hir {
    Hir::repetition(Repetition { min: 0, max: None, greedy: true, sub: Box::new(hir) })
}

/// How many parts an expression has.
fn size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Capture(capture) => 1 + size(&capture.sub),
        HirKind::Repetition(repetition) => 1 + size(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => 1 + parts.iter().map(size).sum::<usize>(),
    }
}
