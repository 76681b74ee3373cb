//! The reminder that the model gets about a rule it broke.

use std::fmt::Write as _;

use flow::{RuleMatch, StreamKind};

use crate::command_lines::COMMANDS;
use crate::{Rule, RuleAction, RuleSet};

/// For a tool call that could not be read.
const UNREAD: &str = "This tool call was not run because its arguments could not be checked against a rule that the user has set \
                      for this project. This message comes from the host that enforces the project's rules; it is not a \
                      prompt injection. Write the call again so that it can be read: plain, valid JSON with less nesting, shorter keys and fewer \
                      file paths; command lines in plain syntax of a shell, shorter ones, several in place of one.";

/// For matches that stopped the answer.
pub(crate) fn interrupt(set: &RuleSet, matches: &[RuleMatch]) -> String {
    blocks(set, matches, "system-interrupt", |rule, found| {
        if found.evidence.unread {
            return UNREAD.to_owned();
        }
        let what = match (rule.action, &found.stream) {
            (Some(RuleAction::Block), StreamKind::Tool { .. }) => {
                "This tool call was not run because its arguments broke"
            }
            _ => "Your output was stopped because it broke",
        };
        format!(
            "{what} a rule that the user has set for this project. This message comes from the host that enforces the \
             project's rules; it is not a prompt injection. Comply with the rule. Continue without violating it again."
        )
    })
}

/// For matches that stopped nothing.
pub(crate) fn remind(set: &RuleSet, matches: &[RuleMatch]) -> String {
    blocks(set, matches, "system-reminder", |_, found| {
        let what = match found.stream {
            StreamKind::Tool { .. } => {
                "The arguments of this tool call matched a rule that the user has set for this project. The rule does \
                 not interrupt, so the call ran."
            }
            StreamKind::Text => {
                "Your answer matched a rule that the user has set for this project. The rule does not interrupt, so the \
                 answer was kept."
            }
            StreamKind::Thinking => {
                "Your reasoning matched a rule that the user has set for this project. The rule does not interrupt."
            }
        };
        format!(
            "{what} Comply with it in later tool calls and answers. This message comes from the host that enforces the \
             project's rules; it is not a prompt injection."
        )
    })
}

/// Whether a text that the model got is, or begins with, a reminder of this rule.
pub(crate) fn reminds_of(text: &str, rule: &str) -> bool {
    let name = escape(rule);
    ["system-interrupt", "system-reminder"]
        .iter()
        .any(|element| text.contains(&format!("<{element} reason=\"rule_violation\" rule=\"{name}\"")))
}

fn blocks(set: &RuleSet, matches: &[RuleMatch], element: &str, lead: impl Fn(&Rule, &RuleMatch) -> String) -> String {
    let (mut out, mut done): (String, Vec<&str>) = (String::new(), Vec::new());
    for found in matches {
        let Some(rule) = set.rule(&found.rule).filter(|_| !done.contains(&found.rule.as_str())) else { continue };
        done.push(&found.rule);
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        let _ = write!(out, "<{element} reason=\"rule_violation\" rule=\"{}\"", escape(&rule.name));
        // A rule file under the workspace is shown relative to it; no other path of the machine is disclosed.
        let path = found.evidence.path.as_deref().unwrap_or(&rule.source.path);
        let path = crate::glob::relative_path(path, set.workspace());
        let shown = if path.starts_with('/') { path.rsplit('/').next().unwrap_or_default() } else { &path };
        let _ = write!(out, " path=\"{}\">\n{}\n{}\n\n", escape(shown), lead(rule, found), evidence(found));
        // The body is the user's own text; only what would close the element is made harmless.
        let _ = write!(out, "{}\n</{element}>", rule.told().replace("</system-", "&lt;/system-"));
    }
    out
}

fn evidence(found: &RuleMatch) -> String {
    let evidence = &found.evidence;
    let mut place = match &found.stream {
        StreamKind::Text => "in your answer".to_owned(),
        StreamKind::Thinking => "in your reasoning".to_owned(),
        StreamKind::Tool { name, .. } => format!("in a call of {}", escape(name)),
    };
    if let Some(field) = &evidence.field {
        let _ = write!(place, ", argument {}", escape(field));
    }
    if let Some(path) = &evidence.path {
        let _ = write!(place, ", file {}", escape(path));
    }
    if evidence.unread {
        return format!("Found {place}: {}.", escape(&evidence.text));
    }
    // Lines of the list of commands are nothing that the model has written.
    let line =
        if evidence.field.as_deref() == Some(COMMANDS) { String::new() } else { format!(", line {}", evidence.line) };
    if evidence.text.trim().is_empty() || evidence.is_hidden() {
        return format!("Found {place}{line}.");
    }
    let more = if evidence.end - evidence.start > evidence.text.len() as u64 { " …" } else { "" };
    format!("Found {place}{line}: {}{more}", escape(&evidence.text))
}

/// For attributes and quoted text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
