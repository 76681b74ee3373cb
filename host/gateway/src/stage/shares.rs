//! The shares of texts in the output of callbacks for all of them: of a line that runs over two blocks, each block gets its part.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

/// The maximum number of words between the first and the last change that are compared: the time grows with the square of it.
const MOST_WORDS: usize = 2_000;

/// Divides the output for texts among them. Words that both have stay in their text. Other words are in the text in which those begin that they
/// replace.
pub(super) fn divide(texts: &[String], output: &str) -> Vec<String> {
    let original = match texts {
        [] => return Vec::new(),
        [_] => return vec![output.to_owned()],
        _ => texts.concat(),
    };
    if original == output {
        return texts.to_vec();
    }
    let (before, after) = (words(&original), words(output));
    let mut shares = Shares { texts, shares: vec![String::new(); texts.len()], at: 0, used: 0 };
    for op in changes(&before, &after) {
        let (tag, old, new) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            shares.keep(&before[old].concat());
        } else {
            shares.replace(&before[old].concat(), &after[new].concat());
        }
    }
    without_blanks(texts, shares.shares)
}

/// Moves white space that is all that is left of a text to the text before it, or else to the next one: providers refuse such a block when the
/// client sends it back.
fn without_blanks(texts: &[String], mut shares: Vec<String>) -> Vec<String> {
    for (at, text) in texts.iter().enumerate() {
        if !shares[at].trim().is_empty() || text.trim().is_empty() {
            continue;
        }
        let blank = std::mem::take(&mut shares[at]);
        match at {
            0 => shares[1].insert_str(0, &blank),
            _ => shares[at - 1].push_str(&blank),
        }
    }
    shares
}

fn changes(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (old, new) = (&before[start..], &after[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_len, new_len) = (old.len() - end, new.len() - end);
    if old_len + new_len <= MOST_WORDS {
        return capture_diff_slices(Algorithm::Myers, before, after);
    }
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: start },
        DiffOp::Replace { old_index: start, old_len, new_index: start, new_len },
        DiffOp::Equal { old_index: start + old_len, new_index: start + new_len, len: end },
    ]
}

/// Splits a text into words, and characters between them.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut words, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let end = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, more) = rest.split_at(end);
        words.push(word);
        rest = more;
    }
    words
}

struct Shares<'t> {
    texts: &'t [String],
    shares: Vec<String>,
    /// The number of the text with the last byte that was divided.
    at: usize,
    /// The number of its bytes that were divided.
    used: usize,
}

impl Shares<'_> {
    /// Gives each text its part of a string that is also in the output.
    fn keep(&mut self, mut same: &str) {
        while !same.is_empty() {
            let size = self.next().min(same.len());
            let (own, rest) = same.split_at(size);
            self.shares[self.at].push_str(own);
            self.used += size;
            same = rest;
        }
    }

    /// Gives the output in place of a string to the text in which that begins.
    fn replace(&mut self, mut old: &str, new: &str) {
        if !old.is_empty() {
            self.next();
        }
        self.shares[self.at].push_str(new);
        while !old.is_empty() {
            let size = self.next().min(old.len());
            self.used += size;
            old = &old[size..];
        }
    }

    /// Goes to the text with the next byte. Returns the number of its bytes that are left.
    fn next(&mut self) -> usize {
        while self.used == self.texts[self.at].len() && self.at + 1 < self.texts.len() {
            (self.at, self.used) = (self.at + 1, 0);
        }
        self.texts[self.at].len() - self.used
    }
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn each_text_keeps_its_words() {
        for (texts, output, shares) in [
            (&["a MASK ", "b"][..], "a key b", &["a key ", "b"][..]),
            (&["a ", "MASK b"], "a key b", &["a ", "key b"]),
            (&["a MASK b ", "c MASK"], "a key b c key", &["a key b ", "c key"]),
            (&["a MA", "SK b"], "a key b", &["a key", " b"]),
            (&["MA", "SK"], "key", &["key", ""]),
            (&["MA", "SK ", "b"], "key b", &["key ", "", "b"]),
            (&["MASK ", "b"], " b", &["", " b"]),
            (&["a ", "b"], "", &["", ""]),
            (&["a ", "b ", "c"], "x", &["x", "", ""]),
            (&["a", "b"], "a+b", &["a+b", ""]),
            (&["a ", "b"], "a b c", &["a ", "b c"]),
            (&["a ", "b"], "x a b", &["x a ", "b"]),
            (&["ü", "é MASK"], "üé ß", &["ü", "é ß"]),
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(divide(&texts, output), shares, "{texts:?} {output}");
        }
    }

    #[test]
    fn output_without_end_is_divided_in_time() {
        let (one, other) = ("one ".repeat(100_000), "two\n".repeat(100_000));
        let texts = ["start ".to_owned(), one, "end".to_owned()];
        assert_eq!(divide(&texts, &format!("start {other}end")), ["start ", &other, "end"]);
    }
}
