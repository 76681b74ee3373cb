//! One condition, ready to run: its states, what it can begin with, and where a match of it began.

use regex_syntax::hir::Look;

use super::compile::{self, MAX_STATES, Program, Step, UNBOUNDED};
use super::look::{Context, holds, looks_behind_only};
use crate::dialect::{self, PatternError};

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

/// One condition, ready to run on UTF-8 text.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    pub(crate) program: Program,
    pub(crate) begin: Begin,
}

/// How a pattern begins.
#[derive(Debug, Default)]
pub(crate) struct Begin {
    /// The bytes that a match can begin with, whatever its assertions say: one bit each.
    bytes: [u64; 4],
    /// It can match without a byte where its assertions hold.
    asserts_only: bool,
    /// It matches at any place without a byte and without an assertion.
    empty: bool,
}

impl Pattern {
    /// Compiles a condition of the rules' dialect.
    ///
    /// # Errors
    /// It cannot be read, uses look-around or back-references, or is too large.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let hir = dialect::parse(text)?;
        let program = compile::compile(&hir).map_err(|_| PatternError {
            message: format!("the condition is too large: it has more than {MAX_STATES} states"),
            help: Some("use smaller counts in `{…}` or split the condition".into()),
            span: 0..text.len(),
        })?;
        let begin = Begin::of(&program);
        Ok(Self { text: text.to_owned(), program, begin })
    }

    /// The condition as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The most bytes of a match; none where there is no bound.
    pub fn max_len(&self) -> Option<u32> {
        (self.program.max_len != UNBOUNDED).then_some(self.program.max_len)
    }

    /// How many states it has; at most 10,000.
    pub fn states(&self) -> usize {
        self.program.steps.len()
    }

    /// Whether it matches at any place without a byte and without an assertion.
    pub fn matches_empty(&self) -> bool {
        self.begin.empty
    }

    /// Whether it matches somewhere without a byte because an assertion holds there: `^`, `$`, `\b`. That it matches an
    /// empty block does not count.
    pub fn matches_no_bytes(&self) -> bool {
        self.begin.asserts_only && Begin::somewhere(&self.program)
    }

    /// The first start of a match that ends where `window` ends; `before` says what stood before the window, `next` what
    /// comes after it. None: the match started before the window.
    pub fn start_of_match(&self, window: &[u8], before: Context, next: Next) -> Option<usize> {
        let end = window.len();
        // Threads are kept in order of their start, so the first that reaches a state is the earliest.
        let mut walk =
            Walk { program: &self.program, seen: vec![usize::MAX; self.program.steps.len()], stack: Vec::new() };
        let (mut threads, mut arrived) = (Vec::new(), Vec::new());
        let first = self.max_len().map_or(0, |max| end.saturating_sub(max as usize));
        for at in first..=end {
            let context = if at == 0 { before } else { Context::after(window[at - 1]) };
            let next = window.get(at).map_or(next, |byte| Next::Byte(*byte));
            threads.clear();
            arrived.push((self.program.start, at));
            let mut matched = None;
            for (state, start) in arrived.drain(..) {
                let ends =
                    walk.close(state, at, |look| next.allows(look, context), |state| threads.push((state, start)));
                matched = matched.or(ends.then_some(start));
            }
            if at == end {
                return matched;
            }
            for &(state, start) in &threads {
                arrived.extend(self.program.after(state, window[at]).map(|to| (to, start)));
            }
        }
        None
    }
}

impl Begin {
    fn of(program: &Program) -> Self {
        let mut out = Self::default();
        let mut walk = Walk { program, seen: vec![usize::MAX; program.steps.len()], stack: Vec::new() };
        out.empty = walk.close(program.start, 0, |_| false, |_| {});
        out.asserts_only = walk.close(
            program.start,
            1,
            |_| true,
            |state| {
                for (low, high, _) in program.ranges_of(state) {
                    (low..=high).for_each(|byte| out.bytes[usize::from(byte >> 6)] |= 1 << (byte & 63));
                }
            },
        );
        out
    }

    /// Whether the program matches without a byte at any place of a text that is not empty.
    fn somewhere(program: &Program) -> bool {
        let mut walk = Walk { program, seen: vec![usize::MAX; program.steps.len()], stack: Vec::new() };
        let next = [None, Some(b'\n'), Some(b'\r'), Some(b'a'), Some(b' ')];
        let places = Context::ALL.into_iter().flat_map(|before| next.map(|next| (before, next)));
        places
            .filter(|place| *place != (Context::Start, None))
            .enumerate()
            .any(|(round, (before, next))| walk.close(program.start, round, |look| holds(look, before, next), |_| {}))
    }

    /// Whether a match can begin at a place that `next` follows; no byte = the block's end.
    pub(crate) fn allows(&self, next: Option<u8>) -> bool {
        self.asserts_only || next.is_some_and(|byte| self.bytes[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1)
    }
}

/// A walk over states that need no byte, each once a round.
struct Walk<'a> {
    program: &'a Program,
    seen: Vec<usize>,
    stack: Vec<u32>,
}

impl Walk<'_> {
    /// Gives the states behind `state` that take a byte; tells whether the pattern has matched.
    fn close(&mut self, state: u32, round: usize, allows: impl Fn(Look) -> bool, mut takes: impl FnMut(u32)) -> bool {
        let mut matched = false;
        self.stack.push(state);
        while let Some(state) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[state as usize], round) == round {
                continue;
            }
            match self.program.steps[state as usize] {
                Step::Byte { .. } | Step::Bytes { .. } => takes(state),
                Step::Split(one, other) => self.stack.extend([other, one]),
                Step::Look(look, to) if allows(look) => self.stack.push(to),
                Step::Look(..) => {}
                Step::Match => matched = true,
            }
        }
        matched
    }
}
