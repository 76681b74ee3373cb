//! Characters that a reader does not see, or that change the order of what they see: they are written out, as `\u{202e}`.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Shown as it is.
    Plain(&'t str),
    /// Written out as an escape.
    Odd(char),
}

/// Splits a text at the characters that are written out. Line ends are `\n`; a carriage return before one is left out.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    let mut before = '\n';
    std::iter::from_fn(move || {
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let returns = c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n');
            let joins = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}') && !before.is_ascii_alphabetic();
            if returns || (is_odd(c) && !joins) {
                if at > 0 {
                    let (plain, more) = rest.split_at(at);
                    rest = more;
                    return Some(Part::Plain(plain));
                }
                rest = &rest[c.len_utf8()..];
                before = c;
                return Some(if returns { Part::Plain("") } else { Part::Odd(c) });
            }
            before = c;
        }
        let plain = std::mem::take(&mut rest);
        (!plain.is_empty()).then_some(Part::Plain(plain))
    })
}

/// Writes a character out.
pub(crate) fn escape(c: char) -> String {
    match c {
        '\r' => "\\r".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c => c.escape_unicode().to_string(),
    }
}

/// The text with such characters written out; it can have several lines.
pub(crate) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Plain(plain) => out.push_str(plain),
            Part::Odd(c) => out.push_str(&escape(c)),
        }
    }
    out
}

/// The text as a part of one line: line ends and tabs are written out, too.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in lines(text).chars() {
        if matches!(c, '\n' | '\t') { out.push_str(&escape(c)) } else { out.push(c) }
    }
    out
}

/// Whether a character is written out: controls other than line ends and tabs, separators of lines, marks of direction, characters
/// without width, tags, and fillers that look like a blank.
fn is_odd(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
        | '\u{ffa0}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out() {
        for (text, shown) in [
            ("a\u{1b}[2J\0b", "a\\u{1b}[2J\\u{0}b"),
            ("one\r\ntwo\rthree\u{2028}four", "one\ntwo\\rthree\\u{2028}four"),
            ("\u{202e}gnp.exe\u{2066}", "\\u{202e}gnp.exe\\u{2066}"),
            ("a\u{200b}\u{feff}b\u{ad}\u{e0041}", "a\\u{200b}\\u{feff}b\\u{ad}\\u{e0041}"),
            ("p\u{200d}q", "p\\u{200d}q"),
            ("👨\u{200d}👩 ❤\u{fe0f} tab\tüñ 漢字", "👨\u{200d}👩 ❤\u{fe0f} tab\tüñ 漢字"),
            ("", ""),
        ] {
            assert_eq!(lines(text), shown);
        }
        assert_eq!(line("a\r\nb\tc"), "a\\nb\\tc");
    }
}
