//! One tool call under watch: its arguments are decoded as they stream, each string value is watched on its own, and
//! rules with `globs` or a file scope wait until the call has named it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use commands::Unnamed;
use flow::{Evidence, RuleMatch, StreamKind};

use crate::command_lines::{COMMANDS, is_line};
use crate::gate::RuleMode;
use crate::glob::relative_path;
use crate::group::Group;
use crate::json::{JsonDecoder, JsonPath, Sink};
use crate::scope::tool_key;
use crate::unnamed::BUDGET;
use crate::unread::{self, Unread};
use crate::watch::{Fired, Held, Verdict, Watch};
use crate::{Rule, RuleSet, Scope};

/// The most bytes of a path that are read.
const MAX_PATH_BYTES: usize = 4096;

/// The most paths of one call that are read.
const MAX_PATHS: usize = 256;

/// One tool call under watch.
#[derive(Debug)]
pub(crate) struct CallWatch {
    decoder: JsonDecoder,
    values: Values,
}

#[derive(Debug)]
struct Values {
    group: Arc<Group>,
    declared: Vec<String>,
    tool: String,
    live: Vec<bool>,
    current: Option<Value>,
    paths: Vec<CallPath>,
    /// Why not all paths of the call are known in full.
    unread: Option<String>,
    /// Why not all commands of the call are known.
    unread_commands: Option<String>,
    /// Of each command line that has some: commands of which the name is not known, and the list of all.
    unnamed: Vec<(Vec<Unnamed>, String)>,
    waiting: Vec<Waiting>,
}

/// A string value being read.
#[derive(Debug)]
struct Value {
    watch: Option<Watch>,
    field: String,
    exact: String,
    path: Option<CallPath>,
    /// The text of a command line of which rules watch the commands.
    line: Option<String>,
}

/// A file that the call is about, and which part of the arguments it speaks for.
#[derive(Clone, Debug)]
struct CallPath {
    owner: String,
    text: String,
    /// It is longer than is read.
    full: bool,
}

/// A match that may have to wait for its file.
#[derive(Debug)]
struct Waiting {
    local: u32,
    exact: String,
    evidence: Evidence,
}

impl CallWatch {
    /// `declared`: the arguments that name files according to the tool's schema; empty if the schema declares none.
    pub(crate) fn new(group: &Arc<Group>, declared: Vec<String>, tool: String, live: Vec<bool>) -> Self {
        let values = Values {
            group: Arc::clone(group),
            declared,
            tool,
            live,
            current: None,
            paths: Vec::new(),
            unread: None,
            unread_commands: None,
            unnamed: Vec::new(),
            waiting: Vec::new(),
        };
        Self { decoder: JsonDecoder::default(), values }
    }

    /// Why rules could not see all of the call, if so.
    pub(crate) fn error(&self) -> Option<&str> {
        self.decoder.error().or(self.values.unread.as_deref()).or(self.values.unread_commands.as_deref())
    }

    /// The call is complete: the matches of rules that guard it, where it could not be read. They fire once.
    pub(crate) fn unread(&mut self, set: &RuleSet, modes: &[RuleMode], stream: &StreamKind) -> Vec<RuleMatch> {
        let values = &mut self.values;
        let files = values.unread.as_deref().map(Unread::Files);
        let commands = values.unread_commands.as_deref().map(Unread::Commands);
        let budget = Cell::new(BUDGET);
        let names = values.unnamed.iter().map(|(unnamed, list)| Unread::Names(unnamed, list, &budget));
        let end = self.decoder.lacks().map(Unread::End);
        let unread = match self.decoder.error() {
            Some(error) => vec![Unread::Arguments(error)],
            None => end.into_iter().chain(files).chain(commands).chain(names).collect(),
        };
        let mut matches: Vec<RuleMatch> = Vec::new();
        for unread in &unread {
            let found = unread::matches(unread, &values.group, &values.live, modes, set, stream);
            let is_new = |one: &RuleMatch| !matches.iter().any(|known| known.rule == one.rule);
            let new: Vec<RuleMatch> = found.into_iter().filter(is_new).collect();
            matches.extend(new);
        }
        if !unread.is_empty() {
            values.live.fill(false);
        }
        matches
    }

    /// The call is cut off: names of the rules that match in the value under way, of those that wait for a file, and of those about secrets
    /// where the value ends with what can be the beginning of one.
    pub(crate) fn cut_off(mut self, set: &RuleSet, stream: &StreamKind) -> Vec<String> {
        let mut out = VecDeque::new();
        let begun = self.values.secrets_begun(set);
        Reading { values: &mut self.values, set, stream, out: &mut out }.end();
        let fired = out.into_iter().flatten().map(|found| found.rule);
        let waiting =
            self.values.waiting.iter().map(|one| set.at(self.values.group.rules[one.local as usize]).name.clone());
        fired.chain(waiting).chain(begun).collect()
    }

    /// Takes the next bytes. `out` gets what fires at one byte as one entry.
    pub(crate) fn feed(&mut self, text: &str, set: &RuleSet, stream: &StreamKind, out: &mut VecDeque<Vec<RuleMatch>>) {
        let mut sink = Reading { values: &mut self.values, set, stream, out };
        self.decoder.feed(text, &mut sink);
    }
}

impl Values {
    /// What fires at this byte: of `found` and the matches that wait, those with a file that is known by now.
    fn settle(&mut self, found: Vec<Waiting>, set: &RuleSet, stream: &StreamKind) -> Vec<RuleMatch> {
        let mut matches = Vec::new();
        if found.is_empty() && self.waiting.is_empty() {
            return matches;
        }
        let all: Vec<Waiting> = self.waiting.drain(..).chain(found).collect();
        for mut waiting in all {
            let rule = set.at(self.group.rules[waiting.local as usize]);
            let paths: Vec<&str> =
                self.paths.iter().filter(|p| p.speaks_for(&waiting.exact)).map(|p| &*p.text).collect();
            match file_for(rule, &self.tool, &paths, set.workspace()) {
                // One match of a rule is enough for a call.
                _ if !self.live[waiting.local as usize] => {}
                Answer::Not => self.waiting.push(waiting),
                Answer::Yes(path) => {
                    self.live[waiting.local as usize] = false;
                    waiting.evidence.path = path.map(|path| self.told_path(path, set));
                    let evidence = rule.told_evidence(waiting.evidence);
                    matches.push(RuleMatch { rule: rule.name.clone(), stream: stream.clone(), evidence });
                }
            }
        }
        matches
    }

    /// Names of the rules about secrets, where the value under way may end within one. What a command line runs is read at its end.
    fn secrets_begun(&self, set: &RuleSet) -> Vec<String> {
        let Some(value) = &self.current else { return Vec::new() };
        let is_begun = value.watch.as_ref().is_some_and(Watch::ends_in_secret);
        let counts = |rule: &Rule| rule.secret && (is_begun || value.line.is_some() && rule.watches_commands());
        let rules = self.group.rules.iter().map(|at| set.at(*at));
        rules.filter(|rule| counts(rule)).map(|rule| rule.name.clone()).collect()
    }

    /// A path as evidence has it: relative to the workspace, and not where a rule about secrets matches in it.
    fn told_path(&self, path: &str, set: &RuleSet) -> String {
        if self.group.is_secret(path) { Evidence::HIDDEN.to_owned() } else { relative_path(path, set.workspace()) }
    }

    /// By position in the group: the rules that can still fire of which `watches` is true.
    fn live_rules(&self, set: &RuleSet, watches: impl Fn(&Rule) -> bool) -> Vec<bool> {
        self.group.rules.iter().zip(&self.live).map(|(at, live)| *live && watches(set.at(*at))).collect()
    }

    /// What rules about commands find in a command line. It is read when it is complete.
    fn in_commands(&mut self, line: &str, exact: &str, set: &RuleSet) -> Vec<Waiting> {
        let live = self.live_rules(set, Rule::watches_commands);
        let held = Held::none(live.len());
        let watch = Some(Watch::new(&self.group, live, held));
        let (field, exact) = (COMMANDS.to_owned(), exact.to_owned());
        let mut value = Value { watch, field, exact, path: None, line: None };
        let listed = commands::listed(line);
        if let Some(watch) = &mut value.watch {
            watch.feed(listed.text.as_bytes());
            watch.finish();
        }
        if !listed.unnamed.is_empty() {
            self.unnamed.push((listed.unnamed, listed.text));
        }
        self.unread_commands =
            self.unread_commands.take().or(listed.unread.map(|why| format!("the command line: {why}")));
        std::iter::from_fn(|| value.verdict()).flatten().collect()
    }

    /// Whether a value names a file: what the tool declares, else by its key.
    fn names_a_file(&self, place: &JsonPath, field: &String) -> bool {
        if self.declared.is_empty() { is_path(place) } else { self.declared.contains(field) }
    }

    /// Takes a path of the call. A path beyond the limits is reported, not dropped silently.
    fn know(&mut self, path: Option<CallPath>) {
        let Some(path) = path.filter(|path| !path.text.is_empty()) else { return };
        if path.full {
            let message = format!("a file path of more than {MAX_PATH_BYTES} bytes, of which rules see no more");
            self.unread.get_or_insert(message);
        }
        if self.paths.len() < MAX_PATHS {
            self.paths.push(path);
        } else {
            let message = format!("more than {MAX_PATHS} file paths: rules that ask for a file see the first of them");
            self.unread.get_or_insert(message);
        }
    }
}

impl CallPath {
    /// Takes more of it. What is kept is the same for every way the value is cut.
    fn push(&mut self, text: &str) {
        let room = if self.full { 0 } else { MAX_PATH_BYTES - self.text.len() };
        self.full |= text.len() > room;
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    /// A path at the top speaks for the whole call; one in an entry of a list for that entry.
    fn speaks_for(&self, exact: &str) -> bool {
        let rest = exact.strip_prefix(&self.owner);
        self.owner.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

enum Answer<'a> {
    /// It fires; the file it is about, where one is known.
    Yes(Option<&'a str>),
    /// None of the files known so far matches.
    Not,
}

/// Whether a match of `rule` on a call of `tool` about `paths` counts.
fn file_for<'a>(rule: &Rule, tool: &str, paths: &[&'a str], workspace: &str) -> Answer<'a> {
    let globs_fit = |path: &str| rule.globs.matches(path, workspace);
    for scope in &rule.scopes {
        let Scope::Tool { name, glob } = scope else { continue };
        if name.as_deref().is_some_and(|name| tool_key(name) != tool_key(tool)) {
            continue;
        }
        let scope_fits = |path: &str| glob.as_ref().is_none_or(|glob| glob.matches(path, workspace));
        if glob.is_none() && rule.globs.is_empty() {
            return Answer::Yes(paths.first().copied());
        }
        if let Some(path) = paths.iter().find(|path| scope_fits(path) && globs_fit(path)) {
            return Answer::Yes(Some(path));
        }
    }
    Answer::Not
}

struct Reading<'a> {
    values: &'a mut Values,
    set: &'a RuleSet,
    stream: &'a StreamKind,
    out: &'a mut VecDeque<Vec<RuleMatch>>,
}

impl Reading<'_> {
    /// What fires at one byte goes out as one entry.
    fn fire(&mut self, found: Vec<Waiting>) {
        let matches = self.values.settle(found, self.set, self.stream);
        if !matches.is_empty() {
            self.out.push_back(matches);
        }
    }
}

impl Value {
    /// What fired at the next byte of the value at which a rule did; `None`: none is left.
    fn verdict(&mut self) -> Option<Vec<Waiting>> {
        let Verdict { fired, .. } = self.watch.as_mut()?.take_verdict()?;
        let place = |Fired { local, mut evidence, .. }: Fired| {
            evidence.field = Some(self.field.clone());
            Waiting { local, exact: self.exact.clone(), evidence }
        };
        Some(fired.into_iter().map(place).collect())
    }
}

impl Sink for Reading<'_> {
    fn begin(&mut self, place: &JsonPath) {
        let values = &mut *self.values;
        let (field, exact) = (place.field(), place.exact());
        let live = values.live_rules(self.set, |rule| rule.watches_text_of(&values.tool, &field));
        let has_commands =
            is_line(&values.tool, &field) && values.live_rules(self.set, Rule::watches_commands).contains(&true);
        // Arguments are used when the call is complete, so nothing in them is held.
        let held = Held::none(live.len());
        let watch = live.contains(&true).then(|| Watch::new(&values.group, live, held));
        let path = values.names_a_file(place, &field).then(|| CallPath {
            owner: place.owner(),
            text: String::new(),
            full: false,
        });
        values.current = Some(Value { watch, field, exact, path, line: has_commands.then(String::new) });
    }

    fn text(&mut self, text: &str) {
        let Some(mut value) = self.values.current.take() else { return };
        if value.watch.as_mut().is_some_and(|watch| !watch.pass(text.as_bytes()) && watch.feed(text.as_bytes())) {
            while let Some(found) = value.verdict() {
                self.fire(found);
            }
        }
        if let Some(path) = &mut value.path {
            path.push(text);
        }
        if let Some(line) = &mut value.line {
            line.push_str(text);
        }
        self.values.current = Some(value);
    }

    fn end(&mut self) {
        let Some(mut value) = self.values.current.take() else { return };
        let ended = value.watch.as_mut().is_some_and(Watch::finish);
        let mut found = Vec::new();
        while let Some(more) = value.verdict().filter(|_| ended) {
            found.extend(more);
        }
        found.extend(value.line.into_iter().flat_map(|line| self.values.in_commands(&line, &value.exact, self.set)));
        // The end of a value decides at one byte what waits for it and what waits for the file that it names.
        self.values.know(value.path);
        self.fire(found);
    }
}

/// Whether a value names a file: its key is or ends with `path`, or it is an entry of a list whose key is or ends with
/// `paths`.
fn is_path(place: &JsonPath) -> bool {
    let ending = if place.in_list() { "paths" } else { "path" };
    place.key().is_some_and(|key| key.to_ascii_lowercase().ends_with(ending))
}
