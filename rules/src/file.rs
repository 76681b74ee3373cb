//! Rule files: Markdown with front matter. The front matter contains the keys of [`RuleSpec`], in TOML between lines of
//! `+++`, or in YAML between lines of `---` as other hosts write it; the rest is the body. A file without front matter is a body.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use flow::{Diagnostic, DiagnosticCode as Code, Location, RuleOrigin, Severity, SourceFile};
use serde::Deserialize;
use toml::de::DeTable;

use crate::duplicate::{AGAIN, Duplicate, FIRST};
use crate::front_matter;
use crate::hosts::{self, Attached};
use crate::keys::{self, Takes};
use crate::places::{Key, RulePlaces};
use crate::rule::GLOBS;
use crate::yaml::{self, Entry, FlawKind, Scalar, Value};
use crate::{Rule, RuleSpec, values};

/// Reads the text of a rule file. `name` is the file's name without its extension. The diagnostics report what was refused;
/// they name the file as `source` does.
pub fn parse_rule_file(name: &str, source: &RuleOrigin, text: &str) -> (Option<Rule>, Vec<Diagnostic>) {
    parse_rule_source(name, source, &SourceFile::new(source.path.as_str(), text))
}

/// Reads a rule file, of which diagnostics show another path than that of the rule's origin.
pub fn parse_rule_source(name: &str, source: &RuleOrigin, file: &Arc<SourceFile>) -> (Option<Rule>, Vec<Diagnostic>) {
    parse(name, source, file, false)
}

/// Reads a rule file whose conditions are known to be valid: they are compiled when they are first used, and not checked.
pub(crate) fn parse_trusted(name: &str, source: &RuleOrigin, text: &str) -> (Option<Rule>, Vec<Diagnostic>) {
    parse(name, source, &SourceFile::new(source.path.as_str(), text), true)
}

fn parse(name: &str, source: &RuleOrigin, file: &Arc<SourceFile>, trusted: bool) -> (Option<Rule>, Vec<Diagnostic>) {
    let mut file = File { name, source, file, trusted, found: Vec::new() };
    let mut rule = file.read();
    if let Some(rule) = &mut rule {
        rule.incomplete = file.found.iter().any(|one| one.severity == Severity::Error);
    }
    (rule, limited(file.found))
}

/// The most findings about one file; the last of them counts the others.
const MAX_FINDINGS: usize = 64;

fn limited(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let others = found.len().saturating_sub(MAX_FINDINGS);
    let rest = found.split_off(found.len().min(MAX_FINDINGS - 1));
    let worst = rest.iter().find(|one| one.is_error()).or(rest.first()).cloned();
    found.extend(worst.map(|mut last| {
        if others > 0 {
            let _ = write!(last.message, " (and {others} more in this file)");
        }
        last
    }));
    found
}

/// Whether the text of a rule file sets `required`, even if it is not a valid rule: a line of it sets
/// `required` to true. For a valid file, use [`Rule::required`].
pub fn asks_to_be_required(text: &str) -> bool {
    text.lines().any(|line| {
        let value = line.trim().strip_prefix("required").map(str::trim_start);
        let value = value.and_then(|rest| rest.strip_prefix(['=', ':'])).map(str::trim_start);
        value.is_some_and(|value| {
            value.strip_prefix("true").is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#'))
        })
    })
}

struct File<'f> {
    name: &'f str,
    source: &'f RuleOrigin,
    file: &'f Arc<SourceFile>,
    trusted: bool,
    found: Vec<Diagnostic>,
}

impl File<'_> {
    fn read(&mut self) -> Option<Rule> {
        let text = self.file.text.as_str();
        let parts = match split(text) {
            Ok(parts) => parts,
            Err(Broken { message, help, span }) => {
                self.error(Code::RuleFrontMatter, message, Some(help.into()), Some(span));
                return None;
            }
        };
        let read = match parts.fence {
            Fence::Toml => self.toml(parts.front),
            Fence::Yaml => self.yaml(parts.front),
            Fence::None => self.plain(),
        };
        let (mut spec, places) = read?;
        if spec.name.is_some() || spec.body.is_some() {
            let help = "the name is the file's name, the body is what follows the front matter";
            let place = places.key(&["name", "body"]);
            let message = "`name` and `body` are not keys of a rule file".to_owned();
            self.error(Code::RuleMisplacedKey, message, Some(help.into()), place);
            return None;
        }
        self.note_second(&parts.body);
        spec.body = Some(text[parts.body].to_owned());
        let (rule, more) = Rule::from_places(self.name, self.source, &spec, &places, self.trusted);
        self.found.extend(more);
        rule
    }

    fn toml(&mut self, front: Range<usize>) -> Option<(RuleSpec, RulePlaces)> {
        let file = self.file;
        let text = &file.text[front.clone()];
        let place = |span: Range<usize>| front.start + span.start..front.start + span.end;
        let table = match DeTable::parse(text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let span = error.span().map(place);
                if let Some(found) = Duplicate::of(text, &error) {
                    self.set_twice(&found, span, found.first.clone().map(place));
                    return None;
                }
                let at = span.as_ref().map_or(front.start, |span| span.start);
                let line = front_matter::line_at(&file.text, at);
                match front_matter::no_toml(&file.text[line.clone()]) {
                    Some((message, help)) => self.error(Code::RuleSyntax, message, Some(help), Some(line)),
                    None => {
                        let has_quotes = file.text[line].contains(['\'', '"', '`', '“', '‘', '„']);
                        let help = has_quotes.then(|| QUOTES_HELP.to_owned());
                        self.error(Code::RuleSyntax, error.message().to_owned(), help, span);
                    }
                }
                return None;
            }
        };
        let mut given: Vec<(&str, Range<usize>)> = Vec::new();
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let (name, span): (&str, _) = (key.get_ref(), place(key.span()));
            let Some(info) = keys::find(name) else {
                let help = keys::of_other_hosts(name).map(str::to_owned).or_else(|| suggestion(name));
                self.error(Code::RuleUnknownKey, format!("unknown key `{name}`"), help, Some(span));
                continue;
            };
            if let Some((_, first)) = given.iter().find(|(known, _)| *known == info.name) {
                let message = format!("`{name}` sets `{}`, which is set already", info.name);
                let (help, first) = (Some("keep one of the two".to_owned()), first.clone());
                self.labelled(
                    Diagnostic::error(Code::RuleDuplicateKey, message),
                    help,
                    (span.clone(), AGAIN),
                    (first, FIRST),
                );
            }
            given.push((info.name, span));
            for wrong in values::check_toml(name, info.takes, value) {
                self.error(Code::RuleInvalidValue, wrong.message, wrong.help, wrong.span.map(place));
            }
        }
        if self.is_refused() {
            return None;
        }
        let places = RulePlaces::of_toml(file, front.clone()).whole_file();
        match toml::from_str(text) {
            Ok(spec) => Some((spec, places)),
            // The table of keys lets pass what `RuleSpec` takes and nothing else.
            Err(error) => {
                self.error(Code::RuleInvalidValue, error.message().to_owned(), None, error.span().map(place));
                None
            }
        }
    }

    /// Whether something was found for which the file has no rule that can be used.
    fn is_refused(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// Converts YAML entries into keys. Unknown keys are reported and ignored, so that
    /// files written for other hosts load.
    fn yaml(&mut self, front: Range<usize>) -> Option<(RuleSpec, RulePlaces)> {
        let (entries, strange) = yaml::parse(&self.file.text[front.clone()]);
        let place = |span: &Range<usize>| front.start + span.start..front.start + span.end;
        for span in strange {
            let help = "write a key, a colon, a blank and the value; indent the lines that continue a value";
            let message = "this line is not `key: value` and is ignored".to_owned();
            self.warn(Code::RuleSyntax, message, Some(help.into()), place(&span));
        }
        let mut table = toml::Table::new();
        let mut keys: Vec<Key> = Vec::new();
        let (mut theirs, mut attached) = (false, None);
        for Entry { key, span, value } in entries {
            theirs |= hosts::is_theirs(&key);
            if let Some(read) = hosts::attached(&key, &value.text()) {
                match read {
                    Ok(read) => attached = Some((read, key, place(&span))),
                    Err(wrong) => self.error(Code::RuleInvalidValue, wrong.message, wrong.help, Some(place(&span))),
                }
                continue;
            }
            let name = if GLOBS.contains(&key.as_str()) { "globs" } else { key.as_str() };
            let Some(info) = keys::find(name).filter(|info| info.takes != Takes::ManifestOnly) else {
                let help = keys::of_other_hosts(&key).map(str::to_owned).or_else(|| suggestion(&key));
                self.warn(Code::RuleUnknownKey, format!("unknown key `{key}` is ignored"), help, place(&span));
                continue;
            };
            let scalars = value.scalars();
            let values = scalars.iter().map(|one| (one.text.clone(), place(&one.span))).collect::<Vec<_>>();
            self.note_class(info.name, &value, &values);
            if info.takes == Takes::List {
                scalars.iter().for_each(|one| self.refuse_quotes(info.name, one, front.start));
            }
            let key = Key { name: name.to_owned(), span: place(&span), values };
            if let Some(before) =
                keys.iter().position(|known| keys::find(&known.name).is_some_and(|known| known.name == info.name))
            {
                let before = keys.remove(before);
                let message = format!("`{}` is set twice; this value is ignored", before.name);
                let warning = Diagnostic::warning(Code::RuleDuplicateKey, message);
                let used = (key.span.clone(), "this one is used");
                self.labelled(warning, Some("keep one of the two".into()), (before.span, ""), used);
                table.remove(&before.name);
            }
            match values::from_yaml(name, info.takes, &value) {
                Ok(value) => drop(table.insert(name.to_owned(), value)),
                Err(wrong) => {
                    let at = key.values.first().map(|(_, span)| span.clone()).filter(|span| !span.is_empty());
                    let at = at.unwrap_or_else(|| key.span.clone());
                    self.error(Code::RuleInvalidValue, wrong.message, wrong.help, Some(at));
                }
            }
            keys.push(key);
        }
        if self.is_refused() {
            return None;
        }
        match RuleSpec::deserialize(table) {
            Ok(mut spec) => {
                spec.on_request = theirs;
                if let Some((attached, key, span)) = attached {
                    self.attach(&mut spec, attached, &key, span)?;
                }
                Some((spec, RulePlaces::of_file(self.file, keys)))
            }
            Err(error) => {
                self.error(Code::RuleInvalidValue, error.message().to_owned(), None, None);
                None
            }
        }
    }

    /// Warns of front matter in the body: a second rule, which would be a part of what the model gets.
    fn note_second(&mut self, body: &Range<usize>) {
        // A line before it, so that it is no beginning of a file.
        let text = format!(".\n{}", &self.file.text[body.clone()]);
        let Some(late) = front_matter::late(&text).filter(|_| !self.trusted) else { return };
        if matches!(&text[late.span.clone()], "---" | "+++") {
            let message = "a second front matter begins here, and is a part of what the model gets".to_owned();
            let help = "a file is one rule: put the second one into a file of its own".to_owned();
            let place = body.start + late.span.start - 2..body.start + late.span.end - 2;
            self.warn(Code::RuleFrontMatter, message, Some(help), place);
        }
    }

    /// A file without front matter is what other hosts always give to the model.
    fn plain(&mut self) -> Option<(RuleSpec, RulePlaces)> {
        let text = self.file.text.as_str();
        let at = text.len() - text.trim_start_matches('\u{feff}').trim_start().len();
        let line = text[at..].lines().next().unwrap_or_default();
        let word = line.split([':', '=']).next().unwrap_or_default().trim();
        let begins = line.contains([':', '=']) && keys::find(word).is_some_and(|info| info.takes != Takes::Text);
        if begins || asks_to_be_required(text) {
            let message = "the file has keys of a rule, but does not begin with a line `---` or `+++`".to_owned();
            let help = "write a line `---` (YAML) or `+++` (TOML) before the keys and after them";
            self.error(Code::RuleFrontMatter, message, Some(help.into()), Some(at..at + line.trim_end().len()));
            return None;
        }
        if let Some(front_matter::Late { span, message, help }) = front_matter::late(text) {
            self.error(Code::RuleFrontMatter, message, Some(help.to_owned()), Some(span));
            return None;
        }
        Some((RuleSpec { always_apply: true, ..RuleSpec::default() }, RulePlaces::of_file(self.file, Vec::new())))
    }

    /// Does what a key of another host says about a rule without a condition.
    fn attach(&mut self, spec: &mut RuleSpec, attached: Attached, key: &str, span: Range<usize>) -> Option<()> {
        let conditions = [&spec.condition, &spec.ttsr_trigger, &spec.ttsr_trigger_old, &spec.all];
        if conditions.iter().any(|one| !one.is_empty()) {
            let message = format!("`{key}` has no effect: the rule has a condition, which decides when it fires");
            self.warn(Code::RuleKeyWithoutEffect, message, Some("remove the key".into()), span);
            return Some(());
        }
        match attached {
            Attached::Always => spec.always_apply = true,
            Attached::Files if spec.globs.is_empty() => {
                let message = format!("`{key}` asks for files, and no key names them");
                let help = "add `globs`, such as `globs: \"src/**\"`";
                self.error(Code::RuleNoCondition, message, Some(help.into()), Some(span));
                return None;
            }
            Attached::Files | Attached::Description | Attached::Request => {}
        }
        Some(())
    }

    /// Quotes that do not quote would become a part of the value, which then matches nothing.
    fn refuse_quotes(&mut self, name: &str, scalar: &Scalar, start: usize) {
        let Some(flaw) = &scalar.flaw else { return };
        // A glob or a scope has no quotes in it, so those around it are taken away.
        let is_list_of_words = matches!(name, "scope" | "globs" | "agents");
        let sign = self.file.text.get(start + flaw.span.start..start + flaw.span.end).unwrap_or_default();
        let key = sign.split(':').next().unwrap_or_default().trim_end();
        let as_key = format!(
            "the line `{}` is a part of the value, because it begins with a blank",
            crate::shown_condition(sign)
        );
        let sign = if sign == "`" { "a backtick".to_owned() } else { format!("`{sign}`") };
        let typographic = format!("the value begins with {sign}, which is no quote in YAML");
        let (message, help) = match flaw.kind {
            FlawKind::Several | FlawKind::Closed if is_list_of_words => return,
            // In a text of several lines a word before a colon is ordinary.
            FlawKind::Key if keys::find(key).is_none() => return,
            FlawKind::Key => (as_key.as_str(), "remove the blank before the key, or put the whole value in quotes"),
            FlawKind::Open => ("the quote does not close", "add a quote at the end of the value"),
            FlawKind::Closed => (
                "the quote closes before the value ends",
                "put the whole value in single quotes and double each `'` in it: '…''…'",
            ),
            FlawKind::Several => (
                "several values in quotes are no list",
                "put the list in brackets, or one value on each line after `- `",
            ),
            FlawKind::NotStraight => (
                typographic.as_str(),
                "write straight quotes around the value, '…'; where this character is meant, put it and the rest of the value in '…'",
            ),
            FlawKind::List => (
                "the list in brackets cannot be read: its quotes do not fit",
                "put each value in single quotes and double each `'` in it; a class of characters needs quotes around it",
            ),
        };
        let message = format!("`{name}`: {message}");
        let span = start + flaw.span.start..start + flaw.span.end;
        self.error(Code::RuleSyntax, message, Some(help.into()), Some(span));
    }

    /// `condition: [a-z]` is a list of one entry to YAML.
    fn note_class(&mut self, name: &str, value: &Value, values: &[(String, Range<usize>)]) {
        let (Value::Many(many), [(text, span)]) = (value, values) else { return };
        let is_class = matches!(many.as_slice(), [Scalar { quoted: false, .. }])
            && matches!(name, "condition" | "all" | "unless")
            && (text.contains('-') || text.starts_with('^'));
        if is_class {
            let help = format!("for a class of characters write `'[{text}]'`, in quotes");
            let message = "brackets without quotes are a list".to_owned();
            self.warn(Code::RuleUnquotedClass, message, Some(help), span.clone());
        }
    }

    /// Reports a key of TOML that is set twice.
    fn set_twice(&mut self, found: &Duplicate, again: Option<Range<usize>>, first: Option<Range<usize>>) {
        let is_list = keys::find(found.key.trim_matches(['"', '\''])).is_some_and(|info| info.takes == Takes::List);
        let list = format!("; several values are a list: `{} = ['…', '…']`", found.key);
        let help = format!("{}{}", found.help(), if is_list { &list } else { "" });
        let error = Diagnostic::error(Code::RuleDuplicateKey, found.message());
        match first {
            Some(first) => self.labelled(error, Some(help), (again.unwrap_or(0..0), AGAIN), (first, FIRST)),
            None => self.report(error, Some(help), again),
        }
    }

    /// Reports something about two places.
    fn labelled(
        &mut self,
        diagnostic: Diagnostic,
        help: Option<String>,
        one: (Range<usize>, &str),
        other: (Range<usize>, &str),
    ) {
        self.report(diagnostic, help, Some(one.0));
        if let Some(mut last) = self.found.pop() {
            last.labels.iter_mut().for_each(|label| one.1.clone_into(&mut label.text));
            self.found.push(last.at(Location::new(self.file, other.0), other.1));
        }
    }

    fn error(&mut self, code: Code, message: String, help: Option<String>, span: Option<Range<usize>>) {
        self.report(Diagnostic::error(code, message), help, span);
    }

    fn warn(&mut self, code: Code, message: String, help: Option<String>, span: Range<usize>) {
        self.report(Diagnostic::warning(code, message), help, Some(span));
    }

    fn report(&mut self, diagnostic: Diagnostic, help: Option<String>, span: Option<Range<usize>>) {
        // What has no narrower place is about the file: shown at its first line.
        let location = Location::new(self.file, span.unwrap_or(0..0));
        let mut diagnostic = diagnostic.about_rule(self.name, Some(self.source)).at(location, "");
        diagnostic.help = help;
        self.found.push(diagnostic);
    }
}

const QUOTES_HELP: &str =
    "write the value in straight single quotes, '…', or in three of them, \'\'\'…\'\'\', where it contains one";

/// The name that was probably meant. One that is much shorter only begins in the same way.
fn suggestion(key: &str) -> Option<String> {
    let names = keys::names().filter(|name| 2 * name.len() > key.len());
    flow::text::nearest(key, names).map(|name| format!("did you mean `{name}`?"))
}

#[derive(Clone, Copy)]
enum Fence {
    Toml,
    Yaml,
    None,
}

struct Parts {
    fence: Fence,
    front: Range<usize>,
    body: Range<usize>,
}

struct Broken {
    message: String,
    help: &'static str,
    span: Range<usize>,
}

/// Finds the front matter between two fences; a byte order mark and empty lines before it are passed over.
fn split(text: &str) -> Result<Parts, Broken> {
    let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text[begin..].split_inclusive('\n').scan(begin, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let first = lines.find(|(_, line)| !line.trim().is_empty());
    let fence = match first.map(|(_, line)| line.trim_end()) {
        Some("+++") => Fence::Toml,
        Some("---") => Fence::Yaml,
        _ => return Ok(Parts { fence: Fence::None, front: begin..begin, body: begin..text.len() }),
    };
    let (start, first) = first.unwrap_or((begin, ""));
    let ends = |line: &str| match fence {
        Fence::Toml => line.trim_end() == "+++",
        Fence::Yaml => matches!(line.trim_end(), "---" | "..."),
        Fence::None => false,
    };
    let Some((end, last)) = lines.find(|(_, line)| ends(line)) else {
        let sign = first.trim_end();
        let message = format!("the front matter does not end: there is no second line `{sign}`");
        return Err(Broken { message, help: "put it between the keys and the body", span: start..start + sign.len() });
    };
    Ok(Parts { fence, front: start + first.len()..end, body: end + last.len()..text.len() })
}
