//! What secrets look like: the one list of shapes and names, for everything that keeps a secret from being shown, recorded or passed on.
//!
//! [`find`] returns the secrets of a line. [`Lines`] takes the lines of a text one by one, and knows what spans them: a private key, a
//! table with a column of passwords, a name whose value is on the next line. [`scan`] takes a text that may go on, and also returns from
//! where it must be searched again. [`strength`], [`mentions_secret`] and [`variable`] judge names: of keys in files, and of variables of the environment.
//!
//! A value is a secret by its shape (keys of vendors, web tokens, key blocks, web-hooks, passwords in addresses and in arguments of
//! commands), or by its name (`password = "…"`, `API_KEY=…`, `the password is …`); what stands in for one in examples is none. Searching
//! takes time in proportion to the text. There is no regular expression, no allocation but for the result, and no dependency.
//!
//! ```
//! let line = "login with user bob, password: hunter2, and be quick";
//! let found = tidegate_secrets::find(line);
//! assert_eq!((found[0].kind, &line[found[0].start..found[0].end]), ("password", "hunter2"));
//! assert!(tidegate_secrets::find("password: <your-password>").is_empty());
//! ```
#![forbid(unsafe_code)]

use std::borrow::Cow;

mod address;
mod assigned;
mod command;
mod forms;
mod judged;
mod key_block;
mod lines;
mod names;
mod operator;
mod plausible;
mod scan;
mod shapes;
mod structured;
mod table;
mod text;
mod value;
mod variable;
mod waiting;
mod words;

pub use lines::Lines;
pub use names::{Strength, mentions_secret, strength};
pub use variable::variable;

/// What a secret is, in words for the user: `GitHub token`, `password`.
pub type Kind = &'static str;

/// What a key block is called.
pub const PRIVATE_KEY: Kind = "private key";

/// A secret in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
    /// Where the part begins that nobody can know: behind the beginning that all keys of the kind have. Otherwise `start`.
    pub body: usize,
    /// It continues a secret of the line before, which has been shown as one: nothing is to be shown in its place.
    pub continues: bool,
    /// It reaches the end of the text, and what follows can show that it is none. Of a key that tells itself nothing can.
    pub is_open: bool,
}

impl Found {
    pub(crate) fn new(kind: Kind, start: usize, end: usize) -> Self {
        Self { kind, start, end, body: start, continues: false, is_open: false }
    }

    pub(crate) fn behind(self, body: usize) -> Self {
        Self { body, ..self }
    }
}

/// The secrets of a text that may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// The secrets, in order. Those that reach the end may continue.
    pub found: Vec<Found>,
    /// From here on bytes may belong to a secret that is not complete, or that what follows can show to be none; the length of the text where
    /// none may.
    pub undecided: usize,
    /// From here on the text must be searched again when more of it arrives: where something may begin or continue, and the last bytes
    /// in any case, since what follows them may depend on them. Secrets behind it are found again.
    pub open: usize,
}

/// The secrets of a line, in order. A key block is found if it is on the line as a whole; [`Lines`] finds those that span lines.
#[must_use]
pub fn find(line: &str) -> Vec<Found> {
    Lines::default().take(line, "")
}

/// The text with `***` in the place of each secret, for logs and messages.
///
/// ```
/// let line = "cannot connect to postgres://bob:hunter2@db/app";
/// assert_eq!(tidegate_secrets::without_secrets(line), "cannot connect to postgres://bob:***@db/app");
/// ```
#[must_use]
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let (mut lines, mut masked, mut from, mut done) = (Lines::default(), String::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        for found in lines.take(line, "") {
            masked.push_str(&text[done..from + found.start]);
            masked.push_str(if found.continues { "" } else { "***" });
            done = from + found.end;
        }
        from += line.len();
    }
    if done == 0 { Cow::Borrowed(text) } else { Cow::Owned(masked + &text[done..]) }
}

/// The secrets of bytes that may go on. `before` is the byte before them. Key blocks are found over all their lines.
#[must_use]
pub fn scan(text: &[u8], before: Option<u8>) -> Scan {
    scan::Pass::new(text, before, true).run().0
}
