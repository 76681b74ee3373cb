//! Values of `field` that are no arguments of the tools that a rule watches.

use std::collections::BTreeSet;

use flow::text::{differs_by_one_letter, nearest};
use flow::{Diagnostic, DiagnosticCode as Code, Severity, ToolSpec};

use crate::command_lines::COMMANDS;
use crate::scope::tool_key;
use crate::{Bucket, Rule, Scope};

/// The tools that a rule watches, as far as they are known.
struct Watched<'t> {
    tools: Vec<&'t ToolSpec>,
    /// It watches others, too: any tool, or one that is not known here.
    others: bool,
    /// The names of their arguments.
    names: BTreeSet<String>,
    /// Their schemas permit no others.
    are_all: bool,
}

/// Reports fields that are no arguments. Of a rule for several hosts some are those of other hosts: where one is known, only those that
/// are nearly the name of an argument are reported.
pub(crate) fn unknown(rule: &mut Rule, tools: &[ToolSpec]) -> Vec<Diagnostic> {
    if rule.bucket != Bucket::Stream || rule.never.is_some() || rule.fields.is_empty() {
        return Vec::new();
    }
    let watched = watched(rule, tools);
    let is_unknown = |field: &&String| !watched.names.contains(field.as_str());
    let unknown: Vec<String> = rule.fields.iter().filter(is_unknown).cloned().collect();
    if watched.tools.is_empty() || unknown.is_empty() {
        return Vec::new();
    }
    let all = unknown.len() == rule.fields.len();
    let letters = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    // `newText` for `new_text` is how another host spells it.
    let is_typo = |field: &&String| {
        let near = |name: &&String| differs_by_one_letter(name, field) && letters(name) != letters(field);
        watched.names.iter().any(|name| near(&name))
    };
    let named = if all { unknown.iter().collect() } else { unknown.iter().filter(is_typo).collect::<Vec<_>>() };
    let is_never = all && watched.are_all && !watched.others && !rule.watches_prose();
    let reports = named.into_iter().map(|field| report(rule, &watched, field, all, is_never)).collect();
    if is_never {
        rule.never = unknown.first().map(|field| why(&watched, field));
    }
    reports
}

fn watched<'t>(rule: &Rule, tools: &'t [ToolSpec]) -> Watched<'t> {
    let mut out = Watched { tools: Vec::new(), others: false, names: BTreeSet::new(), are_all: true };
    for scope in &rule.scopes {
        let Scope::Tool { name, .. } = scope else { continue };
        let own: Vec<&ToolSpec> = tools.iter().filter(|tool| scope.takes_tool(&tool.name)).collect();
        out.others |= name.is_none() || own.is_empty();
        out.tools.extend(own);
    }
    for tool in &out.tools {
        let arguments = tool.arguments();
        out.names.extend(arguments.names);
        out.are_all &= arguments.are_all;
        out.names.extend((tool_key(&tool.name.to_lowercase()) == "shell").then(|| COMMANDS.to_owned()));
    }
    out
}

fn why(watched: &Watched<'_>, field: &str) -> String {
    match watched.tools.as_slice() {
        [tool] => format!("`{field}` is no argument of `{}`", tool.name),
        _ => format!("none of them has an argument `{field}`"),
    }
}

fn report(rule: &Rule, watched: &Watched<'_>, field: &str, all: bool, is_never: bool) -> Diagnostic {
    let why = why(watched, field);
    let (severity, code, message) = match (is_never, all) {
        (true, _) => (Severity::Error, Code::RuleUnreachable, format!("it can never fire: {why}")),
        (false, true) if !watched.others => {
            (Severity::Warning, Code::RuleUnreachable, format!("it can never fire there: {why}"))
        }
        (false, true) => {
            (Severity::Warning, Code::RuleUnreachable, format!("it cannot fire with the tools of this host: {why}"))
        }
        (false, false) => {
            (Severity::Warning, Code::RuleKeyWithoutEffect, format!("`{field}` in `field` has no effect: {why}"))
        }
    };
    let names = || watched.names.iter().map(String::as_str);
    // The last part of a name is what is easily taken for the whole.
    let part = names().find(|name| name.rsplit(['.', ']']).next() == Some(field));
    let help = match part.or_else(|| nearest(field, names())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the arguments are {}", names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    let one = rule.diagnostic(severity, code, message).help(help);
    match rule.location_of_value(&["field"], field) {
        Some(location) => one.at(location, ""),
        None => one,
    }
}
