//! Placeholders, and the secret of each.

use std::collections::{BTreeMap, HashMap};

use tidegate_sdk::prelude::*;
use tidegate_sdk::random;

use crate::search::Span;

/// What all placeholders begin with. They are capitals, digits and `_` alone: models copy such a word as it is, and it is the same in JSON, in
/// the shell and in addresses.
const BEGINNING: &str = "TIDEGATE_SECRET_";

/// State: the secret of a placeholder is under this and its name.
const KEY: &str = "mask/";

/// Without letters and digits that are read as others.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The letters at the end of a placeholder.
const SUFFIX: usize = 6;

/// A shorter secret is masked where it is found, and not wherever its letters are.
const TELLING: usize = 10;

/// The placeholders of a session.
#[derive(Default)]
pub(crate) struct Masks {
    /// Whether the state was read.
    is_read: bool,
    secrets: BTreeMap<String, String>,
    names: HashMap<String, String>,
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

    fn add(&mut self, name: String, secret: String) {
        self.names.entry(secret.clone()).or_insert_with(|| name.clone());
        self.secrets.insert(name, secret);
    }

    /// Gives a secret a placeholder, where it has none.
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

    /// The text with placeholders in the place of these secrets, and of those that are known by now, wherever they are.
    pub(crate) fn mask(&mut self, text: &str, spans: &[Span]) -> Result<Option<String>> {
        self.read()?;
        let mut all: Vec<(usize, usize, &str)> = spans
            .iter()
            .filter_map(|span| Some((span.start, span.end, self.names.get(&text[span.start..span.end])?.as_str())))
            .collect();
        for (secret, name) in self.names.iter().filter(|(secret, _)| secret.len() >= TELLING) {
            all.extend(text.match_indices(secret.as_str()).map(|(at, found)| (at, at + found.len(), name.as_str())));
        }
        all.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
        Ok(replaced(text, all))
    }

    /// The text with secrets in the place of their placeholders; `None` where it has none.
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
            // It can be a part of a longer name.
            let known = self.secrets.iter().filter(|(name, _)| word.starts_with(name.as_str()));
            if let Some((name, secret)) = known.max_by_key(|(name, _)| name.len()) {
                all.push((at, at + name.len(), secret.as_str()));
            }
        }
        Ok(replaced(text, all))
    }
}

/// The text with these parts replaced; those within or across an earlier one are left out. `None` where there is none.
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

/// Whether a text has a placeholder: it is none of what it stands for.
pub(crate) fn has_placeholder(text: &str) -> bool {
    text.contains(BEGINNING)
}

/// A new placeholder for a kind of secret.
fn named(kind: &str) -> String {
    let mut bytes = [0; SUFFIX];
    random::fill(&mut bytes);
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let kind: String = kind.chars().map(word).take(32).collect();
    let suffix: String = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    format!("{BEGINNING}{}_{suffix}", kind.trim_matches('_'))
}
