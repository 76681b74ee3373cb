//! What counts as a secret: texts that were named, and shapes that keys are known to have. Finds them in bytes that may
//! go on.

/// A named text of fewer bytes is not treated as a secret: it would be found in ordinary words.
pub(crate) const LEAST_BYTES: usize = 6;

/// A run of more characters is not a key; the rest is left unchanged.
const LONGEST_RUN: usize = 8192;

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

/// A key that is known by how it begins.
struct Shape {
    prefix: &'static str,
    /// How many characters follow, at least.
    least: usize,
    of: fn(u8) -> bool,
    /// One of them must be a digit: words joined by hyphens look the same.
    digit: bool,
}

const fn shape(prefix: &'static str, least: usize, of: fn(u8) -> bool) -> Shape {
    Shape { prefix, least, of, digit: false }
}

/// Keys of model vendors, code hosts, clouds and package registries, and private keys in PEM.
const SHAPES: [Shape; 24] = [
    Shape { prefix: "sk-", least: 20, of: word, digit: true },
    shape("sk_live_", 20, alphanumeric),
    shape("rk_live_", 20, alphanumeric),
    shape("ghp_", 36, alphanumeric),
    shape("gho_", 36, alphanumeric),
    shape("ghu_", 36, alphanumeric),
    shape("ghs_", 36, alphanumeric),
    shape("ghr_", 36, alphanumeric),
    shape("github_pat_", 50, word),
    shape("glpat-", 20, word),
    shape("AKIA", 16, upper),
    shape("ASIA", 16, upper),
    shape("AIza", 35, word),
    shape("xoxb-", 24, word),
    shape("xoxp-", 24, word),
    shape("xoxs-", 24, word),
    shape("hf_", 30, alphanumeric),
    shape("npm_", 36, alphanumeric),
    shape("-----BEGIN PRIVATE KEY-----", 40, pem),
    shape("-----BEGIN RSA PRIVATE KEY-----", 40, pem),
    shape("-----BEGIN EC PRIVATE KEY-----", 40, pem),
    shape("-----BEGIN DSA PRIVATE KEY-----", 40, pem),
    shape("-----BEGIN OPENSSH PRIVATE KEY-----", 40, pem),
    shape("-----BEGIN ENCRYPTED PRIVATE KEY-----", 40, pem),
];

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn pem(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b' ' | b'\n' | b'\r' | b'\t')
}

impl Masks {
    pub(super) fn name(&mut self, secret: &str) {
        if secret.len() >= LEAST_BYTES {
            self.named.push(secret.as_bytes().to_vec());
        }
    }

    /// Finds every secret in `text`, which follows `before` and may continue.
    pub(super) fn find(&self, text: &[u8], before: Option<u8>) -> Found {
        let mut found = Found { hits: Vec::new(), unsure: text.len(), open: text.len() };
        for secret in &self.named {
            let mut from = 0;
            // One may overlap another of the same.
            while let Some(at) = memchr::memmem::find(&text[from..], secret) {
                from += at;
                found.hits.push(Hit { from, to: from + secret.len(), fill: Fill::Star });
                from += 1;
            }
            found.may_begin(text.len() - begun(text, secret));
        }
        SHAPES.iter().for_each(|shape| shape.find(text, before, &mut found));
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

impl Found {
    fn may_begin(&mut self, at: usize) {
        self.unsure = self.unsure.min(at);
        self.open = self.open.min(at);
    }
}

impl Shape {
    fn find(&self, text: &[u8], before: Option<u8>, found: &mut Found) {
        let prefix = self.prefix.as_bytes();
        // A key starts at a word boundary: `task-…` contains none.
        let stands_alone = |at: usize| {
            let before = at.checked_sub(1).map_or(before, |at| Some(text[at]));
            !word(prefix[0]) || !before.is_some_and(word)
        };
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&text[from..], prefix).map(|at| from + at) {
            let begin = at + prefix.len();
            from = begin;
            if !stands_alone(at) {
                continue;
            }
            let run = text[begin..].iter().take(LONGEST_RUN).take_while(|byte| (self.of)(**byte)).count();
            let key = &text[begin..begin + run];
            let is_key = run >= self.least && (!self.digit || key.iter().any(u8::is_ascii_digit));
            let goes_on = begin + run == text.len() && run < LONGEST_RUN;
            if is_key {
                found.hits.push(Hit { from: begin, to: begin + run, fill: Fill::Kind });
            } else if goes_on {
                found.may_begin(at);
            }
            if goes_on {
                found.open = found.open.min(at);
            }
        }
        let at = text.len() - begun(text, prefix);
        if at < text.len() && stands_alone(at) {
            found.may_begin(at);
        }
    }
}
