//! The rules of a host as an operator sees them: each with its state, and what keeps it from firing here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::agents::Agents;
use config::rule_sources::{self, BuiltRules, Sources};
use config::{Diagnostics, Operator, RuleFile, RuleFiles, RuleFolder};
use flow::text::nearest;
use flow::{Diagnostic, RuleOrigin, ToolSpec};
use rules::{
    Bucket, InterruptMode, READ_RULE, Rule, RuleAction, RuleInfo, RuleLayer, RuleSession, RuleSet, RuleSettings,
    RuleState,
};

use super::promise;

/// The rules of a host, without anything else of it: no component is loaded and no provider is needed.
pub struct Catalogue {
    built: Arc<BuiltRules>,
    tools: Vec<String>,
    specs: Arc<[ToolSpec]>,
    /// The rule folder of the project, where it is read.
    project: Option<RuleFolder>,
    /// The rule folders that are there.
    folders: Vec<PathBuf>,
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// One rule of a catalogue.
#[derive(Clone, Debug)]
pub struct RuleEntry {
    /// The rule as used.
    pub rule: Rule,
    /// Whether it can fire, and why not.
    pub status: RuleStatus,
    /// Its scopes, written in full.
    pub scopes: Vec<String>,
    /// The interrupt mode that counts for it.
    pub interrupt: InterruptMode,
    /// The repeat mode that counts for it.
    pub repeat: rules::RepeatMode,
    /// The gap that counts for it, in completed turns.
    pub gap: u32,
    /// The maximum length of its matches in bytes; `None` if there is no bound.
    pub longest_match: Option<u32>,
    /// On which of its matches it acts, and what becomes of the others, in one sentence; none without a condition.
    pub promise: Option<String>,
    /// The host does not run without it.
    pub required: bool,
    /// What is wrong with it.
    pub findings: Vec<Diagnostic>,
}

/// Whether a rule can fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleStatus {
    /// It can. For a rule without a condition: it is used.
    Active,
    /// It is used, but watches what this host does not have: a tool that is not offered, another agent.
    Idle(String),
    /// It, or the settings, leave it out.
    Disabled(String),
    /// A rule of the same name is used instead; the string names it.
    Shadowed(String),
    /// It can never fire.
    Unreachable(String),
}

impl RuleStatus {
    /// The word for it on every surface.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle(_) => "idle",
            Self::Disabled(_) => "disabled",
            Self::Shadowed(_) => "shadowed",
            Self::Unreachable(_) => "unreachable",
        }
    }

    /// Why, where it cannot fire.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Active => None,
            Self::Idle(why) | Self::Disabled(why) | Self::Unreachable(why) | Self::Shadowed(why) => Some(why),
        }
    }
}

/// A single rule to be examined.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The rule and its state; of a file that the host does not read, as if it were one of the project's.
    pub entry: RuleEntry,
    /// It was read from a file that was named, and is none of the host's.
    pub from_file: bool,
}

/// There is no such rule, or its file is not valid.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// No rule has the name.
    #[error("there is no rule `{name}`{}", hint(nearest.as_deref()))]
    Name {
        /// What was asked for.
        name: String,
        /// The name that comes nearest.
        nearest: Option<String>,
    },
    /// The host has read the rule and refused it; the findings say why.
    #[error("the rule `{name}` is refused: it cannot be used as it is written")]
    Refused {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        findings: Vec<Diagnostic>,
    },
    /// The file has no rule that can be used; the findings say why.
    #[error("`{path}` contains no rule that can be used")]
    File {
        /// The path of the rule file.
        path: String,
        /// What is wrong with it.
        findings: Vec<Diagnostic>,
    },
}

fn hint(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; `tidegate rules list` prints the names, and a file is named by its path".to_owned(),
    }
}

impl Catalogue {
    /// Reads the rule files of the project and of the user, the manifests of the plugins, and the built-in pack. `tools` are
    /// those that the host offers to the model.
    ///
    /// # Errors
    /// The manifest of a plugin is wrong.
    pub fn load(operator: &Operator, workspace: &Path, tools: Vec<ToolSpec>) -> Result<Self, Diagnostics> {
        let plugins = operator.load_plugins()?;
        let specs: Arc<[ToolSpec]> = tools.into();
        let mut tools: Vec<String> = specs.iter().map(|tool| tool.name.clone()).collect();
        let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let user = rule_sources::user_folder();
        let folders = rule_sources::folders(operator, workspace, &real, user.as_deref());
        // What is wrong with agents is reported with the host, and not with rules.
        let agents = Agents::load(user.as_deref().and_then(Path::parent), workspace);
        let sources = Sources::new(operator, &plugins, &real, specs.to_vec(), &agents.list);
        let project = folders.iter().find(|folder| folder.fence.is_some() && !folder.guides).cloned();
        let rules = folders.iter().filter(|folder| !folder.guides);
        let there = rules.map(|folder| folder.path.clone()).filter(|path| path.is_dir()).collect();
        let mut files = RuleFiles::new(folders, sources.demands());
        files.look();
        let built = sources.build(&files);
        if built.agents.iter().any(|agent| built.set.has_rulebook(agent)) {
            tools.push(READ_RULE.to_owned());
        }
        Ok(Self { built: Arc::new(built), tools, specs, project, folders: there })
    }

    /// The rules that a session goes by, to be listed: without the schemas of tools, so that they are not replayed.
    pub fn of(built: Arc<BuiltRules>) -> Self {
        let tools = built.tools.clone();
        Self { built, tools, specs: Arc::default(), project: None, folders: Vec::new() }
    }

    pub(crate) fn project(&self) -> Option<&RuleFolder> {
        self.project.as_ref()
    }

    /// The folders that rule files are read from, as far as they are there.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The rules as the engine has them.
    pub fn set(&self) -> &Arc<RuleSet> {
        &self.built.set
    }

    /// The settings that count.
    pub fn settings(&self) -> &RuleSettings {
        self.built.set.settings()
    }

    /// The names of the host's agents.
    pub fn agents(&self) -> &[String] {
        &self.built.agents
    }

    /// The tools that are offered to the model.
    pub fn tools(&self) -> &[String] {
        &self.tools
    }

    /// A session of these rules that knows the tools, as those of a host do.
    pub(super) fn session(&self, set: &Arc<RuleSet>, agent: &str) -> RuleSession {
        session(set, &self.specs, agent)
    }

    pub(super) fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// The diagnostics of rules, including refused ones, which have no entry.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.built.warnings()
    }

    /// Why the host does not run with these rules: what is required and not in force. Empty where it runs.
    pub fn unmet(&self) -> &[Diagnostic] {
        &self.built.unmet
    }

    /// Returns the errors that keep an agent with tools of its own from running with these rules: as [`Catalogue::unmet`], but a tool that
    /// this host does not have is no error.
    pub fn unmet_for_other_tools(&self) -> Vec<Diagnostic> {
        self.built.unmet_for_other_tools(&self.tools)
    }

    /// Every rule, used or not, highest layer first.
    pub fn entries(&self) -> Vec<RuleEntry> {
        let slow = self.built.set.slow();
        let mut entries: Vec<RuleEntry> = self.built.set.rules().map(|info| self.own_entry(&info)).collect();
        for entry in &mut entries {
            let of_this = slow.iter().filter(|found| found.is_about_rule(&entry.rule.name, &entry.rule.source));
            entry.findings.extend(of_this.cloned());
        }
        entries
    }

    /// Rules that were refused, by name, each with its first diagnostic. They have no entries.
    pub fn refused(&self) -> Vec<(String, Diagnostic)> {
        let mut refused: Vec<(String, Diagnostic)> = Vec::new();
        for finding in self.built.about_files.iter().filter(|finding| finding.is_error()) {
            let Some(name) = finding.rule() else { continue };
            let known = refused.iter().any(|(known, _)| known == name);
            // A rule that lost one condition is not refused.
            if !known && !self.built.set.rules().any(|info| info.rule.name == name) {
                refused.push((name.to_owned(), finding.clone()));
            }
        }
        refused
    }

    /// The rule of this name, the one in use before others; or the rule in the file of this path.
    ///
    /// # Errors
    /// There is neither.
    pub fn find(&self, wanted: &str) -> Result<Subject, NotFound> {
        let named = || self.built.set.rules().filter(|info| info.rule.name == wanted);
        let used = named().find(|info| *info.state == RuleState::Active).or_else(|| named().next());
        if let Some(info) = used {
            return Ok(Subject { entry: self.own_entry(&info), from_file: false });
        }
        let path = Path::new(wanted);
        if path.is_file() || wanted.contains('/') || path.extension().is_some_and(|e| e == "md" || e == "mdc") {
            return self.read(path);
        }
        let about = self.built.about_files.iter().filter(|finding| finding.rule() == Some(wanted));
        let findings: Vec<Diagnostic> = about.cloned().collect();
        if findings.iter().any(Diagnostic::is_error) {
            return Err(NotFound::Refused { name: wanted.to_owned(), findings });
        }
        let nearest = nearest(wanted, self.built.set.rules().map(|info| info.rule.name.as_str())).map(str::to_owned);
        Err(NotFound::Name { name: wanted.to_owned(), nearest })
    }

    /// The rule of a file, as if the file were in the project's rules folder.
    fn read(&self, path: &Path) -> Result<Subject, NotFound> {
        let shown = path.display().to_string().replace('\\', "/");
        let RuleFile { rule, findings } = RuleFile::read(path, &RuleLayer::Project, &shown);
        let Some(mut rule) = rule else { return Err(NotFound::File { path: shown, findings }) };
        let mut findings = findings;
        findings.extend(rule.try_on(&self.specs));
        let (set, more) = RuleSet::build(vec![rule], self.settings().clone(), self.built.set.workspace());
        findings.extend(more);
        let info = set.rules().next().map(|info| self.entry(&info, &findings));
        match info {
            Some(entry) => Ok(Subject { entry, from_file: true }),
            None => Err(NotFound::File { path: shown, findings }),
        }
    }

    /// The rules that this one keeps from being used.
    pub fn shadowed_by(&self, name: &str) -> Vec<RuleOrigin> {
        let shadowed = |info: &RuleInfo<'_>| info.rule.name == name && matches!(info.state, RuleState::Shadowed(_));
        self.built.set.rules().filter(shadowed).map(|info| info.rule.source.clone()).collect()
    }

    /// A rule of the host with its diagnostics: those of the whole set, and those of its file.
    fn own_entry(&self, info: &RuleInfo<'_>) -> RuleEntry {
        let mut entry = self.entry(info, &self.built.about_files);
        let of_this = |one: &&Diagnostic| one.is_about_rule(&info.rule.name, &info.rule.source);
        entry.findings.extend(self.built.about_set.iter().filter(of_this).cloned());
        entry
    }

    pub(super) fn entry(&self, info: &RuleInfo<'_>, findings: &[Diagnostic]) -> RuleEntry {
        let status = match info.state {
            RuleState::Disabled(why) => RuleStatus::Disabled(why.clone()),
            RuleState::Shadowed(by) => RuleStatus::Shadowed(by.clone()),
            RuleState::Unreachable(why) => RuleStatus::Unreachable(why.clone()),
            RuleState::Active if info.rule.bucket != Bucket::Stream => RuleStatus::Active,
            RuleState::Active => rule_sources::idle(info.rule, &self.tools, &self.built.agents)
                .map_or(RuleStatus::Active, RuleStatus::Idle),
        };
        let of_this = |one: &&Diagnostic| one.is_about_rule(&info.rule.name, &info.rule.source);
        let watches = info.rule.bucket == Bucket::Stream;
        let repeats = promise::Repeats { mode: info.repeat, gap: info.gap };
        let promise = || promise::of(info.rule, info.interrupt, &repeats, self.settings());
        RuleEntry {
            promise: watches.then(promise),
            required: self.built.set.is_required(info.rule),
            rule: info.rule.clone(),
            status,
            scopes: info.scopes.clone(),
            interrupt: info.interrupt,
            repeat: info.repeat,
            gap: info.gap,
            longest_match: info.longest_match(),
            findings: findings.iter().filter(of_this).cloned().collect(),
        }
    }
}

impl RuleEntry {
    /// The word for what a match leads to: where tool calls and prose differ, for the rule's `action`.
    pub fn action(&self) -> &'static str {
        match promise::actions(&self.rule, self.interrupt) {
            (Some(tools), prose) if prose.is_none_or(|prose| prose == tools) => tools.as_str(),
            (None, Some(prose)) => prose.as_str(),
            _ => self.requested(),
        }
    }

    /// The word for the action that the rule requests, whatever its streams are.
    pub(super) fn requested(&self) -> &'static str {
        match self.rule.action {
            Some(RuleAction::Remind) => "remind",
            Some(RuleAction::Block) => "block",
            Some(RuleAction::Stop) => "stop",
            Some(RuleAction::Interrupt) | None if self.interrupt == InterruptMode::Never && !self.rule.secret => {
                "remind"
            }
            Some(RuleAction::Interrupt) | None => "interrupt",
        }
    }

    /// Whether a match on one of its streams interrupts the answer.
    pub(super) fn interrupts(&self) -> bool {
        let (tools, prose) = promise::actions(&self.rule, self.interrupt);
        [tools, prose].contains(&Some(flow::Action::Interrupt))
    }

    /// How many of its findings are errors, and how many are not.
    pub fn counts(&self) -> (usize, usize) {
        let errors = self.findings.iter().filter(|finding| finding.is_error()).count();
        (errors, self.findings.len() - errors)
    }
}

/// A session of these rules that knows the tools.
pub(super) fn session(set: &Arc<RuleSet>, specs: &[ToolSpec], agent: &str) -> RuleSession {
    let mut session = RuleSession::of_agent(Arc::clone(set), agent);
    session.declare_paths(specs);
    session
}

impl fmt::Display for RuleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        self.reason().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}
