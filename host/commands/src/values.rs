//! What a command line itself says of its expansions: the constants that it assigns, the arguments of its functions and scripts, and the
//! output of commands such as `echo`. Which of several values a variable has where it is used is not followed: each of them counts.

use std::collections::BTreeMap;

use crate::parameter::Expansion;
use crate::walk::MAX_WAY_WORDS;
use crate::word::{Part, Word};

/// The most ways in which the words of one command can be filled in.
pub(crate) const MAX_WAYS: usize = 256;

/// The values that are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// By the name of a variable, or by the text of a substitution.
    of: BTreeMap<String, Known>,
    /// Names of functions.
    functions: Vec<String>,
    /// By the name of an alias: its words.
    aliases: BTreeMap<String, Vec<Word>>,
    /// A command can have set any variable.
    is_open: bool,
    /// The first of the positional parameters are taken away somewhere.
    shifts: bool,
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// Each a list of words: one of a variable, several of an array.
    values: Vec<Vec<String>>,
    /// It has other values, too.
    is_open: bool,
}

/// What an expansion can be.
struct Ways {
    lists: Vec<Vec<String>>,
    /// What it is where it is none of these, as it is written.
    other: Option<String>,
}

impl Values {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.aliases.is_empty()
    }

    /// A variable gets a list of words; `None`: one that is not known.
    pub(crate) fn assign(&mut self, name: &str, list: Option<Vec<String>>) {
        let known = self.of.entry(name.to_owned()).or_default();
        if known.is_open && known.values.len() == MAX_WAYS {
            return;
        }
        match list {
            Some(list) if known.values.contains(&list) => {}
            Some(list) if known.values.len() < MAX_WAYS => known.values.push(list),
            _ => known.is_open = true,
        }
    }

    /// A text is appended to a variable, or words to an array.
    pub(crate) fn append(&mut self, name: &str, list: Option<Vec<String>>) {
        let (Some(list), Some(known)) = (&list, self.of.get(name)) else { return self.assign(name, list) };
        if known.values.len() == MAX_WAYS {
            return self.assign(name, None);
        }
        let longer = |value: &Vec<String>| {
            let joined = match (&value[..], &list[..]) {
                ([one], [more]) => vec![format!("{one}{more}")],
                _ => Vec::new(),
            };
            [joined, [value.as_slice(), list].concat()]
        };
        let all: Vec<Vec<String>> = known.values.iter().flat_map(longer).filter(|list| !list.is_empty()).collect();
        all.into_iter().for_each(|list| self.assign(name, Some(list)));
    }

    /// Some command can set variables to what is not known.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    pub(crate) fn define(&mut self, function: &str) {
        self.functions.push(function.to_owned());
    }

    pub(crate) fn name(&mut self, alias: &str, words: Vec<Word>) {
        self.aliases.insert(alias.to_owned(), words);
    }

    /// What a command with an alias is.
    pub(crate) fn of_alias(&self, words: &[Word]) -> Option<Vec<Word>> {
        let (name, arguments) = words.split_first()?;
        let alias = self.aliases.get(&name.exact()?)?;
        Some([alias.as_slice(), arguments].concat())
    }

    /// Takes the arguments of a command that runs a function or sets the positional parameters.
    pub(crate) fn called(&mut self, words: &[Word]) {
        let Some((name, arguments)) = words.split_first() else { return };
        match name.exact().as_deref() {
            Some("set") => {
                let is_option = |word: &&Word| word.start().starts_with(['-', '+']);
                let start = arguments.iter().take_while(is_option).count();
                self.parameters(arguments.get(start..).unwrap_or_default());
            }
            Some("shift") => self.shifts = true,
            Some("read" | "mapfile" | "readarray" | "getopts" | "source" | "." | "select") => self.open(),
            Some("printf") if arguments.first().is_some_and(|word| word.start().starts_with("-v")) => self.open(),
            Some(name) if self.functions.iter().any(|function| function == name) => self.parameters(arguments),
            _ => {}
        }
    }

    /// The positional parameters of a function or script, from the first on.
    pub(crate) fn parameters(&mut self, words: &[Word]) {
        let exact: Option<Vec<String>> = words.iter().map(Word::exact).collect();
        if !words.is_empty() {
            self.assign("@", exact);
        }
        for (at, word) in words.iter().enumerate() {
            self.assign(&(at + 1).to_string(), word.exact().map(|text| vec![text]));
        }
    }

    /// What a substitution writes to the file that a word names: `<(echo x)`.
    pub(crate) fn texts(&self, word: &Word) -> Vec<String> {
        let known = |part: &Part| match part {
            Part::Unknown(written) if written.starts_with('<') => self.of.get(written),
            _ => None,
        };
        word.parts.iter().filter_map(known).flat_map(|known| known.values.iter().flatten().cloned()).collect()
    }

    /// Whether all values of what is only known of a word when it runs are known.
    pub(crate) fn follows(&self, word: &Word) -> bool {
        let is_known = |part: &Part| match part {
            Part::Text(_) => true,
            Part::Files(_) => false,
            Part::Unknown(written) => self.ways(written).is_some_and(|ways| ways.other.is_none()),
        };
        word.parts.iter().all(is_known)
    }

    /// The ways in which the words of a command can be filled in, but for the one that is as written. `None`: they are too many.
    pub(crate) fn fill(&self, words: &[Word]) -> Option<Vec<Vec<Word>>> {
        let mut ways: Vec<Vec<Word>> = vec![Vec::new()];
        for word in words {
            let of_word = self.fill_word(word)?;
            let count = ways.len() * of_word.len();
            if count > MAX_WAYS || count * words.len() > MAX_WAY_WORDS {
                return None;
            }
            let with =
                |start: &Vec<Word>| of_word.iter().map(|more| [start.as_slice(), more].concat()).collect::<Vec<_>>();
            ways = ways.iter().flat_map(with).collect();
        }
        ways.retain(|way| way != words);
        Some(ways)
    }

    fn fill_word(&self, word: &Word) -> Option<Vec<Vec<Word>>> {
        let empty = Word { parts: Vec::new(), ..word.clone() };
        // Each is the words that are complete, and the last one.
        let mut ways: Vec<Vec<Word>> = vec![vec![empty.clone()]];
        for part in &word.parts {
            let lists = match part {
                Part::Unknown(written) => self.ways(written),
                Part::Text(_) | Part::Files(_) => None,
            };
            let Some(Ways { lists, other }) = lists else {
                ways.iter_mut().filter_map(|way| way.last_mut()).for_each(|last| last.parts.push(part.clone()));
                continue;
            };
            let mut more = Vec::new();
            for way in &ways {
                let mut with = |parts: Vec<Part>| {
                    let mut way = way.clone();
                    for (at, part) in parts.into_iter().enumerate() {
                        if at > 0 {
                            way.push(empty.clone());
                        }
                        way.last_mut().into_iter().for_each(|last| last.add(part.clone()));
                    }
                    more.push(way);
                };
                for list in &lists {
                    let split = |text: &String| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
                    let words = if word.is_elastic { list.iter().flat_map(split).collect() } else { list.clone() };
                    with(words.into_iter().map(Part::Text).collect());
                }
                other.iter().for_each(|other| with(vec![Part::Unknown(other.clone())]));
            }
            ways = more;
            if ways.len() > MAX_WAYS {
                return None;
            }
        }
        let is_word = |one: &Word| !one.parts.is_empty() || !word.is_elastic;
        Some(ways.into_iter().map(|way| way.into_iter().filter(is_word).collect()).collect())
    }

    /// What an expansion can be, as it is written; `None`: nothing is known of it.
    fn ways(&self, written: &str) -> Option<Ways> {
        // The name of such a file says nothing.
        let is_file = written.starts_with(['<', '>']);
        if let Some(known) = self.of.get(written).filter(|_| !is_file) {
            return Some(Ways { lists: known.values.clone(), other: known.is_open.then(|| written.to_owned()) });
        }
        let Some(expansion) = Expansion::of(written) else {
            let words = braces(written)?;
            return Some(Ways { lists: vec![words], other: None });
        };
        let known = self.variable(&expansion);
        let is_plain = expansion.is_plain();
        if known.is_none() && is_plain {
            return None;
        }
        let name = format!("${}", expansion.name);
        let Ways { mut lists, mut other } = known.unwrap_or(Ways { lists: Vec::new(), other: Some(name) });
        if let Some(own) = expansion.own() {
            let own = match self.ways(own) {
                Some(ways) => ways,
                None => Ways { lists: vec![vec![unquoted(own)?]], other: None },
            };
            lists.extend(own.lists);
            other = other.or(own.other);
        }
        Some(Ways { lists, other })
    }

    fn variable(&self, expansion: &Expansion<'_>) -> Option<Ways> {
        let (all, first) = (matches!(expansion.name, "@" | "*"), expansion.name.parse::<usize>().is_ok());
        let known = self.of.get(if all { "@" } else { expansion.name })?;
        let mut lists = known.values.clone();
        if expansion.has_index() {
            lists.extend(known.values.iter().flatten().map(|one| vec![one.clone()]));
        } else if !all {
            lists = lists.into_iter().map(|list| list.into_iter().take(1).collect()).collect();
        }
        if expansion.is_slice() || (self.shifts && all) {
            lists.extend(known.values.iter().flat_map(|list| (1..list.len()).map(|at| list[at..].to_vec())));
        } else if self.shifts && first {
            let parameters = self.of.get("@").map(|known| known.values.as_slice()).unwrap_or_default();
            lists.extend(parameters.iter().flatten().map(|one| vec![one.clone()]));
        }
        let is_open = known.is_open || self.is_open;
        Some(Ways { lists, other: is_open.then(|| format!("${}", expansion.name)) })
    }
}

/// The text of a default that is written out, without quotes around it.
fn unquoted(text: &str) -> Option<String> {
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(text);
    (!inner.contains(['$', '`', '\\', '"', '\''])).then(|| inner.to_owned())
}

/// The words that braces make in some shells: `r{m,} /` is `rm r /`.
fn braces(written: &str) -> Option<Vec<String>> {
    if written.contains(['$', '`', '\\', '"', '\'', '<', '>']) {
        return None;
    }
    let mut words = vec![written.to_owned()];
    while let Some(at) = words.iter().position(|word| word.contains('{')) {
        let word = words.get(at)?.clone();
        // The last one that is opened has none inside.
        let (start, rest) = word.rsplit_once('{')?;
        let (inner, end) = rest.split_once('}')?;
        if !inner.contains(',') || words.len() + inner.matches(',').count() > MAX_WAYS {
            return None;
        }
        words.splice(at..=at, inner.split(',').map(|one| format!("{start}{one}{end}")));
    }
    (words.len() > 1).then(|| words.into_iter().filter(|word| !word.is_empty()).collect())
}
