//! Private keys in PEM blocks: the one secret that spans lines.

use serde::{Deserialize, Serialize};
use tidegate_sdk::TextPlace;

/// What a private key is called.
pub const KIND: &str = "private key";

/// How many lines a doubt lasts at most: more than a key has before its first long line.
const DOUBTED_LINES: u32 = 16;

/// Whether a key block is open, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyBlock {
    /// The tags around the open block; `None`: no block is open.
    inside: Option<Vec<String>>,
    /// Lines were missed, and with them perhaps the one that begins a block: within that many lines, text that looks like the
    /// middle of a key is one.
    #[serde(default)]
    doubted_lines: u32,
}

/// What a line is to key blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A key begins, or its end is all that is seen of it.
    Begins,
    /// It belongs to the open block.
    Inside,
    /// It has nothing to do with one (a block on one line included).
    Outside,
}

impl KeyBlock {
    /// Takes the next line. A block ends with its end line, with anything that cannot be in a key, and with the message.
    /// `missed`: lines between the last one and this one were withheld.
    pub fn take(&mut self, line: &str, place: &TextPlace, missed: bool) -> Line {
        if place.unit == 0 {
            *self = Self::default();
        }
        let doubted = std::mem::take(&mut self.doubted_lines);
        let doubted = if missed { DOUBTED_LINES } else { doubted };
        let text = line.trim_start_matches(['>', ' ', '\t', '|']).trim_end();
        if self.inside.as_ref().is_some_and(|inside| *inside == place.inside) {
            if ends(text) {
                self.inside = None;
                return Line::Inside;
            }
            if is_key_text(text) {
                return Line::Inside;
            }
            self.inside = None;
        }
        if begins(text) || (doubted > 0 && is_middle(text)) {
            self.inside = Some(place.inside.clone());
            return Line::Begins;
        }
        if doubted > 0 && ends(text) {
            return Line::Begins;
        }
        if is_key_text(text) || is_header(text) {
            self.doubted_lines = doubted.saturating_sub(1);
        }
        Line::Outside
    }
}

/// `-----BEGIN … PRIVATE KEY-----` and nothing behind it: words about such a line are no key.
fn begins(text: &str) -> bool {
    text.strip_prefix("-----BEGIN ")
        .and_then(|rest| rest.strip_suffix("-----"))
        .is_some_and(|label| label.ends_with("PRIVATE KEY") || label == "PGP PRIVATE KEY BLOCK")
}

/// The end of a block.
fn ends(text: &str) -> bool {
    text.starts_with("-----END ")
}

/// The middle of a key where its beginning may have been missed. A single word is not enough.
fn is_middle(text: &str) -> bool {
    let of_key = ["Proc-Type:", "DEK-Info:"].iter().any(|name| text.starts_with(name));
    of_key || (text.len() >= 32 && is_key_text(text))
}

/// Base64, a header of an old block, or nothing.
fn is_key_text(text: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let header = |text: &str| {
        ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", "MessageID:"]
            .iter()
            .any(|name| text.starts_with(name))
    };
    text.is_empty() || text.bytes().all(base64) || header(text)
}

/// `Name: value`, as between the beginning of a block and its key.
fn is_header(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}
