//! Cuts long lines at the width of the terminal, so that the host begins each row of a text that others wrote.

use unicode_segmentation::UnicodeSegmentation as _;

use super::{clean, terminal};

/// Begins a row of a text.
pub(crate) const ROW: &str = "  │ ";
/// Begins a row that continues the one before it.
pub(crate) const CONTINUED: &str = "  ┊ ";
/// Columns kept free: the gutter, the beginning of a row, and some for characters that a terminal draws wider than
/// expected.
const MARGIN: usize = 12;
/// Text is not wrapped into narrower rows than this to keep the margin.
const MIN_COLUMNS: usize = 16;
/// The minimum columns of a row: the gutter, its beginning, and the last column.
const FRAME: usize = 6;

/// The columns for the text of a row, where the terminal has so many.
pub(crate) fn text_columns(terminal: usize) -> usize {
    terminal.saturating_sub(MARGIN).max(terminal.saturating_sub(FRAME).clamp(1, MIN_COLUMNS))
}

/// A line in parts of at most so many columns, cut after a space where one is in the second half of a part. Joined, they are the line.
///
/// A grapheme cluster that fits into a part is not cut. Where a single character is wider than a part, the part is that character.
pub(crate) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut part, mut used) = (String::new(), 0);
    // The end of the last space of the part: bytes and columns.
    let mut space = (0, 0);
    for cluster in line.graphemes(true).flat_map(|cluster| units(cluster, columns)) {
        let width = width_of(cluster);
        while used + width > columns && used > 0 {
            let (at, before) = if space.1 > columns / 2 { space } else { (part.len(), used) };
            let rest = part.split_off(at);
            parts.push(std::mem::replace(&mut part, rest));
            (used, space) = (used - before, (0, 0));
        }
        used += width;
        part.push_str(cluster);
        if cluster == " " {
            space = (part.len(), used);
        }
    }
    parts.push(part);
    parts
}

/// A line of prose in parts of at most so many columns, cut between words wherever a word fits into a part. Joined, they are the line; spaces at the
/// end of a part can exceed it. What follows a part has no effect on it.
pub(crate) fn between_words(line: &str, columns: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    // The start of the part, and the columns since; the same for its last word.
    let (mut start, mut used) = (0, 0);
    let (mut word, mut in_word) = (0, 0);
    let mut at = 0;
    for cluster in line.graphemes(true).flat_map(|cluster| units(cluster, columns)) {
        let width = width_of(cluster);
        if cluster == " " {
            (word, in_word) = (at + 1, 0);
        } else {
            if used + width > columns && word > start {
                parts.extend(line.get(start..word));
                (start, used) = (word, in_word);
            }
            if used + width > columns && at > start {
                parts.extend(line.get(start..at));
                (start, used, word, in_word) = (at, 0, at, 0);
            }
            in_word += width;
        }
        used += width;
        at += cluster.len();
    }
    parts.extend(line.get(start..));
    parts
}

/// A cluster, or its characters where it is wider than a part: a cluster has no greatest width, and a terminal breaks a row that is
/// too wide into rows that the host has not begun.
fn units(cluster: &str, columns: usize) -> Vec<&str> {
    if width_of(cluster) <= columns { vec![cluster] } else { cluster.split_inclusive(|_| true).collect() }
}

fn width_of(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The most columns that a character takes at a terminal.
fn width(c: char) -> usize {
    match c {
        // It is written out where the model's text shares the terminal.
        _ if clean::is_like_gutter(c) => c.escape_unicode().count(),
        _ => terminal::width_of(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_is_too_wide_and_nothing_is_lost() {
        let emoji = "\u{1f468}\u{200d}".repeat(5);
        let viramas = "\u{915}\u{94d}".repeat(10);
        let cases: [(&str, &[&str]); 14] = [
            // The parts of an emoji, and what belongs to a letter, stay together.
            ("12345678\u{1f468}\u{200d}\u{1f469}e\u{301}", &["12345678", "\u{1f468}\u{200d}\u{1f469}e\u{301}"]),
            ("", &[""]),
            ("0123456789", &["0123456789"]),
            ("0123456789a", &["0123456789", "a"]),
            ("be brief and kind", &["be brief ", "and kind"]),
            ("no spaceshere", &["no spacesh", "ere"]),
            ("日本語日本語", &["日本語日本", "語"]),
            ("a\tb\tc", &["a\tb", "\tc"]),
            ("12 ▌x", &["12 ", "▌x"]),
            ("123456 78\t", &["123456 ", "78\t"]),
            ("12345 678\t", &["12345 ", "678", "\t"]),
            // Each of these is one cluster: Korean consonants, a chain of emoji, and Devanagari consonants with viramas.
            (
                "\u{1100}\u{1100}\u{1100}\u{1100}\u{1100}\u{1100}",
                &["\u{1100}\u{1100}\u{1100}\u{1100}\u{1100}", "\u{1100}"],
            ),
            (&format!("{emoji}\u{1f469}"), &[&emoji, "\u{1f469}"]),
            (&format!("{viramas}\u{915}"), &[&viramas, "\u{915}"]),
        ];
        for (line, parts) in cases {
            assert_eq!(wrapped(line, 10), parts, "{line:?}");
            for columns in 1..12 {
                let parts = wrapped(line, columns);
                assert_eq!(parts.concat(), line);
                for part in parts {
                    // A character cannot be cut.
                    let is_one = part.chars().filter(|c| width(*c) > 0).count() == 1;
                    assert!(width_of(&part) <= columns || is_one, "{part:?} has more than {columns} columns");
                }
            }
        }
    }

    #[test]
    fn prose_is_cut_between_words() {
        let cases: [(&str, &[&str]); 9] = [
            ("", &[""]),
            ("a very long line", &["a very ", "long line"]),
            ("exactly te n", &["exactly te ", "n"]),
            ("a wordthatistoolong b", &["a ", "wordthatis", "toolong b"]),
            ("  two  spaces   ", &["  two  ", "spaces   "]),
            ("wordthatistoolong", &["wordthatis", "toolong"]),
            ("日本語日本語 x", &["日本語日本", "語 x"]),
            ("1234567890          x", &["1234567890          ", "x"]),
            (
                "a e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
                &["a ", "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}"],
            ),
        ];
        for (line, parts) in cases {
            assert_eq!(between_words(line, 10), parts, "{line:?}");
            for columns in 1..12 {
                let parts = between_words(line, columns);
                assert_eq!(parts.concat(), line);
                for part in parts {
                    let is_one = part.chars().filter(|c| width(*c) > 0).count() == 1;
                    let is_one = is_one || part.trim_end().chars().filter(|c| width(*c) > 0).count() == 1;
                    assert!(width_of(part.trim_end()) <= columns || is_one, "{part:?} has more than {columns} columns");
                }
            }
        }
    }

    #[test]
    fn a_terminal_that_is_too_narrow_has_rows_all_the_same() {
        assert_eq!([0, 7, 8, 20, 28, 100].map(text_columns), [1, 1, 2, 14, 16, 88]);
    }
}
