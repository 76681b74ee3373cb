//! Shells: what their arguments make them run.

use crate::options::Options;
use crate::walk::Walk;
use crate::word::Word;
use crate::wrapper::script;

/// Walks through the script among the arguments of a shell, or of a program that gives its arguments to one.
pub(crate) fn shell(walk: &mut Walk<'_>, options: &Options, arguments: &[Word], name: &str) {
    // The options of a program that gives arguments to a shell are not those of the shell.
    if !options.scripts.is_empty() && !options.to_shell {
        return with_values(walk, options, arguments, name);
    }
    let (mut at, mut takes_script) = (0, false);
    while let Some(word) = arguments.get(at) {
        let start = word.start();
        if !start.starts_with(['-', '+']) {
            break;
        }
        let Some(text) = word.exact() else {
            return walk.undecided(format!("`{name}` has options that are not written out"));
        };
        at += 1;
        if matches!(text.as_str(), "-" | "--") {
            break;
        }
        // Some take their long options with one dash, too.
        let is_long = |text: &&str| options.long_flags.iter().chain(&options.long_values).any(|one| one == text);
        match text.strip_prefix("--").or_else(|| text.strip_prefix('-').filter(is_long)) {
            Some("help" | "version") => return,
            Some(long) if options.long_values.iter().any(|one| one == long) => at += 1,
            Some(long) if options.long_flags.iter().any(|one| one == long) => {}
            // It can have a value, and that can be a script.
            Some(_) => walk.undecided(format!("`{name}` has options that are not known")),
            None => {
                takes_script |= text.contains('c');
                at += text.chars().filter(|c| options.values.contains(*c)).count();
            }
        }
    }
    match arguments.get(at) {
        Some(word) if takes_script => {
            let after = arguments.get(at + 1..).unwrap_or_default();
            if let Some((zero, parameters)) = after.split_first() {
                walk.found.values.assign("0", zero.exact().map(|text| vec![text]));
                walk.found.values.parameters(parameters);
            }
            script(walk, word, name);
        }
        // A script in a file is a program like any other.
        Some(word) if word.exact().is_some_and(|file| !is_input(&file)) => {}
        other => {
            walk.undecided(format!("`{name}` takes commands from its input"));
            let texts = other.map(|word| walk.found.values.texts(word)).unwrap_or_default();
            texts.iter().for_each(|text| script(walk, &Word::text(text), name));
        }
    }
}

/// The same of a shell whose scripts are the values of options.
fn with_values(walk: &mut Walk<'_>, options: &Options, arguments: &[Word], name: &str) {
    let Some(head) = options.head(arguments) else { return };
    if !head.is_certain {
        walk.undecided(format!("`{name}` has options that are not known"));
    }
    head.scripts.iter().for_each(|text| script(walk, text, name));
    // After a script of `-C` come those of the input or of a file.
    let before = |word: &Word| {
        let start = word.start();
        start.strip_prefix("--").map_or(start.starts_with('-') && start.contains('C'), |long| long.starts_with('i'))
    };
    let (own, rest) = arguments.split_at(head.length.min(arguments.len()));
    let is_given = !head.scripts.is_empty() && !own.iter().any(before);
    let is_file = |word: &Word| word.exact().is_some_and(|file| !is_input(&file));
    if !is_given && !rest.first().is_some_and(is_file) {
        walk.undecided(format!("`{name}` takes commands from its input"));
    }
}

/// Whether a file is what the shell has as its input anyway.
fn is_input(file: &str) -> bool {
    file == "-" || file == "/dev/stdin" || file.starts_with("/dev/fd/") || file.starts_with("/proc/")
}
