//! What is masked: texts that were named, and what `tidegate-secrets` knows to be a secret. Finds them in bytes that may go on.

use ::secrets::{PRIVATE_KEY, scan};

/// A named text of fewer bytes is not treated as a secret: it would be found in ordinary words.
pub(crate) const LEAST_BYTES: usize = 6;

/// Texts and shapes to mask.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    named: Vec<Vec<u8>>,
}

/// What was found in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    /// From here on something may be the beginning of a secret; the text's length where nothing may.
    pub(super) unsure: usize,
    /// From here on the text must be searched again when more arrives: as `unsure`, or where a secret continues.
    pub(super) open: usize,
}

/// A secret, or the secret part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) fill: Fill,
}

/// The replacement of a secret, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// An asterisk: nothing of a named secret is left.
    Star,
    /// `x`, `X` or `0` for a letter or digit: the shape stays, so that a rule that looks for it finds it in a replay.
    Kind,
}

impl Fill {
    /// The replacement of this byte.
    pub(super) fn of(self, byte: u8) -> u8 {
        match (self, byte) {
            (Self::Star, _) => b'*',
            (Self::Kind, b'a'..=b'z') => b'x',
            (Self::Kind, b'A'..=b'Z') => b'X',
            (Self::Kind, b'0'..=b'9') => b'0',
            (Self::Kind, other) => other,
        }
    }
}

impl Masks {
    pub(super) fn name(&mut self, secret: &str) {
        if secret.len() >= LEAST_BYTES {
            self.named.push(secret.as_bytes().to_vec());
        }
    }

    /// Finds every secret in `text`, which follows `before` and may continue. `is_last`: it does not, or not in time.
    pub(super) fn find(&self, text: &[u8], before: Option<u8>, is_last: bool) -> Found {
        let known = scan(text, before);
        let mut found = Found { hits: Vec::new(), unsure: known.undecided, open: known.open };
        for secret in &self.named {
            let mut from = 0;
            // One may overlap another of the same.
            while let Some(at) = memchr::memmem::find(&text[from..], secret) {
                from += at;
                found.hits.push(Hit { from, to: from + secret.len(), fill: Fill::Star });
                from += 1;
            }
            let begun = text.len() - begun(text, secret);
            (found.unsure, found.open) = (found.unsure.min(begun), found.open.min(begun));
        }
        for one in known.found.into_iter().filter(|one| is_last || !one.is_open) {
            let to = if one.kind == PRIVATE_KEY { end_of_key(text, one.body, one.end) } else { one.end };
            found.hits.push(Hit { from: one.body, to, fill: Fill::Kind });
        }
        found
    }

    /// How many of the last bytes are the beginning of a named secret, where those are enough to be worth masking.
    pub(super) fn cut_off(&self, text: &[u8]) -> usize {
        let longest = self.named.iter().map(|secret| begun(text, secret)).max().unwrap_or(0);
        if longest >= LEAST_BYTES { longest } else { 0 }
    }
}

/// How many bytes at the end of the text are the beginning of a secret.
fn begun(text: &[u8], secret: &[u8]) -> usize {
    let most = text.len().min(secret.len().saturating_sub(1));
    (1..=most).rev().find(|len| text.ends_with(&secret[..*len])).unwrap_or(0)
}

/// Where the letters of a key end: the line of dashes behind them says nothing, and shows a reader what was there.
fn end_of_key(text: &[u8], from: usize, to: usize) -> usize {
    memchr::memmem::find(&text[from..to], b"--").map_or(to, |at| from + at)
}
