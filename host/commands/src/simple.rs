//! One simple command, and whether a pattern is about it.

use crate::pattern::{Match, Pattern, Piece};
use crate::walk::Simple;
use crate::word::{Part, Word};

/// The most places where the arguments of a command can begin that are tried.
const MAX_STARTS: usize = 32;

impl Simple {
    /// Whether a pattern that asks or denies is about the command: as it is written, without the folder of its program, or without the
    /// options between the program's name and its first word.
    pub(crate) fn matches(&self, pattern: &Pattern) -> Match {
        let as_written = self.written.as_deref().map_or(Match::No, |text| pattern.matches([Piece::Text(text)]));
        let Some((name, arguments)) = self.words.split_first() else { return as_written };
        let names = [name.clone(), name.without_folder()];
        let names = if names[0] == names[1] { &names[..1] } else { &names[..] };
        let starts = without_options(arguments);
        let mut best = if starts.len() > MAX_STARTS { as_written.max(Match::Maybe) } else { as_written };
        for name in names {
            for start in starts.iter().copied().take(MAX_STARTS) {
                let rest = arguments.get(start..).unwrap_or_default();
                best = best.max(of_words(pattern, name, rest));
            }
        }
        if self.is_certain { best } else { best.min(Match::Maybe) }
    }

    /// Whether a pattern that allows covers the command: as it is written, or as its words are with one blank between them.
    pub(crate) fn is_covered(&self, pattern: &Pattern) -> bool {
        // An expansion could be anything.
        let Some(words) = canonical(&self.words) else { return false };
        let texts = self.written.iter().chain([&words]);
        self.is_certain && texts.into_iter().any(|text| pattern.matches([Piece::Text(text)]) == Match::Yes)
    }
}

/// The words with one blank between them, quoted where a shell would need it; `None` where one has an expansion.
pub(crate) fn canonical(words: &[Word]) -> Option<String> {
    let quoted = |word: &Word| {
        let text = word.as_written()?;
        let plain = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\');
        Some(if !text.is_empty() && text.chars().all(plain) {
            text
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        })
    };
    words.iter().map(quoted).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
}

/// Where the arguments can begin for a pattern that does not name the options before the first word: `git -C DIR push` is a `git push`.
pub(crate) fn without_options(arguments: &[Word]) -> Vec<usize> {
    let is_option = |at: usize| {
        arguments.get(at).is_some_and(|word: &Word| word.start().len() > 1 && word.start().starts_with(['-', '+']))
    };
    let (mut starts, mut at) = (vec![0], 0);
    while is_option(at) {
        at += 1;
        starts.push(at);
        // What follows can be the option's value.
        if at < arguments.len() && !is_option(at) {
            at += 1;
            starts.push(at);
        }
    }
    starts
}

/// Holds a pattern against words. Words that can vanish are taken as there first: only that decides.
fn of_words(pattern: &Pattern, name: &Word, arguments: &[Word]) -> Match {
    let words = || std::iter::once(name).chain(arguments);
    let all = pattern.matches(words().enumerate().flat_map(|(index, word)| {
        let blank = (index > 0).then_some(Piece::Text(" "));
        blank.into_iter().chain(word.parts.iter().map(piece))
    }));
    if all == Match::Yes || !words().any(|word| word.is_elastic) {
        return all;
    }
    let mut pieces = Vec::new();
    for (index, word) in words().enumerate() {
        if word.is_elastic {
            // None, one or several words.
            pieces.push(Piece::Any);
            continue;
        }
        if index > 0 {
            pieces.push(Piece::Text(" "));
        }
        pieces.extend(word.parts.iter().map(piece));
    }
    all.max(pattern.matches(pieces).min(Match::Maybe))
}

fn piece(part: &Part) -> Piece<'_> {
    match part {
        Part::Text(text) => Piece::Text(text),
        Part::Files(_) | Part::Unknown(_) => Piece::Any,
    }
}
