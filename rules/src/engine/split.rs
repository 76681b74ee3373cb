//! Where a pattern is divided into parts that run on automata of their own.
//!
//! A count such as `{0,20}` multiplies the states of an automaton by those of whatever else is in progress: a DFA state is
//! a set of NFA states of all patterns. So a pattern is divided into up to three runs of nodes of its concatenation:
//!
//! - the **lead**, counted optional repetitions of a class at its start, as in `[\w.-]{0,50}?key`. A search that can start
//!   anywhere finds the same ends without it; it only determines how far back a match reaches.
//! - the **head**, which ends with bytes that text seldom contains, before the first count.
//! - the **tail**, everything from there on, which runs only where the head has matched.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::classes::FREQUENCY;

/// A repetition with this number of positions or more counts.
const COUNT: usize = 8;

/// A head that matches by chance at one of `1 << SELECTIVE` places or fewer is selective: three letters.
const SELECTIVE: f32 = 12.0;

/// A byte or class that is rarer counts as if it were as frequent as this, in bits.
const RAREST: f32 = 8.0;

/// How the nodes behind the lead are divided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// There is no count in them.
    None,
    /// The tail begins with this node.
    Before(usize),
    /// The branches of this alternation are divided.
    Within(usize),
    /// There is a count, and no selective head before it.
    Unselective,
}

/// The nodes of the concatenation that a pattern is. A mark where what is hidden begins is one of them.
pub(crate) fn nodes(hir: &Hir) -> Vec<&Hir> {
    match hir.kind() {
        HirKind::Concat(list) => list.iter().flat_map(nodes).collect(),
        HirKind::Empty => Vec::new(),
        _ => vec![hir],
    }
}

/// The number of nodes that the lead has. What follows it has to consume a byte.
pub(crate) fn lead(nodes: &[&Hir]) -> usize {
    let is_lead = |node: &&&Hir| match node.kind() {
        HirKind::Repetition(Repetition { min: 0, max: Some(_), sub, .. }) => {
            counts(node) && matches!(sub.kind(), HirKind::Class(_))
        }
        _ => false,
    };
    let count = nodes.iter().take_while(is_lead).count();
    let consumes = nodes[count..].iter().any(|node| node.properties().minimum_len().is_some_and(|len| len > 0));
    if consumes { count } else { 0 }
}

/// Where the nodes behind the lead are divided; `before` is the selectivity of what is before them.
pub(crate) fn cut(nodes: &[&Hir], before: f32) -> Cut {
    let Some(first) = nodes.iter().position(|node| counts(node)) else { return Cut::None };
    let at = (1..=first).rev().find(|at| consumes(nodes[at - 1]));
    match at.filter(|at| before + selectivity(&nodes[..*at]) >= SELECTIVE) {
        Some(at) => Cut::Before(at),
        None if matches!(nodes[first].kind(), HirKind::Alternation(_)) => Cut::Within(first),
        None => Cut::Unselective,
    }
}

/// How rare text is that nodes which follow one another match, in bits.
pub(crate) fn selectivity(nodes: &[&Hir]) -> f32 {
    nodes.iter().map(|node| bits(node)).sum()
}

/// Whether a count is in the expression.
pub(crate) fn counts(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Capture(_) => false,
        HirKind::Concat(list) | HirKind::Alternation(list) => list.iter().any(counts),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let times = max.unwrap_or(*min) as usize;
            times > 1 && times.saturating_mul(positions(sub)) >= COUNT || counts(sub)
        }
    }
}

/// Whether a match of the expression ends with a byte, at which it is known: a tail can begin there.
fn consumes(hir: &Hir) -> bool {
    let properties = hir.properties();
    properties.minimum_len().is_some_and(|len| len > 0) && properties.look_set().is_empty()
}

fn bits(hir: &Hir) -> f32 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Capture(_) => 0.0,
        HirKind::Literal(literal) => literal.0.iter().map(|byte| rarity(FREQUENCY[usize::from(*byte)])).sum(),
        HirKind::Class(class) => rarity(share(class)),
        HirKind::Concat(list) => list.iter().map(bits).sum(),
        HirKind::Alternation(list) => list.iter().map(bits).fold(f32::INFINITY, f32::min),
        HirKind::Repetition(repetition) => bits(&repetition.sub) * repetition.min as f32,
    }
}

fn rarity(frequency: f32) -> f32 {
    (-frequency.log2()).clamp(0.0, RAREST)
}

/// How much of a text a class matches, as an estimate from its ASCII characters.
fn share(class: &Class) -> f32 {
    let matches = |byte: u8| match class {
        Class::Unicode(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&char::from(byte)))
        }
        Class::Bytes(class) => class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte)),
    };
    (0..0x80).filter(|byte| matches(*byte)).map(|byte| FREQUENCY[usize::from(byte)]).sum()
}

/// The number of positions of the expression when its counts are written out.
fn positions(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Capture(_) => 0,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        HirKind::Concat(list) | HirKind::Alternation(list) => list.iter().map(positions).fold(0, usize::saturating_add),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            positions(sub).saturating_mul(max.unwrap_or(*min + 1).max(1) as usize)
        }
    }
}
