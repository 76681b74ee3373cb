//! Colours of code, line by line.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr as _;
use std::sync::LazyLock;

use anstyle::Style;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::look::{PLAIN, SCOPES};
use super::row::Row;

/// The most bytes of a line that has colours: it and those after it in its block have none otherwise. The time for a line is not linear in
/// its length.
pub(super) const MAX_LINE: usize = 1024;

/// The maximum number of fence characters that are kept, and of bytes behind them.
const MAX_OPENING: usize = 256;

/// The grammars of all languages.
static LANGUAGES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// The styles of scopes, the longest names first.
static STYLES: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let mut styles: Vec<_> =
        SCOPES.iter().filter_map(|(name, style)| Some((Scope::from_str(name).ok()?, *style))).collect();
    styles.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len()));
    styles
});

/// Names a place in a block of code: all of its text up to there.
pub(super) type Place = u64;

/// The lines of code so far, so that each is parsed once however often its block is rendered.
#[derive(Debug, Default)]
pub(super) struct Highlighter {
    lines: HashMap<Place, (Option<State>, Row)>,
    /// The place at which the first block continues, whose lines before it are forgotten.
    seed: Option<Place>,
}

/// What the parser knows at the end of a line.
#[derive(Clone, Debug)]
struct State {
    parser: ParseState,
    scopes: ScopeStack,
}

impl Highlighter {
    /// The start of a block of code. `first`: it is the first of the text.
    pub(super) fn start(&mut self, info: &str, is_first: bool) -> Place {
        if let Some(seed) = self.seed.filter(|_| is_first) {
            return seed;
        }
        let place = place(0, info);
        self.lines.entry(place).or_insert_with(|| {
            let state =
                language(info).map(|language| State { parser: ParseState::new(language), scopes: ScopeStack::new() });
            (state, Row::default())
        });
        place
    }

    /// The row of a line of code after a place, and the place after it.
    pub(super) fn line(&mut self, before: Place, line: &str) -> (Row, Place) {
        let place = place(before, line);
        if let Some((_, row)) = self.lines.get(&place) {
            return (row.clone(), place);
        }
        let mut state = self.lines.get(&before).and_then(|(state, _)| state.clone()).filter(|_| line.len() <= MAX_LINE);
        let row = state.as_mut().and_then(|state| state.line(line)).unwrap_or_else(|| {
            state = None;
            plain(line)
        });
        // What is not a line yet is not rendered again.
        if line.ends_with('\n') {
            self.lines.insert(place, (state, row.clone()));
        }
        (row, place)
    }

    /// Forgets the lines of a block that is the first of the text from now on, but for what the next one depends on.
    pub(super) fn seed(&mut self, fence: &str, lines: &str) {
        let mut place = self.start(info(fence), true);
        for line in lines.split_inclusive('\n') {
            place = self.line(place, line).1;
        }
        let state = self.lines.remove(&place).map(|(state, _)| state).unwrap_or_default();
        self.lines.clear();
        self.lines.insert(place, (state, Row::default()));
        self.seed = Some(place);
    }

    /// Forgets all lines, because another text begins.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.seed = None;
    }
}

impl State {
    /// The row of a line; `None`: it cannot be parsed.
    fn line(&mut self, line: &str) -> Option<Row> {
        let changes = self.parser.parse_line(line, &LANGUAGES).ok()?;
        let (mut row, mut done) = (Row::code(), 0);
        let text = line.trim_end_matches('\n');
        for (at, change) in changes {
            let at = at.min(text.len());
            row.push(text.get(done..at)?, self.style());
            done = at;
            self.scopes.apply(&change).ok()?;
        }
        row.push(text.get(done..)?, self.style());
        Some(row)
    }

    /// The style of the innermost scope that has one.
    fn style(&self) -> Style {
        let of = |scope: &Scope| STYLES.iter().find(|(known, _)| known.is_prefix_of(*scope)).map(|(_, style)| *style);
        self.scopes.as_slice().iter().rev().find_map(of).unwrap_or(PLAIN)
    }
}

fn plain(line: &str) -> Row {
    let mut row = Row::code();
    row.push(line.trim_end_matches('\n'), PLAIN);
    row
}

fn place(before: Place, text: &str) -> Place {
    let mut hasher = DefaultHasher::new();
    (before, text).hash(&mut hasher);
    hasher.finish()
}

/// What follows the marks of a fence.
pub(super) fn info(fence: &str) -> &str {
    fence.trim().trim_start_matches(['`', '~']).trim()
}

/// Returns a fence that begins a code block like the given one, and its line end. It is short, however long the given one is.
pub(super) fn opening(fence: &str) -> String {
    let fence = fence.trim_start();
    let mark = fence.chars().next().unwrap_or('`');
    let marks = fence.chars().take_while(|c| *c == mark).count();
    let info = fence.get(marks..).unwrap_or_default();
    let info = &info[..info.floor_char_boundary(MAX_OPENING)];
    format!("{}{info}\n", mark.to_string().repeat(marks.min(MAX_OPENING)))
}

/// The language of an info string: its first word, without what some models append to it.
fn language(info: &str) -> Option<&'static SyntaxReference> {
    let word = info.split([' ', '\t', ',', '{', ':']).find(|word| !word.is_empty())?.to_lowercase();
    let word = match word.as_str() {
        "shell" | "console" | "shell-session" | "sh-session" => "sh",
        "jsx" => "js",
        "jsonc" | "json5" => "json",
        word => word,
    };
    LANGUAGES.find_syntax_by_token(word).filter(|language| language.name != "Plain Text")
}
