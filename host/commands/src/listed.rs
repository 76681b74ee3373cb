//! What a command line runs, as text that conditions are matched against: a command a line, its words with one blank between them.

use std::fmt::Write as _;
use std::ops::Range;

use shuck_parser::ShellDialect;

use crate::walk::{Found, Simple, Walk};
use crate::word::{Part, Word};
use crate::{guarded, walked};

/// Stands for white space within a word.
const BLANK: char = '\u{2423}';

/// The most lines of one pipeline.
const MAX_PIPES: usize = 64;

/// Where the lines of a text are cut that cannot be read as commands.
const SEPARATORS: [char; 10] = ['\n', '\r', ';', '&', '|', '(', ')', '{', '}', '`'];

/// What a command line runs, as [`listed`] lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// A command a line.
    pub text: String,
    /// Why a part of the line was not read as commands, for the end of a sentence: that part is listed as it is written alone. A command
    /// in it can be spelt so that it is not recognised.
    pub unread: Option<String>,
}

/// Lists what a command line runs, a command a line, in its order and each followed by those that it runs in turn.
///
/// The name of a program is without its folder. Quotes and backslashes are taken away; white space within a word is `␣`, an empty word
/// is `''`, and what is only known when the command runs is as it is written. A variable that is set has a line of its own before
/// the command, `NAME=value`, and so has each pair of commands of which the second reads what the first writes, `| first | second`.
///
/// Where it cannot be read as commands, or can run commands that are not found in it, each part between separators of commands is listed
/// as it is written, too. A part that neither a POSIX shell's nor bash's grammar reads, or that is beyond a limit, is
/// [`unread`](Listed::unread).
///
/// ```
/// use tidegate_commands::listed;
///
/// assert_eq!(listed("sudo /bin/rm -rf 'my dir' && echo \"rm -rf /\"").text, "sudo /bin/rm -rf my␣dir\nrm -rf my␣dir\necho rm␣-rf␣/\n");
/// assert_eq!(listed("CI=1 make | tee log").text, "CI=1\nmake\ntee log\n| make | tee log\n");
/// ```
pub fn listed(text: &str) -> Listed {
    let both = || (walked(text, ShellDialect::Posix), walked(text, ShellDialect::Bash));
    let (mut lines, mut why) = (Vec::new(), None);
    match guarded(text, both) {
        Ok((posix, bash)) => {
            of_found(&posix, &mut lines);
            of_found(&bash, &mut lines);
            // What one of the two can read is read.
            let unread: Vec<&String> = posix.unread.iter().filter(|text| bash.unread.contains(text)).collect();
            unread.iter().for_each(|text| of_text(text, &mut lines));
            let undecided = posix.undecided.or(bash.undecided);
            if undecided.is_some() {
                of_text(text, &mut lines);
            }
            if !unread.is_empty() {
                why = Some(undecided.unwrap_or_else(|| format!("it has more than {} words", crate::walk::MAX_WORDS)));
            }
        }
        Err(error) => {
            of_text(text, &mut lines);
            why = Some(error);
        }
    }
    Listed { text: lines.iter().map(|line| format!("{line}\n")).collect(), unread: why }
}

/// A word on its line.
pub(crate) fn word(word: &Word) -> String {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            Part::Unknown(written) if written.is_empty() => text.push_str("$_"),
            Part::Text(written) | Part::Files(written) | Part::Unknown(written) => text.push_str(written),
        }
    }
    match text.as_str() {
        "" => "''".to_owned(),
        "|" => "'|'".to_owned(),
        _ => text.chars().map(|c| if c.is_whitespace() { BLANK } else { c }).collect(),
    }
}

/// Notes which command of a pipeline gets the output of which.
pub(crate) fn note_pipes(walk: &mut Walk<'_>, stages: &[Range<usize>]) {
    let lines = |stage: &Range<usize>| walk.found.simple.get(stage.clone()).unwrap_or_default().iter().map(command);
    let mut notes = Vec::new();
    for (at, to) in stages.iter().enumerate() {
        for from in stages.iter().take(at) {
            let pairs = lines(from).flat_map(|from| lines(to).map(move |to| format!("| {from} | {to}")));
            notes.extend(pairs.take(MAX_PIPES - notes.len().min(MAX_PIPES)));
        }
    }
    notes.into_iter().for_each(|line| walk.note(line));
}

fn command(simple: &Simple) -> String {
    let mut line = String::new();
    for (at, one) in simple.words.iter().enumerate() {
        let one = if at == 0 { word(&one.without_folder()) } else { word(one) };
        let blank = if at == 0 { "" } else { " " };
        // Writing to a string does not fail.
        let _ok = write!(line, "{blank}{one}");
    }
    line
}

fn of_found(found: &Found, lines: &mut Vec<String>) {
    let mut add = |line: String| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    let mut notes = found.notes.iter().peekable();
    for (at, simple) in found.simple.iter().enumerate() {
        while let Some((_, line)) = notes.next_if(|(before, _)| *before <= at) {
            add(line.clone());
        }
        // Assignments alone have a command without a name.
        if simple.words.iter().any(|one| !one.parts.is_empty()) {
            add(command(simple));
        }
    }
    notes.for_each(|(_, line)| add(line.clone()));
}

fn of_text(text: &str, lines: &mut Vec<String>) {
    for part in text.split(SEPARATORS) {
        let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
}
