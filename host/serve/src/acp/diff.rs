//! A unified diff as the protocol has it: the old and the new text of each changed region.

use std::path::Path;

use super::sdk::v1;

/// A changed region of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The line where it begins in the new text, from 1.
    line: u32,
    old: String,
    new: String,
    /// There was no file.
    is_new: bool,
}

/// The regions of a diff of one file. What is not part of a region, such as the note that a diff was cut, is left out.
fn hunks(diff: &str) -> Vec<Hunk> {
    let mut all: Vec<Hunk> = Vec::new();
    let mut last = b' ';
    for line in diff.split_inclusive('\n') {
        if let Some(head) = line.strip_prefix("@@ ") {
            let is_new = head.starts_with("-0,0 ");
            all.push(Hunk { line: new_line(head), is_new, ..Hunk::default() });
            continue;
        }
        let Some(hunk) = all.last_mut() else { continue };
        match line.as_bytes().first() {
            Some(b' ') => {
                hunk.old.push_str(&line[1..]);
                hunk.new.push_str(&line[1..]);
            }
            Some(b'-') => hunk.old.push_str(&line[1..]),
            Some(b'+') => hunk.new.push_str(&line[1..]),
            // `\ No newline at end of file` is about the line before it.
            Some(b'\\') => hunk.end_without_newline(last),
            _ => {}
        }
        last = line.as_bytes().first().copied().unwrap_or(b' ');
    }
    all
}

impl Hunk {
    /// The last line, which is of the old text, the new text or both, does not end with a newline.
    fn end_without_newline(&mut self, side: u8) {
        for (text, other) in [(&mut self.old, b'+'), (&mut self.new, b'-')] {
            if side != other && text.ends_with('\n') {
                text.pop();
            }
        }
    }
}

/// The line of the new text in `-1,2 +3,4 @@`.
fn new_line(head: &str) -> u32 {
    let new = head.split_whitespace().find_map(|word| word.strip_prefix('+'));
    new.and_then(|range| range.split(',').next()?.parse().ok()).unwrap_or(1)
}

/// The content of a tool call that changes a file as the diff says.
pub(super) fn content(path: &Path, diff: &str) -> Vec<v1::ToolCallContent> {
    let old = |hunk: &Hunk| (!hunk.is_new).then(|| hunk.old.clone());
    let entry = |hunk: Hunk| v1::Diff::new(path, hunk.new.clone()).old_text(old(&hunk));
    hunks(diff).into_iter().map(entry).map(v1::ToolCallContent::Diff).collect()
}

/// The places that the diff changes.
pub(super) fn locations(path: &Path, diff: &str) -> Vec<v1::ToolCallLocation> {
    let location = |hunk: Hunk| v1::ToolCallLocation::new(path).line(hunk.line);
    hunks(diff).into_iter().map(location).collect()
}

#[cfg(test)]
mod tests {
    use super::{Hunk, hunks};

    #[test]
    fn regions_have_their_old_and_new_text() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,2 @@\n-nine\n\\ No newline at end of file\n+9\n+10\n[the rest of the diff is omitted]";
        let hunk = |line, old: &str, new: &str| Hunk { line, old: old.into(), new: new.into(), is_new: false };
        assert_eq!(hunks(diff), [hunk(1, "one\ntwo\n", "one\n2\n"), hunk(9, "nine", "9\n10\n")]);
        let created = Hunk { is_new: true, ..hunk(1, "", "one") };
        assert_eq!(hunks("@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n"), [created]);
        let kept = "@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n";
        assert_eq!(hunks(kept), [hunk(1, "a\nc", "b\nc")]);
        assert_eq!(hunks("no diff"), []);
        assert_eq!(hunks("@@ odd\n+a\n"), [hunk(1, "", "a\n")]);
    }
}
