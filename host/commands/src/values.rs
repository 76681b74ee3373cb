//! What a command line itself says of its expansions: the constants that it assigns, the arguments of its functions and scripts, and the
//! output of commands such as `echo`. Which of several values a variable has where it is used is not followed: each of them counts.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::parameter::Expansion;
use crate::walk::MAX_WAY_WORDS;
use crate::word::{Part, Word};
use crate::work::{ITEM, Work, of_lists, of_parts, of_texts, of_words};

/// The most ways in which the words of one command can be filled in.
pub(crate) const MAX_WAYS: usize = 256;

/// The values that are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// By the name of a variable, or by the text of a substitution.
    of: BTreeMap<String, Known>,
    /// Names of functions.
    functions: BTreeSet<String>,
    /// By the name of an alias: its words.
    aliases: BTreeMap<String, Vec<Word>>,
    /// A command can have set any variable.
    is_open: bool,
    /// The first of the positional parameters are taken away somewhere.
    shifts: bool,
    /// What is done for the line. Where it is too much, nothing is known.
    work: Work,
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// Each a list of words: one of a variable, several of an array.
    values: Vec<Vec<String>>,
    /// The same lists, to find one among them.
    seen: HashSet<Vec<String>>,
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
    pub(crate) fn new(work: Work) -> Self {
        Self { work, ..Self::default() }
    }

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
            Some(list) if self.work.take(ITEM + 2 * of_texts(&list)) => {
                if known.values.len() == MAX_WAYS && !known.seen.contains(&list) {
                    known.is_open = true;
                } else if known.seen.insert(list.clone()) {
                    known.values.push(list);
                }
            }
            _ => known.is_open = true,
        }
    }

    /// A text is appended to a variable, or words to an array.
    pub(crate) fn append(&mut self, name: &str, list: Option<Vec<String>>) {
        let (Some(list), Some(known)) = (&list, self.of.get(name)) else { return self.assign(name, list) };
        let of_list = ITEM + of_texts(list);
        if known.values.len() == MAX_WAYS
            || !self.work.take(2 * (of_lists(&known.values) + of_list * known.values.len()))
        {
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
        self.functions.insert(function.to_owned());
    }

    pub(crate) fn name(&mut self, alias: &str, words: Vec<Word>) {
        self.aliases.insert(alias.to_owned(), words);
    }

    /// What a command with an alias is.
    pub(crate) fn of_alias(&self, words: &[Word]) -> Option<Vec<Word>> {
        let (name, arguments) = words.split_first()?;
        let alias = self.aliases.get(&name.exact()?)?;
        self.work.take(of_words(alias) + of_words(arguments)).then_some(())?;
        Some([alias.as_slice(), arguments].concat())
    }

    /// Takes the arguments of a command that runs a function or sets the positional parameters.
    pub(crate) fn called(&mut self, words: &[Word]) {
        let Some((name, arguments)) = words.split_first() else { return };
        match name.exact().as_deref() {
            Some("set") => {
                let is_option = |word: &&Word| word.start().starts_with(['-', '+']);
                let options = arguments.iter().take_while(is_option).count();
                let is_end = |word: &Word| word.exact().as_deref() == Some("--");
                let end = arguments.iter().take(options).position(is_end);
                let start = end.map_or(options, |end| end + 1);
                self.parameters(arguments.get(start..).unwrap_or_default());
            }
            Some("shift") => self.shifts = true,
            Some("read" | "mapfile" | "readarray" | "getopts" | "source" | "." | "select") => self.open(),
            Some("printf") if arguments.first().is_some_and(|word| word.start().starts_with("-v")) => self.open(),
            Some(name) if self.functions.contains(name) => self.parameters(arguments),
            _ => {}
        }
    }

    /// The positional parameters of a function or script, from the first on.
    pub(crate) fn parameters(&mut self, words: &[Word]) {
        if !self.work.take(2 * of_words(words)) {
            return;
        }
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
        let known: Vec<&Known> = word.parts.iter().filter_map(known).collect();
        if !self.work.take(known.iter().map(|known| of_lists(&known.values)).sum()) {
            return Vec::new();
        }
        known.iter().flat_map(|known| known.values.iter().flatten().cloned()).collect()
    }

    /// Whether all values of what is only known of a word when it runs are known.
    pub(crate) fn follows(&self, word: &Word) -> bool {
        let is_known = |part: &Part| match part {
            Part::Text(_) => true,
            Part::Files(_) => false,
            Part::Unknown(written) => self.is_closed(written),
        };
        word.parts.iter().all(is_known)
    }

    /// Whether an expansion is nothing but what [`Values::ways`] says.
    fn is_closed(&self, written: &str) -> bool {
        if let Some(known) = self.of.get(written).filter(|_| !is_file(written)) {
            return !known.is_open;
        }
        let Some(expansion) = Expansion::of(written) else { return self.braces(written).is_some() };
        let known = self.of.get(parameter(expansion.name));
        let own = |own: &str| self.is_closed(own) || (self.ways(own).is_none() && unquoted(own).is_some());
        known.is_some_and(|known| !known.is_open && !self.is_open) && expansion.own().is_none_or(own)
    }

    /// The ways in which the words of a command can be filled in, but for the one that is as written. `None`: they are too many.
    pub(crate) fn fill(&self, words: &[Word]) -> Option<Vec<Vec<Word>>> {
        let mut ways: Vec<Vec<Word>> = vec![Vec::new()];
        for word in words {
            let mut of_word = self.fill_word(word)?;
            let count = ways.len() * of_word.len();
            if count > MAX_WAYS || count * words.len() > MAX_WAY_WORDS {
                return None;
            }
            let added: usize = of_word.iter().map(|more| of_words(more)).sum();
            if let [only] = of_word.as_mut_slice() {
                self.work.take(added * ways.len()).then_some(())?;
                ways.iter_mut().for_each(|way| way.extend_from_slice(only));
                continue;
            }
            let copied: usize = ways.iter().map(|way| of_words(way)).sum();
            self.work.take(added * ways.len() + copied * of_word.len()).then_some(())?;
            let with =
                |start: &Vec<Word>| of_word.iter().map(|more| [start.as_slice(), more].concat()).collect::<Vec<_>>();
            ways = ways.iter().flat_map(with).collect();
        }
        ways.retain(|way| way != words);
        Some(ways)
    }

    fn fill_word(&self, word: &Word) -> Option<Vec<Vec<Word>>> {
        let empty = Word { parts: Vec::new(), ..*word };
        // Each is the words that are complete, and the last one.
        let mut ways: Vec<Vec<Word>> = vec![vec![empty.clone()]];
        for part in &word.parts {
            let lists = match part {
                Part::Unknown(written) => self.ways(written),
                Part::Text(_) | Part::Files(_) => None,
            };
            let Some(Ways { lists, other }) = lists else {
                self.work.take(of_parts(std::slice::from_ref(part)) * ways.len()).then_some(())?;
                ways.iter_mut().filter_map(|way| way.last_mut()).for_each(|last| last.parts.push(part.clone()));
                continue;
            };
            if ways.len() * (lists.len() + other.iter().len()) > MAX_WAYS {
                return None;
            }
            let lists = if word.is_elastic { self.split(&lists)? } else { lists };
            let to_parts = |list: Vec<String>| list.into_iter().map(Part::Text).collect();
            let choices: Vec<Vec<Part>> =
                lists.into_iter().map(to_parts).chain(other.map(|other| vec![Part::Unknown(other)])).collect();
            ways = self.with_choices(ways, &choices, &empty)?;
        }
        let is_word = |one: &Word| !one.parts.is_empty() || !word.is_elastic;
        Some(ways.into_iter().map(|way| way.into_iter().filter(is_word).collect()).collect())
    }

    /// The words into which a shell splits these texts: at white space, and at what the line gives to `IFS`.
    fn split(&self, lists: &[Vec<String>]) -> Option<Vec<Vec<String>>> {
        let separators = self.of.get("IFS").map(|known| known.values.as_slice()).unwrap_or_default();
        self.work.take(of_lists(lists) * (1 + separators.len())).then_some(())?;
        let at = |is_separator: &dyn Fn(char) -> bool| -> Vec<Vec<String>> {
            lists.iter().map(|list| list.iter().flat_map(|text| fields(text, is_separator)).collect()).collect()
        };
        let mut split = at(&char::is_whitespace);
        for separators in separators.iter().flatten().filter(|separators| !separators.is_empty()) {
            split.extend(at(&|c| separators.contains(c)));
        }
        let mut seen = HashSet::new();
        split.retain(|list| seen.insert(list.clone()));
        Some(split)
    }

    /// The ways of a word, each with each of these lists at its end.
    fn with_choices(&self, mut ways: Vec<Vec<Word>>, choices: &[Vec<Part>], empty: &Word) -> Option<Vec<Vec<Word>>> {
        let added: usize = choices.iter().map(|choice| ITEM + 2 * of_parts(choice)).sum();
        let add = |way: &mut Vec<Word>, choice: &[Part]| {
            for (at, part) in choice.iter().enumerate() {
                if at > 0 {
                    way.push(empty.clone());
                }
                // A separator ends the word before it, or begins the one after it.
                let is_place = empty.is_elastic && *part == Part::Text(String::new());
                way.last_mut().into_iter().filter(|_| !is_place).for_each(|last| last.add(part.clone()));
            }
        };
        if let [only] = choices {
            self.work.take(added * ways.len()).then_some(())?;
            ways.iter_mut().for_each(|way| add(way, only));
            return Some(ways);
        }
        let copied: usize = ways.iter().map(|way| of_words(way)).sum();
        self.work.take(added * ways.len() + copied * choices.len()).then_some(())?;
        let with = |way: &Vec<Word>, choice: &Vec<Part>| {
            let mut way = way.clone();
            add(&mut way, choice);
            way
        };
        Some(ways.iter().flat_map(|way| choices.iter().map(move |choice| with(way, choice))).collect())
    }

    /// What an expansion can be, as it is written; `None`: nothing is known of it.
    fn ways(&self, written: &str) -> Option<Ways> {
        if let Some(known) = self.of.get(written).filter(|_| !is_file(written)) {
            self.work.take(of_lists(&known.values)).then_some(())?;
            return Some(Ways { lists: known.values.clone(), other: known.is_open.then(|| written.to_owned()) });
        }
        let Some(expansion) = Expansion::of(written) else {
            let words = self.braces(written)?;
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
            self.work.take(ITEM * own.lists.len() + written.len()).then_some(())?;
            lists.extend(own.lists);
            other = other.or(own.other);
        }
        Some(Ways { lists, other })
    }

    fn variable(&self, expansion: &Expansion<'_>) -> Option<Ways> {
        let (all, first) = (matches!(expansion.name, "@" | "*"), expansion.name.parse::<usize>().is_ok());
        let known = self.of.get(parameter(expansion.name))?;
        // Each text is copied for the whole, and where it has a place of its own.
        self.work.take(2 * of_lists(&known.values)).then_some(())?;
        let mut lists = known.values.clone();
        if expansion.has_index() {
            lists.extend(known.values.iter().flatten().map(|one| vec![one.clone()]));
        } else if !all {
            lists = lists.into_iter().map(|list| list.into_iter().take(1).collect()).collect();
        }
        if expansion.is_slice() || (self.shifts && all) {
            let tails = known.values.iter().map(|list| list.len() * of_texts(list)).sum();
            self.work.take(tails).then_some(())?;
            lists.extend(known.values.iter().flat_map(|list| (1..list.len()).map(|at| list[at..].to_vec())));
        } else if self.shifts && first {
            let parameters = self.of.get("@").map(|known| known.values.as_slice()).unwrap_or_default();
            self.work.take(of_lists(parameters)).then_some(())?;
            lists.extend(parameters.iter().flatten().map(|one| vec![one.clone()]));
        }
        if expansion.name == "*" {
            lists.extend(known.values.iter().filter(|list| list.len() > 1).map(|list| vec![list.join(" ")]));
        }
        if expansion.ends_before_slash() {
            let ends = |one: &String| one.strip_suffix('/').map(|start| vec![start.trim_end_matches('/').to_owned()]);
            lists.extend(known.values.iter().filter_map(|list| ends(list.first()?)));
        }
        let is_open = known.is_open || self.is_open;
        Some(Ways { lists, other: is_open.then(|| format!("${}", expansion.name)) })
    }

    /// The words that braces make in some shells: `r{m,} /` is `rm r /`.
    fn braces(&self, written: &str) -> Option<Vec<String>> {
        if written.contains(['$', '`', '\\', '"', '\'', '<', '>']) {
            return None;
        }
        let (mut words, mut first) = (vec![written.to_owned()], 0);
        while let Some(next) = words.iter().skip(first).position(|word| word.contains('{')) {
            first += next;
            let word = words.get(first)?.clone();
            // The last one that is opened has none inside.
            let (start, rest) = word.rsplit_once('{')?;
            let (inner, end) = rest.split_once('}')?;
            let more = inner.matches(',').count();
            if more == 0 || words.len() + more > MAX_WAYS {
                return None;
            }
            self.work.take((ITEM + word.len()) * (more + 2)).then_some(())?;
            words.splice(first..=first, inner.split(',').map(|one| format!("{start}{one}{end}")));
        }
        (words.len() > 1).then(|| words.into_iter().filter(|word| !word.is_empty()).collect())
    }
}

/// The fields of a text; an empty one where it begins or ends with a separator.
fn fields(text: &str, is_separator: &dyn Fn(char) -> bool) -> Vec<String> {
    let all: Vec<&str> = text.split(is_separator).collect();
    let last = all.len() - 1;
    let is_kept = |(at, field): &(usize, &str)| !field.is_empty() || (last > 0 && (*at == 0 || *at == last));
    all.into_iter().enumerate().filter(is_kept).map(|(_, field)| field.to_owned()).collect()
}

/// Whether an expansion is the name of a file, which says nothing.
fn is_file(written: &str) -> bool {
    written.starts_with(['<', '>'])
}

/// The name under which the values of a variable are kept.
fn parameter(name: &str) -> &str {
    if name == "*" { "@" } else { name }
}

/// The text of a default that is written out, without quotes around it.
fn unquoted(text: &str) -> Option<String> {
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(text);
    (!inner.contains(['$', '`', '\\', '"', '\''])).then(|| inner.to_owned())
}
