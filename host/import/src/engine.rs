//! The regular expressions of a scanner, spelled so that Rust's syntax and the dialect of conditions read them as the scanner's engine does.

use std::borrow::Cow;

/// The engine that a scanner reads its expressions with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The package `regexp` of Go.
    Go,
    /// The module `re` of Python.
    Python,
}

impl Engine {
    /// The expression with brackets in classes escaped, with counts and ends as the engine reads them, without a group `hide`, which is a
    /// name like others for a scanner, and in a group where a condition would be a glob or have slashes around it.
    pub(crate) fn spell(self, text: &str) -> String {
        let has_comments = self == Self::Python && has_flag(text, 'x');
        // The end of the text, or a line end there.
        let end = if self == Self::Python && !has_flag(text, 'm') { r"(?:$|\n\z)" } else { "$" };
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(c) = rest.chars().next() {
            let (part, len) = match c {
                '\\' => self.escape(rest),
                '[' => self.class(rest),
                '{' => self.count(rest),
                '(' => group(rest),
                '$' => (end.into(), 1),
                '#' if has_comments => as_written(rest, rest.find('\n').unwrap_or(rest.len())),
                c => as_written(rest, c.len_utf8()),
            };
            out.push_str(&part);
            rest = &rest[len..];
        }
        if is_like_glob(&out) { format!("(?:{out})") } else { out }
    }

    fn escape(self, rest: &str) -> (Cow<'_, str>, usize) {
        let len = escaped(rest);
        match &rest[..len] {
            r"\<" | r"\>" => (rest[1..len].into(), len),
            r"\Z" if self == Self::Python => (r"\z".into(), len),
            _ => as_written(rest, len),
        }
    }

    /// A class from its bracket on.
    fn class(self, rest: &str) -> (Cow<'_, str>, usize) {
        let first = if rest.starts_with("[^") { 2 } else { 1 };
        let (mut out, mut at) = (rest[..first].to_owned(), first);
        while let Some(c) = rest[at..].chars().next() {
            let tail = &rest[at..];
            let len = match c {
                ']' if at > first => return (format!("{out}]").into(), at + 1),
                '\\' => escaped(tail),
                '[' if self == Self::Go && tail.starts_with("[:") => tail.find(":]").map_or(1, |end| end + 2),
                c => c.len_utf8(),
            };
            // An operator between classes in Rust and in the dialect, two characters for these engines.
            let is_operator = matches!(c, '&' | '~') && tail[len..].starts_with(c);
            if is_operator || (matches!(c, '[' | ']') && len == 1) {
                out.push('\\');
            }
            out.push_str(&tail[..len]);
            at += len;
        }
        as_written(rest, rest.len())
    }

    /// `{,8}`: up to 8 of them in Python, the text itself in Go.
    fn count(self, rest: &str) -> (Cow<'_, str>, usize) {
        let inside = rest.strip_prefix("{,").and_then(|inside| inside.split_once('}'));
        match inside.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((number, _)) if self == Self::Python => (format!("{{0,{number}}}").into(), number.len() + 3),
            Some(_) => (r"\{".into(), 1),
            None => as_written(rest, 1),
        }
    }

    /// What of the expression matches more in this engine than in a condition.
    pub(crate) fn wider(self, text: &str) -> Vec<&'static str> {
        let known = [r"\w", r"\d", r"\b"];
        let (mut found, mut rest) = ([false; 3], text);
        while let Some(c) = rest.chars().next().filter(|_| self == Self::Python) {
            let len = if c == '\\' { escaped(rest) } else { c.len_utf8() };
            let part = rest[..len].to_ascii_lowercase();
            if let Some(at) = known.iter().position(|one| *one == part) {
                found[at] = true;
            }
            rest = &rest[len..];
        }
        known.into_iter().zip(found).filter(|(_, found)| *found).map(|(one, _)| one).collect()
    }
}

fn as_written(rest: &str, len: usize) -> (Cow<'_, str>, usize) {
    (rest[..len].into(), len)
}

/// The length of a backslash with the character that it escapes.
fn escaped(rest: &str) -> usize {
    1 + rest[1..].chars().next().map_or(0, char::len_utf8)
}

fn group(rest: &str) -> (Cow<'_, str>, usize) {
    match ["(?P<hide>", "(?<hide>"].into_iter().find(|name| rest.starts_with(name)) {
        Some(name) => ("(".into(), name.len()),
        None => as_written(rest, 1),
    }
}

/// Whether a flag is set anywhere, such as `(?x)`.
fn has_flag(text: &str, flag: char) -> bool {
    text.split("(?").skip(1).any(|flags| flags.chars().take_while(char::is_ascii_alphabetic).any(|one| one == flag))
}

/// Whether a condition of this text can be taken for a glob, or for an expression between slashes.
fn is_like_glob(text: &str) -> bool {
    let has_slash = text.contains('/') && !text.contains(['\\', '^', '$', '+', '|', '(', ')']);
    has_slash || text.starts_with(['/', '*', '!'])
}

#[cfg(test)]
mod tests {
    use super::Engine::{Go, Python};

    #[test]
    fn an_expression_is_spelled_as_its_engine_reads_it() {
        for (text, go, python) in [
            (r"q[^]\s]{20}", r"q[^\]\s]{20}", r"q[^\]\s]{20}"),
            ("[]a]b]", r"[\]a]b]", r"[\]a]b]"),
            ("[a[b]", r"[a\[b]", r"[a\[b]"),
            ("[[:alpha:]x]", "[[:alpha:]x]", r"[\[:alpha:]x]"),
            ("[a-z&&[b]]", r"[a-z\&&\[b]]", r"[a-z\&&\[b]]"),
            ("[~~a]&&", r"[\~~a]&&", r"[\~~a]&&"),
            (r"[\]{,8}]{,8}", r"[\]{,8}]\{,8}", r"[\]{,8}]{0,8}"),
            (r"a\{,8}", r"a\{,8}", r"a\{,8}"),
            ("a{2,}b{,}", r"a{2,}b\{,}", "a{2,}b{0,}"),
            ("https://a.b/[a-z]{4}", "(?:https://a.b/[a-z]{4})", "(?:https://a.b/[a-z]{4})"),
            ("/(a)/i", "(?:/(a)/i)", "(?:/(a)/i)"),
            ("*.rs", "(?:*.rs)", "(?:*.rs)"),
            (r"a$|\$[$]", r"a$|\$[$]", r"a(?:$|\n\z)|\$[$]"),
            ("(?m)a$", "(?m)a$", "(?m)a$"),
            (r"\<a\>\\<", r"<a>\\<", r"<a>\\<"),
            (r"a\Z", r"a\Z", r"a\z"),
            (r"k[a-z](?P<hide>;)\(?P<hide>", r"k[a-z](;)\(?P<hide>", r"k[a-z](;)\(?P<hide>"),
            ("(?<hide>é)[(?<hide>]", "(é)[(?<hide>]", "(é)[(?<hide>]"),
            ("(?x)a # [b\n[^]c]", "(?x)a # [b\n\\[^]c]", "(?x)a # [b\n[^\\]c]"),
            ("a[b", "a[b", "a[b"),
            ("a\\", "a\\", "a\\"),
        ] {
            assert_eq!((Go.spell(text).as_str(), Python.spell(text).as_str()), (go, python), "{text}");
        }
    }

    #[test]
    fn what_python_reads_as_unicode_is_named() {
        for (text, wider) in [(r"[\W]a\\d$", &[r"\w"][..]), (r"\d+\B", &[r"\d", r"\b"]), (r"[a-z]\$", &[])] {
            assert_eq!((Python.wider(text), Go.wider(text)), (wider.to_vec(), Vec::new()), "{text}");
        }
    }
}
