//! Checks rule files before they are switched on: everything that is wrong with them at its place, their examples, and
//! what keeps their rules from firing in this host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{MANIFEST_FILE, MAX_RULE_BYTES, Manifest, RuleFile, list_rule_files, operator_file, rule_sources};
use flow::{Diagnostic, DiagnosticCode as Code, Location, SourceFile};
use rules::{Bucket, Example, RepeatMode, Rule, RuleLayer, RuleSet, Scope};

use super::explain::holds_text;
use super::{Catalogue, Input, RuleEntry, RuleStatus, changed};

/// What came of checking.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Files that were read.
    pub files: usize,
    /// Names of the rules in them that can be used.
    pub rules: Vec<String>,
    /// Those of them that are to act on every match and have a budget for it: name and promise.
    pub guards: Vec<(String, String)>,
    /// Those of them that stop what they find and that text passes which only looks different: they have no `fold`.
    pub unfolded: Vec<String>,
    /// Examples that the rules were held against.
    pub examples: usize,
    /// What is wrong, file by file.
    pub findings: Vec<Diagnostic>,
    /// What was named and cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What was named.
    pub path: PathBuf,
    /// The error of the operating system.
    pub cause: String,
}

impl Checked {
    /// How many findings are errors, and how many are not.
    pub fn counts(&self) -> (usize, usize) {
        let errors = self.findings.iter().filter(|finding| finding.is_error()).count();
        (errors, self.findings.len() - errors)
    }
}

/// Checks rule files, manifests (`plugin.toml`) and folders that contain either. `texts` are rule files in memory
/// already, each with the name to show for it.
pub fn check(catalogue: &Catalogue, paths: &[PathBuf], texts: &[(String, String)]) -> Checked {
    let mut all =
        Checks { catalogue, out: Checked::default(), names: BTreeMap::new(), seen: BTreeSet::new(), rules: Vec::new() };
    for path in paths {
        if let Err(cause) = all.path(path) {
            all.out.unreadable.push(Unreadable { path: path.clone(), cause });
        }
    }
    for (name, text) in texts {
        all.source(&SourceFile::new(name, text.as_str()), Path::new(name));
    }
    all.costs();
    all.out
}

/// The file in the real path of its folder. A link is another file, since its name is that of the rule.
fn place(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(file.file_name()?))
}

/// The files checked so far.
struct Checks<'a> {
    catalogue: &'a Catalogue,
    out: Checked,
    /// Where each rule's name was met.
    names: BTreeMap<String, PathBuf>,
    /// The places of files that were checked: one can be named twice, by itself and by its folder.
    seen: BTreeSet<PathBuf>,
    /// The rules that can be used.
    rules: Vec<Rule>,
}

impl Checks<'_> {
    /// The file itself; of a folder, its rule files and its manifest.
    fn path(&mut self, path: &Path) -> Result<(), String> {
        if !path.metadata().map_err(|error| error.to_string())?.is_dir() {
            self.file(path, path.file_name().map(Path::new).unwrap_or(path));
            return Ok(());
        }
        let (mut files, mut findings) = list_rule_files(path).map_err(|error| error.to_string())?;
        let manifest = path.join(MANIFEST_FILE);
        if manifest.exists() {
            // Folders of a plugin contain its sources and documentation.
            files.retain(|file| file.components().count() == 1);
            files.push(PathBuf::from(MANIFEST_FILE));
            // What looks like a rule in the folder of a plugin is its documentation: rules are in the manifest.
            findings.retain(|finding| finding.code != Code::RuleFileIgnored);
        }
        self.out.findings.extend(findings);
        if files.is_empty() {
            return Err(format!("the folder has no rule files (*.md, *.mdc) and no {MANIFEST_FILE}"));
        }
        for within in files {
            let file = path.join(&within);
            // Reading a pipe would wait for a writer. One that is named by itself may have one, such as `<(command)` of a shell.
            if file.is_file() { self.file(&file, &within) } else { self.refused(&file) }
        }
        Ok(())
    }

    /// What is wrong with a file that is not read as a rule.
    fn refused(&mut self, path: &Path) {
        let RuleFile { findings, .. } = RuleFile::read(path, &RuleLayer::Project, &path.display().to_string());
        self.out.files += 1;
        self.out.findings.extend(findings);
    }

    /// `within` is the path of the file in the rule folder, which names its rule.
    fn file(&mut self, path: &Path, within: &Path) {
        if let Some(refused) = self.catalogue.project().and_then(|folder| folder.refuses(path)) {
            self.out.files += 1;
            self.out.findings.push(refused);
            return;
        }
        if place(path).is_some_and(|place| !self.seen.insert(place)) {
            return;
        }
        if path.extension().is_some_and(|end| end == "toml") {
            return self.manifest(path);
        }
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.out.unreadable.push(Unreadable { path: path.to_owned(), cause: error.to_string() });
                return;
            }
        };
        match String::from_utf8(bytes) {
            Ok(text) if text.len() as u64 <= MAX_RULE_BYTES => self.source(&SourceFile::new(path, text), within),
            // It reports the problem itself.
            _ => self.refused(path),
        }
    }

    fn source(&mut self, source: &Arc<SourceFile>, within: &Path) {
        self.out.files += 1;
        let RuleFile { rule, findings } = RuleFile::of_source(source, &RuleLayer::Project, &source.shown(), within);
        self.out.findings.extend(findings);
        if let Some(rule) = rule {
            self.rule(&rule, source);
        }
    }

    fn manifest(&mut self, path: &Path) {
        if let Err(error) = std::fs::metadata(path) {
            self.out.unreadable.push(Unreadable { path: path.to_owned(), cause: error.to_string() });
            return;
        }
        self.out.files += 1;
        if let Some(place) = operator_file(path) {
            let message = format!("`{}` is the operator's file and contains no rules", path.display());
            let help = format!("check it with `tidegate doctor --config {}`", path.display());
            self.out.findings.push(Diagnostic::error(Code::RuleFileIgnored, message).help(help).at(place, ""));
            return;
        }
        match Manifest::load(path) {
            Err(diagnostics) => self.out.findings.extend(diagnostics.0),
            Ok(manifest) => {
                self.out.findings.extend(manifest.findings);
                for rule in &manifest.rules {
                    self.rule(rule, &manifest.source);
                }
            }
        }
    }

    /// The diagnostics of a valid rule.
    fn rule(&mut self, rule: &Rule, source: &Arc<SourceFile>) {
        self.out.rules.push(rule.name.clone());
        self.rules.push(rule.clone());
        self.out.examples += rule.examples.len();
        let settings = self.catalogue.settings().clone();
        let mut rule = rule.clone();
        self.out.findings.extend(rule.try_on(self.catalogue.specs()));
        let (set, found) = RuleSet::build(vec![rule.clone()], settings, self.catalogue.set().workspace());
        let rule = &rule;
        self.out.findings.extend(found);
        if let Some(info) = set.rules().next() {
            let entry = self.catalogue.entry(&info, &[]);
            self.reach(&entry);
            self.unused_gap(&entry);
            self.long_holds(&entry);
            self.guards(&entry);
            let can_fire = matches!(entry.status, RuleStatus::Active | RuleStatus::Idle(_));
            let is_passed = can_fire && entry.rule.is_passed_by_look_alikes(entry.interrupt);
            self.out.unfolded.extend(is_passed.then(|| entry.rule.name.clone()));
        }
        self.examples(rule);
        self.name(rule, source);
    }

    /// Rules that make matching slow, of all together: what is fast alone can be slow next to others; and rules that make text wait.
    fn costs(&mut self) {
        let rules = std::mem::take(&mut self.rules);
        let (set, _) = RuleSet::build(rules, self.catalogue.settings().clone(), self.catalogue.set().workspace());
        self.out.findings.extend(set.slow());
        self.out.findings.extend(set.waits());
    }

    /// What becomes of the matches of a guard that its budget does not cover.
    fn guards(&mut self, entry: &RuleEntry) {
        if entry.repeat == RepeatMode::Always && entry.interrupts() {
            let promise = entry.promise.clone().map(|promise| (entry.rule.name.clone(), promise));
            self.out.guards.extend(promise);
        }
    }

    fn reach(&mut self, entry: &RuleEntry) {
        let rule = &entry.rule;
        match &entry.status {
            RuleStatus::Idle(why) => {
                let (tools, agents) = (self.catalogue.tools(), self.catalogue.agents());
                let mut warning = rule_sources::idle_warning(rule, why, tools, agents);
                let known = match rule_sources::missing_tools(rule, tools) {
                    Some(_) => "the names of tools are those of this host, and of its own tools the short names too",
                    None => "`agents` are globs on the names of this host's agents; without the key all are watched",
                };
                warning.help.get_or_insert_with(|| known.to_owned());
                self.out.findings.push(warning);
            }
            RuleStatus::Active => self.tools_not_offered(rule),
            RuleStatus::Disabled(why) if rule.enabled => {
                let message = format!("would not be used in this host: {why}");
                self.report(rule, rule.location(&[]), Diagnostic::warning(Code::RuleDisabled, message));
            }
            _ => {}
        }
    }

    /// Unknown tools among known ones: the rule fires, but not where its author expects.
    fn tools_not_offered(&mut self, rule: &Rule) {
        let offered = self.catalogue.tools();
        let missing = rule.scopes.iter().filter_map(|scope| rule_sources::missing_tool(scope, offered));
        // Rules for several hosts name the tools of all of them: where one is there, that is as it should be.
        let named = rule.scopes.iter().filter(|scope| matches!(scope, Scope::Tool { name: Some(_), .. })).count();
        let missing: Vec<&str> = missing.collect();
        if named == missing.len() {
            for name in missing {
                let message = format!("no tool `{name}` is offered here: the tools are {}", offered.join(", "));
                let location = rule.location_of_value(&["scope"], name);
                let mut warning = Diagnostic::warning(Code::RuleUnknownTool, message);
                warning.help = rule_sources::nearest_scope(name, offered);
                self.report(rule, location, warning);
            }
        }
    }

    /// A gap that only another setting of the operator would use.
    fn unused_gap(&mut self, entry: &RuleEntry) {
        let rule = &entry.rule;
        if rule.bucket != Bucket::Stream || rule.gap.is_none() || rule.repeat.is_some() {
            return;
        }
        if entry.repeat != RepeatMode::AfterGap {
            let message = format!(
                "`gap` has no effect here: it is for `after-gap`, and the setting `repeat_mode` is `{}`",
                entry.repeat.as_str()
            );
            let warning = Diagnostic::warning(Code::RuleKeyWithoutEffect, message)
                .help("set `repeat` to `after-gap`, or remove the key");
            self.report(rule, rule.location(&["gap", "repeatGap", "repeat_gap"]), warning);
        }
    }

    /// A condition without a bound that text has to wait for.
    fn long_holds(&mut self, entry: &RuleEntry) {
        if !holds_text(entry, self.catalogue) || entry.longest_match.is_some() {
            return;
        }
        // What may be a secret is not shown for want of a limit.
        let is_secret = entry.rule.secret;
        let settings = self.catalogue.settings();
        let unbounded =
            entry.rule.conditions.iter().chain(&entry.rule.all).find(|pattern| pattern.max_hidden().is_none());
        let Some(pattern) = unbounded else { return };
        let limit = if is_secret {
            "the end of the answer, since the rule is about secrets".to_owned()
        } else {
            let (bytes, ms) = (settings.hold_max_bytes, settings.hold_max_ms);
            format!("`hold_max_bytes` ({bytes}) or `hold_max_ms` ({ms}), and is shown then")
        };
        let message = format!(
            "`{}` has no longest match: text is held back up to {limit}",
            rules::shown_condition(pattern.as_str())
        );
        let help = "give repetitions a bound, such as `.{0,80}` in place of `.*`";
        let location =
            entry.rule.location_of_value(&["condition", "ttsr_trigger", "ttsrTrigger", "all"], pattern.as_str());
        self.report(&entry.rule, location, Diagnostic::warning(Code::RuleUnboundedMatch, message).help(help));
    }

    fn examples(&mut self, rule: &Rule) {
        if rule.bucket != Bucket::Stream {
            return;
        }
        for example in &rule.examples {
            // One that names no stream was reported when the file was read.
            if example.trouble().is_some() {
                continue;
            }
            self.example_of_nothing(rule, example);
            let one = changed(rule, |one| one.examples = vec![example.clone()]);
            let failed = rules::check_examples(&one).into_iter().filter(|found| found.code == Code::RuleExampleFailed);
            let help = format!("`tidegate rules test {} …` shows why", rule.source.path);
            self.out.findings.extend(failed.map(|failed| failed.help(help.as_str())));
        }
    }

    /// An example with a call that no session has: its tool or an argument of it is not known. Those that the rule itself names are of
    /// other hosts.
    fn example_of_nothing(&mut self, rule: &Rule, example: &Example) {
        let input = Input::of_example(example);
        let Input::Call { tool, .. } = &input else { return };
        let is_named = |scope: &Scope| matches!(scope, Scope::Tool { name: Some(_), .. }) && scope.takes_tool(tool);
        let tool = self.catalogue.unknown_tool(tool).filter(|_| !rule.scopes.iter().any(is_named));
        let argument = self.catalogue.unknown_arguments(&input).and_then(|mut wrong| {
            wrong.unknown.retain(|name| !rule.fields.contains(name));
            (!wrong.unknown.is_empty()).then_some(wrong)
        });
        let why = tool.map(|tool| tool.to_string()).or_else(|| argument.map(|argument| argument.to_string()));
        if let Some(why) = why {
            let message = format!("the example `{}` is of no call in this host: {why}", example.stream);
            let warning = Diagnostic::warning(Code::RuleInvalidExample, message);
            self.report(rule, rule.location_of_example(example), warning.help("write the call as the tool takes it"));
        }
    }

    /// Who else has the name.
    fn name(&mut self, rule: &Rule, source: &Arc<SourceFile>) {
        if let Some(first) = self.names.insert(rule.name.clone(), source.path.clone()) {
            let message = format!("`{}` has a rule of the same name, and only one of them is used", first.display());
            let error = Diagnostic::error(Code::RuleDuplicateName, message).help("rename one of the files");
            self.report(rule, rule.location(&[]), error);
        }
        let workspace = Path::new(self.catalogue.set().workspace());
        let own = |known: &rules::RuleOrigin| {
            let real = source.path.canonicalize().ok();
            let known = Path::new(&known.path);
            let same = |path: &Path| real.is_some() && path.canonicalize().ok() == real;
            same(known) || same(&workspace.join(known))
        };
        let others: Vec<String> = self
            .catalogue
            .set()
            .rules()
            .filter(|info| info.rule.name == rule.name && !own(&info.rule.source))
            .map(|info| info.rule.source.to_string())
            .collect();
        if !others.is_empty() {
            let message = format!("this host has a rule of the same name: {}", others.join("; "));
            let help = "the folders that `folders` names come first, then the user's, plugins, the built-in pack, and the project's own \
                        folder; the others are not used";
            let warning = Diagnostic::warning(Code::RuleShadowed, message).help(help);
            self.report(rule, rule.location(&[]), warning);
        }
    }

    /// Adds a diagnostic about `rule`, at its place where that is known.
    fn report(&mut self, rule: &Rule, location: Option<Location>, diagnostic: Diagnostic) {
        let about = diagnostic.about_rule(rule.name.as_str(), Some(&rule.source));
        self.out.findings.push(match location {
            Some(location) => about.at(location, ""),
            None => about,
        });
    }
}
