//! Makes text harmless and honest for a terminal: what would move the cursor, set a title, reorder or hide text is written
//! out as an escape such as `\u{1b}`.
//!
//! Nothing is stripped, because a person who does not see that something was there cannot judge it.

use tidegate::text::{MAX_MARKS, is_hidden, is_mark};

/// What becomes of line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They end lines: the text is several lines, and nothing of ours follows on the last one.
    Lines,
    /// They are escaped: the text is a part of one line of ours, and must not begin another.
    Line,
}

/// The column that begins each line of the host at a terminal where the model writes too. Text of others cannot contain it.
pub(crate) const GUTTER: char = '▌';

/// Characters that look like [`GUTTER`] in common fonts.
const LIKE_GUTTER: [char; 11] = ['▉', '▊', '▋', '▌', '▍', '▎', '▏', '┃', '❘', '❙', '❚'];

/// Whether a character is written out where it could pass for the gutter.
pub(crate) fn is_like_gutter(c: char) -> bool {
    LIKE_GUTTER.contains(&c)
}

/// Cleans one text that arrives in chunks. What a chunk means can depend on the ones before it, so one cleaner belongs to
/// one stream.
#[derive(Debug)]
pub(crate) struct Cleaner {
    keep: Keep,
    /// Escape what looks like the host's own gutter.
    guard: bool,
    before: Option<char>,
    /// A carriage return is pending: before a line feed it is a line end, before anything else it is escaped.
    pending: bool,
    marks: u32,
}

impl Cleaner {
    pub(crate) fn new(keep: Keep, guard: bool) -> Self {
        Self { keep, guard, before: None, pending: false, marks: 0 }
    }

    /// Adds the clean form of `text` to `out`.
    pub(crate) fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            if std::mem::take(&mut self.pending) && !(c == '\n' && self.keep == Keep::Lines) {
                out.push_str("\\r");
            }
            match c {
                '\r' => self.pending = true,
                '\n' if self.keep == Keep::Line => out.push_str("\\n"),
                '\n' | '\t' => out.push(c),
                _ if self.hides(c) => escape(c, out),
                _ => out.push(c),
            }
            self.before = Some(c);
        }
    }

    /// Ends the stream.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if std::mem::take(&mut self.pending) {
            out.push_str("\\r");
        }
    }

    fn hides(&mut self, c: char) -> bool {
        self.marks = if is_mark(c) { self.marks + 1 } else { 0 };
        (is_hidden(c) && !self.joins(c)) || self.marks > MAX_MARKS || (self.guard && is_like_gutter(c))
    }

    /// Whether an invisible character has its ordinary meaning here: inside an emoji, or between letters of a script that
    /// needs it.
    fn joins(&self, c: char) -> bool {
        let Some(before) = self.before else { return false };
        let emoji = matches!(before, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}' | '#' | '*' | '0'..='9');
        match c {
            '\u{fe0e}' | '\u{fe0f}' => emoji && before != '\u{2800}',
            '\u{200d}' => emoji && !before.is_ascii() || before == '\u{fe0f}' || is_joining(before),
            '\u{200c}' => is_joining(before),
            _ => false,
        }
    }
}

/// Scripts whose spelling uses joiners: Arabic to Sinhala.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{dff}')
}

/// `text` as a part of one line.
pub(crate) fn flat(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut cleaner = Cleaner::new(Keep::Line, false);
    cleaner.push(text, &mut out);
    cleaner.finish(&mut out);
    out
}

/// Writes `c` as Rust does.
fn escape(c: char, out: &mut String) {
    out.extend(c.escape_unicode());
}

/// A value of which nothing may be hidden, and whether anything was escaped: [`tidegate::text::exact`], with characters that could pass for the
/// gutter escaped too.
pub(crate) fn exact(text: &str) -> (String, bool) {
    tidegate::text::exact(text, is_like_gutter)
}

/// Whether a terminal may show a text in another order than it is stored in, because it has letters that are written from
/// right to left.
pub(crate) fn has_right_to_left(text: &str) -> bool {
    text.chars().any(|c| {
        matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
    })
}

/// JSON for a terminal: still exactly the same value, with the characters that JSON allows raw and a terminal acts on written
/// as escapes.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(keep: Keep, chunks: &[&str]) -> String {
        let mut cleaner = Cleaner::new(keep, true);
        let mut out = String::new();
        chunks.iter().for_each(|chunk| cleaner.push(chunk, &mut out));
        cleaner.finish(&mut out);
        out
    }

    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        for (text, shown) in [
            ("\u{1b}[2J\u{1b}]0;title\u{7}", "\\u{1b}[2J\\u{1b}]0;title\\u{7}"),
            ("a\u{9b}31mb", "a\\u{9b}31mb"),
            ("a\u{8}\u{7f}b\0", "a\\u{8}\\u{7f}b\\u{0}"),
            ("safe\rHIDDEN", "safe\\rHIDDEN"),
            ("one\r\ntwo\r", "one\ntwo\\r"),
            ("\u{202e}gnp.exe\u{2066}", "\\u{202e}gnp.exe\\u{2066}"),
            ("a\u{200b}\u{feff}\u{2060}b", "a\\u{200b}\\u{feff}\\u{2060}b"),
            ("\u{e0041}\u{e0042}", "\\u{e0041}\\u{e0042}"),
            ("a\u{2028}b\u{85}c", "a\\u{2028}b\\u{85}c"),
            ("▌? shell", "\\u{258c}? shell"),
            ("tab\there\nüñ 漢字 \u{a0}", "tab\there\nüñ 漢字 \u{a0}"),
            (
                "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
                "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            ),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("a\u{200d}b", "a\\u{200d}b"),
        ] {
            assert_eq!(clean(Keep::Lines, &[text]), shown);
        }
        assert_eq!(clean(Keep::Line, &["one\r\ntwo\n"]), "one\\r\\ntwo\\n");
        let zalgo = format!("a{}", "\u{336}".repeat(6));
        assert_eq!(clean(Keep::Line, &[&zalgo]), format!("a{}\\u{{336}}\\u{{336}}", "\u{336}".repeat(4)));
    }

    /// However a text is cut, what is shown is the same, and contains nothing that acts on a terminal.
    #[test]
    fn chunks_do_not_matter() {
        let text = "a\r\nb\rc\u{1b}[0m\u{9b}1m👨\u{200d}👩\u{fe0f}\u{202e}x\r";
        let whole = clean(Keep::Lines, &[text]);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for then in (at..=text.len()).filter(|then| text.is_char_boundary(*then)) {
                assert_eq!(clean(Keep::Lines, &[&text[..at], &text[at..then], &text[then..]]), whole);
            }
        }
        assert!(!whole.contains(['\r', '\u{1b}', '\u{9b}', '\u{202e}']));
    }

    #[test]
    fn an_exact_value_can_be_read_back() {
        assert_eq!(exact("ls -l \\\n  a\\tb"), ("ls -l \\\n  a\\tb".to_owned(), false));
        assert_eq!(exact("ls\r\\r\ta\u{a0}b\u{200d}"), ("ls\\r\\\\r\\ta\\u{a0}b\\u{200d}".to_owned(), true));
        assert_eq!(exact("\u{202e}\\u{202e}").0, "\\u{202e}\\\\u{202e}");
        assert!(exact("▌Run it?").1);
        assert_eq!(exact("all:\n\tcc 'a\\t'"), ("all:\n⇥cc 'a\\t'".to_owned(), false));
        assert_eq!(exact("\t⇥\\"), ("\\t\\u{21e5}\\\\".to_owned(), true));
        let all: String = (0..0x3000).filter_map(char::from_u32).chain("\u{e0041}\u{fe0f}".chars()).collect();
        let (shown, _) = exact(&all);
        let hidden = shown.chars().find(|c| *c != '\n' && (is_hidden(*c) || (*c != ' ' && c.is_whitespace())));
        assert_eq!(hidden, None);
        assert_eq!(unescape(&shown), all);
    }

    fn unescape(text: &str) -> String {
        let mut out = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match (c, if c == '\\' { chars.next() } else { None }) {
                ('\\', Some('u')) => {
                    let code: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    out.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
                }
                ('\\', Some('r')) => out.push('\r'),
                ('\\', Some('t')) => out.push('\t'),
                ('\\', Some(other)) => out.push(other),
                _ => out.push(c),
            }
        }
        out
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "a\u{7f}\u{9b}\u{202e}\u{200b}\u{e0041}\n\"\\ é";
        let plain = serde_json::json!({ text: [text] }).to_string();
        let shown = json(&plain);
        assert!(!shown.chars().any(is_hidden), "{shown}");
        let read: Option<serde_json::Value> = serde_json::from_str(&shown).ok();
        assert_eq!(read, Some(serde_json::json!({ text: [text] })));
    }
}
