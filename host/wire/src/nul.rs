//! JSON without U+0000: servers that keep requests in PostgreSQL refuse it, wherever it is.

use memchr::memmem;

/// U+0000 as JSON has it, which has no other spelling of it.
const NUL: &[u8] = br"\u0000";

/// U+FFFD, of the same length.
const REPLACEMENT: &[u8] = br"\ufffd";

/// Replaces each U+0000 in a JSON text by U+FFFD.
pub(crate) fn replaced(mut json: Vec<u8>) -> Vec<u8> {
    let found: Vec<usize> = memmem::find_iter(&json, NUL).collect();
    for at in found {
        let before = json[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        // After an odd number of backslashes, the one of the escape is itself escaped.
        if before.is_multiple_of(2) {
            json[at..at + NUL.len()].copy_from_slice(REPLACEMENT);
        }
    }
    json
}

/// The same for a string.
pub(crate) fn replaced_in(json: String) -> String {
    if memmem::find(json.as_bytes(), NUL).is_none() {
        return json;
    }
    // The bytes that are exchanged are ASCII.
    String::from_utf8_lossy(&replaced(json.into_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::replaced_in;

    #[test]
    fn only_the_character_is_replaced() {
        for text in ["\0", "a\0\0b", "\\\0", "\\u0000", "\\\\u0000", "\\\\\0\\u0000", "", "\u{1}"] {
            let json = serde_json::Value::from(text).to_string();
            let back: String = serde_json::from_str(&replaced_in(json)).unwrap_or_default();
            assert_eq!(back, text.replace('\0', "\u{fffd}"));
        }
    }
}
