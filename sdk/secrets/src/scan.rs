//! One pass over a text: each place where a word begins is tried against what a secret begins with.

use crate::command::Commands;
use crate::shapes::AWS_KEY;
use crate::text::{Text, is_word};
use crate::{Found, PRIVATE_KEY, Scan, address, assigned, command, key_block, shapes, structured};

/// What of the text before a place is looked at: the words of a name, the name of a vendor, an escape.
const LOOKED_BACK: usize = 64;

/// What a pass carries from one place to the next.
pub(crate) struct Pass<'a> {
    text: Text<'a>,
    pub(crate) commands: Commands,
    /// Look for key blocks, which span lines.
    blocks: bool,
    scan: Scan,
    /// Behind the last secret: nothing before it is looked at again.
    done: usize,
    /// Where the run of a token ends that was looked at last.
    run_end: usize,
    /// Where a line ends on which no key block begins.
    no_block_before: usize,
    /// The number of an AWS key was found, so that its secret can follow.
    after_aws: bool,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(bytes: &'a [u8], before: Option<u8>, blocks: bool) -> Self {
        let scan = Scan { found: Vec::new(), undecided: bytes.len(), open: bytes.len() };
        Self {
            text: Text::new(bytes, before),
            commands: Commands::default(),
            blocks,
            scan,
            done: 0,
            run_end: 0,
            no_block_before: 0,
            after_aws: false,
        }
    }

    pub(crate) fn run(mut self) -> (Scan, Commands) {
        let bytes = self.text.bytes;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if is_word(byte) || !byte.is_ascii() {
                let end = at
                    + bytes[at..]
                        .iter()
                        .position(|byte| !is_word(*byte) && byte.is_ascii())
                        .unwrap_or(bytes.len() - at);
                at = self.word(at, end);
            } else {
                at = self.mark(at, byte);
            }
        }
        // What is behind the text may look back into it.
        self.scan.open = self.scan.open.min(bytes.len().saturating_sub(LOOKED_BACK));
        (self.scan, self.commands)
    }

    /// A run of letters. Returns where to look next.
    fn word(&mut self, at: usize, end: usize) -> usize {
        let inside = at == 0 && self.text.previous(0).is_some_and(is_word);
        if inside {
            return end;
        }
        let bytes = self.text.bytes;
        let start = behind_escape(bytes, at, end);
        let dashed = end + bytes[end..].iter().take(32).take_while(|byte| is_word(**byte) || **byte == b'-').count();
        self.commands.note(&bytes[start..dashed]);
        let (is_new_run, after_aws) = (start >= self.run_end, self.after_aws);
        let found = self.try_at(at, |text| {
            shapes::prefixed(text, start)
                .or_else(|| structured::token(text, start))
                .or_else(|| if is_new_run { structured::landmark(text, start) } else { None })
                .or_else(|| structured::numbered(text, start))
                .or_else(|| address::bare(text, start))
                .or_else(|| command::piped(text, start))
                .or_else(|| if after_aws { structured::aws_secret(text, start) } else { None })
                .or_else(|| assigned::assigned(text, start))
        });
        self.after_aws |= self.scan.found.last().is_some_and(|found| found.kind == AWS_KEY);
        if is_new_run {
            self.run_end = structured::run_end(&self.text, start);
            self.text.take_touched();
        }
        found.map_or(end, |found| found.max(at + 1))
    }

    /// A byte that is not part of a word.
    fn mark(&mut self, at: usize, byte: u8) -> usize {
        let (commands, blocks) = (self.commands, self.blocks);
        let found = match byte {
            b':' => self.try_at(at, |text| address::address(text, at)),
            b'-' if blocks && at >= self.no_block_before && self.begins_block(at) => {
                let found = self.try_at(at, |text| block(text, at));
                if found.is_none() {
                    let line = self.text.bytes[at..].iter().position(|byte| *byte == b'\n');
                    self.no_block_before = at + line.unwrap_or(self.text.bytes.len() - at);
                }
                found
            }
            b'-' => self.try_at(at, |text| {
                let known = if commands.is_empty() { None } else { commands.password(text, at) };
                known.or_else(|| command::user(text, at))
            }),
            _ => None,
        };
        found.unwrap_or(at + 1)
    }

    /// Whether dashes begin here that may be those of a key block.
    fn begins_block(&mut self, at: usize) -> bool {
        let begins = self.text.previous(at) != Some(b'-') && self.text.starts(at, b"----");
        if self.text.take_touched() {
            self.scan.open = self.scan.open.min(at.saturating_sub(LOOKED_BACK));
        }
        begins
    }

    /// Tries what begins at a place. Returns where the secret ends.
    fn try_at(&mut self, at: usize, find: impl Fn(&Text<'_>) -> Option<Found>) -> Option<usize> {
        self.text.take_touched();
        self.text.take_begun();
        let mut found = find(&self.text).filter(|found| found.start >= self.done);
        if self.text.take_touched() {
            self.scan.open = self.scan.open.min(at.saturating_sub(LOOKED_BACK));
            // What tells itself by its beginning is a secret whatever follows.
            let is_certain = found.is_some_and(|found| found.body > found.start);
            if !is_certain {
                let begun = found.map_or(self.text.take_begun(), |found| found.start);
                self.scan.undecided = self.scan.undecided.min(begun);
            }
            found = found.map(|found| Found { is_open: !is_certain, ..found });
        }
        let found = found?;
        let end = found.end;
        self.done = end;
        self.scan.found.push(found);
        Some(end)
    }
}

/// Where a word begins behind what only looks like a part of it: the letter of an escape, as in `\nTOKEN`, or of a colour.
fn behind_escape(bytes: &[u8], at: usize, end: usize) -> usize {
    let first = bytes[at];
    let skip = match at.checked_sub(1).map(|at| bytes[at]) {
        Some(b'\\') if matches!(first, b'n' | b'r' | b't' | b'b' | b'f') => 1,
        Some(b'\\')
            if first == b'u'
                && bytes[at + 1..end].len() >= 4
                && bytes[at + 1..at + 5].iter().all(u8::is_ascii_hexdigit) =>
        {
            5
        }
        Some(b'%') if bytes[at..end].len() > 2 && bytes[at..at + 2].iter().all(u8::is_ascii_hexdigit) => 2,
        Some(b'[') if at >= 2 && bytes[at - 2] == 0x1b => {
            bytes[at..end].iter().position(|byte| *byte == b'm').map_or(0, |m| m + 1)
        }
        _ => 0,
    };
    if at + skip < end { at + skip } else { at }
}

/// A key block, with all of its lines.
fn block(text: &Text<'_>, at: usize) -> Option<Found> {
    let rest = core::str::from_utf8(&text.bytes[at..])
        .unwrap_or_else(|error| core::str::from_utf8(&text.bytes[at..at + error.valid_up_to()]).unwrap_or_default());
    let (mut state, mut from, mut place, mut span) = (key_block::KeyBlock::default(), 0, 0, None);
    for line in rest.split_inclusive('\n') {
        let part = state.take(line.trim_end_matches(['\n', '\r']), "");
        match part {
            key_block::Part::Begins(start, end) => {
                from = from.max(place + start);
                span = Some((from, place + end));
            }
            key_block::Part::Inside(end) => span = span.map(|(from, _)| (from, place + end)),
            key_block::Part::Outside => {}
        }
        place += line.len();
        if state.is_settled() {
            break;
        }
    }
    if place == rest.len() && !(state.is_settled() && rest.ends_with('\n')) {
        // More of it may follow.
        text.at(text.bytes.len());
    }
    let Some((start, end)) = span else {
        // The first letters of a key are too few to be one.
        let body = key_block::begin_marker(rest).map(|(_, body)| at + body);
        body.into_iter().for_each(|body| text.note_begun(body));
        return None;
    };
    let body = key_block::begin_marker(&rest[start..end]).map_or(start, |(_, body)| start + body);
    Some(Found::new(PRIVATE_KEY, at + start, at + end).behind(at + body))
}
