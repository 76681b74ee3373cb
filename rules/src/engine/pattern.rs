//! One condition as a machine of states, with the greatest distance of each state from the pattern's start.

use regex_automata::nfa::thompson::{self, NFA, State as NfaState, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;

use super::look::{Context, holds, looks_behind_only};
use crate::dialect::{self, PatternError};

/// "More than can be told": the distance of a state behind a loop.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// The most states of one condition. `\w{1000}` has 2,000; a larger one makes every miss of the table slow.
const MAX_STATES: usize = 10_000;

/// The most bytes that building one condition may take, checked before its states are counted.
const MAX_BUILD_BYTES: usize = 4 << 20;

thread_local! {
    /// Compiles every condition of a thread: its scratch space of 400 KB is set up once.
    static COMPILER: thompson::Compiler = {
        let mut compiler = thompson::Compiler::new();
        compiler.configure(
            thompson::Config::new()
                .utf8(false)
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(Some(MAX_BUILD_BYTES)),
        );
        compiler
    };
}

/// One state.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Goes on with a byte within one of the ranges, sorted.
    Bytes(Box<[(u8, u8, u32)]>),
    /// Goes on without a byte.
    Jump(Box<[u32]>),
    /// Goes on without a byte where the assertion holds.
    Look(Look, u32),
    /// The pattern has matched.
    Match,
    /// Goes nowhere.
    Fail,
}

/// What stands after the place that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nobody has seen it: assertions that need it do not hold.
    Unseen,
    /// This byte.
    Byte(u8),
    /// The block's end.
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

/// One condition, ready to run.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) start: u32,
    /// For each state, the most bytes between the pattern's start and it.
    pub(crate) depth: Vec<u32>,
    max_len: u32,
    matches_empty: bool,
}

impl Pattern {
    /// Compiles a condition of the rules' dialect.
    ///
    /// # Errors
    /// It cannot be read, uses look-around or back-references, or is too large.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let hir = dialect::parse(text)?;
        let too_large = |what: String| PatternError {
            message: format!("the condition is too large: {what}"),
            help: Some("use smaller counts in `{…}` or split the condition".into()),
            span: 0..text.len(),
        };
        let nfa = COMPILER.with(|compiler| compiler.build_from_hir(&hir).map_err(|error| error.to_string()));
        let nfa = nfa.map_err(too_large)?;
        if nfa.states().len() > MAX_STATES {
            return Err(too_large(format!("{} states, {MAX_STATES} are allowed", nfa.states().len())));
        }
        let steps: Vec<Step> = nfa.states().iter().map(|state| step_of(state, &nfa)).collect();
        let start = nfa.start_anchored().as_u32();
        let depth = depths(&steps, start);
        let ends = steps.iter().zip(&depth).filter(|(step, _)| matches!(step, Step::Match)).map(|(_, d)| *d);
        let max_len = ends.max().unwrap_or(0);
        let matches_empty = reaches_match_at_once(&steps, start);
        Ok(Self { text: text.to_owned(), steps, start, depth, max_len, matches_empty })
    }

    /// The condition as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The most bytes of a match; none where there is no bound.
    pub fn max_len(&self) -> Option<u32> {
        (self.max_len != UNBOUNDED).then_some(self.max_len)
    }

    /// Whether it matches at any place without a byte and without an assertion.
    pub fn matches_empty(&self) -> bool {
        self.matches_empty
    }

    /// The first start of a match that ends where `window` ends; `before` says what stood before the window, `next` what
    /// comes after it. None: the match started before the window.
    pub fn start_of_match(&self, window: &[u8], before: Context, next: Next) -> Option<usize> {
        let end = window.len();
        // Threads are kept in order of their start, so the first that reaches a state is the earliest.
        let mut threads: Vec<(u32, usize)> = Vec::new();
        let mut arrived = Vec::new();
        let mut seen = vec![usize::MAX; self.steps.len()];
        let first = self.max_len().map_or(0, |max| end.saturating_sub(max as usize));
        for at in first..=end {
            let context = if at == 0 { before } else { Context::after(window[at - 1]) };
            let next = window.get(at).map_or(next, |byte| Next::Byte(*byte));
            threads.clear();
            arrived.push((self.start, at));
            let mut matched = None;
            for (state, start) in arrived.drain(..) {
                matched = matched.or(self.close(state, start, context, next, &mut threads, &mut seen, at));
            }
            if at == end {
                return matched;
            }
            let byte = window[at];
            for &(state, start) in &threads {
                if let Step::Bytes(ranges) = &self.steps[state as usize] {
                    arrived.extend(ranges.iter().filter(|r| r.0 <= byte && byte <= r.1).map(|r| (r.2, start)));
                }
            }
        }
        None
    }

    #[expect(clippy::too_many_arguments, reason = "a walk over borrowed scratch space, called in one place")]
    fn close(
        &self,
        state: u32,
        start: usize,
        before: Context,
        next: Next,
        threads: &mut Vec<(u32, usize)>,
        seen: &mut [usize],
        at: usize,
    ) -> Option<usize> {
        let mut stack = vec![state];
        let mut matched = None;
        while let Some(state) = stack.pop() {
            if std::mem::replace(&mut seen[state as usize], at) == at {
                continue;
            }
            match &self.steps[state as usize] {
                Step::Bytes(_) => threads.push((state, start)),
                Step::Jump(to) => stack.extend(to.iter().copied()),
                Step::Look(look, to) if next.allows(*look, before) => stack.push(*to),
                Step::Match => matched = Some(start),
                Step::Look(..) | Step::Fail => {}
            }
        }
        matched
    }
}

fn step_of(state: &NfaState, nfa: &NFA) -> Step {
    let id = |id: &StateID| id.as_u32();
    match state {
        NfaState::ByteRange { trans } => Step::Bytes(Box::new([(trans.start, trans.end, trans.next.as_u32())])),
        NfaState::Sparse(sparse) => {
            Step::Bytes(sparse.transitions.iter().map(|t| (t.start, t.end, t.next.as_u32())).collect())
        }
        NfaState::Dense(_) => Step::Bytes(
            (0..=u8::MAX)
                .filter_map(|byte| match state {
                    NfaState::Dense(dense) => dense.matches_byte(byte).map(|to| (byte, byte, to.as_u32())),
                    _ => None,
                })
                .collect(),
        ),
        NfaState::Look { look, next } => Step::Look(*look, next.as_u32()),
        NfaState::Union { alternates } => Step::Jump(alternates.iter().map(id).collect()),
        NfaState::BinaryUnion { alt1, alt2 } => Step::Jump(Box::new([alt1.as_u32(), alt2.as_u32()])),
        NfaState::Capture { next, .. } => Step::Jump(Box::new([next.as_u32()])),
        NfaState::Fail => Step::Fail,
        NfaState::Match { .. } => {
            debug_assert_eq!(nfa.pattern_len(), 1, "one condition is one pattern");
            Step::Match
        }
    }
}

fn reaches_match_at_once(steps: &[Step], start: u32) -> bool {
    let (mut stack, mut seen) = (vec![start], vec![false; steps.len()]);
    while let Some(state) = stack.pop() {
        if std::mem::replace(&mut seen[state as usize], true) {
            continue;
        }
        match &steps[state as usize] {
            Step::Match => return true,
            Step::Jump(to) => stack.extend(to.iter().copied()),
            _ => {}
        }
    }
    false
}

/// The longest way from `start` to each state, counted in bytes; `UNBOUNDED` behind a loop that takes bytes. States
/// that cannot be reached get 0.
fn depths(steps: &[Step], start: u32) -> Vec<u32> {
    let order = components(steps, start);
    let mut component = vec![usize::MAX; steps.len()];
    for (number, members) in order.iter().enumerate() {
        for &state in members {
            component[state as usize] = number;
        }
    }
    let mut depth = vec![0_u32; steps.len()];
    // Components come in reverse topological order: the start's is the last.
    for (number, members) in order.iter().enumerate().rev() {
        let inside = |to: u32| component[to as usize] == number;
        let eats_a_byte = |&state: &u32| edges(&steps[state as usize]).any(|(to, bytes)| bytes > 0 && inside(to));
        let own = members.iter().map(|&s| depth[s as usize]).max().unwrap_or(0);
        let own = if members.iter().any(eats_a_byte) { UNBOUNDED } else { own };
        for &state in members {
            depth[state as usize] = own;
        }
        for &state in members {
            for (to, bytes) in edges(&steps[state as usize]).filter(|(to, _)| !inside(*to)) {
                depth[to as usize] = depth[to as usize].max(own.saturating_add(bytes));
            }
        }
    }
    depth
}

fn edges(step: &Step) -> Box<dyn Iterator<Item = (u32, u32)> + '_> {
    match step {
        Step::Bytes(ranges) => Box::new(ranges.iter().map(|r| (r.2, 1))),
        Step::Jump(to) => Box::new(to.iter().map(|to| (*to, 0))),
        Step::Look(_, to) => Box::new(std::iter::once((*to, 0))),
        Step::Match | Step::Fail => Box::new(std::iter::empty()),
    }
}

/// The strongly connected components reachable from `start`, in reverse topological order (Tarjan, without recursion).
fn components(steps: &[Step], start: u32) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let targets: Vec<Vec<u32>> = steps.iter().map(|s| edges(s).map(|(to, _)| to).collect()).collect();
    let (mut index, mut low) = (vec![NEW; steps.len()], vec![0_u32; steps.len()]);
    let (mut on_stack, mut stack, mut out, mut counter) = (vec![false; steps.len()], Vec::new(), Vec::new(), 0_u32);
    let mut calls: Vec<(u32, usize)> = vec![(start, 0)];
    while let Some((state, edge)) = calls.pop() {
        let s = state as usize;
        if edge == 0 {
            (index[s], low[s]) = (counter, counter);
            counter += 1;
            stack.push(state);
            on_stack[s] = true;
        } else {
            low[s] = low[s].min(low[targets[s][edge - 1] as usize]);
        }
        let mut descended = false;
        for (at, &target) in targets[s].iter().enumerate().skip(edge) {
            let to = target as usize;
            if index[to] == NEW {
                calls.push((state, at + 1));
                calls.push((target, 0));
                descended = true;
                break;
            } else if on_stack[to] {
                low[s] = low[s].min(index[to]);
            }
        }
        if !descended && low[s] == index[s] {
            let mut members = Vec::new();
            while let Some(member) = stack.pop() {
                on_stack[member as usize] = false;
                members.push(member);
                if member == state {
                    break;
                }
            }
            out.push(members);
        }
    }
    out
}
