//! Whether a value can be a secret: what stands in for one in examples, what is a word or code, and what looks random.

use crate::words::{ABOUT_SECRETS, ENDINGS_OF_SENTENCES, JOINTS, NO_VALUES, OF_SENTENCES, PLACEHOLDERS};

/// Whether all letters and digits are the same, or of two kinds where there are many, as in `xxxx` or `0000-1111-0000`.
pub(crate) fn is_filler(value: &[u8]) -> bool {
    let mut kinds = [0_u8; 2];
    let mut count = 0;
    let most = if value.len() < 8 { 1 } else { 2 };
    for byte in value.iter().filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
        if !kinds[..count].contains(byte) {
            if count == most {
                return false;
            }
            kinds[count] = *byte;
            count += 1;
        }
    }
    true
}

/// Stands in for a secret: an example, a variable, a field of a template.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let Some(first) = value.first() else { return true };
    let templates: [(&[u8], &[u8]); 9] = [
        (b"${", b"}"),
        (b"{{", b"}}"),
        (b"<", b">"),
        (b"%(", b""),
        (b"$(", b""),
        (b"#{", b"}"),
        (b"[", b"]"),
        (b"%", b"%"),
        (b"{", b"}"),
    ];
    let is_template = templates
        .iter()
        .any(|(open, close)| value.starts_with(open) && (value.ends_with(close) || value.contains(&b'}')));
    let is_variable = *first == b'$' && value[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let elided = value.windows(3).any(|three| three == b"..." || three == b"***")
        || value.windows(3).any(|three| three == "…".as_bytes());
    let is_format = value.len() <= 3 && *first == b'%';
    is_template || is_variable || is_format || elided || is_filler(value) || has_placeholder(value)
}

fn has_placeholder(value: &[u8]) -> bool {
    words(value).any(|word| PLACEHOLDERS.has(word))
        || ends_with(value, b"EXAMPLE")
        || ends_with(value, b"EXAMPLEKEY")
        || value.starts_with(b"my-") && words(value).all(is_one_word)
}

fn ends_with(value: &[u8], end: &[u8]) -> bool {
    value.len() >= end.len() && value[value.len() - end.len()..].eq_ignore_ascii_case(end)
}

/// The parts between what is neither letter nor digit.
pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

/// A word about secrets, a type, a state: no value.
pub(crate) fn is_known_word(value: &[u8]) -> bool {
    NO_VALUES.has(value)
}

/// A word that names a secret: `reset-password` is none.
pub(crate) fn is_about_secrets(word: &[u8]) -> bool {
    ABOUT_SECRETS.has(word)
}

/// What a sentence says of a password, or code gives it: a participle, an adjective, a verb, a name of a variable.
pub(crate) fn is_of_sentence(word: &[u8]) -> bool {
    ENDINGS_OF_SENTENCES.iter().any(|end| word.ends_with(end))
        || OF_SENTENCES.has(word)
        || (word.contains(&b'-') && words(word).count() < 3)
}

/// A few words without those that join a sentence.
pub(crate) fn is_passphrase(value: &[u8]) -> bool {
    let is_joint = |word: &[u8]| JOINTS.has(word) || is_about_secrets(word) || is_known_word(word);
    let has_digit = value.iter().any(u8::is_ascii_digit);
    (if has_digit { 2 } else { 4 }..=8).contains(&words(value).count())
        && value
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || *byte == b' ' || has_digit && byte.is_ascii_alphanumeric())
        && !words(value).any(|word| is_joint(word) || is_of_sentence(word))
}

/// Letters alone, or a small number.
fn is_one_word(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_alphabetic) || (word.len() <= 4 && word.iter().all(u8::is_ascii_digit))
}

/// Letters and digits that no words and no numbers make: no path, no version, no identifier.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    if digits == 0 || letters == 0 || words(value).all(is_wordy) {
        return false;
    }
    let mut seen = [false; 128];
    value.iter().filter(|byte| byte.is_ascii()).for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count() >= 5.min(value.len())
}

/// A word, a number, or a word with a number behind it.
fn is_wordy(word: &[u8]) -> bool {
    let letters = word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let rest = &word[letters..];
    // `v12`, `sha256`, `utf8`, `x86`, `token2024`; a long word with digits behind it can be a password.
    rest.iter().all(u8::is_ascii_digit) && (rest.is_empty() || letters == 0 || letters + rest.len() <= 6)
}

/// Digits, or symbols that words do not have, next to letters: as people choose passwords.
pub(crate) fn is_mixed(value: &[u8]) -> bool {
    let is_symbol =
        |byte: &u8| matches!(byte, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'=' | b'?' | b'~');
    let letters = value.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    letters && value.iter().any(|byte| byte.is_ascii_digit() || is_symbol(byte))
}

/// Upper and lower case as no word has them, without a digit: half of the pairs of letters change it at least once in four.
pub(crate) fn is_scrambled(value: &[u8]) -> bool {
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let changes = value.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    letters >= 16 && changes * 5 >= letters
}

/// Code that gives a value: a path of identifiers, a call, an index.
pub(crate) fn is_code(value: &[u8], next: Option<u8>) -> bool {
    if matches!(next, Some(b'(' | b'[')) {
        return true;
    }
    let is_identifier = |part: &[u8]| {
        part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let has_path = value.contains(&b'.') || value.windows(2).any(|two| two == b"::" || two == b"->");
    let parts = || {
        value
            .split(|byte| matches!(byte, b'.' | b':' | b'-' | b'>' | b'?' | b'!' | b'&' | b'*'))
            .filter(|part| !part.is_empty())
    };
    has_path
        && parts().count() > 1
        && parts().all(|part| is_identifier(part) && !(part.len() >= 12 && looks_random(part)))
}

/// The address of a file or a page, or a reference into a store of secrets.
pub(crate) fn is_place(value: &[u8]) -> bool {
    let schemes: [&[u8]; 10] = [
        b"http://",
        b"https://",
        b"file://",
        b"op://",
        b"vault:",
        b"env:",
        b"arn:",
        b"ssm:",
        b"secretsmanager:",
        b"./",
    ];
    schemes.iter().any(|scheme| value.starts_with(scheme))
        || (value.starts_with(b"/")
            && value[1..].contains(&b'/')
            && !words(value).any(|word| word.len() >= 16 && looks_random(word)))
        || (value.starts_with(b"~/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_for_a_secret_is_known() {
        for value in [
            "",
            "your-key-here",
            "YOUR_API_KEY",
            "xxxxxxxx",
            "****",
            "sk-...",
            "<token>",
            "$TOKEN",
            "${TOKEN}",
            "{{ token }}",
            "%TOKEN%",
            "%s",
            "AKIAIOSFODNN7EXAMPLE",
            "changeme",
            "0000-0000",
            "$(cat key)",
            "…",
        ] {
            assert!(is_placeholder(value.as_bytes()), "{value:?}");
        }
        for value in ["hunter2", "Tr0ub4dor", "correct-horse", "p@ss", "a1b2c3"] {
            assert!(!is_placeholder(value.as_bytes()), "{value:?}");
        }
    }

    #[test]
    fn random_is_neither_words_nor_numbers() {
        for value in ["a1B2c3D4e5F6", "0123abcd4567ef", "x9-a8b7c6d5e4", "hunter2024x"] {
            assert!(looks_random(value.as_bytes()), "{value:?}");
        }
        for value in ["my-token-2", "v1.2.3", "sha256", "1234567890", "next_token", "token-2024-01-02", "utf8.bytes"] {
            assert!(!looks_random(value.as_bytes()), "{value:?}");
        }
    }

    #[test]
    fn code_is_no_value() {
        assert!(is_code(b"self.password1", None) && is_code(b"tokens", Some(b'[')) && is_code(b"a::b2", None));
        assert!(!is_code(b"hunter2", None) && !is_code(b"abc.a1B2c3D4e5F6g7", None));
    }
}
