//! Rules that can never fire, whatever the model writes: the conditions exclude each other, or no file matches the globs.

use flow::{Diagnostic, DiagnosticCode as Code, Severity, ToolSpec};

use crate::engine::Nfa;
use crate::fields;
use crate::glob::{Globs, are_void};
use crate::reach::Together;
use crate::rule::GLOBS;
use crate::scope::tool_key;
use crate::{Bucket, Rule, Scope};

/// A reason, what to do, and the keys that it is about.
type Reason = (String, &'static str, &'static [&'static str]);

/// Why the rule can never fire, as far as that can be decided.
pub(crate) fn reason(rule: &Rule) -> Option<Reason> {
    files(rule).or_else(|| conditions(rule))
}

impl Rule {
    /// Reports what no call of these tools can fulfil: scopes that ask for a file where a tool names none, and fields that are no arguments.
    /// Where nothing else is left, the rule can never fire.
    pub fn try_on(&mut self, tools: &[ToolSpec]) -> Vec<Diagnostic> {
        let mut found = self.ask_for_files_of(tools);
        found.extend(fields::unknown(self, tools));
        found
    }

    fn ask_for_files_of(&mut self, tools: &[ToolSpec]) -> Vec<Diagnostic> {
        if self.bucket != Bucket::Stream || self.never.is_some() {
            return Vec::new();
        }
        let asks =
            |scope: &Scope| matches!(scope, Scope::Tool { glob, .. } if glob.is_some() || !self.globs.is_empty());
        let dead = |scope: &Scope| {
            let Scope::Tool { name: Some(name), .. } = scope else { return None };
            let tool = tools.iter().find(|tool| tool_key(name) == tool_key(&tool.name.to_lowercase()))?;
            (asks(scope) && tool.names_no_file()).then(|| (name.clone(), scope.to_text(), tool))
        };
        let found: Vec<_> = self.scopes.iter().filter_map(dead).collect();
        let all = found.len() == self.scopes.len();
        let report = |(name, scope, tool): &(String, String, &ToolSpec)| {
            let severity = if all { Severity::Error } else { Severity::Warning };
            let message = format!("it can never fire{}: {}", if all { "" } else { " there" }, no_file(scope, tool));
            let fields = tool.parameters["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
            let field = fields.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let help = match command_condition(name, scope) {
                Some(condition) => format!(
                    "write `scope = \"tool:{name}\"`, `field = \"commands\"` and `condition = '{condition}'`: the condition sees the \
                     commands that a call runs, one a line"
                ),
                None => format!(
                    "write `scope: {name}` and put what is meant into `condition`, which is tried on the arguments ({field}); \
                     `field` names one of them"
                ),
            };
            let one = self.diagnostic(severity, Code::RuleUnreachable, message).help(help);
            match self.location_of_value(&["scope"], name) {
                Some(location) => one.at(location, ""),
                None => one,
            }
        };
        let reports: Vec<Diagnostic> = found.iter().map(report).collect();
        if all {
            self.never = found.first().map(|(_, scope, tool)| no_file(scope, tool));
        }
        reports
    }
}

/// The condition on commands that says the same as the pattern of a scope such as `shell(rm *)`, or `shell(git push:*)` of other hosts.
fn command_condition(tool: &str, scope: &str) -> Option<String> {
    let pattern = scope.split_once('(')?.1.strip_suffix(')').filter(|_| tool_key(tool) == "shell")?;
    let pattern = pattern.strip_suffix(":*").unwrap_or_else(|| pattern.trim_end_matches('*'));
    let words: Vec<String> = pattern.split('*').map(regex_syntax::escape).collect();
    let condition = words.join("[^\\n]*");
    // A blank at the end is easily lost.
    let condition = condition.strip_suffix(' ').map_or(condition.clone(), |start| format!("{start}[ ]"));
    (!condition.trim().is_empty() && !condition.contains(['\'', '\n'])).then(|| format!("(?m)^{condition}"))
}

fn no_file(scope: &str, tool: &ToolSpec) -> String {
    format!("`{scope}` asks for a file, and calls of `{}` name none", tool.name)
}

fn files(rule: &Rule) -> Option<Reason> {
    let globs = |scope: &Scope| match scope {
        Scope::Text | Scope::Thinking => None,
        Scope::Tool { glob, .. } => Some(glob.clone().unwrap_or_default()),
    };
    // On other streams `globs` is reported by itself.
    let prose = rule.globs.is_empty() && rule.scopes.iter().any(|scope| !matches!(scope, Scope::Tool { .. }));
    let tools: Vec<Globs> = rule.scopes.iter().filter_map(globs).collect();
    if prose || tools.is_empty() || !tools.iter().all(|scope| are_void(scope, &rule.globs)) {
        return None;
    }
    let help = "remove the exclusion, or name files that are in `scope` and in `globs`";
    let keys: &[&str] = if rule.globs.is_empty() { &["scope", "condition"] } else { GLOBS };
    let why =
        "its globs match no file: they leave out what they include, or `scope` and `globs` have no file in common";
    Some((why.to_owned(), help, keys))
}

fn conditions(rule: &Rule) -> Option<Reason> {
    if rule.all.is_empty() && rule.unless.is_empty() {
        return None;
    }
    let any: Vec<&Nfa> = rule.conditions.iter().map(|pattern| pattern.nfa()).collect();
    let all = rule.all.iter().map(|pattern| vec![pattern.nfa()]);
    let wanted: Vec<Vec<&Nfa>> = Some(any).filter(|any| !any.is_empty()).into_iter().chain(all).collect();
    let unless: Vec<&Nfa> = rule.unless.iter().map(|pattern| pattern.nfa()).collect();
    match Together::new(&wanted, &unless).and_then(|all| all.can_match()) {
        Some(true) => None,
        Some(false) if rule.unless.is_empty() => {
            let why = "no text matches `condition` and all of `all`".to_owned();
            Some((why, "remove one of them, or correct an assertion such as `^` or `$`", &["all"]))
        }
        Some(false) => {
            let why = "`unless` matches before the condition can".to_owned();
            Some((
                why,
                "make `unless` match less: a match of it anywhere before silences the rule",
                &["unless", "condition"],
            ))
        }
        // A guard of which this is not known stays in force. Its examples are held against it by `rules check`.
        None => None,
    }
}
