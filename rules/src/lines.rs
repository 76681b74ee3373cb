//! Conditions that do less than their author means: on texts of several lines where one is meant, exceptions that any other command
//! fulfils, secrets on some streams alone.

use flow::{Action, DiagnosticCode as Code, Severity};

use crate::command_lines;
use crate::conditions::{Written, shown};
use crate::dialect::{Anchors, anchors};
use crate::engine::Pattern;
use crate::rule::Reader;
use crate::scope::tool_key;
use crate::{InterruptMode, RepeatMode, Rule, Scope};

/// What the conditions of a rule see, where that has several lines or commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// A list of commands, one a line.
    Commands,
    /// A command line as it is written.
    CommandLine,
    /// What is written into files, among other arguments.
    Files,
}

/// The last part of the names of arguments with the text of a file, ours and those of other hosts.
const FILE_TEXTS: [&str; 9] =
    ["content", "new_text", "old_text", "new_string", "old_string", "newText", "oldText", "new_str", "old_str"];

/// What stands next to an assertion where a line is meant: indentation, or white space at its end.
const BLANKS: [&str; 8] = [r"\s*", r"\s+", r"[ \t]*", r"[ \t]+", r"[\t ]*", " *", r"\t*", "[[:space:]]*"];

impl Seen {
    fn of(rule: &Rule) -> Option<Self> {
        let is_shell =
            |scope: &Scope| matches!(scope, Scope::Tool { name: Some(name), glob: None } if tool_key(name) == "shell");
        let is_file_text = |field: &String| FILE_TEXTS.iter().any(|name| field.rsplit(['.', ']']).next() == Some(name));
        if rule.watches_only_commands() {
            return Some(Self::Commands);
        }
        if rule.scopes.iter().all(is_shell) {
            let is_line = rule.fields.iter().all(|field| matches!(field.as_str(), "command" | "script"));
            return is_line.then_some(Self::CommandLine);
        }
        let is_about_files = rule.fields.is_empty() || rule.fields.iter().any(is_file_text);
        let has_shell = rule.scopes.iter().any(|scope| scope.takes_tool("shell"));
        (is_about_files && !has_shell && !rule.watches_prose()).then_some(Self::Files)
    }
}

impl Reader<'_> {
    /// Warns of assertions that look at the whole text, and of exceptions outside the command.
    pub(crate) fn note_lines(&mut self, rule: &Rule, conditions: &[&[Written]], unless: &[Written]) {
        let Some(seen) = Seen::of(rule).filter(|_| !self.trusted) else { return };
        let own = |pattern: &Pattern| {
            let mut written = conditions.iter().copied().flatten();
            written.find(|one| one.whole.is_none() && one.text == pattern.as_str())
        };
        for pattern in rule.conditions.iter().chain(&rule.all) {
            if let Some(written) = own(pattern) {
                self.note_anchors(seen, written);
            }
        }
        if seen != Seen::Files {
            self.note_exceptions(seen, rule, unless);
        }
    }

    fn note_anchors(&mut self, seen: Seen, written: &Written) {
        let text = written.text.as_str();
        let Anchors { begins, ends } = anchors(text);
        let (begin, end) = (begins.first(), ends.first());
        let of_line = |places: &[usize]| places.iter().copied().find(|at| is_next_to_blanks(text, *at));
        let wrong = match seen {
            Seen::Commands => begin
                .map(|at| (*at, "`^` is the beginning of the first command alone"))
                .or_else(|| end.map(|at| (*at, "`$` is the end of the list, behind its last command"))),
            Seen::CommandLine => {
                begin.map(|at| (*at, "`^` is the beginning of the command line, and a command behind `cd a &&` passes"))
            }
            Seen::Files => begin
                .filter(|_| end.is_some())
                .copied()
                .or_else(|| of_line(&begins))
                .map(|at| (at, "`^` is the beginning of the whole text, and not of a line"))
                .or_else(|| of_line(&ends).map(|at| (at, "`$` is the end of the whole text, and not of a line"))),
        };
        let Some((at, message)) = wrong else { return };
        let flag = format!("write `(?m){}`", shown(text));
        let help = if seen == Seen::CommandLine {
            format!(
                "{flag} and `field = \"commands\"`: the condition then sees each command that a call runs on a line of its own"
            )
        } else {
            format!("{flag}: with `(?m)`, `^` and `$` match at line boundaries")
        };
        self.warn(Code::RuleSuspiciousCondition, written, at..at + 1, &format!(": {message}"), Some(help));
    }

    /// An exception of a guard on commands that holds for the whole call: another command can have it.
    fn note_exceptions(&mut self, seen: Seen, rule: &Rule, unless: &[Written]) {
        let mode = rule.interrupt.unwrap_or(InterruptMode::Always);
        let stops = matches!(rule.requests(mode, true), Action::Block | Action::Interrupt | Action::Stop);
        let is_convention = matches!(rule.repeat, Some(RepeatMode::Once | RepeatMode::AfterGap));
        for written in unless.iter().filter(|one| one.whole.is_none()) {
            let pattern = rule.unless.iter().find(|pattern| pattern.as_str() == written.text);
            let Some(pattern) = pattern else { continue };
            let span = 0..written.text.len();
            if seen == Seen::Commands && command_lines::is_in_no_list(pattern) {
                let why = " can never match, so it silences nothing: a list of commands has no operators and no quotes around words";
                let help = "write it for a command that comes before, or remove it".to_owned();
                self.warn(Code::RuleInvalidCondition, written, span, why, Some(help));
            } else if stops && !is_convention {
                let message = ": `unless` is matched against the whole call: another command can suppress the rule";
                let help = "write the exception into `condition`, for the same command, such as `(?m)^git push(?! --dry-run)`; \
                            where the rule only reminds of a convention, set `repeat = \"once\"`"
                    .to_owned();
                self.warn(Code::RuleSuspiciousCondition, written, span, message, Some(help));
            }
        }
    }

    /// Warns of groups `hide` where nothing is held back.
    pub(crate) fn note_hides(&mut self, rule: &Rule, conditions: &[&[Written]], unless: &[Written]) {
        let mode = rule.interrupt.unwrap_or(InterruptMode::Always);
        let stops = matches!(rule.requests(mode, false), Action::Interrupt | Action::Stop);
        let why = match (rule.watches_prose(), stops) {
            _ if self.trusted => return,
            (true, true) => None,
            (true, false) => Some("no match of the rule stops the answer, so nothing is held back"),
            // What is a secret in an argument is hidden with all of the argument, and the group says which part it is.
            (false, _) if rule.secret => None,
            (false, _) => Some("only text and reasoning are held back, and the rule watches tool calls alone"),
        };
        let own = rule.conditions.iter().chain(&rule.all).map(|pattern| (pattern, why));
        let of_unless = rule.unless.iter().map(|pattern| (pattern, Some("a match of `unless` hides nothing")));
        for (pattern, why) in own.chain(of_unless).filter(|(pattern, _)| pattern.has_shown_part()) {
            let mut written = conditions.iter().copied().flatten().chain(unless);
            let Some((written, why)) = written.find(|one| one.text == pattern.as_str()).zip(why) else { continue };
            let at = written.text.find("<hide>").map_or(0..0, |at| at + 1..at + 5);
            let message = format!(": the group `hide` has no effect: {why}");
            self.warn(Code::RuleKeyWithoutEffect, written, at, &message, Some("write `(?:…)` in its place".into()));
        }
    }

    /// Warns of a rule about secrets that watches the text, and not all else that is shown and recorded.
    pub(crate) fn note_secret_scope(&mut self, rule: &Rule) {
        let watches = |wanted: fn(&Scope) -> bool| rule.scopes.iter().any(wanted);
        let thinking = watches(|scope| matches!(scope, Scope::Thinking));
        let tools = watches(|scope| matches!(scope, Scope::Tool { name: None, glob: None }));
        let is_of_text = rule.secret && watches(|scope| matches!(scope, Scope::Text));
        let (streams, missing) = match (thinking, tools) {
            (false, false) => ("the reasoning and the arguments of tools", "`thinking` and `tool`"),
            (false, true) => ("the reasoning", "`thinking`"),
            (true, false) => ("the arguments of tools", "`tool`"),
            (true, true) => return,
        };
        if self.trusted || !is_of_text || !self.places.is_given("scope") {
            return;
        }
        let message = format!("with this `scope`, a secret in {streams} is shown and kept");
        let help = format!("add {missing}, or remove `scope`: a rule with `secret = true` then watches all streams");
        let place = self.places.key(&["scope"]);
        self.report(Severity::Warning, Code::RuleSecretShown, message, Some(help), place);
    }
}

/// Whether what is next to an assertion is next to the beginning or the end of a line: indentation, or white space at its end.
fn is_next_to_blanks(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + 1..]);
    // With the flag `x` blanks are nothing.
    let (before, after) =
        if text.starts_with("(?x") { (before.trim_end(), after.trim_start()) } else { (before, after) };
    let after = after.trim_start_matches(['(', '?', ':']);
    BLANKS.iter().any(|blanks| after.starts_with(blanks) || before.ends_with(blanks))
}
