//! Where rules come from: folders of the project and of the user, manifests of plugins, the built-in pack; and what is
//! wrong with the rules that come of it. Nothing of it stops a host: what can be used is used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::{Severity, ToolSpec};
use rules::{Bucket, READ_RULE, Requirement, Rule, RuleLayer, RuleSet, RuleState, Scope, UnmetRule};

use crate::agents::{Agent, MAIN};
use crate::{Code, Demands, Diagnostic, Location, OnProblem, Operator, RuleFiles, RuleFolder, RuleFolders};

/// Where a project has its rule files.
pub const PROJECT_FOLDER: &str = ".tidegate/rules";

/// Where the user has rule files: `tidegate/rules` in the configuration folder. `None` where the user has no home.
pub fn user_folder() -> Option<PathBuf> {
    use etcetera::base_strategy::{BaseStrategy, Xdg};
    Xdg::new().ok().map(|base| base.config_dir().join("tidegate").join("rules"))
}

/// The rule folders, highest priority first. `workspace` is as it was given, `real` where it really is.
pub fn folders(operator: &Operator, workspace: &Path, real: &Path, user: Option<&Path>) -> Vec<RuleFolder> {
    let wanted = &operator.rule_folders;
    let project = RuleFolder {
        layer: RuleLayer::Project,
        path: workspace.strip_prefix(".").unwrap_or(workspace).join(PROJECT_FOLDER),
        shown: PROJECT_FOLDER.to_owned(),
        fence: Some(real.to_owned()),
        asked: None,
        untrusted: true,
        required: false,
        by_policy: false,
        guides: false,
    };
    let guides =
        RuleFolder { path: workspace.to_owned(), shown: "AGENTS.md".to_owned(), guides: true, ..project.clone() };
    let named = wanted.more.iter().map(|one| RuleFolder {
        path: one.path.clone(),
        shown: one.typed.trim_end_matches('/').to_owned(),
        fence: None,
        asked: one.place.clone(),
        untrusted: false,
        required: one.required,
        by_policy: one.by_policy,
        ..project.clone()
    });
    let user = user.filter(|_| wanted.user).map(|path| RuleFolder {
        layer: RuleLayer::User,
        path: path.to_owned(),
        shown: from_home(path),
        fence: None,
        asked: None,
        untrusted: false,
        required: false,
        by_policy: false,
        guides: false,
    });
    let mut all: Vec<RuleFolder> = if wanted.project { vec![project.clone()] } else { Vec::new() };
    all.extend(named);
    all.extend(wanted.project.then_some(guides));
    all.extend(user);
    require_under_every_name(&mut all);
    trust_what_is_named(&mut all);
    all
}

/// The operator can name the project's own folder: then its rules count as those of the other folders that are named. It is read once,
/// inside of its fence.
fn trust_what_is_named(folders: &mut Vec<RuleFolder>) {
    let Some(own) = folders.iter().position(|folder| folder.untrusted) else { return };
    let real = |folder: &RuleFolder| folder.path.canonicalize().ok();
    // A link out of the fence is not read, and must not take the place of the folder that it leads to.
    let fence = folders[own].fence.clone();
    let path = real(&folders[own]).filter(|path| fence.is_none_or(|fence| path.starts_with(fence)));
    let is_named = |folder: &RuleFolder| {
        !folder.untrusted && folder.layer == RuleLayer::Project && path.is_some() && real(folder) == path
    };
    let is_trusted = folders.iter().any(is_named);
    folders.retain(|folder| folder.required || !is_named(folder));
    if let Some(own) = folders.get_mut(own) {
        own.untrusted = !is_trusted;
    }
}

/// A required folder is required under whichever of its names it is read: `required_folders` can name the project's own.
fn require_under_every_name(folders: &mut [RuleFolder]) {
    let real = |folder: &RuleFolder| folder.path.canonicalize().unwrap_or_else(|_| folder.path.clone());
    let required: Vec<(PathBuf, Option<Location>, bool)> =
        folders.iter().filter(|one| one.required).map(|one| (real(one), one.asked.clone(), one.by_policy)).collect();
    for folder in folders {
        let path = real(folder);
        let mut same = required.iter().filter(|(known, ..)| *known == path);
        folder.by_policy |= same.clone().any(|(_, _, by_policy)| *by_policy);
        if let Some((_, place, _)) = same.next() {
            folder.required = true;
            folder.asked = folder.asked.take().or_else(|| place.clone());
        }
    }
}

/// A path for messages: with `~` in place of the user's own folder, which is not disclosed.
fn from_home(path: &Path) -> String {
    let home = etcetera::home_dir().ok();
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// Where other hosts have rule files in a project.
const FOREIGN: [&str; 6] =
    [".omp/rules", ".agents/rules", ".cursor/rules", ".windsurf/rules", ".clinerules", ".github/instructions"];

/// Rule files that are there and are not read, and what would read them.
pub fn unread(operator: &Operator, workspace: &Path, user: Option<&Path>) -> Vec<(String, String)> {
    let wanted = &operator.rule_folders;
    let named = |folder: &Path| {
        let real = |path: &Path| path.canonicalize().ok();
        real(folder).is_some_and(|folder| wanted.more.iter().any(|one| real(&one.path).as_ref() == Some(&folder)))
    };
    let mut unread = Vec::new();
    let mut note = |shown: String, folder: &Path, how: String| {
        let files = rule_files(folder);
        if files > 0 && !named(folder) {
            let count = if files == 1 { "1 rule file is".to_owned() } else { format!("{files} rule files are") };
            unread.push((shown, format!("{count} not read: {how}")));
        }
    };
    if !wanted.project {
        note(PROJECT_FOLDER.to_owned(), &workspace.join(PROJECT_FOLDER), "`project_rules` is false".to_owned());
    }
    if let Some(folder) = user.filter(|_| !wanted.user) {
        note(from_home(folder), folder, "`user_rules` is false".to_owned());
    }
    for name in FOREIGN {
        let how = format!(
            "the folder belongs to another host; to read it, add `folders = [\"{name}\"]` under `[rules]` in tidegate.toml"
        );
        note(name.to_owned(), &workspace.join(name), how);
    }
    unread
}

fn rule_files(folder: &Path) -> usize {
    crate::list_rule_files(folder).map_or(0, |(files, _)| files.len())
}

/// All that rules are made of, but their files.
#[derive(Debug)]
pub struct Sources {
    /// Those of plugins, in order of registration, and the built-in pack.
    fixed: Vec<Rule>,
    /// What is wrong with those.
    found: Vec<Diagnostic>,
    /// The errors among these for which the host must not run.
    unmet: Vec<Diagnostic>,
    wanted: RuleFolders,
    settings: rules::RuleSettings,
    workspace: String,
    /// The tools that are always there.
    tools: Vec<ToolSpec>,
    /// Names of the agents, `main` first.
    agents: Vec<String>,
}

/// Rules that can be used.
#[derive(Clone, Debug)]
pub struct BuiltRules {
    /// The rules, those that are not used included.
    pub set: Arc<RuleSet>,
    /// Diagnostics of rules that are valid alone and not in combination.
    pub about_set: Vec<Diagnostic>,
    /// What is wrong with files, manifests and settings.
    pub about_files: Vec<Diagnostic>,
    /// Rules that wait for what cannot come here, each with why.
    pub idle: Vec<(Rule, String)>,
    /// Names of the tools that are offered.
    pub tools: Vec<String>,
    /// Names of the agents, `main` first.
    pub agents: Vec<String>,
    /// Why the host must not run with these rules; empty where it may.
    pub unmet: Vec<Diagnostic>,
}

impl Sources {
    /// `tools` are those that are always there, `agents` those that can be started.
    pub fn new(
        operator: &Operator,
        plugins: &[crate::ConfiguredPlugin],
        workspace: &Path,
        tools: Vec<ToolSpec>,
        agents: &[Agent],
    ) -> Self {
        let (mut fixed, mut found) = rules::builtin();
        let mut unmet = Vec::new();
        for plugin in plugins {
            let manifest = &plugin.manifest;
            let mut rules = manifest.rules.clone();
            if plugin.entry.required {
                let requirement = if plugin.entry.by_policy { Requirement::Policy } else { Requirement::Operator };
                rules.iter_mut().for_each(|rule| rule.required = requirement);
                unmet.extend(manifest.findings.iter().filter(|one| one.is_error()).cloned());
            } else {
                unmet.extend(manifest.unmet.iter().cloned());
            }
            fixed.extend(rules);
            found.extend(manifest.findings.iter().cloned());
        }
        let (wanted, settings) = (operator.rule_folders.clone(), operator.rules.clone());
        if wanted.on_problem == OnProblem::Refuse {
            unmet = found.iter().filter(|one| one.is_error()).cloned().collect();
        }
        let agents = std::iter::once(MAIN.to_owned()).chain(agents.iter().map(|agent| agent.name.clone())).collect();
        Self { fixed, found, unmet, wanted, settings, workspace: workspace.display().to_string(), tools, agents }
    }

    /// The same with rules of the program that embeds the host, and what is to be said about them. Of two with one name the first counts.
    #[must_use]
    pub fn with_code(mut self, rules: impl IntoIterator<Item = Rule>, found: Vec<Diagnostic>) -> Self {
        self.fixed.extend(rules);
        self.found.extend(found);
        self
    }

    /// What the operator demands of rule files.
    pub fn demands(&self) -> Demands {
        let rules = self.wanted.required.iter().map(|(name, _)| name.clone()).collect();
        Demands { rules, all: self.wanted.on_problem == OnProblem::Refuse }
    }

    /// Puts all rules together.
    pub fn build(&self, files: &RuleFiles) -> BuiltRules {
        let mut all: Vec<Rule> = files.rules().chain(&self.fixed).cloned().collect();
        let mut about_set: Vec<Diagnostic> =
            all.iter_mut().filter(|rule| rule.enabled).flat_map(|rule| rule.try_on(&self.tools)).collect();
        let (set, found) = RuleSet::build(all, self.settings.clone(), &self.workspace);
        about_set.extend(found);
        let tools = self.tools_with(&set);
        let active = set.rules().filter(|info| *info.state == RuleState::Active && info.rule.bucket == Bucket::Stream);
        let idle =
            active.filter_map(|info| Some((info.rule.clone(), idle(info.rule, &tools, &self.agents)?))).collect();
        let about_files = self.about_files(files, &set);
        let agents = self.agents.clone();
        let mut built = BuiltRules { set, about_set, about_files, idle, tools, agents, unmet: Vec::new() };
        built.unmet = self.unmet(files, &built);
        built
    }

    /// Why the host must not run, each reason once.
    pub fn unmet(&self, files: &RuleFiles, built: &BuiltRules) -> Vec<Diagnostic> {
        let mut all: Vec<Diagnostic> = files.unmet().chain(self.unmet.iter().cloned()).collect();
        for unmet in built.set.unmet() {
            let errors: Vec<&Diagnostic> = files
                .about(&unmet.rule)
                .chain(self.found.iter().filter(|one| one.is_error() && one.rule() == Some(unmet.rule.as_str())))
                .collect();
            // The error of the rule's file is more precise than that there is no such rule.
            if !errors.is_empty() && errors.iter().all(|error| all.contains(error)) {
                continue;
            }
            all.push(self.unmet_rule(&unmet));
            all.extend(errors.into_iter().cloned());
        }
        let required = |rule: &Rule| built.set.is_required(rule);
        for (rule, why) in built.idle.iter().filter(|(rule, _)| required(rule)) {
            let message = format!("the rule is required but cannot fire: {why}");
            let error = rule.diagnostic(Severity::Error, Code::RuleRequired, message);
            all.push(self.required_at(&rule.name, error.help("correct its scope, or stop requiring it")));
        }
        if self.wanted.on_problem == OnProblem::Refuse {
            let unreachable = |one: &&Diagnostic| one.is_error() && one.code == Code::RuleUnreachable;
            all.extend(built.about_files.iter().chain(&built.about_set).filter(unreachable).cloned());
        }
        let mut once: Vec<Diagnostic> = Vec::new();
        for one in all {
            if !once.contains(&one) {
                once.push(one);
            }
        }
        once
    }

    fn unmet_rule(&self, unmet: &UnmetRule) -> Diagnostic {
        let message = format!("the rule is required but not active: {}", unmet.why);
        let error = Diagnostic::error(Code::RuleRequired, message).about_rule(&unmet.rule, unmet.source.as_ref());
        self.required_at(&unmet.rule, error.help(unmet.help.clone()))
    }

    /// Adds where the operator's file requires the rule, where it does.
    fn required_at(&self, rule: &str, diagnostic: Diagnostic) -> Diagnostic {
        match self.wanted.required.iter().find(|(name, _)| name == rule) {
            Some((_, place)) => diagnostic.at(place.clone(), "required here"),
            None => diagnostic,
        }
    }

    /// What is wrong with files, manifests and settings.
    pub fn about_files(&self, files: &RuleFiles, set: &RuleSet) -> Vec<Diagnostic> {
        files.findings().chain(&self.found).cloned().chain(self.unknown_rules(set)).collect()
    }

    fn tools_with(&self, set: &RuleSet) -> Vec<String> {
        let reads = self.agents.iter().any(|agent| set.has_rulebook(agent)).then(|| READ_RULE.to_owned());
        self.tools.iter().map(|tool| tool.name.clone()).chain(reads).collect()
    }

    /// Names in `disabled_rules` that no rule has: a rule that was to be off is on.
    fn unknown_rules(&self, set: &RuleSet) -> Vec<Diagnostic> {
        let named = self.settings.disabled_rules.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let unknown = named.filter(|name| !set.rules().any(|info| info.rule.name == *name));
        let warning = |name: &str| {
            let near = flow::text::nearest(name, set.rules().map(|info| info.rule.name.as_str()));
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let message = format!("`disabled_rules` contains `{name}`, but there is no such rule");
            let help = format!("{near}`tidegate rules list` prints the names");
            let warning = Diagnostic::warning(Code::ConfigUnknownRule, message).help(help);
            match self.wanted.disabled.iter().find(|(written, _)| written == name) {
                Some((_, place)) => warning.at(place.clone(), ""),
                None => warning,
            }
        };
        unknown.map(warning).collect()
    }
}

impl BuiltRules {
    /// Rules that are not in force as written, for reports of broken guards: what was refused, and what can
    /// never fire.
    pub fn problems(&self) -> Vec<Diagnostic> {
        self.about_files.iter().chain(&self.about_set).filter(|one| one.is_error()).cloned().collect()
    }

    /// Does the same as [`BuiltRules::unmet`] for an agent with tools of its own: a rule that watches none of these `tools` is no error.
    pub fn unmet_for_other_tools(&self, tools: &[String]) -> Vec<Diagnostic> {
        let waits_for_tool = |name: &str| {
            let mut idle = self.idle.iter().map(|(rule, _)| rule);
            idle.any(|rule| rule.name == name && missing_tools(rule, tools).is_some())
        };
        self.unmet.iter().filter(|one| !one.rule().is_some_and(waits_for_tool)).cloned().collect()
    }

    /// All diagnostics, human-readable.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let idle = self.idle.iter().map(|(rule, why)| idle_warning(rule, why, &self.tools, &self.agents));
        self.about_files.iter().chain(&self.about_set).cloned().chain(idle).collect()
    }
}

/// Why an active rule waits for what cannot come here: the tools it watches are not `offered`, or it names other agents than these.
pub fn idle(rule: &Rule, offered: &[String], agents: &[String]) -> Option<String> {
    if let Some(names) = missing_tools(rule, offered) {
        return Some(format!("it watches the tool {}, but the tools are {}", names.join(", "), offered.join(", ")));
    }
    let elsewhere = !agents.iter().any(|agent| rule.watches_agent(agent));
    elsewhere.then(|| match agents {
        [only] => format!("its `agents` do not include `{only}`, the only agent"),
        all => format!("its `agents` include none of the agents: {}", all.join(", ")),
    })
}

/// The names of the tools that the rule watches, if none of them is offered and it watches nothing else.
pub fn missing_tools<'r>(rule: &'r Rule, offered: &[String]) -> Option<Vec<&'r str>> {
    let missing: Option<Vec<&str>> = rule.scopes.iter().map(|scope| missing_tool(scope, offered)).collect();
    missing.filter(|names| !names.is_empty())
}

/// The warning for a rule that waits for what does not exist here, at the value that asks for it; `offered` are the names of
/// the tools, `agents` those of the agents.
pub fn idle_warning(rule: &Rule, why: &str, offered: &[String], agents: &[String]) -> Diagnostic {
    let (location, help) = match missing_tools(rule, offered).and_then(|names| names.first().copied()) {
        Some(tool) => (rule.location_of_value(&["scope"], tool), nearest_scope(tool, offered)),
        None => {
            let nearest = |glob: &&rules::Glob| flow::text::nearest(glob.as_str(), agents.iter().map(String::as_str));
            let meant = rule.agents.iter().find_map(|glob| Some((glob, nearest(&glob)?)));
            let help = meant.map(|(_, near)| format!("did you mean `{near}`?"));
            let glob = meant.map(|(glob, _)| glob).or_else(|| rule.agents.first());
            (glob.and_then(|glob| rule.location_of_value(&["agents"], glob.as_str())), help)
        }
    };
    let mut warning = rule.diagnostic(Severity::Warning, Code::RuleIdle, format!("cannot fire here: {why}"));
    warning.help = help;
    match location {
        Some(location) => warning.at(location, ""),
        None => warning,
    }
}

/// The name of the tool that the scope watches, if none of the offered tools is meant.
pub fn missing_tool<'s>(scope: &'s Scope, offered: &[String]) -> Option<&'s str> {
    match scope {
        Scope::Tool { name: Some(name), .. } if !offered.iter().any(|tool| scope.takes_tool(tool)) => Some(name),
        _ => None,
    }
}

/// What was probably meant by a scope that names no offered tool: a tool, or a stream.
pub fn nearest_scope(name: &str, offered: &[String]) -> Option<String> {
    let known = offered.iter().map(String::as_str).chain(["text", "thinking", "tool"]);
    match name.to_lowercase().as_str() {
        "reasoning" | "thoughts" | "thought" | "think" | "cot" => {
            return Some("the model's reasoning is the scope `thinking`".into());
        }
        "answer" | "output" | "assistant" | "response" | "message" | "prose" | "chat" => {
            return Some("the text of an answer is the scope `text`".into());
        }
        "all" | "any" | "everything" => {
            return Some("all streams are `[\"text\", \"thinking\", \"tool\"]`".into());
        }
        _ => {}
    }
    flow::text::nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}
