//! Checks rule files before they are switched on: everything that is wrong with them at its place, their examples, and
//! what keeps their rules from firing in this host.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Diagnostic, MANIFEST_FILE, MAX_RULE_BYTES, Manifest, Place, RuleFile, Severity, Source};
use rules::{Bucket, Layer, Rule, RuleSet, Scope};

use super::catalogue::named;
use super::explain::holds_text;
use super::{Catalogue, Entry, Standing, changed};

/// What came of checking.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Files that were read.
    pub files: usize,
    /// Names of the rules in them that can be used.
    pub rules: Vec<String>,
    /// Examples that the rules were held against.
    pub examples: usize,
    /// What is wrong, file by file.
    pub findings: Vec<Finding>,
    /// What was named and cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule it is about; none where the file has none.
    pub rule: Option<String>,
    /// What, and where.
    pub diagnostic: Diagnostic,
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What was named.
    pub path: PathBuf,
    /// Why not.
    pub cause: String,
}

impl Checked {
    /// How many findings are errors, and how many are not.
    pub fn counts(&self) -> (usize, usize) {
        let is_error = |finding: &&Finding| finding.diagnostic.severity == Severity::Error;
        let errors = self.findings.iter().filter(is_error).count();
        (errors, self.findings.len() - errors)
    }
}

/// Checks rule files, manifests (`plugin.toml`) and folders that hold either. `texts` are rule files that are at hand
/// already, each with the name to show for it.
pub fn check(catalogue: &Catalogue, paths: &[PathBuf], texts: &[(String, String)]) -> Checked {
    let mut all = Checks { catalogue, out: Checked::default(), names: BTreeMap::new() };
    for path in paths {
        match rule_files(path) {
            Ok(files) => files.iter().for_each(|file| all.file(file)),
            Err(cause) => all.out.unreadable.push(Unreadable { path: path.clone(), cause }),
        }
    }
    for (name, text) in texts {
        all.source(&Source::new(name, text.as_str()));
    }
    all.out
}

/// The file itself; of a folder, its rule files and its manifest.
fn rule_files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let about = path.metadata().map_err(|error| error.to_string())?;
    if !about.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(|error| error.to_string())? {
        let file = entry.map_err(|error| error.to_string())?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_rule =
            file.extension().is_some_and(|end| end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("mdc"));
        let about = name.eq_ignore_ascii_case("readme.md") && !begins_as_rule(&file);
        let meant = !(name.starts_with('.') || about);
        if (is_rule && meant) || name == MANIFEST_FILE {
            files.push(file);
        }
    }
    files.sort_unstable();
    if files.is_empty() {
        return Err(format!("the folder has no rule files (*.md, *.mdc) and no {MANIFEST_FILE}"));
    }
    Ok(files)
}

/// A README about rules is none itself.
fn begins_as_rule(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    matches!(text.trim_start_matches('\u{feff}').lines().next().map(str::trim_end), Some("+++" | "---"))
}

/// The files checked so far.
struct Checks<'a> {
    catalogue: &'a Catalogue,
    out: Checked,
    /// Where each rule's name was met.
    names: BTreeMap<String, PathBuf>,
}

impl Checks<'_> {
    fn file(&mut self, path: &Path) {
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
            Ok(text) if text.len() as u64 <= MAX_RULE_BYTES => self.source(&Source::new(path, text)),
            // It says what is wrong.
            _ => {
                let RuleFile { findings, .. } = RuleFile::read(path, &Layer::Project, &path.display().to_string());
                self.out.files += 1;
                self.take(None, findings);
            }
        }
    }

    fn source(&mut self, source: &Arc<Source>) {
        self.out.files += 1;
        let shown = source.path.display().to_string().replace('\\', "/");
        let RuleFile { rule, findings } = RuleFile::of_source(source, &Layer::Project, &shown);
        let name = source.path.file_stem().map(|name| name.to_string_lossy().into_owned());
        self.take(name.as_deref(), findings);
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
        match Manifest::load(path) {
            Err(diagnostics) => self.take(None, diagnostics.0),
            Ok(manifest) => {
                self.take(None, manifest.findings);
                for rule in &manifest.rules {
                    self.rule(rule, &manifest.source);
                }
            }
        }
    }

    fn take(&mut self, rule: Option<&str>, findings: Vec<Diagnostic>) {
        self.out.findings.extend(
            findings
                .into_iter()
                .map(|diagnostic| Finding { rule: named(&diagnostic).or(rule).map(str::to_owned), diagnostic }),
        );
    }

    /// What can be said of a rule that can be used.
    fn rule(&mut self, rule: &Rule, source: &Arc<Source>) {
        self.out.rules.push(rule.name.clone());
        self.out.examples += rule.examples.len();
        let settings = self.catalogue.settings().clone();
        let (set, found) = RuleSet::build(vec![rule.clone()], settings, self.catalogue.set().workspace());
        for one in found {
            let severity = match one.severity {
                rules::Severity::Error => Severity::Error,
                rules::Severity::Warning => Severity::Warning,
            };
            self.say(rule, source, severity, &["globs", "scope"], &one.message, one.help.as_deref());
        }
        if let Some(info) = set.rules().next() {
            let entry = self.catalogue.entry(&info, &[]);
            self.reach(&entry, source);
            self.long_holds(&entry, source);
        }
        self.examples(rule, source);
        self.name(rule, source);
    }

    fn reach(&mut self, entry: &Entry, source: &Arc<Source>) {
        match &entry.standing {
            Standing::Idle(why) => {
                let help = "the names of tools are those of this host, and of its own tools the short names too";
                self.say(
                    &entry.rule,
                    source,
                    Severity::Warning,
                    &["scope", "agents"],
                    &format!("it cannot fire here: {why}"),
                    Some(help),
                );
            }
            Standing::Active => self.tools_not_offered(&entry.rule, source),
            Standing::Disabled(why) if entry.rule.enabled => {
                self.say(&entry.rule, source, Severity::Warning, &[], &format!("it would not be used: {why}"), None);
            }
            _ => {}
        }
    }

    /// Tools among others that nobody offers: the rule fires, but not where its author thinks.
    fn tools_not_offered(&mut self, rule: &Rule, source: &Arc<Source>) {
        let offered = self.catalogue.tools();
        let missing = rule.scopes.iter().filter_map(|scope| match scope {
            Scope::Tool { name: Some(name), .. } if !offered.iter().any(|tool| scope.takes_tool(tool)) => Some(name),
            _ => None,
        });
        // Rules for several hosts name the tools of all of them: where one is there, that is as it should be.
        let named = rule.scopes.iter().filter(|scope| matches!(scope, Scope::Tool { name: Some(_), .. })).count();
        let missing: Vec<&String> = missing.collect();
        if named == missing.len() {
            for name in missing {
                let message = format!("no tool `{name}` is offered here: the tools are {}", offered.join(", "));
                self.say(rule, source, Severity::Warning, &[name, "scope"], &message, None);
            }
        }
    }

    /// A condition without a bound that text has to wait for.
    fn long_holds(&mut self, entry: &Entry, source: &Arc<Source>) {
        if !holds_text(entry, self.catalogue) || entry.longest_match.is_some() {
            return;
        }
        let settings = self.catalogue.settings();
        let unbounded = entry.rule.conditions.iter().chain(&entry.rule.all).find(|pattern| pattern.max_len().is_none());
        let Some(pattern) = unbounded else { return };
        let message = format!(
            "`{}` has no longest match: text waits for it up to `hold_max_bytes` ({}) or `hold_max_ms` ({}), and is shown then",
            pattern.as_str(),
            settings.hold_max_bytes,
            settings.hold_max_ms
        );
        let help = "give repetitions a bound, such as `.{0,80}` in place of `.*`";
        self.say(&entry.rule, source, Severity::Warning, &[pattern.as_str(), "condition", "all"], &message, Some(help));
    }

    fn examples(&mut self, rule: &Rule, source: &Arc<Source>) {
        if rule.bucket != Bucket::Stream {
            return;
        }
        for example in &rule.examples {
            // Such a one names no stream, and was told of when the file was read.
            if example.trouble().is_some() {
                continue;
            }
            let one = changed(rule, |one| one.examples = vec![example.clone()]);
            let says = if example.fires { "does not fire on" } else { "fires on" };
            if !rules::check_examples(&one).is_empty() {
                let message = format!("it {says} its own example ({})", example.stream);
                let help = format!("`tidegate rules test {} …` tells why", rule.source.path);
                let place = example_place(&source.text, example);
                self.say_at(rule, source, Severity::Error, place, &message, Some(&help));
            }
        }
    }

    /// Who else has the name.
    fn name(&mut self, rule: &Rule, source: &Arc<Source>) {
        if let Some(first) = self.names.insert(rule.name.clone(), source.path.clone()) {
            let message =
                format!("the name is taken by `{}`: of two rules of one name one is not used", first.display());
            self.say(rule, source, Severity::Error, &[], &message, Some("rename one of the files"));
        }
        let workspace = Path::new(self.catalogue.set().workspace());
        let own = |known: &rules::Source| {
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
            let help = "the project's folder comes first, then the user's, plugins and the built-in pack; the others are \
                        not used";
            self.say(rule, source, Severity::Warning, &[], &message, Some(help));
        }
    }

    /// Adds a finding, shown at the first of `near` that the rule's text holds.
    fn say(
        &mut self,
        rule: &Rule,
        source: &Arc<Source>,
        severity: Severity,
        near: &[&str],
        message: &str,
        help: Option<&str>,
    ) {
        let text = &source.text;
        let named = format!("\"{}\"", rule.name);
        let begin = text.find(&named).unwrap_or(0);
        let place = near.iter().filter(|word| !word.is_empty()).find_map(|word| {
            let at = begin + text[begin..].find(word)?;
            Some(at..at + word.len())
        });
        self.say_at(rule, source, severity, place, message, help);
    }

    /// Adds a finding; without a place, at the rule's name or the file's first line.
    fn say_at(
        &mut self,
        rule: &Rule,
        source: &Arc<Source>,
        severity: Severity,
        place: Option<Range<usize>>,
        message: &str,
        help: Option<&str>,
    ) {
        let text = &source.text;
        let named = format!("\"{}\"", rule.name);
        let begin = text.find(&named).unwrap_or(0);
        let fallback = if begin > 0 { begin..begin + named.len() } else { 0..text.lines().next().map_or(0, str::len) };
        let diagnostic = Diagnostic {
            severity,
            help: help.map(str::to_owned),
            ..Diagnostic::error(format!("rule `{}`: {message}", rule.name))
                .at(Place::new(source, place.unwrap_or(fallback)), "")
        };
        self.out.findings.push(Finding { rule: Some(rule.name.clone()), diagnostic });
    }
}

/// The first line of an example in the text of its file.
fn example_place(text: &str, example: &rules::Example) -> Option<Range<usize>> {
    let fence = format!("```{}", example.stream);
    let places = text.match_indices(&fence).filter_map(|(at, _)| {
        let line_end = at + text[at..].find('\n')? + 1;
        text[line_end..].starts_with(&example.text).then_some(line_end)
    });
    let at = places.min()?;
    Some(at..at + text[at..].find('\n').unwrap_or(text.len() - at))
}
