//! Options of commands that run another one: where in the arguments that one begins.

use serde::Deserialize;

use crate::word::Word;

/// What precedes the command that another one runs, as far as it is known.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    pub(crate) names: Vec<String>,
    /// Short options without a value, a character each.
    flags: String,
    /// Short options with a value.
    pub(crate) values: String,
    pub(crate) long_flags: Vec<String>,
    pub(crate) long_values: Vec<String>,
    /// Options, short or long, whose value is a script.
    pub(crate) scripts: Vec<String>,
    /// Operands before the command.
    operands: usize,
    /// `NAME=value` can be before the command.
    pub(crate) assignments: bool,
    /// Any of its arguments can be where the command begins.
    anywhere: bool,
    /// Short options with which it runs nothing.
    prints: String,
    /// It adds arguments that are only known when it runs.
    pub(crate) appends: bool,
    /// Short options whose value is the place in the command where such arguments go; `{}` is one without them.
    places: String,
    /// The value of an option that begins with `|` or `!` is a command.
    pub(crate) pipes: bool,
    /// It adds the arguments after a script to the script.
    pub(crate) appends_to_script: bool,
    /// What follows are arguments of a shell.
    pub(crate) to_shell: bool,
    /// Without a command it starts a shell, which reads commands from standard input.
    pub(crate) reads_input: bool,
}

/// What precedes the command.
pub(crate) struct Head {
    /// How many words it has.
    pub(crate) length: usize,
    pub(crate) is_certain: bool,
    /// Scripts among the values of its options.
    pub(crate) scripts: Vec<Word>,
}

impl Options {
    /// What precedes the command; `None`: none is run.
    pub(crate) fn head(&self, arguments: &[Word]) -> Option<Head> {
        let mut head = Head { length: 0, is_certain: !self.anywhere, scripts: Vec::new() };
        let mut operands = self.operands;
        loop {
            let end = self.options(arguments, &mut head)?;
            let Some(word) = arguments.get(head.length) else { return Some(head) };
            let is_assignment = self.assignments && word.start().contains('=');
            if !is_assignment && operands == 0 {
                return Some(head);
            }
            head.is_certain &= word.is_one();
            if word.is_elastic {
                // It can be several words, and the command among them.
                return Some(head);
            }
            operands -= usize::from(!is_assignment);
            head.length += 1;
            // Options can follow operands where there are scripts among them, unless `--` has ended them.
            if operands == 0 && (end || self.scripts.is_empty()) && !self.assignments {
                return Some(head);
            }
        }
    }

    /// Takes options. Returns whether `--` ended them; `None`: with one of them, no command is run.
    fn options(&self, arguments: &[Word], head: &mut Head) -> Option<bool> {
        while let Some(word) = arguments.get(head.length) {
            let start = word.start();
            if !word.is_one() && start.is_empty() {
                // It can be options, and the command as well.
                head.is_certain = false;
                return Some(true);
            }
            if start == "--" && word.exact().is_some() {
                head.length += 1;
                return Some(true);
            }
            if !start.starts_with(['-', '+']) || (start.len() < 2 && !self.flags.contains(start)) {
                return Some(false);
            }
            if start.starts_with('-') && !start.starts_with("--") && start.contains(|c| self.prints.contains(c)) {
                return None;
            }
            head.length += 1;
            match self.option(word, arguments.get(head.length), &mut head.scripts) {
                Some(true) if arguments.get(head.length).is_some_and(|value| value.is_elastic) => {
                    // It can be several words, or none: the command can begin in it.
                    head.is_certain = false;
                    return Some(true);
                }
                Some(true) => head.length += 1,
                Some(false) => {}
                None => head.is_certain = false,
            }
        }
        Some(false)
    }

    /// Whether the value of an option is the next word; `None`: that is not known.
    fn option(&self, word: &Word, next: Option<&Word>, scripts: &mut Vec<Word>) -> Option<bool> {
        let text = word.start();
        if word.exact().is_none() && !text.contains('=') && !self.scripts.is_empty() {
            // It can be any option.
            scripts.push(Word::unknown());
            return None;
        }
        let has = |list: &[String], name: &str| list.iter().any(|one| one == name);
        let mut script_of = |value: Option<Word>| {
            scripts.push(value.clone().or_else(|| next.cloned()).unwrap_or_default());
            Some(value.is_none())
        };
        if let Some(long) = text.strip_prefix("--") {
            let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
            // Many programs take the beginning of a name for the name.
            let begins = |list: &[String]| list.iter().any(|one| one.len() > 1 && one.starts_with(name));
            let is_listed = has(&self.long_values, name) || has(&self.long_flags, name);
            return match has_value {
                _ if !is_listed && begins(&self.scripts) => script_of(word.after('=')),
                true => (begins(&self.long_values) || begins(&self.long_flags)).then_some(false),
                false if word.exact().is_none() => None,
                false if has(&self.long_values, name) => Some(true),
                false => has(&self.long_flags, name).then_some(false),
            };
        }
        for (index, option) in text.char_indices().skip(1) {
            let rest = word.from(index + option.len_utf8());
            if has(&self.scripts, option.encode_utf8(&mut [0; 4])) {
                return script_of(rest);
            }
            if self.values.contains(option) {
                // An expansion that follows can be empty.
                return if rest.as_ref().is_some_and(|rest| rest.start().is_empty()) {
                    None
                } else {
                    Some(rest.is_none())
                };
            }
            if !self.flags.contains(option) {
                return None;
            }
        }
        word.exact().map(|_| false)
    }

    /// The words of the command with what is filled in when it runs.
    pub(crate) fn filled(&self, head: &[Word], words: &[Word]) -> Vec<Word> {
        if !self.appends || words.is_empty() {
            return words.to_vec();
        }
        let place = |(at, word): (usize, &Word)| {
            let text = word.exact().filter(|text| !text.starts_with("--"))?;
            let option = text.strip_prefix('-')?.find(|c| self.places.contains(c))?;
            let own = text.get(option + 2..).unwrap_or_default().to_owned();
            if own.is_empty() { head.get(at + 1).and_then(Word::exact) } else { Some(own) }
        };
        let long = head.iter().filter_map(|word| word.exact()?.strip_prefix("--replace=").map(str::to_owned));
        let places: Vec<String> = head.iter().enumerate().filter_map(place).chain(long).collect();
        let mut filled: Vec<Word> = words.iter().map(|word| word.with_places(&places)).collect();
        filled.push(Word::unknown());
        filled
    }
}
