//! Decoded forms of a text, in which secrets are searched. A secret that is found is replaced as it is written.

use crate::search::Span;

/// Invisible characters, which pages and word processors put into long words: zero-width characters, joiners, soft hyphens.
const INVISIBLE: [char; 6] = ['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}', '\u{ad}'];

/// A text in another form.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) text: String,
    /// The parts that it is read from, in order.
    runs: Vec<Run>,
}

/// A part of the original: unchanged, or the escape of one character.
struct Run {
    /// Its first byte in the view.
    at: usize,
    start: usize,
    end: usize,
    is_escape: bool,
}

impl View {
    /// Adds a part of the original that is unchanged.
    fn push(&mut self, part: &str, start: usize) {
        if !part.is_empty() {
            self.runs.push(Run { at: self.text.len(), start, end: start + part.len(), is_escape: false });
            self.text.push_str(part);
        }
    }

    /// Adds the character of an escape.
    fn push_escape(&mut self, c: char, start: usize, end: usize) {
        self.runs.push(Run { at: self.text.len(), start, end, is_escape: true });
        self.text.push(c);
    }

    /// Returns where the byte at a place of the view begins and ends in the original.
    fn from(&self, at: usize) -> Option<(usize, usize)> {
        let run = self.runs.get(self.runs.partition_point(|run| run.at <= at).checked_sub(1)?)?;
        let start = run.start + (at - run.at);
        Some(if run.is_escape { (run.start, run.end) } else { (start, start + 1) })
    }

    /// Returns where a secret is in the original; `None` if it is the same there, so that it is found without this view.
    pub(crate) fn original(&self, found: Span) -> Option<Span> {
        let ((start, _), (_, end)) = (self.from(found.start)?, self.from(found.end.checked_sub(1)?)?);
        (end - start != found.end - found.start).then_some(Span { kind: found.kind, start, end })
    }
}

/// Returns the other forms of a text in which secrets of any kind are searched.
pub(crate) fn of(text: &str) -> Vec<View> {
    let mut views = Vec::new();
    if text.contains(INVISIBLE) {
        views.push(visible(text));
    }
    views.extend(decoded(text, '\\', json));
    views.extend(decoded(text, '%', percent));
    views
}

/// Returns the text without line ends, as it was before a terminal has wrapped it. Only known secrets are searched in it: a line that ends with
/// a complete key looks the same.
pub(crate) fn unwrapped(text: &str) -> Option<View> {
    let lines = text.trim_end().contains('\n');
    lines.then(|| without(text, |c| matches!(c, '\n' | '\r')))
}

fn visible(text: &str) -> View {
    without(text, |c| INVISIBLE.contains(&c))
}

fn without(text: &str, is_left_out: impl Fn(char) -> bool + Copy) -> View {
    let (mut view, mut from) = (View::default(), 0);
    for (at, c) in text.char_indices().filter(|(_, c)| is_left_out(*c)) {
        view.push(&text[from..at], from);
        from = at + c.len_utf8();
    }
    view.push(&text[from..], from);
    view
}

/// Returns the lines with an escape, decoded; `None` where there is none. `escape`: returns the character of an escape at the start of a text, and
/// its length.
fn decoded(text: &str, sign: char, escape: fn(&str) -> Option<(char, usize)>) -> Option<View> {
    let (mut view, mut start) = (View::default(), 0);
    for line in text.split_inclusive('\n') {
        let mut from = 0;
        for (at, _) in line.match_indices(sign) {
            if let Some((c, length)) = escape(&line[at..]).filter(|_| at >= from) {
                view.push(&line[from..at], start + from);
                view.push_escape(c, start + at, start + at + length);
                from = at + length;
            }
        }
        if from > 0 {
            view.push(&line[from..], start + from);
        }
        start += line.len();
    }
    (!view.text.is_empty()).then_some(view)
}

/// An escape of a JSON string for a character that needs none: `\/`, and `\u002b`, which libraries for web pages write for `+`, `=` and `&`.
fn json(text: &str) -> Option<(char, usize)> {
    if text.starts_with("\\/") {
        return Some(('/', 2));
    }
    let digits = text.strip_prefix("\\u00")?.get(..2)?;
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')).then(|| (char::from(byte), 6))
}

/// A byte of an address in hexadecimal form, `%2B`.
fn percent(text: &str) -> Option<(char, usize)> {
    let byte = u8::from_str_radix(text.get(1..3)?, 16).ok()?;
    byte.is_ascii_graphic().then(|| (char::from(byte), 3))
}
