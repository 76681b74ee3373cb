//! What a command line runs, as text that conditions are matched against: a command a line, its words with one blank between them.

use std::collections::HashSet;
use std::ops::Range;

use shuck_parser::ShellDialect;

use crate::documents::Source;
use crate::path::short_path;
use crate::unnamed::{self, Unnamed};
use crate::walk::{Found, Simple, Walk};
use crate::word::{Part, Word};
use crate::work::{ITEM, SPENT, Work, of_words as weight};
use crate::{guarded, walked, wrapper};

/// Stands for white space within a word.
const BLANK: char = '\u{2423}';

/// The most lines of one pipeline.
const MAX_PIPES: usize = 1024;

/// Where the lines of a text are cut that cannot be read as commands.
const SEPARATORS: [char; 10] = ['\n', '\r', ';', '&', '|', '(', ')', '{', '}', '`'];

/// What makes several words of one, which is not followed.
const SPLITTERS: [&str; 2] = ["$IFS", "${IFS"];

/// What a command line runs, as [`listed`] lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// A command a line.
    pub text: String,
    /// Why a part of the line was not read as commands, for the end of a sentence: that part is listed as it is written alone. A command
    /// in it can be spelt so that it is not recognised.
    pub unread: Option<String>,
    /// Commands of which the name is only known when they run, and those that run if such a name is that of a program that runs others:
    /// the latter are not in the list.
    pub unnamed: Vec<Unnamed>,
}

/// Lists what a command line runs, a command a line, in its order and each followed by those that it runs in turn.
///
/// The name of a program is without its folder. Quotes and backslashes are taken away; white space within a word is `␣`, an empty word
/// is `''`, and what is only known when the command runs is as it is written. A variable that is set has a line of its own before
/// the command, `NAME=value`, and so has each pair of commands of which the second reads what the first writes, `| first | second`, and
/// each command that reads a text of the line, `| <<text | command`.
///
/// What the line itself says of an expansion is filled in, on a line of its own; so is the command of a program such as `git` without the
/// options before it, and a path in its shortest form.
///
/// Where it cannot be read as commands, or can run commands that are not found in it, each part between separators of commands is listed
/// as it is written, too. A part that neither a POSIX shell's nor bash's grammar reads, or that is beyond a limit, is
/// [`unread`](Listed::unread).
///
/// ```
/// use tidegate_commands::listed;
///
/// assert_eq!(listed("sudo /bin/rm -rf 'my dir' && echo \"rm -rf /\"").text, "sudo /bin/rm -rf my␣dir\nrm -rf my␣dir\necho rm␣-rf␣/\n");
/// assert_eq!(listed("c=rm; $c //x").text, "c=rm\n$c //x\n$c /x\nrm //x\nrm /x\n");
/// assert_eq!(listed("CI=1 make | tee log").text, "CI=1\nmake\ntee log\n| make | tee log\n");
/// ```
pub fn listed(text: &str) -> Listed {
    let work = Work::default();
    let both =
        |source: &Source| (walked(source, ShellDialect::Posix, &work), walked(source, ShellDialect::Bash, &work));
    let (mut lines, mut why, mut unnamed) = (Lines::default(), None, Vec::new());
    match guarded(text, both) {
        Ok((posix, bash)) => {
            for found in [&posix, &bash] {
                of_found(found, &mut lines);
                unnamed.extend(found.simple.iter().flat_map(|simple| unnamed::unnamed(simple, &found.values)));
            }
            // What one of the two can read is read.
            let of_bash: HashSet<&String> = bash.unread.iter().map(|(text, _)| text).collect();
            let unread: Vec<&(String, String)> =
                posix.unread.iter().filter(|(text, _)| of_bash.contains(text)).collect();
            unread.iter().for_each(|(text, _)| of_text(text, &mut lines));
            if posix.is_odd || bash.is_odd {
                of_text(text, &mut lines);
            }
            if let Some((_, first)) = unread.first() {
                of_text(text, &mut lines);
                why = Some(first.clone());
            } else if work.is_spent() {
                why = Some(SPENT.to_owned());
            }
        }
        Err(error) => {
            of_text(text, &mut lines);
            why = Some(error);
        }
    }
    if why.is_none() && SPLITTERS.iter().any(|splitter| text.contains(splitter)) {
        of_text(text, &mut lines);
        why = Some("it has words that `$IFS` splits".to_owned());
    }
    let mut seen = HashSet::new();
    unnamed.retain(|one| seen.insert(one.clone()));
    Listed { text: lines.text, unread: why, unnamed }
}

/// The lines of a list, each once.
#[derive(Default)]
struct Lines {
    text: String,
    seen: HashSet<String>,
}

impl Lines {
    fn add(&mut self, line: String) {
        if !self.seen.contains(&line) {
            self.text.push_str(&line);
            self.text.push('\n');
            self.seen.insert(line);
        }
    }
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
        _ => shown(&text),
    }
}

/// A text as it is listed within a word.
pub(crate) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { BLANK } else { c }).collect()
}

/// Notes which command of a pipeline gets the output of which.
pub(crate) fn note_pipes(walk: &mut Walk<'_>, stages: &[Range<usize>]) {
    let work = walk.found.work.clone();
    let lines = |stage: &Range<usize>| {
        walk.found
            .simple
            .get(stage.clone())
            .unwrap_or_default()
            .iter()
            .filter(|one| !one.is_guess && work.take(weight(&one.words)))
            .map(command)
    };
    let lines: Vec<Vec<String>> = stages.iter().map(|stage| lines(stage).collect()).collect();
    let ends = lines.iter().enumerate().flat_map(|(at, to)| lines.iter().take(at).map(move |from| (from, to)));
    let pairs = ends.flat_map(|(from, to)| from.iter().flat_map(move |from| to.iter().map(move |to| (from, to))));
    let pairs = pairs.take_while(|(from, to)| work.take(ITEM + from.len() + to.len()));
    let mut notes: Vec<String> = pairs.take(MAX_PIPES + 1).map(|(from, to)| format!("| {from} | {to}")).collect();
    if notes.len() > MAX_PIPES {
        notes.truncate(MAX_PIPES);
        walk.unread(format!("a pipeline has more than {MAX_PIPES} pairs of commands"));
    }
    notes.into_iter().for_each(|line| walk.note(line));
}

/// Notes which commands get a text that is written in the line. `first`: the first of them.
pub(crate) fn note_text(walk: &mut Walk<'_>, text: &str, first: usize) {
    let work = walk.found.work.clone();
    let commands = walk.found.simple.get(first..).unwrap_or_default().iter();
    let commands = commands.filter(|one| !one.is_guess && work.take(weight(&one.words) + text.len()));
    let notes: Vec<String> = commands.map(|one| format!("| <<{} | {}", shown(text), command(one))).collect();
    notes.into_iter().for_each(|line| walk.note(line));
}

fn command(simple: &Simple) -> String {
    line(&words(&simple.words))
}

/// The words of a command as they are listed: the name of its program is without its folder.
fn words(words: &[Word]) -> Vec<String> {
    words.iter().enumerate().map(|(at, one)| if at == 0 { word(&one.without_folder()) } else { word(one) }).collect()
}

fn line(words: &[String]) -> String {
    words.join(" ")
}

fn of_found(found: &Found, lines: &mut Lines) {
    let mut notes = found.notes.iter().peekable();
    for (at, simple) in found.simple.iter().enumerate() {
        while let Some((_, line)) = notes.next_if(|(before, _)| *before <= at) {
            lines.add(line.clone());
        }
        // Assignments alone have a command without a name.
        if !simple.is_guess && simple.words.iter().any(|one| !one.parts.is_empty()) {
            of_words(&simple.words, lines);
            of_words_without_options(&simple.words, lines);
        }
    }
    notes.for_each(|(_, line)| lines.add(line.clone()));
}

/// Adds a command, and if paths in it are spelt in a roundabout way, once more with the same paths in short.
fn of_words(simple: &[Word], lines: &mut Lines) {
    let written = words(simple);
    lines.add(line(&written));
    let short: Vec<Option<String>> = written.iter().map(|word| short_path(word)).collect();
    if short.iter().skip(1).any(Option::is_some) {
        let words = short.into_iter().zip(written).enumerate();
        let words: Vec<String> = words.map(|(at, (short, word))| short.filter(|_| at > 0).unwrap_or(word)).collect();
        lines.add(line(&words));
    }
}

/// Adds a command of a program that has commands of its own without the options before that one.
fn of_words_without_options(simple: &[Word], lines: &mut Lines) {
    for start in wrapper::own_command(simple) {
        let rest = simple.get(start..).unwrap_or_default();
        of_words(&[simple.get(..1).unwrap_or_default(), rest].concat(), lines);
    }
}

fn of_text(text: &str, lines: &mut Lines) {
    for part in text.split(SEPARATORS) {
        let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            lines.add(line);
        }
    }
}
