//! Who may run what. An entry is a tool (`shell`), a tool and a glob (`shell(git status*)`), or `*`.
//!
//! An entry with a matching glob beats one without, that beats `*`, that beats the tool's default; of several
//! matching globs, the strictest decides. So the order of entries is irrelevant.
//!
//! Paths that other programs execute or trust (`guard`) ask where they would be allowed, unless a glob that allows them names
//! them on purpose: `write_file(**)` does not, `write_file(.git/hooks/*)` does.
//!
//! Globs are held against the path of a call, relative to the workspace: the path as written and the place it really
//! is. (`*` stops at `/`, `**` does not.) For `shell` they are held against each command of the line (the crate `commands`):
//! - `ask` and `deny` match when one of the commands matches, also one that another runs. Where that depends on what is only known when the
//!   command runs, the call asks, or is denied where `shell` is and no `allow` covers it;
//! - `allow` has to cover every command, and the line must not do anything else, such as write to a file.

use commands::{Line, Match, Pattern};
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

/// Who can change a denial, at the end of its reason.
pub(crate) const CHANGE: &str = "; the operator can set it to \"ask\" or \"allow\"";

/// Bytes of a path or command that a person can allow for the rest of a session: longer ones are not read to their end.
const MAX_ALWAYS: usize = 300;

/// All entries, ready to decide.
#[derive(Debug)]
pub(crate) struct Policy {
    entries: Vec<(PermissionRule, Option<Matcher>)>,
    guards: Guards,
}

/// The glob of an entry, ready to be held against what it is about.
#[derive(Debug)]
enum Matcher {
    Path(GlobMatcher),
    /// As it is written, and without the folder of its program where it has one.
    Command(Vec<Pattern>),
}

impl Matcher {
    fn new(tool: Option<Builtin>, rule: &PermissionRule, pattern: &str) -> Result<Self, String> {
        if tool != Some(Builtin::Shell) {
            return glob::compile(pattern, true).map(Self::Path);
        }
        let name = pattern.split(' ').next().unwrap_or_default();
        let without_folder = name.rfind('/').and_then(|slash| pattern.get(slash + 1..));
        // What is allowed is allowed in that folder only.
        let without_folder = without_folder.filter(|pattern| rule.mode != PermissionMode::Allow && !pattern.is_empty());
        std::iter::once(pattern)
            .chain(without_folder)
            .map(Pattern::compile)
            .collect::<Result<_, _>>()
            .map(Self::Command)
    }
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
                    let matcher = Matcher::new(tool, rule, pattern);
                    Some(matcher.map_err(|cause| ToolsError::Pattern { key, origin, cause })?)
                }
            };
            entries.push((rule.clone(), matcher));
        }
        Ok(Self { entries, guards })
    }

    /// Whether a call is allowed to run. Looks at the disk to see where a path really leads; never fails.
    pub(crate) fn decide(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Permission {
        match subject {
            Subject::Command(command) => self.of_command(command),
            Subject::Nothing => self.general(tool),
            Subject::Path(path) => self.of_path(tool, &Forms::of(workspace, path)),
        }
    }

    /// What a person can allow for the rest of a session when they are asked about a call: calls of the tool about exactly this file
    /// or command. `None`: each such call is asked about, because other programs trust the path, or the pattern could not be shown
    /// as what it is.
    pub(crate) fn always(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Option<String> {
        let exact = match subject {
            Subject::Command(command) => command.clone(),
            Subject::Nothing => return Some(tool.name().to_owned()),
            Subject::Path(path) => workspace.resolve(path).ok()?.relative,
        };
        let is_guarded = match subject {
            Subject::Command(_) | Subject::Nothing => false,
            Subject::Path(path) => tool.writes() && Forms::of(workspace, path).guarded(&self.guards).is_some(),
        };
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
        let fits = |(rule, matcher): &(PermissionRule, Option<Matcher>)| {
            rule.mode != PermissionMode::Allow
                && rule.tool == Builtin::ReadFile.name()
                && matches!(matcher, Some(Matcher::Path(glob)) if glob.is_match(relative))
        };
        self.entries.iter().any(fits)
    }

    /// The strictest of the entries with this key and without a glob.
    fn named(&self, name: &str) -> Option<&PermissionRule> {
        let same = self.entries.iter().filter(|(rule, _)| rule.pattern.is_none() && rule.tool == name);
        same.max_by_key(|(rule, _)| rule.mode).map(|(rule, _)| rule)
    }

    /// What holds for a tool where no glob decides.
    fn general(&self, tool: Builtin) -> Permission {
        match self.named(tool.name()).or_else(|| self.named("*")) {
            Some(rule) => of_rule(tool, rule),
            None if tool.writes() => Permission::Ask { reason: format!("`{}` asks by default", tool.name()) },
            None => Permission::Allow,
        }
    }

    fn of_command(&self, command: &str) -> Permission {
        let general = self.general(Builtin::Shell);
        let entries: Vec<(&PermissionRule, &[Pattern])> = self.of_shell().collect();
        // Reading a command takes a thread.
        if entries.is_empty() {
            return general;
        }
        let line = Line::of(command);
        let strictest = |wanted: Match| {
            let found = |patterns: &[Pattern]| patterns.iter().map(|pattern| line.matches(pattern)).max();
            let strict = entries.iter().filter(|(rule, _)| rule.mode != PermissionMode::Allow);
            let fitting = strict.filter(|(_, patterns)| found(patterns) == Some(wanted));
            fitting.map(|(rule, _)| *rule).max_by_key(|rule| rule.mode)
        };
        if let Some(rule) = strictest(Match::Yes) {
            return of_rule(Builtin::Shell, rule);
        }
        let allowed = entries.iter().filter(|(rule, _)| rule.mode == PermissionMode::Allow);
        let allowed: Vec<&Pattern> = allowed.flat_map(|(_, patterns)| *patterns).collect();
        let is_covered = line.is_covered(&allowed);
        if matches!(general, Permission::Deny { .. }) && !is_covered {
            return general;
        }
        if let Some(rule) = strictest(Match::Maybe) {
            let (set, doubt) = (set_by(rule), line.doubt());
            return Permission::Ask {
                reason: format!("whether {set} is about this command cannot be decided: {doubt}"),
            };
        }
        if is_covered { Permission::Allow } else { general }
    }

    /// The entries with a glob for commands.
    fn of_shell(&self) -> impl Iterator<Item = (&PermissionRule, &[Pattern])> {
        self.entries.iter().filter_map(|(rule, matcher)| match matcher {
            Some(Matcher::Command(patterns)) => Some((rule, patterns.as_slice())),
            _ => None,
        })
    }

    fn of_path(&self, tool: Builtin, subject: &Forms) -> Permission {
        let fitting = self.entries.iter().filter(|(rule, matcher)| {
            let fits = |matcher: &Matcher| matches!(matcher, Matcher::Path(glob) if subject.fits(rule.mode, glob));
            rule.tool == tool.name() && matcher.as_ref().is_some_and(fits)
        });
        let guarded = subject.guarded(&self.guards).filter(|_| tool.writes());
        // Of the globs that allow a guarded path, only those count that name it.
        let counts = |rule: &PermissionRule| match (&guarded, &rule.pattern) {
            (Some((_, hit)), Some(pattern)) => rule.mode != PermissionMode::Allow || hit.is_named_by(pattern),
            _ => true,
        };
        let by_glob = fitting.map(|(rule, _)| rule).filter(|rule| counts(rule)).max_by_key(|rule| rule.mode);
        if let Some((path, hit)) = guarded.as_ref().filter(|_| by_glob.is_none()) {
            let general = self.named(tool.name()).or_else(|| self.named("*"));
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
        by_glob.map_or_else(|| self.general(tool), |rule| of_rule(tool, rule))
    }
}

fn of_rule(tool: Builtin, rule: &PermissionRule) -> Permission {
    let set = set_by(rule);
    match rule.mode {
        PermissionMode::Allow => Permission::Allow,
        PermissionMode::Ask => Permission::Ask { reason: format!("set by {set}") },
        PermissionMode::Deny => {
            Permission::Deny { reason: format!("`{}` is denied here by {set}{CHANGE}", tool.name()) }
        }
    }
}

/// An entry as it is written, with its place.
fn set_by(rule: &PermissionRule) -> String {
    format!("`\"{}\" = \"{}\"` ({})", rule.key(), rule.mode.as_str(), rule.origin)
}

/// A path as patterns are held against it: as written, and where it really is.
struct Forms(Vec<String>);

impl Forms {
    fn of(workspace: &Workspace, path: &str) -> Self {
        let real = workspace.resolve(path).ok().map(|inside| inside.relative);
        Self(workspace.by_name(path).into_iter().chain(real).collect())
    }

    /// Where other programs execute or trust the path: the place that it leads to, and why.
    fn guarded(&self, guards: &Guards) -> Option<(&str, Hit)> {
        let place = self.0.last().map_or("", String::as_str);
        guards.find(&self.0).map(|hit| (place, hit))
    }

    fn fits(&self, mode: PermissionMode, glob: &GlobMatcher) -> bool {
        match mode {
            // To allow, every form of it must match: a link must not carry a permission to another place.
            PermissionMode::Allow => !self.0.is_empty() && self.0.iter().all(|form| glob.is_match(form)),
            _ => self.0.iter().any(|form| glob.is_match(form)),
        }
    }
}
