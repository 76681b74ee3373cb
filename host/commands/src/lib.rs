//! A command line of a shell as permissions and rules see it: the simple commands in it, wherever they are, and what is not known of them.
//!
//! The line is parsed as a POSIX shell and as bash would read it, since either can be the `sh` of a machine; what one of them runs counts. A parser
//! for untrusted text must not take the program down: it has a thread of its own with a large stack, and the line has limits.

#![forbid(unsafe_code)]

mod assignment;
mod documents;
mod expansion;
mod listed;
mod options;
mod output;
mod parameter;
mod path;
mod pattern;
mod piped;
mod shell;
mod simple;
mod unnamed;
mod values;
mod walk;
mod word;
mod work;
mod wrapper;

use shuck_parser::ShellDialect;

use documents::Source;
pub use listed::{Listed, listed};
use pattern::Piece;
pub use pattern::{Match, Pattern};
use simple::canonical;
pub use unnamed::{NamePart, Unnamed};
use values::Values;
use walk::{Found, Simple};
use work::{SPENT, Work};

/// The longest line that is parsed.
const MAX_BYTES: usize = 32 << 10;
/// The most of braces times bytes of a word, summed up over all words: for each brace the parser looks through the word for its end.
const MAX_BRACES: usize = 1 << 20;
/// What the parser and the walk through its result can take.
const STACK_BYTES: usize = 16 << 20;

/// A command line.
#[derive(Debug)]
pub struct Line {
    text: String,
    found: Found,
}

impl Line {
    /// Reads a line.
    pub fn of(text: &str) -> Self {
        let undecided = |why: String| Found { undecided: Some(why), ..Found::default() };
        let found = guarded(text, read);
        Self { text: text.to_owned(), found: found.unwrap_or_else(undecided) }
    }

    /// Whether a pattern that asks or denies is about the line: about all of it as it is written, or about a command in it.
    pub fn matches(&self, pattern: &Pattern) -> Match {
        if pattern.matches([Piece::Text(&self.text)]) == Match::Yes {
            return Match::Yes;
        }
        let of_all = if self.found.undecided.is_some() { Match::Maybe } else { Match::No };
        self.found.simple.iter().map(|simple| simple.matches(pattern)).fold(of_all, Match::max)
    }

    /// Whether patterns that allow cover all that the line does.
    pub fn is_covered(&self, patterns: &[&Pattern]) -> bool {
        let is_whole = |pattern: &&Pattern| {
            let same_operators = operators(&self.text).eq(operators(pattern.glob()));
            same_operators && pattern.matches([Piece::Text(&self.text)]) == Match::Yes
        };
        if patterns.iter().any(|pattern| pattern.is_exactly(&self.text)) {
            return true;
        }
        let Found { simple, undecided, beyond, .. } = &self.found;
        if undecided.is_some() || self.text.chars().any(|c| !matches!(c, '\t' | '\n') && flow::is_hidden(c)) {
            return false;
        }
        // A pattern with operators is about a whole line: `cargo test | head*`.
        if operators(&self.text).next().is_some()
            && simple.iter().all(|one| one.within.is_none())
            && patterns.iter().any(is_whole)
        {
            return true;
        }
        beyond.is_none() && !simple.is_empty() && simple.iter().all(|one| self.covers(one, patterns))
    }

    fn covers(&self, simple: &Simple, patterns: &[&Pattern]) -> bool {
        let Some((root, name)) = simple.within else {
            return patterns.iter().any(|pattern| simple.is_covered(pattern));
        };
        // A pattern that covers the command which runs this one is about this one as well if it names it before its first wildcard.
        let root = self.found.simple.get(root);
        let named = root.and_then(|root| canonical(root.words.get(..=name)?));
        let is_named = |pattern: &&&Pattern| named.as_ref().is_some_and(|named| pattern.start().starts_with(named));
        let by_root = |pattern: &&Pattern| root.is_some_and(|root| root.is_covered(pattern)) && is_named(&pattern);
        patterns.iter().any(|pattern| simple.is_covered(pattern) || by_root(pattern))
    }

    /// Why a pattern can match or not, for the end of a sentence.
    pub fn doubt(&self) -> &str {
        self.found.undecided.as_deref().unwrap_or("a part of it is only known when it runs")
    }
}

/// Reads a text where a parser that fails takes nothing else down, if it is not too long.
fn guarded<T: Send>(text: &str, read: impl FnOnce(&Source) -> T + Send) -> Result<T, String> {
    let mut source = Source::whole(text);
    if is_too_much(text) {
        source = Source::without_documents(text);
    }
    if is_too_much(&source.text) {
        let most = MAX_BYTES >> 10;
        return Err(format!("it is longer than {most} KiB, or has too many braces to be looked at"));
    }
    let reader = std::thread::Builder::new().name("tidegate-command".to_owned()).stack_size(STACK_BYTES);
    std::thread::scope(|scope| {
        let reading = reader.spawn_scoped(scope, || read(&source)).map_err(|error| error.to_string())?;
        reading.join().map_err(|_| "the parser failed".to_owned())
    })
}

fn is_too_much(text: &str) -> bool {
    let braces = |word: &str| word.matches('{').count().saturating_mul(word.len());
    text.len() > MAX_BYTES || text.split_whitespace().map(braces).sum::<usize>() > MAX_BRACES
}

fn walked(source: &Source, dialect: ShellDialect, work: &Work) -> Found {
    let walk = |values| {
        let mut found = Found { values, work: work.clone(), cuts: source.cuts.clone(), ..Found::default() };
        walk::script(&source.text, dialect, 0, &mut found);
        found
    };
    let mut found = walk(Values::new(work.clone()));
    if !found.values.is_empty() && !work.is_spent() {
        // A function or a loop can use what is assigned after it.
        found = walk(found.values);
    }
    if !found.cuts.is_empty() {
        found.not_read(&source.text, "where its here-documents begin is not known");
    }
    if let Some(most) = found.is_full {
        found.not_read(&source.text, format!("its commands have more than {most} words"));
    }
    if work.is_spent() {
        found.undecided.get_or_insert_with(|| SPENT.to_owned());
        found.is_odd = true;
    }
    found
}

fn read(source: &Source) -> Found {
    let work = Work::default();
    let mut found = walked(source, ShellDialect::Posix, &work);
    let other = walked(source, ShellDialect::Bash, &work);
    found.undecided = found.undecided.or(other.undecided);
    found.beyond = found.beyond.or(other.beyond);
    // Most lines are the same to both.
    if found.simple != other.simple {
        let first = found.simple.len();
        let moved =
            |simple: Simple| Simple { within: simple.within.map(|(root, name)| (root + first, name)), ..simple };
        found.simple.extend(other.simple.into_iter().map(moved));
    }
    found
}

fn operators(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| is_operator(*c))
}

fn is_operator(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '$' | '(' | ')' | '`' | '\\') || (c != '\t' && flow::is_hidden(c))
}
