//! The lines of a text, one by one, with what spans them.

use crate::command::Commands;
use crate::key_block::{KeyBlock, Part};
use crate::scan::Pass;
use crate::shapes;
use crate::table::Table;
use crate::text::Text;
use crate::waiting::Waiting;
use crate::{Found, PRIVATE_KEY};

/// The state between the lines of a text. A new one begins a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Lines {
    key: KeyBlock,
    table: Table,
    waiting: Waiting,
    /// The commands of a line that the next one continues.
    commands: Commands,
    /// The last piece of a line ended in a key: what is in the next one up to white space belongs to it.
    is_cut: bool,
}

impl Lines {
    /// Lines between the last one and the next may not have been seen: a key may have begun in them.
    pub fn missed(&mut self) {
        self.key.missed();
    }

    /// Whether nothing is remembered: the next line is like the first of a text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The secrets of the next line, which may have its line end, in order and none in another. `place` is where in a document the line is: a key
    /// block goes on where it began.
    pub fn take(&mut self, line: &str, place: &str) -> Vec<Found> {
        let text = line.trim_end_matches(['\n', '\r']);
        let mut found = Vec::new();
        let mut from = 0;
        if core::mem::take(&mut self.is_cut) {
            from = text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<')).unwrap_or(text.len());
            found.extend((from > 0).then(|| Found { continues: true, ..Found::new("key", 0, from) }));
            self.is_cut = from == line.len() && from > 0;
        }
        match self.key.take(text, place) {
            Part::Begins(start, end) => {
                found.extend(self.others(&text[..start], false, false));
                found.push(Found::new(PRIVATE_KEY, start, end));
                from = end;
            }
            Part::Inside(end) => {
                let end = if end == text.len() { line.len() } else { end };
                found.push(Found { continues: true, ..Found::new(PRIVATE_KEY, 0, end) });
                from = end;
            }
            Part::Outside => {}
        }
        if from < text.len() {
            let is_piece = text.len() == line.len();
            let rest = self.others(&text[from..], from == 0, is_piece);
            found.extend(rest.into_iter().map(|one| Found {
                start: one.start + from,
                end: one.end + from,
                body: one.body + from,
                ..one
            }));
        }
        found
    }

    /// What is not a key block.
    fn others(&mut self, text: &str, is_whole: bool, is_piece: bool) -> Vec<Found> {
        let mut pass = Pass::new(text.as_bytes(), None, false);
        pass.commands = core::mem::take(&mut self.commands);
        let (scan, commands) = pass.run();
        let mut found = scan.found;
        if is_piece {
            let reaches_end = found.last().is_some_and(|last| last.end == text.len() && last.body > last.start);
            let begun = if reaches_end { None } else { begun(text) };
            self.is_cut = reaches_end || begun.is_some();
            found.extend(begun);
        }
        if text.ends_with('\\') {
            self.commands = commands;
        }
        if is_whole {
            found.extend(self.waiting.take(text));
            found.extend(self.table.take(text));
        }
        apart(found)
    }
}

/// A key that the end of a piece of text cuts off: it begins with the last word, or one of those that signs join with it.
fn begun(text: &str) -> Option<Found> {
    let run = text
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '~')))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    shapes::begun(&Text::new(text.as_bytes(), None), run)
}

/// In order, and what overlaps as one.
fn apart(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|one| (one.start, core::cmp::Reverse(one.end)));
    let mut apart: Vec<Found> = Vec::with_capacity(found.len());
    for one in found {
        match apart.last_mut() {
            Some(last) if one.start < last.end => last.end = last.end.max(one.end),
            _ => apart.push(one),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan;
    use crate::text::LOOKED_AT;

    /// How many bytes are looked at in a line of this length that repeats a few.
    fn cost(piece: &str, length: usize) -> usize {
        let line = piece.repeat(length / piece.len());
        LOOKED_AT.set(0);
        let _ = Lines::default().take(&line, "");
        let _ = scan(line.as_bytes(), None);
        LOOKED_AT.get()
    }

    /// Lines that send a search back again and again. Each place looks at no more than the longest secret, so that four times the line costs at most
    /// seven times as much from that length on, where it would be sixteen times.
    #[test]
    fn hostile_lines_cost_in_proportion_to_their_length() {
        for piece in [
            "eyJ-",
            "sk-",
            "token=\"",
            "://a:",
            "password:'",
            "-----BEGIN PRIVATE KEY",
            "-----BEGIN PRIVATE KEY-----x ",
            "a-",
            "://",
            "token=",
            "Bearer ",
            "a.b.",
            "password is ",
            "| password ",
            "<td>key</td>",
            "curl -u ",
            "aws = ",
            "&quot;",
            "\\\"",
            "0123456789:A",
            "key,",
            "Q~",
            "https://",
            "name: ",
            "cookie: a=",
        ] {
            let (short, long) = (cost(piece, 1 << 13), cost(piece, 1 << 15));
            assert!(long <= 8 * short, "{piece:?}: {short} bytes, then {long}");
        }
    }
}
