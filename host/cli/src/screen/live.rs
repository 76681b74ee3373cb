//! The rows at the bottom of the terminal while a chat is open: they stay below everything that is printed.
//!
//! What is printed meanwhile, by whomever, goes above them: the rows are erased, the text is written, the rows are drawn again. What can
//! still change of the model's text is in the rows until it cannot, so that every delta is visible and nothing is written over. Outside of a
//! chat, those are the only rows, and the region is there as long as they are.
//!
//! A terminal that gets another size breaks or joins the rows that it shows, and the program learns of it later. What is drawn in between goes
//! to the wrong rows, and leaves lines twice. So nothing is drawn from the first sign of another size until none has followed for [`SETTLED`].

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use unicode_segmentation::UnicodeSegmentation as _;

use super::clean::{GUTTER, Keep};
use super::sink::{self, Stream};
use super::wrap::wrapped;
use super::{is_terminal, paint, terminal};
use crate::style;

/// The rows that a chat shows: styled strings, a row of the terminal each, cut where they are too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<String>,
    /// The row and the column of the cursor, from 0.
    pub(crate) cursor: (usize, usize),
}

/// The region of the process's terminal, while there is one.
static REGION: Mutex<Option<Region>> = Mutex::new(None);

/// How long the size of the terminal stays as it is until something is drawn again. A window that is dragged has many sizes, and tmux reports
/// the next one up to 250 ms after it has broken the rows for it.
pub(crate) const SETTLED: Duration = Duration::from_millis(350);

/// Counts the rows that are printed above the region from here on: after what was printed last, also where that is not drawn yet.
pub(crate) fn count_rows() {
    if let Some(region) = lock().as_mut() {
        region.count_rows();
    }
}

/// The rows that were printed above the region since [`count_rows`].
pub(crate) fn rows_since() -> usize {
    lock().as_ref().map_or(0, |region| region.since)
}

/// Until when nothing is drawn, because the terminal has got another size.
pub(crate) fn held_until() -> Option<Instant> {
    lock().as_ref().and_then(|region| region.held)
}

/// Forgets the rows, which are outdated, so that they are not drawn below the next printed text.
pub(crate) fn forget_rows() {
    if let Some(region) = lock().as_mut() {
        (region.rows, region.cursor) = (Vec::new(), (0, 0));
    }
}

/// Gives the terminal back as it was, because the program ends at once. Who draws at this moment may be stuck, and is not waited for.
pub(crate) fn give_back() {
    let Ok(mut region) = REGION.try_lock() else {
        let _gone = terminal::leave_raw_mode();
        return;
    };
    let Some(mut region) = region.take() else { return };
    let end = format!("{}{PASTE_OFF}", region.end(terminal::size()));
    let (done, written) = std::sync::mpsc::channel();
    // A terminal can be stopped with Ctrl+S.
    let writing = std::thread::Builder::new().spawn(move || {
        let _gone = sink::raw(end.as_bytes());
        let _ended = done.send(());
    });
    if writing.is_ok() {
        let _late = written.recv_timeout(STUCK);
    }
    let _gone = terminal::leave_raw_mode();
}

/// How long a terminal is waited for that does not take what is written.
const STUCK: Duration = Duration::from_millis(100);

/// Keeps the region until it is dropped, which erases it and gives the terminal back as it was.
#[derive(Debug)]
pub(crate) struct Live(());

impl Live {
    /// Begins the region: keys arrive one by one from now on, and what is pasted arrives as one.
    ///
    /// # Errors
    /// The terminal cannot be switched to single keys.
    pub(crate) fn begin() -> io::Result<Self> {
        terminal::enter_raw_mode()?;
        *lock() = Some(Region::default());
        sink::raw(PASTE_ON.as_bytes())?;
        Ok(Self(()))
    }

    /// Draws other rows.
    pub(crate) fn draw(&self, rows: &Rows) -> io::Result<()> {
        let colour = style::wanted(is_terminal(Stream::Out));
        let painted = rows.rows.iter().map(|row| paint(row, Keep::Line, colour, false)).collect();
        let mut region = lock();
        let Some(region) = region.as_mut() else { return Ok(()) };
        (region.rows, region.cursor) = (painted, rows.cursor);
        sink::raw(region.print("", terminal::size(), Instant::now()).as_bytes())
    }

    /// Shows a page in the place of everything: the host's lines, and rows below them. What is printed meanwhile waits.
    pub(crate) fn cover(&self, lines: &[String], below: &[String]) -> io::Result<()> {
        let colour = style::wanted(is_terminal(Stream::Out));
        let most = terminal::size().0.saturating_sub(1).max(1);
        let gutter = style::out(style::DIM, &GUTTER.to_string());
        let lines = lines.iter().map(|line| {
            format!("{}{}", paint(&gutter, Keep::Line, colour, false), paint(line, Keep::Line, colour, true))
        });
        let below = below.iter().map(|row| paint(row, Keep::Line, colour, false));
        let rows: Vec<String> = lines.chain(below).map(|row| cut(&row, most)).collect();
        let mut region = lock();
        let Some(region) = region.as_mut() else { return Ok(()) };
        let begin = if std::mem::replace(&mut region.is_covered, true) { "" } else { terminal::other_screen().0 };
        sink::raw(format!("{begin}{HIDE_CURSOR}\x1b[H{ERASE_ROW}{}{ERASE_BELOW}", rows.join(NEXT)).as_bytes())
    }

    /// Ends the page. Returns whether that has erased what was on the screen, because the terminal has no other one.
    pub(crate) fn uncover(&self) -> io::Result<bool> {
        let mut region = lock();
        let Some(region) = region.as_mut().filter(|region| region.is_covered) else { return Ok(false) };
        sink::raw(region.uncovered().as_bytes())?;
        Ok(!terminal::has_other_screen())
    }

    /// Gives the terminal as it was to `work`, which blocks, and takes it back then.
    ///
    /// # Errors
    /// The terminal cannot be switched.
    pub(crate) fn suspended<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let mut region = lock().take();
        // It is drawn again then.
        let tail = region.as_mut().map(|region| std::mem::take(&mut region.tail)).unwrap_or_default();
        let erased = region.as_mut().map_or_else(String::new, |region| region.end(terminal::size()));
        sink::raw(format!("{erased}{PASTE_OFF}").as_bytes())?;
        terminal::leave_raw_mode()?;
        let done = work();
        terminal::enter_raw_mode()?;
        *lock() = region.map(|region| Region { open: String::new(), tail, ..region });
        // Keys answer a question only when it was drawn again.
        forget_rows();
        sink::raw(PASTE_ON.as_bytes())?;
        Ok(done)
    }

    /// Erases what the terminal shows, and draws the rows again.
    pub(crate) fn clear(&self) -> io::Result<()> {
        sink::raw(b"\x1b[2J\x1b[H")?;
        let mut region = lock();
        let Some(region) = region.as_mut() else { return Ok(()) };
        (region.drawn, region.held) = (Drawn::default(), None);
        // A page is drawn whole each time.
        sink::raw(region.print("", terminal::size(), Instant::now()).as_bytes())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut region) = lock().take() {
            // Where the terminal is gone, there is nothing to give back.
            let _gone = sink::raw(format!("{}{PASTE_OFF}", region.end(terminal::size())).as_bytes());
        }
        let _gone = terminal::leave_raw_mode();
    }
}

/// Prints above the region, if there is one.
#[cfg(not(test))]
pub(super) fn print(text: &[u8]) -> Option<io::Result<()>> {
    let mut region = lock();
    let region = region.as_mut()?;
    // What is written to the terminal are whole strings.
    let frame = region.print(&String::from_utf8_lossy(text), terminal::size(), Instant::now());
    Some(sink::raw(frame.as_bytes()))
}

/// Prints rows of the answer above the region, and shows what follows them in it. `None`: there is no region, and no need for one.
#[cfg(not(test))]
pub(super) fn answer(text: &str, tail: Vec<String>) -> Option<io::Result<()>> {
    let frame = answered(&mut lock(), text, tail, terminal::size(), Instant::now())?;
    Some(sink::raw(frame.as_bytes()))
}

/// The tests of this crate have no region of the process.
#[cfg(test)]
pub(super) fn answer(_: &str, _: Vec<String>) -> Option<io::Result<()>> {
    None
}

/// The bytes that do so. Outside of a chat, the region begins and ends here.
fn answered(
    region: &mut Option<Region>,
    text: &str,
    tail: Vec<String>,
    size: (usize, usize),
    now: Instant,
) -> Option<String> {
    if tail.is_empty() && region.is_none() {
        return None;
    }
    let shown = region.get_or_insert_with(|| Region { is_passing: true, ..Region::default() });
    shown.tail = tail;
    let mut frame = shown.print(text, size, now);
    if shown.is_passing && shown.tail.is_empty() {
        frame.push_str(&shown.end(size));
        *region = None;
    }
    Some(frame)
}

fn lock() -> MutexGuard<'static, Option<Region>> {
    REGION.lock().unwrap_or_else(PoisonError::into_inner)
}

const PASTE_ON: &str = "\x1b[?2004h";
const PASTE_OFF: &str = "\x1b[?2004l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Erases the whole row: a terminal forgets that it had broken the row before, and does not join it again when it becomes wider.
const ERASE_ROW: &str = "\x1b[2K";
const ERASE_BELOW: &str = "\x1b[J";
/// Ends a row, and begins the next one over what is there.
const NEXT: &str = "\r\n\x1b[2K";

/// Begins a line that the terminal breaks itself where it is longer than a row, so that it is copied as one line. Clean text has no such
/// character.
pub(super) const WHOLE: char = '\u{e}';

/// What is at the bottom of the terminal.
#[derive(Debug, Default)]
struct Region {
    /// It is there only while `tail` is.
    is_passing: bool,
    /// What can still change of the model's text.
    tail: Vec<String>,
    /// The line of the model's text that has not ended.
    open: String,
    rows: Vec<String>,
    cursor: (usize, usize),
    drawn: Drawn,
    /// Columns and rows of the terminal, when it was looked at last; zeros before.
    size: (usize, usize),
    /// Until when nothing is drawn.
    held: Option<Instant>,
    /// What is to be printed then.
    pending: String,
    /// Rows that were printed since they are counted.
    since: usize,
    /// The byte of `pending` from which they are counted.
    count_from: Option<usize>,
    /// A page is in the place of everything.
    is_covered: bool,
}

/// The rows as they are on the screen.
#[derive(Debug, Default)]
struct Drawn {
    /// Columns that each row took.
    widths: Vec<usize>,
    /// The row and the column of the cursor.
    cursor: (usize, usize),
}

impl Region {
    /// The bytes that print a text above the rows and draw them again, at a terminal of so many columns and rows.
    ///
    /// Rows are written over what is there, row by row: nothing flickers, and a terminal whose first row this is does not take it for the
    /// end of a screen, which some keep.
    fn print(&mut self, text: &str, (columns, height): (usize, usize), now: Instant) -> String {
        self.pending.push_str(text);
        if self.is_covered || self.is_held((columns, height), now) {
            return String::new();
        }
        let text = std::mem::take(&mut self.pending);
        // The bytes that follow where rows are counted from.
        let mut counted = self.count_from.take().map(|from| text.len().saturating_sub(from));
        let most = columns.saturating_sub(1).max(1);
        let mut frame = format!("{HIDE_CURSOR}{}{ERASE_ROW}", self.up(columns));
        self.open.push_str(&text);
        while let Some(end) = self.open.find('\n') {
            let line = &self.open[..end];
            let parts = rows(line.trim_start_matches(WHOLE), most);
            self.since += parts.len();
            if line.starts_with(WHOLE) {
                frame.push_str(&whole(&parts));
            } else {
                // A row that the terminal breaks itself would be written over what is below, which is not erased yet.
                parts.iter().for_each(|row| frame.extend([row.trim_end(), NEXT]));
            }
            self.open.drain(..=end);
            if counted.take_if(|counted| self.open.len() <= *counted).is_some() {
                self.since = 0;
            }
        }
        while width(&self.open) > most {
            let mut parts = rows(&self.open, most).into_iter();
            let first = parts.next().unwrap_or_default();
            frame.extend([first.trim_end(), NEXT]);
            self.since += 1;
            self.open = parts.collect();
        }
        self.draw(&mut frame, most, height);
        frame
    }

    fn count_rows(&mut self) {
        self.since = 0;
        self.count_from = (!self.pending.is_empty()).then_some(self.pending.len());
    }

    /// Whether the terminal, which has this size now, has had another one a short time ago.
    fn is_held(&mut self, size: (usize, usize), now: Instant) -> bool {
        let before = std::mem::replace(&mut self.size, size);
        if before != size && before != (0, 0) {
            self.held = Some(now + SETTLED);
        }
        self.held.take_if(|until| *until <= now);
        self.held.is_some()
    }

    /// Goes to the first row. The rows that the terminal has broken, because it is narrower now, are counted as so many, and the cursor is
    /// in one of those of its own row.
    fn up(&self, columns: usize) -> String {
        let broken = |width: usize| width.saturating_sub(1) / columns.max(1);
        let (row, column) = self.drawn.cursor;
        let (above, rest) = self.drawn.widths.split_at(row);
        let is_at_end = rest.first().is_none_or(|width| column >= *width);
        // After the last character, the cursor is in the row of that character.
        let own = if is_at_end { broken(column) } else { column / columns.max(1) };
        match above.iter().map(|width| broken(*width) + 1).sum::<usize>() + own {
            0 => "\r".to_owned(),
            above => format!("\r\x1b[{above}A"),
        }
    }

    fn draw(&mut self, frame: &mut String, most: usize, height: usize) {
        let open = (!self.open.is_empty()).then_some(&self.open);
        let answer: Vec<String> =
            self.tail.iter().flat_map(|row| rows(row, most)).map(|row| row.trim_end().to_owned()).collect();
        let above = answer.len() + usize::from(open.is_some());
        let rows: Vec<String> = answer.iter().chain(open).chain(&self.rows).map(|row| cut(row, most)).collect();
        // What does not fit is left out from the top.
        let skipped = rows.len().saturating_sub(height.saturating_sub(1).max(1));
        let rows = &rows[skipped..];
        let last = rows.len().saturating_sub(1);
        let row = (self.cursor.0 + above).saturating_sub(skipped).min(last);
        let column = self.cursor.1.min(most);
        frame.extend([&rows.join(NEXT), ERASE_BELOW, "\r"]);
        if last > row {
            frame.push_str(&format!("\x1b[{}A", last - row));
        }
        // What precedes the cursor is written once more: only the terminal knows how many columns it takes for an emoji.
        let before = rows.get(row).map_or_else(String::new, |row| cut(row, column));
        let gap = column - width(&before).min(column);
        frame.push_str(&before);
        if gap > 0 {
            frame.push_str(&format!("\x1b[{gap}C"));
        }
        frame.push_str(SHOW_CURSOR);
        self.drawn = Drawn { widths: rows.iter().map(|row| width(row)).collect(), cursor: (row, column) };
    }

    /// Ends the page. The rows below it are as they were drawn, at a terminal that has another screen for it.
    fn uncovered(&mut self) -> String {
        if !std::mem::take(&mut self.is_covered) {
            return String::new();
        }
        if !terminal::has_other_screen() {
            self.drawn = Drawn::default();
        }
        terminal::other_screen().1.to_owned()
    }

    /// Erases the rows, and goes to the first; what is there of the model's text stays.
    fn end(&mut self, size: (usize, usize)) -> String {
        (self.size, self.held) = (size, None);
        let columns = size.0;
        let mut frame = self.uncovered();
        if !self.pending.is_empty() {
            frame.push_str(&self.print("", size, Instant::now()));
        }
        frame.push_str(&self.up(columns));
        let rows = self.drawn.widths.len();
        frame.push_str(&format!("{ERASE_ROW}\r\n").repeat(rows.saturating_sub(1)));
        frame.push_str(ERASE_BELOW);
        self.drawn = Drawn { widths: vec![0; rows], cursor: (rows.saturating_sub(1), 0) };
        frame.push_str(&self.up(columns));
        self.drawn = Drawn::default();
        let open = (!self.open.is_empty()).then_some(&self.open);
        for line in std::mem::take(&mut self.tail).iter().chain(open) {
            frame.extend([line.as_str(), "\r\n"]);
        }
        frame.push_str(SHOW_CURSOR);
        frame
    }
}

/// The bytes of a line that the terminal breaks itself, from its parts. What the rest is written over is erased before it, and the row is begun
/// then: a terminal that is erased from its first cell on keeps what it has shown.
fn whole(parts: &[String]) -> String {
    match parts.split_first() {
        Some((first, rest)) if !rest.is_empty() => format!("{first}{ERASE_BELOW}{}{NEXT}", rest.concat()),
        _ => format!("{}{NEXT}", parts.concat()),
    }
}

/// Splits a painted string into its escape sequences, of no width, and the characters between them.
fn parts(painted: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = painted;
    std::iter::from_fn(move || {
        let escape = rest.strip_prefix("\x1b[").map(|inner| inner.find('m').map_or(rest.len(), |end| end + 3));
        let end = escape.or_else(|| rest.find('\x1b')).unwrap_or(rest.len());
        let (part, after) = rest.split_at_checked(end).filter(|(part, _)| !part.is_empty())?;
        rest = after;
        Some((escape.is_some(), part))
    })
}

/// The columns of a painted row.
fn width(painted: &str) -> usize {
    parts(painted).filter(|(is_escape, _)| !is_escape).map(|(_, text)| terminal::width(text)).sum()
}

/// A painted line in rows of at most so many columns. Escape sequences stay where they are, so that a style continues in the next row.
fn rows(painted: &str, most: usize) -> Vec<String> {
    if width(painted) <= most {
        return vec![painted.to_owned()];
    }
    let plain: String = parts(painted).filter(|(is_escape, _)| !is_escape).map(|(_, text)| text).collect();
    let mut ends = wrapped(&plain, most).into_iter().map(|part| part.len());
    let (mut rows, mut row, mut left) = (Vec::new(), String::new(), ends.next().unwrap_or_default());
    for (is_escape, mut part) in parts(painted) {
        while !is_escape && part.len() > left {
            let (end, rest) = part.split_at(left);
            row.push_str(end);
            rows.push(std::mem::take(&mut row));
            (part, left) = (rest, ends.next().unwrap_or(usize::MAX));
        }
        row.push_str(part);
        left -= if is_escape { 0 } else { part.len() };
    }
    rows.push(row);
    rows
}

/// A painted row of at most so many columns. Its escape sequences stay, so that a style ends.
fn cut(painted: &str, most: usize) -> String {
    let (mut row, mut left) = (String::with_capacity(painted.len()), most);
    for (is_escape, part) in parts(painted) {
        if is_escape {
            row.push_str(part);
            continue;
        }
        for cluster in part.graphemes(true) {
            let width = terminal::width(cluster);
            if width > left {
                left = 0;
                break;
            }
            left -= width;
            row.push_str(cluster);
        }
    }
    row
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// What a terminal of 20 columns shows of frames: the text without styles, as far as it is not written over or erased.
    #[derive(Default)]
    struct Shown {
        rows: Vec<Vec<char>>,
        at: (usize, usize),
    }

    impl Shown {
        fn take(&mut self, frame: &str) {
            let mut rest = frame;
            while let Some(c) = rest.chars().next() {
                self.rows.resize((self.at.0 + 1).max(self.rows.len()), Vec::new());
                let row = &mut self.rows[self.at.0];
                if let Some(inner) = rest.strip_prefix("\x1b[") {
                    let end = inner.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    let number: usize = inner[..end].parse().unwrap_or(1);
                    match &inner[end..=end] {
                        "A" => self.at.0 -= number,
                        "C" => self.at.1 += number,
                        "K" => row.clear(),
                        "J" => {
                            row.truncate(self.at.1);
                            self.rows.truncate(self.at.0 + 1);
                        }
                        _ => {}
                    }
                    rest = &inner[end + 1..];
                    continue;
                }
                rest = &rest[c.len_utf8()..];
                match c {
                    '\n' => self.at.0 += 1,
                    '\r' => self.at.1 = 0,
                    _ => {
                        row.resize((self.at.1 + 1).max(row.len()), ' ');
                        row[self.at.1] = c;
                        self.at.1 += 1;
                    }
                }
            }
        }

        fn lines(&self) -> Vec<String> {
            self.rows.iter().map(|row| row.iter().collect()).collect()
        }
    }

    #[test]
    fn what_is_printed_is_above_the_rows_and_nothing_is_lost() {
        let mut region =
            Region { rows: vec!["status".into(), "› input".into()], cursor: (1, 3), ..Region::default() };
        let (mut shown, size) = (Shown::default(), (20, 10));
        for text in ["", "one ", "two", "\nthree\n", "a line that is longer than the terminal", " is\nend"] {
            let frame = region.print(text, size, Instant::now());
            shown.take(&frame);
            let lines = shown.lines();
            assert_eq!(lines[lines.len() - 2..], ["status", "› input"], "{frame:?}");
            assert_eq!(shown.at, (lines.len() - 1, 3));
        }
        shown.take(&region.end((20, 10)));
        let lines = ["one two", "three", "a line that is", "longer than the", "terminal is", "end"];
        assert_eq!(shown.lines().join("\n").trim_end(), lines.join("\n"));
    }

    #[test]
    fn a_long_line_is_broken_between_words_and_keeps_its_style() {
        let painted = "\x1b[2m▌\x1b[0m\x1b[1mone\x1b[0m two 日本語 four fivesixseveneightnine";
        let broken = ["\x1b[2m▌\x1b[0m\x1b[1mone\x1b[0m ", "two 日本語 ", "four fivesixs", "eveneightnine"];
        assert_eq!(rows(painted, 13), broken);
        assert_eq!(rows("\x1b[1mabc\x1b[0m", 3), ["\x1b[1mabc\x1b[0m"]);
        assert_eq!(rows("\x1b[1mabcd\x1b[0m", 2), ["\x1b[1mab", "cd\x1b[0m"]);
        // What was in the rows is nowhere in those of a line that takes several.
        let mut region = Region { rows: vec!["xxxxxxxxxxxxxxxxxx".into()], cursor: (0, 0), ..Region::default() };
        let mut shown = Shown::default();
        for text in ["", "a line that is longer than the terminal is\n"] {
            shown.take(&region.print(text, (20, 10), Instant::now()));
        }
        let lines = ["a line that is", "longer than the", "terminal is", "xxxxxxxxxxxxxxxxxx"];
        assert_eq!(shown.lines().iter().map(|line| line.trim_end()).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn what_can_change_of_an_answer_is_replaced_and_its_region_passes() {
        let (mut region, mut shown, now) = (None, Shown::default(), Instant::now());
        let mut answer = |text: &str, tail: &[&str]| {
            let tail = tail.iter().map(|row| (*row).to_owned()).collect();
            let frame = answered(&mut region, text, tail, (20, 10), now);
            shown.take(frame.as_deref().unwrap_or_default());
            (shown.lines().join("\n").trim_end().to_owned(), region.is_some())
        };
        assert_eq!(answer("", &[]), (String::new(), false));
        assert_eq!(answer("", &["**a"]), ("**a".to_owned(), true));
        assert_eq!(
            answer("", &["a | b", "--+--", "a row that is longer than so"]).0,
            "a | b\n--+--\na row that is\nlonger than so"
        );
        assert_eq!(answer("a\n", &["b"]), ("a\nb".to_owned(), true));
        assert_eq!(answer("b\nc\n", &[]), ("a\nb\nc".to_owned(), false));
    }

    #[test]
    fn a_line_of_code_is_broken_by_the_terminal() {
        let mut region = Region { rows: vec!["row".into()], ..Region::default() };
        let now = Instant::now();
        let text = format!("{WHOLE}\u{1b}[35mlet\u{1b}[0m a_variable = \"a string\";\n{WHOLE}    short  \nprose\n");
        let frame = region.print(&text, (20, 10), now);
        let long = format!("\u{1b}[35mlet\u{1b}[0m a_variable = {ERASE_BELOW}\"a string\";{NEXT}");
        assert!(frame.contains(&long) && frame.contains(&format!("    short  {NEXT}")), "{frame:?}");
        assert_eq!((region.since, frame.matches(WHOLE).count()), (4, 0));
    }

    #[test]
    fn rows_that_are_forgotten_are_not_drawn_again() {
        let mut region = Region { rows: vec!["y: yes".into()], ..Region::default() };
        let mut shown = Shown::default();
        shown.take(&region.print("", (20, 10), Instant::now()));
        region.rows.clear();
        shown.take(&region.print("a line\n", (20, 10), Instant::now()));
        assert_eq!(shown.lines().join("\n").trim_end(), "a line");
    }

    #[test]
    fn nothing_is_drawn_while_the_size_changes_and_nothing_is_lost() {
        let mut region = Region { rows: vec!["row".into()], ..Region::default() };
        let start = Instant::now();
        assert!(!region.print("one\n", (20, 10), start).is_empty());
        assert_eq!(region.print("two\n", (19, 10), start), "");
        assert_eq!(region.print("three\n", (18, 10), start + SETTLED / 2), "");
        assert_eq!(region.print("four\n", (18, 10), start + SETTLED), "", "it has changed since");
        let frame = region.print("five\n", (18, 10), start + SETTLED / 2 + SETTLED);
        let lines = ["two", "three", "four", "five", "row"];
        assert!(lines.iter().all(|line| frame.contains(line)), "{frame:?}");
        assert_eq!(region.print("six\n", (17, 10), start + SETTLED * 2), "");
        assert!(region.end((17, 10)).contains("six"));
    }

    #[test]
    fn rows_are_counted_from_what_was_printed_last_also_where_it_is_not_drawn() {
        let mut region = Region::default();
        let start = Instant::now();
        region.print("before\n", (20, 10), start);
        region.count_rows();
        assert_eq!(region.since, 0);
        // The size changes: a question is printed, and a line after it that takes two rows.
        assert_eq!(region.print("one\ntwo\n", (19, 10), start), "");
        region.count_rows();
        assert_eq!(region.print("a line that is longer than that\n", (19, 10), start), "");
        assert!(region.print("", (19, 10), start + SETTLED).contains("two"));
        assert_eq!(region.since, 2);
        region.print("after\n", (19, 10), start + SETTLED);
        assert_eq!(region.since, 3);
        region.count_rows();
        assert_eq!(region.since, 0);
    }

    #[test]
    fn the_cursor_is_after_what_precedes_it() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let mut region =
            Region { rows: vec![format!("\x1b[1m› \x1b[0m{family}x")], cursor: (0, 8), ..Region::default() };
        let frame = region.print("", (20, 10), Instant::now());
        let after = frame.rsplit('\r').next().unwrap();
        assert_eq!(after, format!("\x1b[1m› \x1b[0m{family}{SHOW_CURSOR}"));
    }

    #[test]
    fn rows_fit_the_terminal() {
        let mut region = Region {
            rows: (0..9).map(|n| format!("\x1b[2m{}{n}\x1b[0m", "x".repeat(30))).collect(),
            cursor: (8, 50),
            ..Region::default()
        };
        let mut shown = Shown::default();
        shown.take(&region.print("", (20, 5), Instant::now()));
        assert_eq!((shown.lines().len(), region.drawn.widths.as_slice()), (4, [19; 4].as_slice()));
        // The terminal is half as wide now, and has broken each row into two.
        assert!(region.up(10).contains("\x1b[7A"), "the cursor is at the end of the last row");
        region.drawn.cursor.1 = 9;
        assert!(region.up(10).contains("\x1b[6A"));
        region.drawn.cursor.1 = 10;
        assert!(region.up(10).contains("\x1b[7A"));
        assert_eq!(cut("\x1b[1m日本語\x1b[0m", 5), "\x1b[1m日本\x1b[0m");
        assert_eq!(width("\x1b[1m日本\x1b[0mx"), 5);
    }
}
