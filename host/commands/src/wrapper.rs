//! Commands that run the command in their arguments: `sudo`, `xargs`, `find -exec`, `sh -c`, `eval`. The list is data, `wrappers.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::options::{Head, Options};
use crate::shell::shell;
use crate::walk::Walk;
use crate::word::Word;

/// The list as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    run: Vec<Options>,
    shell: Vec<Options>,
    joined: Vec<Options>,
    option: Vec<Options>,
    operand: Vec<Names>,
    assigned: Vec<Names>,
    after: Vec<After>,
    input: Vec<Names>,
    name: Vec<Names>,
    before: Vec<Options>,
    variable: Vec<Names>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    names: Vec<String>,
    #[serde(default)]
    marks: Vec<String>,
    /// Options whose value is a script, each after the command of the program that has it.
    #[serde(default)]
    scripts: Vec<String>,
    /// It adds the name of a file where there is no place for it.
    #[serde(default)]
    appends: bool,
}

/// The list, or why the file that is compiled in cannot be used.
static LISTED: LazyLock<Result<Listed, String>> =
    LazyLock::new(|| toml::from_str(include_str!("wrappers.toml")).map_err(|error| error.to_string()));

/// Where a command begins: the index of the command that the line itself has, and which of its words.
type Place = (usize, usize);

/// Whether a program adds what it reads to a command.
pub(crate) fn adds_input(name: &str) -> bool {
    LISTED.as_ref().is_ok_and(|listed| {
        listed.run.iter().chain(&listed.joined).any(|one| one.appends && one.names.iter().any(|known| known == name))
    })
}

/// Whether a program is a shell, which runs what it has as its input.
pub(crate) fn is_shell(name: &str) -> bool {
    LISTED.as_ref().is_ok_and(|listed| listed.shell.iter().any(|one| one.names.iter().any(|known| known == name)))
}

/// Where the command begins that a program such as `git` has of its own, if options are before it: at one of these words.
pub(crate) fn own_command(words: &[Word]) -> Vec<usize> {
    let Some(((name, arguments), listed)) = words.split_first().zip(LISTED.as_ref().ok()) else { return Vec::new() };
    let Some(name) = name.without_folder().exact() else { return Vec::new() };
    let options = listed.before.iter().find(|one| one.names.contains(&name));
    let Some(head) = options.and_then(|options| options.head(arguments)).filter(|head| head.length > 0) else {
        return Vec::new();
    };
    let start = head.length + 1;
    // What follows an option that is not known can be its value.
    let starts = start..if head.is_certain { start + 1 } else { start + 2 };
    starts.filter(|start| *start < words.len()).collect()
}

/// Adds the commands in the value of a variable which programs run as a script.
pub(crate) fn variable(walk: &mut Walk<'_>, name: &str, value: &Word) {
    let is_listed = LISTED
        .as_ref()
        .is_ok_and(|listed| listed.variable.iter().any(|one| one.names.iter().any(|known| known == name)));
    let text = value.as_script();
    // The name of an editor alone runs nothing before the program that opens it.
    if is_listed && text.trim().contains(char::is_whitespace) && walk.is_script(&text) {
        walk.argument(&text, name);
    }
}

/// Adds the commands that the command of these words runs.
pub(crate) fn inner(walk: &mut Walk<'_>, words: &[Word], place: Place) {
    let listed = match &*LISTED {
        Ok(listed) => listed,
        // Cannot happen while the test of the list passes; if it did, no command could be told.
        Err(error) => return walk.undecided(format!("the list of wrappers cannot be used: {error}")),
    };
    let Some((first, arguments)) = words.split_first() else { return };
    walk.found.values.called(words);
    let Some(name) = first.without_folder().exact() else {
        walk.is_unnamed();
        if !walk.found.values.follows(first) {
            guesses(walk, words, place);
        }
        return;
    };
    let has = |names: &[String]| names.contains(&name);
    let is = |list: &[Names]| list.iter().any(|one| has(&one.names));
    if let Some(options) = listed.run.iter().find(|one| has(&one.names)) {
        run(walk, options, words, place);
    } else if let Some(options) = listed.shell.iter().find(|one| has(&one.names)) {
        shell(walk, options, arguments, &name);
    } else if let Some(options) = listed.joined.iter().find(|one| has(&one.names)) {
        joined(walk, options, arguments, &name);
    } else if let Some(options) = listed.option.iter().find(|one| has(&one.names)) {
        of_options(walk, options, arguments, &name);
    } else if is(&listed.operand) {
        let operand = arguments.iter().find(|word| !word.start().starts_with('-'));
        operand.iter().for_each(|word| script(walk, word, &name));
    } else if is(&listed.assigned) {
        // What follows the name when it is used is a part of the command.
        for (name, value) in arguments
            .iter()
            .filter_map(|word| word.exact()?.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        {
            let last = value.rsplit([';', '&', '|', '\n']).next().unwrap_or_default();
            walk.found.values.name(&name, last.split_whitespace().map(Word::text).collect());
        }
        let value = |word: &Word| word.after('=').map(|value| Word::joined([&value, &Word::unknown()]));
        arguments.iter().filter_map(value).for_each(|value| walk.argument(&value.as_script(), &name));
        if arguments.iter().any(|word| word.exact().is_none()) {
            walk.undecided(format!("`{name}` has a command that is not written out"));
        }
    } else if let Some(after) = listed.after.iter().find(|one| has(&one.names)) {
        after.commands(walk, words, place);
    } else if is(&listed.input) {
        walk.undecided(format!("`{name}` takes commands from its input"));
    } else if is(&listed.name) && arguments.iter().any(Word::has_indexed_command) {
        walk.undecided(format!("`{name}` runs the command in the index of a variable"));
    }
}

/// Adds what runs if a name that is not known is that of a program which runs its arguments, such as `sudo` or a shell, or of none.
fn guesses(walk: &mut Walk<'_>, words: &[Word], (root, offset): Place) {
    let was_guess = std::mem::replace(&mut walk.found.is_guess, true);
    let is_option = |at: &usize| words.get(*at).is_some_and(|word| word.start().starts_with('-'));
    let first = (1..).find(|at| !is_option(at)).unwrap_or(words.len());
    // What follows options can be the value of the last one.
    for start in [1, first, first + 1].into_iter().take(if first > 1 { 3 } else { 1 }) {
        let rest = words.get(start..).unwrap_or_default();
        if rest.first().is_some_and(|name| !name.start().starts_with('-') && !name.start().ends_with('/')) {
            command(walk, rest, false, (root, offset + start));
        }
    }
    let takes_script = |word: &Word| {
        word.exact().is_some_and(|text| text.starts_with('-') && !text.starts_with("--") && text.ends_with('c'))
    };
    for pair in words.windows(2).filter(|pair| takes_script(&pair[0])) {
        // It can be a script of another language.
        let text = pair[1].as_script();
        if walk.is_script(&text) {
            walk.argument(&text, "sh");
        }
    }
    walk.found.is_guess = was_guess;
}

/// Walks through a script that is an argument of `name`. What is only known of it when it runs can be commands as well.
pub(crate) fn script(walk: &mut Walk<'_>, word: &Word, name: &str) {
    if word.exact().is_none() {
        walk.undecided(format!("`{name}` runs a script that is not written out"));
    }
    walk.argument(&word.as_script(), name);
}

/// Adds the command that begins at a word, and those that it runs in turn.
fn command(walk: &mut Walk<'_>, words: &[Word], is_certain: bool, place: Place) {
    if !words.is_empty() && walk.add_inner(words, is_certain, place) {
        inner(walk, words, place);
    }
}

fn run(walk: &mut Walk<'_>, options: &Options, words: &[Word], (root, offset): Place) {
    let arguments = words.get(1..).unwrap_or_default();
    let name = words.first().and_then(Word::exact).unwrap_or_default();
    let Some(Head { length, is_certain, scripts }) = options.head(arguments) else { return };
    let (head, rest) = arguments.split_at(length.min(arguments.len()));
    for (name, value) in head.iter().filter(|_| options.assignments).filter_map(Word::assignment) {
        walk.found.values.assign(&name, value.exact().map(|text| vec![text]));
        variable(walk, &name, &value);
    }
    if options.pipes && head.iter().any(|word| word.as_script().contains(['|', '!'])) {
        walk.undecided(format!("`{name}` has an option whose value can be a command"));
    }
    let rest = options.filled(head, rest);
    for text in &scripts {
        // What follows is appended to the script by some, and given to it as arguments by others.
        // It has options and assignments of its own before the command.
        let with_rest = || Word::joined([&Word::text(name.as_str()), text].into_iter().chain(&rest));
        if options.appends_to_script && text.as_script().contains([';', '&', '|', '<', '>', '(', ')', '\n']) {
            walk.undecided(format!("`{name}` splits a text into words that a shell would take for operators"));
        }
        script(walk, &if options.appends_to_script { with_rest() } else { text.clone() }, &name);
    }
    if !is_certain && (options.to_shell || !scripts.is_empty()) {
        walk.undecided(format!("`{name}` has options that are not known"));
    }
    if !scripts.is_empty() {
        return;
    }
    if options.to_shell {
        return shell(walk, options, &rest, &name);
    }
    if rest.is_empty() && options.reads_input {
        return walk.undecided(format!("`{name}` takes commands from its input"));
    }
    let at = offset + 1 + length;
    command(walk, &rest, is_certain, (root, at));
    if !is_certain {
        for start in 1..rest.len() {
            command(walk, rest.get(start..).unwrap_or_default(), false, (root, at + start));
        }
        values(walk, arguments, head, (root, offset + 1));
    }
}

/// What can be a command or a script where options are not known: the value in an option, and any text with blanks.
fn values(walk: &mut Walk<'_>, arguments: &[Word], head: &[Word], (root, offset): Place) {
    for (at, value) in head.iter().enumerate().filter_map(|(at, word)| Some((at, word.after('=')?))) {
        command(walk, &[value], false, (root, offset + at));
    }
    if arguments.iter().any(|word| word.as_script().contains(char::is_whitespace)) {
        walk.undecided("it has options that are not known, and a text that can be a script");
    }
}

/// Scripts that are the values of options, with arguments that are added when they run.
fn of_options(walk: &mut Walk<'_>, options: &Options, arguments: &[Word], name: &str) {
    let Some(head) = options.head(arguments) else { return };
    for text in &head.scripts {
        script(walk, &Word::joined([text, &Word::unknown()]), name);
    }
    if !head.is_certain || arguments.iter().any(Word::has_quoted_command) {
        walk.undecided(format!("`{name}` has options that are not known, or a command in a text that it reads"));
    }
}

fn joined(walk: &mut Walk<'_>, options: &Options, arguments: &[Word], name: &str) {
    let Some(Head { length, is_certain, .. }) = options.head(arguments) else { return };
    let (head, rest) = arguments.split_at(length.min(arguments.len()));
    if !is_certain {
        walk.undecided(format!("`{name}` has options that are not known"));
    }
    // After `:::` there are values to fill in.
    if options.reads_input && rest.first().is_none_or(|word| word.start().starts_with(":::")) {
        return walk.undecided(format!("`{name}` takes commands from its input"));
    }
    // What is filled in comes after the command.
    let is_mark = |word: &Word| word.exact().is_some_and(|text| text.starts_with(":::"));
    let unmarked: Vec<Word> = rest.iter().filter(|word| !is_mark(word)).cloned().collect();
    let rest = if options.appends { unmarked.as_slice() } else { rest };
    let text = Word::joined(&options.filled(head, rest));
    // What is appended to it is arguments only.
    let is_written = rest.iter().all(|word| options.filled(head, std::slice::from_ref(word)).first() == Some(word));
    if options.appends && is_written {
        return walk.argument(&text.as_script(), name);
    }
    script(walk, &text, name);
}

/// What the word of a mark has of the command: `-xrm` and `--exec=rm` its name, `-Hx` nothing. `None`: it is none.
fn within_mark(word: &Word) -> Option<Vec<Word>> {
    let start = word.start();
    if start.starts_with("--") {
        return word.after('=').filter(|_| start.starts_with("--exec")).map(|name| vec![name]);
    }
    let mark = start.find(['x', 'X']).filter(|_| start.starts_with('-'))?;
    let is_assigned = start.get(mark + 1..).is_some_and(|rest| rest.starts_with('='));
    Some(word.from(mark + 1 + usize::from(is_assigned)).into_iter().collect())
}

impl After {
    fn commands(&self, walk: &mut Walk<'_>, words: &[Word], (root, offset): Place) {
        let is_end = |word: &Word| matches!(word.exact().as_deref(), Some(";" | "+"));
        let ends: Vec<usize> = (0..words.len()).filter(|at| is_end(&words[*at])).collect();
        for (at, word) in words.iter().enumerate().skip(1) {
            let is_mark = word.exact().is_some_and(|text| self.marks.contains(&text));
            // It can be one, or have the beginning of the command in it.
            let can_be = word.exact().is_none() && (word.start().is_empty() || word.start().starts_with('-'));
            let within = if self.appends && !is_mark { within_mark(word) } else { None };
            self.scripts(walk, words, at);
            if self.marks.is_empty() || (!is_mark && !can_be && within.is_none()) {
                continue;
            }
            let end = ends.get(ends.partition_point(|end| *end <= at)).copied().unwrap_or(words.len());
            let after = words.get(at + 1..end).unwrap_or_default();
            // The words are copied for each: they count before that.
            if walk.is_full(after.len()) {
                return;
            }
            let filled = |word: &Word| word.with_places(&[]);
            let mut run: Vec<Word> = within.iter().flatten().chain(after).map(filled).collect();
            if self.appends && !run.is_empty() && run.iter().all(|word| word.exact().is_some()) {
                run.push(Word::unknown());
            }
            command(walk, &run, is_mark, (root, offset + at + 1));
        }
        if !self.marks.is_empty() && words.iter().any(|word| word.is_elastic) {
            walk.undecided("its arguments are not written out");
        }
    }

    /// Walks through the script that is the value of an option, in the word after it or in the same one.
    fn scripts(&self, walk: &mut Walk<'_>, words: &[Word], at: usize) {
        let (word, own) = (&words[at], words.get(1..at).unwrap_or_default());
        let value = |option: &str| match word.start().strip_prefix(option)? {
            "" => words.get(at + 1).filter(|_| word.exact().is_some()).cloned(),
            rest if rest.starts_with('=') && option.starts_with("--") => word.after('='),
            _ if option.starts_with('-') && !option.starts_with("--") => word.from(option.len()),
            _ => None,
        };
        let of_command = |listed: &String| {
            let (command, option) = listed.split_once(' ')?;
            own.iter().any(|word| word.exact().as_deref() == Some(command)).then(|| value(option))?
        };
        let name = words[0].without_folder().exact().unwrap_or_default();
        self.scripts.iter().find_map(of_command).iter().for_each(|text| script(walk, text, &name));
    }
}

#[cfg(test)]
mod tests {
    use super::LISTED;

    #[test]
    fn the_list_can_be_used_and_names_nothing_twice() {
        let listed = LISTED.as_ref().unwrap_or_else(|error| panic!("wrappers.toml: {error}"));
        let runners =
            listed.run.iter().chain(&listed.shell).chain(&listed.joined).chain(&listed.option).map(|one| &one.names);
        let others = listed
            .operand
            .iter()
            .chain(&listed.assigned)
            .chain(&listed.input)
            .chain(&listed.name)
            .map(|one| &one.names);
        let mut names: Vec<&String> =
            runners.chain(others).chain(listed.after.iter().map(|one| &one.names)).flatten().collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all >= 70, "{all} names");
    }
}
