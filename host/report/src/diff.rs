//! What changed between two texts, as words; as lines where they differ in many places.

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Bytes of unchanged text between two changes up to which they are one change, where they are longer.
const SHORT: usize = 8;

/// Lines or words of both sides up to which they are compared: Myers' algorithm is quadratic in them at worst.
const MAX_TOKENS: usize = 2000;

/// A part of a comparison. The parts that are the same or removed are the text before, those that are the same or added the text after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", content = "text", rename_all = "snake_case")]
pub enum Chunk {
    /// It is in both texts.
    Same(String),
    /// It is only in the text before.
    Removed(String),
    /// It is only in the text after.
    Added(String),
}

/// Compares two texts.
pub(crate) fn diff(before: &str, after: &str) -> Vec<Chunk> {
    let start = common(before.char_indices().map(|(at, c)| (at + c.len_utf8(), c)), after.chars());
    let start = boundary(before, after, start);
    let (a, b) = (&before[start..], &after[start..]);
    let back = a.char_indices().rev().map(|(at, c)| (a.len() - at, c));
    let end = common(back, b.chars().rev());
    let end = boundary_from_end(a, b, end);
    let (a, tail) = a.split_at(a.len() - end);
    let b = &b[..b.len() - end];
    let mut chunks = Chunks::default();
    chunks.push(Chunk::Same, &before[..start]);
    middle(a, b, &mut chunks);
    chunks.push(Chunk::Same, tail);
    chunks.joined()
}

/// The bytes that two sequences of characters have in common from where they begin.
fn common(ours: impl Iterator<Item = (usize, char)>, theirs: impl Iterator<Item = char>) -> usize {
    ours.zip(theirs).take_while(|((_, a), b)| a == b).last().map_or(0, |((end, _), _)| end)
}

/// Moves the end of the common start back to the end of a word.
fn boundary(a: &str, b: &str, mut at: usize) -> usize {
    while at > 0 && [a, b].iter().any(|text| inside(text, at)) {
        at -= a[..at].chars().next_back().map_or(at, char::len_utf8);
    }
    at
}

/// Moves the start of the common end, counted from the end, forward to the start of a word.
fn boundary_from_end(a: &str, b: &str, mut bytes: usize) -> usize {
    while bytes > 0 && [a, b].iter().any(|text| inside(text, text.len() - bytes)) {
        bytes -= a[a.len() - bytes..].chars().next().map_or(bytes, char::len_utf8);
    }
    bytes
}

/// Whether a position is inside of a word.
fn inside(text: &str, at: usize) -> bool {
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    word(text[..at].chars().next_back()) && word(text[at..].chars().next())
}

/// Compares lines first, and words where lines were replaced: the work is proportional to the texts.
fn middle(a: &str, b: &str, chunks: &mut Chunks) {
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    compare(&lines(a), &lines(b), chunks, |a, b, chunks| {
        compare(&words(a), &words(b), chunks, |a, b, chunks| {
            chunks.push(Chunk::Removed, a);
            chunks.push(Chunk::Added, b);
        });
    });
}

/// Compares tokens; what one side has in the place of what the other has goes to `replaced`, as does all of it where there are too many.
fn compare(a: &[&str], b: &[&str], chunks: &mut Chunks, replaced: impl Fn(&str, &str, &mut Chunks)) {
    if a.len() + b.len() > MAX_TOKENS {
        return replaced(&a.concat(), &b.concat(), chunks);
    }
    for op in capture_diff_slices(Algorithm::Myers, a, b) {
        let (old, new) = (a[op.old_range()].concat(), b[op.new_range()].concat());
        match op {
            DiffOp::Equal { .. } => chunks.push(Chunk::Same, &old),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => replaced(&old, &new, chunks),
        }
    }
}

/// Splits a text into words, runs of blanks, and single other characters.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() => 1,
        ' ' | '\t' => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let own = kind(first);
        let next = rest.char_indices().skip(1).find(|(_, c)| own == 0 || kind(*c) != own);
        let (word, more) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
        words.push(word);
        rest = more;
    }
    words
}

/// Chunks of which no two adjacent ones are of one kind.
#[derive(Default)]
struct Chunks(Vec<Chunk>);

impl Chunks {
    fn push(&mut self, kind: fn(String) -> Chunk, text: &str) {
        if text.is_empty() {
            return;
        }
        match (self.0.last_mut(), kind(text.to_owned())) {
            (Some(Chunk::Same(last)), Chunk::Same(text))
            | (Some(Chunk::Removed(last)), Chunk::Removed(text))
            | (Some(Chunk::Added(last)), Chunk::Added(text)) => last.push_str(&text),
            (_, chunk) => self.0.push(chunk),
        }
    }

    /// Joins changes with little between them: what replaced a few words is easier to read in one part.
    fn joined(self) -> Vec<Chunk> {
        let (mut out, mut removed, mut added) = (Self::default(), String::new(), String::new());
        let mut chunks = self.0.into_iter().peekable();
        while let Some(chunk) = chunks.next() {
            match chunk {
                Chunk::Removed(text) => removed.push_str(&text),
                Chunk::Added(text) => added.push_str(&text),
                Chunk::Same(text) => {
                    let most = SHORT.min(removed.len() + added.len());
                    if text.len() < most && !text.contains('\n') && chunks.peek().is_some() {
                        removed.push_str(&text);
                        added.push_str(&text);
                        continue;
                    }
                    out.push(Chunk::Removed, &std::mem::take(&mut removed));
                    out.push(Chunk::Added, &std::mem::take(&mut added));
                    out.push(Chunk::Same, &text);
                }
            }
        }
        out.push(Chunk::Removed, &removed);
        out.push(Chunk::Added, &added);
        out.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both texts, from the parts of their comparison.
    fn sides(chunks: &[Chunk]) -> (String, String) {
        let mut sides = (String::new(), String::new());
        for chunk in chunks {
            match chunk {
                Chunk::Same(text) => {
                    sides.0.push_str(text);
                    sides.1.push_str(text);
                }
                Chunk::Removed(text) => sides.0.push_str(text),
                Chunk::Added(text) => sides.1.push_str(text),
            }
        }
        sides
    }

    #[test]
    fn words_are_compared() {
        let [same, removed, added] = [Chunk::Same as fn(String) -> Chunk, Chunk::Removed, Chunk::Added]
            .map(|kind| move |text: &str| kind(text.into()));
        let expected = [same("the key is "), removed("sk-123"), added("[key]"), same(", keep it")];
        assert_eq!(diff("the key is sk-123, keep it", "the key is [key], keep it"), expected);
        assert_eq!(diff("foobar", "foobaz"), [removed("foobar"), added("foobaz")]);
        let joined = [same("see "), removed("<b>it</b>"), added("[it]"), same(".")];
        assert_eq!(diff("see <b>it</b>.", "see [it]."), joined);
        assert_eq!(diff("same", "same"), [same("same")]);
        assert_eq!(diff("", "new"), [added("new")]);
        assert_eq!(diff("", ""), []);
    }

    #[test]
    fn both_texts_can_be_read_back() {
        let texts = ["", "a", "aaa", "aaaa", "a b a", "éa b", "bé a", "x\ny\nz", "x\nz\n", "漢字 漢", "漢 字漢"];
        let many = "word ".repeat(3000) + "end";
        let more = "other\n".repeat(3000) + "end";
        for before in texts.iter().copied().chain([many.as_str()]) {
            for after in texts.iter().copied().chain([more.as_str()]) {
                assert_eq!(sides(&diff(before, after)), (before.to_owned(), after.to_owned()));
            }
        }
    }
}
