//! Who may run what. An entry is a tool (`shell`), a tool and a glob (`shell(git status*)`), or `*`.
//!
//! An entry with a matching glob beats one without, that beats `*`, that beats the tool's default; of several
//! matching globs, the strictest decides. So the order of entries is irrelevant.
//!
//! Paths that other programs execute or trust (`guard`) ask where they would be allowed, unless a glob that allows them names
//! them on purpose: `write_file(**)` does not, `write_file(.git/hooks/*)` does.
//!
//! Globs are held against the path of a call, relative to the workspace: the path as written and the place it really
//! is. (`*` stops at `/`, `**` does not.) For `shell` they are held against the command. A shell can hide a command in
//! many ways, so the two directions differ:
//! - an `allow` matches only a command that has no other shell characters (`; & | < > $ ( )`, backquote, backslash,
//!   line   ends, invisible characters) than the glob itself, in the same order: `shell(git status*)` never allows
//!   `git status; rm -r .`;
//! - `ask` and `deny` match when the whole command or any part of it between such characters matches. That catches
//!   what is   done by habit, not what is hidden on purpose: to be sure, set `shell` itself to `ask` or `deny`.

use flow::{Permission, PermissionMode, ToolCall};
use globset::GlobMatcher;

use crate::ToolsError;
use crate::builtin::{self, Builtin, Subject};
use crate::glob;
use crate::guard::{Guards, Hit};
use crate::workspace::Workspace;

/// An entry of `[tools.permission]`: a tool, a pattern or none, and a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRule {
    /// The tool's name, or `*`.
    pub tool: String,
    /// The glob, where there is one.
    pub pattern: Option<String>,
    /// What it decides.
    pub mode: PermissionMode,
    /// Where it was set, in the words of reasons: `[tools.permission] in tidegate.toml`.
    pub origin: String,
}

impl PermissionRule {
    fn key(&self) -> String {
        match &self.pattern {
            Some(pattern) => format!("{}({pattern})", self.tool),
            None => self.tool.clone(),
        }
    }
}

/// Bytes of a path or command that a person can allow for the rest of a session: longer ones are not read to their end.
const MAX_ALWAYS: usize = 300;

/// All entries, ready to decide.
#[derive(Debug)]
pub(crate) struct Policy {
    entries: Vec<(PermissionRule, Option<GlobMatcher>)>,
    guards: Guards,
}

impl Policy {
    pub(crate) fn new(rules: &[PermissionRule], guards: Guards) -> Result<Self, ToolsError> {
        let mut entries = Vec::new();
        for rule in rules {
            let (key, origin) = (rule.key(), rule.origin.clone());
            let tool = Builtin::of_name(&rule.tool);
            if tool.is_none() && rule.tool != "*" {
                return Err(ToolsError::UnknownTool { key, origin, known: Builtin::names() });
            }
            if tool.is_none() && rule.pattern.is_some() {
                let cause = "a pattern belongs to one tool: `TOOL(GLOB)`".to_owned();
                return Err(ToolsError::Pattern { key, origin, cause });
            }
            let matcher = match &rule.pattern {
                None => None,
                Some(pattern) => {
                    let glob = glob::compile(pattern, tool != Some(Builtin::Shell));
                    Some(glob.map_err(|cause| ToolsError::Pattern { key, origin, cause })?)
                }
            };
            entries.push((rule.clone(), matcher));
        }
        Ok(Self { entries, guards })
    }

    /// Whether a call is allowed to run. Looks at the disk to see where a path really leads; never fails.
    pub(crate) fn decide(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Permission {
        self.permission(tool, &forms(workspace, subject))
    }

    /// What a person can allow for the rest of a session when they are asked about a call: calls of the tool about exactly this file
    /// or command. `None`: each such call is asked about, because other programs trust the path, or the pattern could not be shown
    /// as what it is.
    pub(crate) fn always(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Option<String> {
        let exact = match subject {
            Subject::Command(command) => command.clone(),
            Subject::Path(path) => workspace.resolve(path).ok()?.relative,
        };
        let is_guarded = tool.writes() && forms(workspace, subject).guarded(&self.guards).is_some();
        let is_plain = exact.len() <= MAX_ALWAYS && !exact.trim().is_empty() && !exact.chars().any(flow::is_hidden);
        (is_plain && !is_guarded).then(|| format!("{}({})", tool.name(), globset::escape(&exact)))
    }

    /// The permission of a call that no tool could decode. It fails before it does anything, so no question is needed.
    pub(crate) fn undecoded(&self, call: &ToolCall) -> Permission {
        match Builtin::of_name(&call.name) {
            Some(_) => Permission::Allow,
            None => Permission::Deny { reason: builtin::unknown(&call.name) },
        }
    }

    /// Whether reading this file (relative to the workspace) was restricted by a glob: then a search does not show it.
    pub(crate) fn hides(&self, relative: &str) -> bool {
        let fits = |(rule, glob): &(PermissionRule, Option<GlobMatcher>)| {
            rule.mode != PermissionMode::Allow
                && rule.tool == Builtin::ReadFile.name()
                && glob.as_ref().is_some_and(|glob| glob.is_match(relative))
        };
        self.entries.iter().any(fits)
    }

    fn permission(&self, tool: Builtin, subject: &Forms) -> Permission {
        let entries = || self.entries.iter();
        let fitting = entries().filter(|(rule, glob)| {
            rule.tool == tool.name() && glob.as_ref().is_some_and(|glob| subject.fits(rule, glob))
        });
        let named = |name: &str| {
            let same = entries().filter(|(rule, _)| rule.pattern.is_none() && rule.tool == name);
            same.max_by_key(|(rule, _)| rule.mode).map(|(rule, _)| rule)
        };
        let guarded = subject.guarded(&self.guards).filter(|_| tool.writes());
        // Of the globs that allow a guarded path, only those count that name it.
        let counts = |rule: &PermissionRule| match (&guarded, &rule.pattern) {
            (Some((_, hit)), Some(pattern)) => rule.mode != PermissionMode::Allow || hit.is_named_by(pattern),
            _ => true,
        };
        let by_glob = fitting.map(|(rule, _)| rule).filter(|rule| counts(rule)).max_by_key(|rule| rule.mode);
        if let Some((path, hit)) = guarded.as_ref().filter(|_| by_glob.is_none()) {
            let general = named(tool.name()).or_else(|| named("*"));
            if general.is_none_or(|rule| rule.mode != PermissionMode::Deny) {
                let (tool, reason) = (tool.name(), &hit.reason);
                let key = format!("\"{tool}({})\" = \"allow\"", globset::escape(path));
                return Permission::Ask {
                    reason: format!(
                        "`{path}` {reason}; only a permission that names it allows it unasked, such as {key}"
                    ),
                };
            }
        }
        match by_glob.or_else(|| named(tool.name())).or_else(|| named("*")) {
            Some(rule) => of_rule(tool, rule),
            None if tool.writes() => Permission::Ask { reason: format!("`{}` asks by default", tool.name()) },
            None => Permission::Allow,
        }
    }
}

fn of_rule(tool: Builtin, rule: &PermissionRule) -> Permission {
    let set = format!("`\"{}\" = \"{}\"` ({})", rule.key(), rule.mode.as_str(), rule.origin);
    match rule.mode {
        PermissionMode::Allow => Permission::Allow,
        PermissionMode::Ask => Permission::Ask { reason: format!("set by {set}") },
        PermissionMode::Deny => {
            let change = "the operator can set it to \"ask\" or \"allow\"";
            Permission::Deny { reason: format!("`{}` is denied here by {set}; {change}", tool.name()) }
        }
    }
}

/// The forms of a call's subject that patterns are matched with.
enum Forms {
    /// A path: as written, and where it really is.
    Path(Vec<String>),
    /// The command line that `shell` would run, in every form that a pattern may match.
    Command(String),
}

fn forms(workspace: &Workspace, subject: &Subject) -> Forms {
    match subject {
        Subject::Command(command) => Forms::Command(command.clone()),
        Subject::Path(path) => {
            let real = workspace.resolve(path).ok().map(|inside| inside.relative);
            Forms::Path(workspace.by_name(path).into_iter().chain(real).collect())
        }
    }
}

impl Forms {
    /// Where other programs execute or trust the path: the place that it leads to, and why.
    fn guarded(&self, guards: &Guards) -> Option<(&str, Hit)> {
        let Self::Path(forms) = self else { return None };
        let place = forms.last().map_or("", String::as_str);
        guards.find(forms).map(|hit| (place, hit))
    }

    fn fits(&self, rule: &PermissionRule, glob: &GlobMatcher) -> bool {
        match (self, rule.mode) {
            // To allow, every form of it must match: a link must not carry a permission to another place.
            (Self::Path(forms), PermissionMode::Allow) => {
                !forms.is_empty() && forms.iter().all(|form| glob.is_match(form))
            }
            (Self::Path(forms), _) => forms.iter().any(|form| glob.is_match(form)),
            (Self::Command(command), PermissionMode::Allow) => {
                let pattern = rule.pattern.as_deref().unwrap_or_default();
                shell_characters(command).eq(shell_characters(pattern)) && glob.is_match(command)
            }
            (Self::Command(command), _) => {
                let mut parts = command.split(is_shell_character).map(str::trim).filter(|part| !part.is_empty());
                glob.is_match(command) || parts.any(|part| glob.is_match(part))
            }
        }
    }
}

fn is_shell_character(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '$' | '(' | ')' | '`' | '\\') || (c != '\t' && flow::is_hidden(c))
}

fn shell_characters(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| is_shell_character(*c))
}
