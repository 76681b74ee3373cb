//! The reminder that the model gets about a rule it broke.

use std::fmt::Write as _;

use flow::{DiagnosticCode as Code, RuleMatch, Severity, StreamKind};

use crate::command_lines::COMMANDS;
use crate::rule::Reader;
use crate::{Rule, RuleAction, RuleSet, RuleSpec};

/// The most names of rules in one reminder about a call that could not be read.
const MAX_NAMES: usize = 8;

/// Who the reminder comes from.
const HOST: &str = "This message comes from the host that enforces the project's rules; it is not a prompt injection.";

/// The most bytes of `reminder`.
const MAX_REMINDER_BYTES: usize = 1024;

impl Reader<'_> {
    /// The text to send to the model instead of the body; a text that is too long is ignored.
    pub(crate) fn reminder(&mut self, spec: &RuleSpec) -> Option<String> {
        let text = spec.reminder.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
        if text.len() > MAX_REMINDER_BYTES {
            let message = format!(
                "`reminder` has {} bytes, more than the limit of {MAX_REMINDER_BYTES}: it is ignored",
                text.len()
            );
            let help = "shorten it, or remove it: without it, the body is sent to the model";
            let place = self.places.key(&["reminder"]);
            self.report(Severity::Error, Code::RuleReminderTooLong, message, Some(help.into()), place);
            return None;
        }
        Some(text.to_owned())
    }
}

/// For matches that stopped the answer.
pub(crate) fn interrupt(set: &RuleSet, matches: &[RuleMatch]) -> String {
    blocks(set, matches, "system-interrupt", |rule, found| {
        let what = match (rule.action, &found.stream) {
            (Some(RuleAction::Block), StreamKind::Tool { .. }) => {
                "This tool call was not run because its arguments broke"
            }
            _ => "Your output was stopped because it broke",
        };
        format!(
            "{what} a rule that the user has set for this project. {HOST} Comply with the rule. Continue without violating it again."
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
        format!("{what} Comply with it in later tool calls and answers. {HOST}")
    })
}

/// Whether a text that the model got contains a reminder of this rule. What says that a call could not be read has no text of a rule, so it
/// reminds of none.
pub(crate) fn reminds_of(text: &str, rule: &str) -> bool {
    let name = attribute(rule);
    ["system-interrupt", "system-reminder"].iter().any(|element| {
        let begin = format!("<{element} reason=\"{VIOLATION}\" rule=\"");
        let mut all = text.split(&begin).skip(1).filter_map(|rest| rest.split_once('"'));
        all.any(|(names, _)| names.split(SEPARATOR).any(|one| one == name))
    })
}

/// The reason for a reminder: rules were broken.
const VIOLATION: &str = "rule_violation";
/// The reason for a reminder: a call could not be checked.
const UNREADABLE: &str = "unreadable_call";
/// Between the names of rules in an attribute.
const SEPARATOR: &str = ", ";

/// A rule's name among others in an attribute.
fn attribute(name: &str) -> String {
    escape(name).replace(',', "&#44;")
}

/// Matches with one reminder: of a call that could not be read, or of rules that say the same.
struct Block<'m> {
    matches: Vec<(&'m Rule, &'m RuleMatch)>,
    lead: String,
    unread: bool,
}

impl Block<'_> {
    /// Whether a match of `rule` has the same reminder.
    fn takes(&self, rule: &Rule, found: &RuleMatch, lead: &str) -> bool {
        let Some((known, first)) = self.matches.first() else { return false };
        if self.unread || found.evidence.unread {
            let same = |one: &RuleMatch| (&one.stream, &one.evidence.text) == (&found.stream, &found.evidence.text);
            return self.unread && found.evidence.unread && same(first);
        }
        known.told() == rule.told() && self.lead == lead && first.evidence.path == found.evidence.path
    }

    fn names(&self) -> String {
        let most = if self.unread { MAX_NAMES } else { usize::MAX };
        let names = self.matches.iter().take(most).map(|(rule, _)| attribute(&rule.name)).collect::<Vec<_>>();
        let more = self.matches.len().saturating_sub(most);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        names.join(SEPARATOR) + &more
    }

    /// A rule file under the workspace is shown relative to it; no other path of the machine is disclosed. Several rules have no path
    /// in common but that of the call.
    fn path(&self, set: &RuleSet) -> Option<String> {
        let (rule, found) = self.matches.first()?;
        let own = Some(rule.source.path.as_str()).filter(|_| self.matches.len() == 1);
        let path = crate::glob::relative_path(found.evidence.path.as_deref().or(own)?, set.workspace());
        Some(if path.starts_with('/') { path.rsplit('/').next().unwrap_or_default().to_owned() } else { path })
    }

    /// What the model has to do about a call that could not be read. The rules are not broken, so their text is left out.
    fn unread_lead(&self) -> String {
        let rules = if self.matches.len() == 1 { "a rule" } else { "rules" };
        format!(
            "This tool call was not run because its arguments could not be checked against {rules} that the user has set \
             for this project. {HOST} Write the call again so that it can be read: plain, valid JSON with less nesting, \
             shorter keys and fewer file paths; command lines in plain syntax of a shell, with the names \
             of commands written out, shorter ones, several in place of one."
        )
    }

    /// What was found, each place once.
    fn evidence(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for line in self.matches.iter().map(|(_, found)| evidence(found)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

/// One element for each rule; for rules that say the same, or that could not read the same call, one for all of them. What all elements
/// have in common is in the first.
fn blocks(set: &RuleSet, matches: &[RuleMatch], element: &str, lead: impl Fn(&Rule, &RuleMatch) -> String) -> String {
    let (mut blocks, mut done): (Vec<Block<'_>>, Vec<&str>) = (Vec::new(), Vec::new());
    for found in matches {
        let Some(rule) = set.rule(&found.rule).filter(|_| !done.contains(&found.rule.as_str())) else { continue };
        done.push(&found.rule);
        let (unread, lead) = (found.evidence.unread, lead(rule, found));
        match blocks.iter_mut().find(|block| block.takes(rule, found, &lead)) {
            Some(block) => block.matches.push((rule, found)),
            None => blocks.push(Block { matches: vec![(rule, found)], lead, unread }),
        }
    }
    let mut out: Vec<String> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let is_again = blocks[..at].iter().any(|before| !before.unread && before.lead == block.lead);
        let lead = match (block.unread, is_again) {
            (true, _) => block.unread_lead(),
            (false, true) => "The same applies to this rule.".to_owned(),
            (false, false) => block.lead.clone(),
        };
        let path = block.path(set).map(|path| format!(" path=\"{}\"", escape(&path))).unwrap_or_default();
        let reason = if block.unread { UNREADABLE } else { VIOLATION };
        let mut text =
            format!("<{element} reason=\"{reason}\" rule=\"{}\"{path}>\n{lead}\n{}\n", block.names(), block.evidence());
        if let Some((rule, _)) = block.matches.first().filter(|_| !block.unread) {
            // The body is the user's own text; only what would close the element is made harmless.
            let _ = write!(text, "\n{}\n", rule.told().replace("</system-", "&lt;/system-"));
        }
        out.push(format!("{text}</{element}>"));
    }
    out.join("\n\n")
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
