//! Escapes: `\w`, `\d`, `\b` of ASCII, `\uXXXX` and `\cX` as rule files write them, and what is refused.

use super::PatternError;
use super::syntax::{BACK, BACK_HELP, Reader};

/// `\w` in Rust's syntax. Outside of classes ASCII alone, also where case does not count.
pub(super) const WORD: &str = r"(?-u:\w)";

/// The meaning of an escape in a class.
pub(super) enum Atom {
    /// A single character.
    One(char),
    /// Several, in Rust's syntax within a class.
    Set(String),
}

/// An escape outside of a class, in Rust's syntax.
pub(super) fn outside(reader: &mut Reader<'_>) -> Result<String, PatternError> {
    let from = reader.at;
    let letter = reader.source[from + 1..].chars().next();
    let plain = match letter {
        Some('d') => r"(?-u:\d)",
        Some('D') => "[^0-9]",
        Some('w') => WORD,
        Some('W') => "(?-i:[^0-9A-Za-z_])",
        Some('s') => r"\s",
        Some('S') => r"\S",
        Some('A') => r"\A",
        Some('z') => r"\z",
        Some('B') => r"(?-u:\B)",
        Some('b') => return Ok(boundary(reader)),
        Some('<' | '>') => {
            let (word, side) = if letter == Some('<') { ("beginning", "start") } else { ("end", "end") };
            let message = format!("the escaped bracket is read as a bracket, not as a word's {word}");
            let help = format!("write `\\b{{{side}}}` for a word's {word}, or the bracket alone");
            reader.notes.push(PatternError::new(from..from + 2, message, &help));
            reader.at += 2;
            return Ok(if letter == Some('<') { "<" } else { ">" }.to_owned());
        }
        _ => {
            return Ok(match atom(reader)? {
                Atom::One(c) => literal(c),
                Atom::Set(set) => set,
            });
        }
    };
    reader.at += 2;
    Ok(plain.to_owned())
}

/// An escape within a class.
pub(super) fn inside(reader: &mut Reader<'_>) -> Result<Atom, PatternError> {
    let set = match reader.source[reader.at + 1..].chars().next() {
        Some('d') => "0-9",
        Some('D') => "[^0-9]",
        Some('w') => "0-9A-Za-z_",
        Some('W') => "[^0-9A-Za-z_]",
        Some('s') => r"\s",
        Some('S') => r"\S",
        Some('b') => {
            reader.at += 2;
            return Ok(Atom::One('\u{8}'));
        }
        Some(letter @ ('A' | 'B' | 'z')) => {
            let from = reader.at;
            reader.at += 2;
            return reader.refuse(
                from,
                format!("`\\{letter}` has no meaning within a class"),
                "move it out of the class",
            );
        }
        _ => return atom(reader),
    };
    reader.at += 2;
    Ok(Atom::Set(set.to_owned()))
}

/// A character by its number, which means the same inside and outside of classes and whatever the flags.
pub(super) fn literal(c: char) -> String {
    format!("\\x{{{:X}}}", u32::from(c))
}

fn boundary(reader: &mut Reader<'_>) -> String {
    let rest = &reader.rest()[2..];
    let kinds = ["{start}", "{end}", "{start-half}", "{end-half}"];
    let kind = kinds.into_iter().find(|kind| rest.starts_with(kind)).unwrap_or_default();
    reader.at += 2 + kind.len();
    format!("(?-u:\\b{kind})")
}

/// What is the same inside and outside of classes.
fn atom(reader: &mut Reader<'_>) -> Result<Atom, PatternError> {
    let from = reader.at;
    reader.at += 1;
    let Some(c) = reader.next() else { return reader.refuse(from, "a backslash at the end escapes nothing", "") };
    let control = |c: char| Ok(Atom::One(c));
    match c {
        'n' => control('\n'),
        'r' => control('\r'),
        't' => control('\t'),
        'v' => control('\u{b}'),
        'f' => control('\u{c}'),
        'a' => control('\u{7}'),
        '0' if !reader.peek().is_some_and(|c| c.is_ascii_digit()) => control('\0'),
        '0' => reader.refuse(from, "octal numbers are not supported", "write `\\x` and two hexadecimal digits"),
        '1'..='9' | 'k' => reader.refuse(from, BACK, BACK_HELP),
        'c' => match reader.next() {
            Some(letter) if letter.is_ascii_alphabetic() => control(char::from(letter as u8 % 32)),
            _ => reader.refuse(from, "`\\c` needs a letter", "write a literal backslash as `\\\\`"),
        },
        'x' | 'u' | 'U' => code(reader, from, c).map(Atom::One),
        'p' | 'P' => property(reader, from).map(Atom::Set),
        c if c.is_ascii_alphabetic() => {
            reader.refuse(from, format!("`\\{c}` is not an escape of this dialect"), instead(c))
        }
        c => control(c),
    }
}

fn instead(letter: char) -> &'static str {
    match letter {
        'e' => "write `\\x1b`",
        'h' => "write `[ \\t]`",
        'H' => "write `[^ \\t]`",
        'K' => "remove it: where a match begins makes no difference",
        'N' => "write `[^\\n]`",
        'Q' | 'E' => "escape each character by itself",
        'R' => "write `\\r?\\n`",
        'X' => "write `.`",
        'Z' => "write `\\z`, or `$`",
        _ => "remove the backslash to match the letter itself",
    }
}

/// `\xHH`, `\uHHHH`, `\UHHHHHHHH`, and each with braces; two halves of a pair are one character.
fn code(reader: &mut Reader<'_>, from: usize, letter: char) -> Result<char, PatternError> {
    let value = digits(reader, from, letter)?;
    let low = |reader: &mut Reader<'_>| {
        let after = reader.rest().strip_prefix("\\u")?.get(..4)?;
        let low = u32::from_str_radix(after, 16).ok().filter(|low| (0xDC00..0xE000).contains(low))?;
        reader.at += 6;
        Some(0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00))
    };
    let value = if (0xD800..0xDC00).contains(&value) { low(reader).unwrap_or(value) } else { value };
    match char::from_u32(value) {
        Some(c) => Ok(c),
        None if (0xD800..0xE000).contains(&value) => {
            let help = "write the character itself, or `[\\x{10000}-\\x{10FFFF}]` for all beyond the first 65,536";
            reader.refuse(from, "half of a surrogate pair is not a character", help)
        }
        None => reader.refuse(from, "no character has this number", "the greatest is `\\x{10FFFF}`"),
    }
}

fn digits(reader: &mut Reader<'_>, from: usize, letter: char) -> Result<u32, PatternError> {
    let wanted = match letter {
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    let help = format!("write {wanted} hexadecimal digits, or some between `{{` and `}}`");
    let text = match reader.rest().strip_prefix('{') {
        Some(braced) => braced.split_once('}').map(|(inside, _)| (inside, inside.len() + 2)),
        None => reader.rest().get(..wanted).map(|digits| (digits, wanted)),
    };
    let read = text.and_then(|(text, len)| {
        let fine = !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
        fine.then(|| u32::from_str_radix(text, 16).unwrap_or(u32::MAX)).map(|value| (value, len))
    });
    let Some((value, len)) = read else {
        return reader.refuse(from, format!("`\\{letter}` lacks its digits"), &help);
    };
    reader.at += len;
    Ok(value)
}

/// `\pL`, `\p{Greek}`: passed on unchanged.
fn property(reader: &mut Reader<'_>, from: usize) -> Result<String, PatternError> {
    let len = match reader.peek() {
        Some('{') => reader.rest().find('}').map(|end| end + 1),
        Some(c) if c.is_ascii_alphabetic() => Some(1),
        _ => None,
    };
    let Some(len) = len else {
        return reader.refuse(from, "a character class lacks its name", "write `\\p{Greek}` or `\\pL`");
    };
    reader.at += len;
    Ok(reader.source[from..reader.at].to_owned())
}
