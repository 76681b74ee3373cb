//! Conditions as authors write them: each is valid or refused with a position, and valid ones fire at the same byte
//! however the text is cut.

use std::sync::Arc;

use rules::engine::{Automaton, Cursor, Match, Pattern};

pub(crate) const WORDS: &[&str] = &[
    "(?i)",
    "(?m)",
    "(?s)",
    "(?x)",
    "(?:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?<n>",
    "(?>",
    ")",
    "|",
    "*",
    "+",
    "?",
    "*?",
    "++",
    "{2}",
    "{2,}",
    "{,3}",
    "{",
    "}",
    "[",
    "[^",
    "]",
    "[^]",
    "[[:alpha:]]",
    "&&[",
    "--[",
    "-",
    "^",
    "$",
    ".",
    "\\b",
    "\\B",
    "\\w",
    "\\W",
    "\\d",
    "\\s",
    "\\S",
    "\\/",
    "\\<",
    "\\b{start}",
    "\\u00e9",
    "\\uD83D\\uDE00",
    "\\x41",
    "\\x{10FFFF}",
    "\\cJ",
    "\\1",
    "\\p{L}",
    "\\A",
    "\\z",
    "é",
    "#",
    "\n",
    "a",
    "ab",
    " ",
];

const TEXTS: [&str; 6] =
    ["", "abc foo\nbar", "const x = any;\r\n// TODO\r\n", "é ü😀 _a1 ", "((()))[]{}", "aaaaaaaaaabbbbbbbbbb"];

/// Longer ones are not looked at: they say nothing new.
const MOST: usize = 200;

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.len() > MOST {
        return;
    }
    let pattern = match Pattern::new(&text) {
        Ok(pattern) => pattern,
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error:?}");
            return;
        }
    };
    let automaton = Automaton::new(vec![Arc::new(pattern)]);
    for text in TEXTS {
        assert_eq!(first(&automaton, text.as_bytes(), text.len()), first(&automaton, text.as_bytes(), 1), "{text:?}");
    }
}

/// The first hit, with the text fed in chunks of `size` bytes.
fn first(automaton: &Arc<Automaton>, text: &[u8], size: usize) -> Option<Match> {
    let mut cursor = Cursor::new(automaton);
    let mut found = None;
    for piece in text.chunks(size.max(1)) {
        cursor.feed(piece, |hit| {
            found.get_or_insert(hit);
            true
        });
    }
    cursor.finish(|hit| {
        found.get_or_insert(hit);
        true
    });
    found
}
