//! Placeholders, and the secret of each one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use tidegate_sdk::prelude::*;
use tidegate_sdk::random;

use crate::search::Span;
use crate::views::{self, View};

/// The kind of a secret that was found by no pattern of its own because two overlap in it.
const JOINED: &str = "value";

/// The prefix of all placeholders. They consist of capitals, digits and `_`: models copy such a word unchanged, and it needs no escape in
/// JSON, in the shell and in addresses.
const BEGINNING: &str = "TIDEGATE_SECRET_";

/// The prefix of keys in the state: the secret of a placeholder is under this and its name.
const KEY: &str = "mask/";

/// The alphabet of placeholders, without letters and digits that are easily confused.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The number of random letters at the end of a placeholder.
const SUFFIX: usize = 6;

/// The minimum length of secrets that are masked everywhere; a shorter one is masked only where it is found.
const TELLING: usize = 10;

/// The number of bytes by which places without a secret are skipped.
const START: usize = 4;

/// The placeholders of a session.
#[derive(Default)]
pub(crate) struct Masks {
    /// Whether the state was read.
    pub(crate) is_read: bool,
    secrets: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
    /// The first bytes of the secrets that are masked everywhere.
    starts: HashSet<[u8; START]>,
}

impl Masks {
    fn read(&mut self) -> Result<()> {
        if self.is_read {
            return Ok(());
        }
        for key in state::keys(KEY)? {
            if let Some(secret) = state::get::<String>(&key)? {
                self.add(key[KEY.len()..].to_owned(), secret);
            }
        }
        self.is_read = true;
        Ok(())
    }

    pub(crate) fn add(&mut self, name: String, secret: String) {
        if let Some(start) = secret.as_bytes().first_chunk().filter(|_| secret.len() >= TELLING) {
            self.starts.insert(*start);
        }
        self.names.entry(secret.clone()).or_insert_with(|| name.clone());
        self.secrets.insert(name, secret);
    }

    /// Assigns a placeholder to a secret that has none.
    pub(crate) fn keep(&mut self, kind: &str, secret: &str) -> Result<()> {
        self.read()?;
        if self.names.contains_key(secret) {
            return Ok(());
        }
        let mut name = named(kind);
        while self.secrets.contains_key(&name) {
            name = named(kind);
        }
        state::set_with(&format!("{KEY}{name}"), secret, state::Keep::Session)?;
        self.add(name, secret.to_owned());
        Ok(())
    }

    /// Returns the text with placeholders in place of these secrets, and of all occurrences of the known ones, also in these other forms of the
    /// text. Overlapping secrets are one secret.
    pub(crate) fn mask(&mut self, text: &str, spans: &[Span], views: &[View]) -> Result<Option<String>> {
        self.read()?;
        let mut all: Vec<Span> = self.known(text);
        all.extend(spans);
        let unwrapped = if self.starts.is_empty() { None } else { views::unwrapped(text) };
        for view in views.iter().chain(&unwrapped) {
            all.extend(self.known(&view.text).into_iter().filter_map(|found| view.original(found)));
        }
        all.sort_by_key(|span| (span.start, Reverse(span.end)));
        all.dedup_by(|next, before| {
            let overlaps = next.start < before.end;
            before.end = before.end.max(if overlaps { next.end } else { 0 });
            overlaps
        });
        for span in &all {
            self.keep(span.kind, &text[span.start..span.end])?;
        }
        let named = |span: &Span| Some((span.start, span.end, self.names.get(&text[span.start..span.end])?.as_str()));
        Ok(replaced(text, all.iter().filter_map(named).collect()))
    }

    /// Returns the places of known secrets, the longest one at each place.
    fn known(&self, text: &str) -> Vec<Span> {
        let begins = |(_, bytes): &(usize, &[u8])| bytes.first_chunk().is_some_and(|start| self.starts.contains(start));
        let windows = text.as_bytes().windows(START).enumerate().filter(begins);
        let places = windows.map(|(start, _)| start).filter(|start| text.is_char_boundary(*start));
        let found = places.filter_map(|start| {
            let (secret, _) = longest(&self.names, &text[start..], TELLING)?;
            Some(Span { kind: JOINED, start, end: start + secret.len() })
        });
        found.collect()
    }

    /// Returns the text with secrets in the place of their placeholders; `None` where it has none.
    pub(crate) fn unmask(&mut self, text: &str) -> Result<Option<String>> {
        if !text.contains(BEGINNING) {
            return Ok(None);
        }
        self.read()?;
        let mut all = Vec::new();
        for (at, _) in text.match_indices(BEGINNING) {
            let word = text[at..]
                .bytes()
                .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
                .count();
            let word = &text[at..at + word];
            // It can be a part of a longer identifier.
            if let Some((name, secret)) = longest(&self.secrets, word, BEGINNING.len()) {
                all.push((at, at + name.len(), secret));
            }
        }
        Ok(replaced(text, all))
    }
}

/// Returns the longest key, of at least `least` bytes, that is a prefix of a text, and its value.
fn longest<'m>(map: &'m BTreeMap<String, String>, text: &str, least: usize) -> Option<(&'m str, &'m str)> {
    let mut start = text;
    while start.len() >= least {
        let (key, value) = map.range::<str, _>((Bound::Unbounded, Bound::Included(start))).next_back()?;
        if start.starts_with(key.as_str()) {
            return (key.len() >= least).then_some((key, value));
        }
        // A key that is a prefix sorts before this one, and so is not longer than their common prefix.
        let common = key.bytes().zip(start.bytes()).take_while(|(one, other)| one == other).count();
        start = &start[..start.floor_char_boundary(common)];
    }
    None
}

/// Returns the text with these parts replaced; those within or across an earlier one are left out. `None` where there is none.
fn replaced(text: &str, parts: Vec<(usize, usize, &str)>) -> Option<String> {
    let (mut new, mut done) = (String::with_capacity(text.len()), 0);
    for (start, end, by) in parts {
        if start < done {
            continue;
        }
        new.push_str(&text[done..start]);
        new.push_str(by);
        done = end;
    }
    (done > 0).then(|| new + &text[done..])
}

/// Returns whether a text has a placeholder: then it is not a secret itself.
pub(crate) fn has_placeholder(text: &str) -> bool {
    text.contains(BEGINNING)
}

/// Creates a placeholder for a kind of secret.
fn named(kind: &str) -> String {
    let mut bytes = [0; SUFFIX];
    random::fill(&mut bytes);
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let kind: String = kind.chars().map(word).take(32).collect();
    let suffix: String = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    format!("{BEGINNING}{}_{suffix}", kind.trim_matches('_'))
}
