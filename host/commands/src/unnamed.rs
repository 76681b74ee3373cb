//! Commands of which the name is only known when they run.

use crate::listed::{self, shown};
use crate::simple::without_options;
use crate::values::Values;
use crate::walk::Simple;
use crate::word::{Part, is_variable};

/// A command that can be what a rule looks for, depending on a name that is only known when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unnamed {
    /// The name as far as it is known, without a folder.
    pub name: Vec<NamePart>,
    /// The words after the name, as they are listed.
    pub arguments: Vec<String>,
    /// The variable that is the name, as it is written; `None`: the name is made in another way.
    pub variable: Option<String>,
}

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamePart {
    /// Exactly this text.
    Text(String),
    /// Anything without white space, or nothing.
    Any,
}

/// Of the places where the arguments of a command can begin, so many of the first and of the last ones are tried: a condition that does not
/// name the options before the first argument is about the last ones, one that names some about the first.
const STARTS: usize = 4;

/// The command, if it is one, also without options before its first argument. Where the line itself says what a name is, the command is
/// listed with it.
pub(crate) fn unnamed(simple: &Simple, values: &Values) -> Vec<Unnamed> {
    let Some((first, arguments)) = simple.words.split_first() else { return Vec::new() };
    let name = first.without_folder();
    let is_known = name.exact().is_some();
    if (is_known && !simple.is_guess) || (!is_known && values.follows(first)) {
        return Vec::new();
    }
    let part = |part: &Part| match part {
        Part::Text(text) => NamePart::Text(shown(text)),
        Part::Files(_) | Part::Unknown(_) => NamePart::Any,
    };
    let words: Vec<String> = arguments.iter().map(listed::word).collect();
    let variable = match first.parts.iter().filter(|part| **part != Part::Text(String::new())).collect::<Vec<_>>()[..] {
        [Part::Unknown(written)] if is_variable(written) => Some(written.clone()),
        _ => None,
    };
    if variable.as_deref().is_some_and(runs_its_arguments) {
        return Vec::new();
    }
    let name: Vec<NamePart> = name.parts.iter().map(part).collect();
    let starts = without_options(arguments);
    let last = starts.len().saturating_sub(STARTS);
    let is_tried = |at: usize| if is_known { at == 0 } else { at < STARTS || at >= last };
    let starts = starts.into_iter().enumerate().filter(|(at, _)| is_tried(*at)).map(|(_, start)| start);
    let from = |start: usize| {
        let arguments = words.get(start..).unwrap_or_default().to_vec();
        Unnamed { name: name.clone(), arguments, variable: variable.clone() }
    };
    starts.map(from).collect()
}

/// Whether a variable is named as scripts name the one that is `sudo` or empty: what it runs is listed as if it were.
fn runs_its_arguments(variable: &str) -> bool {
    let name = variable.trim_matches(['$', '{', '}']).to_ascii_lowercase();
    ["sudo", "doas", "as_root"].iter().any(|start| name.starts_with(start))
}

impl Unnamed {
    /// Whether some of the name is known, so that it is not just any name.
    pub fn has_known_part(&self) -> bool {
        self.name.iter().any(|part| matches!(part, NamePart::Text(text) if !text.is_empty()))
    }
}
