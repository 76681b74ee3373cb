//! Line ends of a file, which a change keeps.

/// Kinds of line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A line feed.
    Plain,
    /// A carriage return and a line feed.
    Crlf,
}

impl Kind {
    /// The kind that a text has; `None` where it has both, or no line end.
    fn of(text: &str) -> Option<Self> {
        let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
        match crlf {
            0 if all > 0 => Some(Self::Plain),
            _ if crlf > 0 && crlf == all => Some(Self::Crlf),
            _ => None,
        }
    }

    /// The text with line ends of this kind.
    fn apply(self, text: &str) -> String {
        let plain = text.replace("\r\n", "\n");
        match self {
            Self::Plain => plain,
            Self::Crlf => plain.replace('\n', "\r\n"),
        }
    }
}

/// What to look for in a file and what to put in its place, with the line ends that the file has. Where it has both kinds, the text is looked for
/// as it is written, and its replacement has the line ends of what it replaces, or of the line that it is in.
pub(crate) fn fitted(file: &str, old: &str, new: &str) -> (String, String) {
    if let Some(kind) = Kind::of(file) {
        return (kind.apply(old), kind.apply(new));
    }
    let of_line = || {
        let (_, rest) = file.split_once(old)?;
        let before = &file[..file.len() - rest.len()];
        let next = rest.find('\n').and_then(|end| Kind::of(&rest[..=end]));
        // The last line has none: that of the one before it.
        next.or_else(|| Kind::of(before.get(before.trim_end_matches(|c| c != '\n').len().saturating_sub(2)..)?))
    };
    let kind = Kind::of(old).or_else(of_line);
    (old.to_owned(), kind.map_or_else(|| new.to_owned(), |kind| kind.apply(new)))
}

/// What a file that is replaced by `after` as a whole has lost of what does not show: its kind of line ends, and its byte order mark.
pub(crate) fn lost(before: &str, after: &str) -> Vec<&'static str> {
    let kinds = match (Kind::of(before), Kind::of(after)) {
        (Some(Kind::Crlf), Some(Kind::Plain)) => Some("its line ends were CRLF and are plain line feeds now"),
        (Some(Kind::Plain), Some(Kind::Crlf)) => Some("its line ends were plain line feeds and are CRLF now"),
        (Some(_), None) if after.contains('\n') => Some("its line ends are mixed now"),
        _ => None,
    };
    let mark = before.starts_with('\u{feff}') && !after.starts_with('\u{feff}');
    kinds.into_iter().chain(mark.then_some("its byte order mark is gone")).collect()
}

#[cfg(test)]
mod tests {
    use super::{fitted, lost};

    #[test]
    fn a_change_keeps_the_line_ends() {
        for (file, old, new, expected) in [
            ("a\r\nb\r\n", "a\nb", "1\n2", "1\r\n2\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "1\n2", "1\r\n2\r\n"),
            ("a\r\nb\r\n", "a\nb", "1\r\n2", "1\r\n2\r\n"),
            ("a\r\nb\r\n", "b", "1\n2\n", "a\r\n1\r\n2\r\n\r\n"),
            ("a\nb\n", "a\r\nb", "1\r\n2", "1\n2\n"),
            ("a\nb\n", "b", "1\r\n2", "a\n1\n2\n"),
            // Both kinds: those of the place.
            ("a\r\nb\nc\n", "a\r\nb", "1\n2", "1\r\n2\nc\n"),
            ("a\r\nb\nc\n", "a", "1\n2", "1\r\n2\r\nb\nc\n"),
            ("a\r\nb\nc\n", "b", "1\r\n2", "a\r\n1\n2\nc\n"),
            ("a\nb\r\nc", "c", "1\n2", "a\nb\r\n1\r\n2"),
            ("a\r\nb\nc", "c", "1\r\n2", "a\r\nb\n1\n2"),
            // No line end: as it is written.
            ("a", "a", "1\r\n2\n", "1\r\n2\n"),
            ("ü", "ü", "1\n2", "1\n2"),
        ] {
            let (old, new) = fitted(file, old, new);
            assert_eq!(file.replacen(&old, &new, 1), expected, "{file:?} {old:?}");
        }
    }

    #[test]
    fn what_does_not_show_is_named() {
        assert_eq!(lost("a\r\n", "a\n"), ["its line ends were CRLF and are plain line feeds now"]);
        assert_eq!(lost("a\n", "a\r\n"), ["its line ends were plain line feeds and are CRLF now"]);
        assert_eq!(lost("a\n", "a\r\nb\n"), ["its line ends are mixed now"]);
        assert_eq!(lost("\u{feff}a\n", "b\n"), ["its byte order mark is gone"]);
        assert!(lost("a\r\n", "b\r\n").is_empty() && lost("a\nb\r\n", "a\n").is_empty() && lost("a", "b\n").is_empty());
    }
}
