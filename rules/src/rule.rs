//! A rule as used: the compiled form of a [`RuleSpec`], with diagnostics for all its errors.

use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::Arc;

use flow::{Diagnostic, DiagnosticCode as Code, Evidence, Location, RuleOrigin, Severity, SourceFile};
use fnv::FnvHasher;

use crate::conditions::{CONDITION, shown};
use crate::dialect;
use crate::effect::{self, Unused};
use crate::engine::Pattern;
use crate::example::Example;
use crate::fold::{self, Fold};
use crate::glob;
use crate::idiom;
use crate::keys;
use crate::never;
use crate::places::RulePlaces;
use crate::scope::{looks_like_glob, may_be_regex, split_tokens};
use crate::spec::Strings;
use crate::{ContextMode, Globs, InterruptMode, RepeatMode, RuleAction, RuleSpec, Scope};

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// It watches the stream.
    Stream,
    /// It has no condition; its body joins the system prompt.
    AlwaysApply,
    /// It has no condition; the system prompt lists its description, and the model reads the body on demand.
    Rulebook,
}

/// Who demands that a rule is in force. The greater one decides which of several rules of one name is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// Nothing requires the rule.
    #[default]
    None,
    /// The rule itself: `required = true`.
    Rule,
    /// The operator: by the rule's name, its folder or its plugin.
    Operator,
    /// The policy of the machine, which no operator replaces: by the rule's folder or its plugin.
    Policy,
}

/// A rule as used.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The rule's name, unique within its layer.
    pub name: String,
    /// Where it comes from.
    pub source: RuleOrigin,
    /// What it is for.
    pub bucket: Bucket,
    /// The body of the rule file; it is sent to the model where there is no `reminder`.
    pub body: String,
    /// What the model gets instead of the body when the rule fires.
    pub reminder: Option<String>,
    /// One human-readable line.
    pub description: Option<String>,
    /// Any of these must match.
    pub conditions: Vec<Arc<Pattern>>,
    /// All of these must match too, in the same stream.
    pub all: Vec<Arc<Pattern>>,
    /// None of these may have matched in the same stream by then.
    pub unless: Vec<Arc<Pattern>>,
    /// The streams it watches, never empty.
    pub scopes: Vec<Scope>,
    /// The call must be about a file that matches these; empty = no matter. Without a condition: the files that it is about.
    pub globs: Globs,
    /// The tool arguments to match; empty = all.
    pub fields: Vec<String>,
    /// The agents it watches, as globs on their names; empty = all.
    pub agents: Globs,
    /// Overrides the setting.
    pub interrupt: Option<InterruptMode>,
    /// Overrides the setting.
    pub repeat: Option<RepeatMode>,
    /// Overrides the setting.
    pub gap: Option<u32>,
    /// Overrides the setting.
    pub context: Option<ContextMode>,
    /// The action that it requests.
    pub action: Option<RuleAction>,
    /// The most interrupts of it in one turn.
    pub max_interrupts: Option<u32>,
    /// `false`: left out.
    pub enabled: bool,
    /// Who demands that it is in force.
    pub required: Requirement,
    /// It comes with the workspace, and the operator has not named its folder: it replaces no rule of its name, whatever it says.
    pub untrusted: bool,
    /// Its matches are secrets: evidence does not contain the matched text, every match is acted on, and none is let through.
    pub secret: bool,
    /// Differences that its conditions do not see.
    pub fold: Fold,
    /// A part of it was refused when it was read, such as one of several conditions.
    pub incomplete: bool,
    /// Why it can never fire, where that is known. It was reported when the rule was read.
    pub never: Option<String>,
    /// Where the rule is written; diagnostics point there.
    pub places: RulePlaces,
    /// The rule file's examples of what it fires on and what not. Not part of the body: the model never sees them.
    pub examples: Vec<Example>,
}

impl Rule {
    /// Compiles a rule as typed. `file` is the TOML file that contains it and the bytes of its `[[rule]]` there, so that
    /// diagnostics can point into it. Returns no rule if it is refused; the diagnostics say why.
    pub fn from_spec(
        name: &str,
        source: &RuleOrigin,
        spec: &RuleSpec,
        file: Option<(&Arc<SourceFile>, Range<usize>)>,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let places = file.map(|(file, part)| RulePlaces::of_toml(file, part).named()).unwrap_or_default();
        Self::from_places(name, source, spec, &places, false)
    }

    /// Compiles a rule as typed, of which the positions of all values are known. `trusted`: its conditions are known to be
    /// valid, and are compiled when they are first used.
    pub(crate) fn from_places(
        name: &str,
        source: &RuleOrigin,
        spec: &RuleSpec,
        places: &RulePlaces,
        trusted: bool,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let mut reader = Reader { name, source, places, trusted, found: Vec::new() };
        let mut rule = reader.rule(spec);
        if let Some(rule) = &mut rule {
            rule.incomplete = reader.found.iter().any(|one| one.severity == Severity::Error);
        }
        (rule, reader.found)
    }

    /// A diagnostic about this rule, without a place.
    pub fn diagnostic(&self, severity: Severity, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(severity, code, message).about_rule(self.name.as_str(), Some(&self.source))
    }

    /// The location in the rule's file of the first of `keys` that is written, or of the rule as a whole. `None` where the
    /// rule has no file.
    pub fn location(&self, keys: &[&str]) -> Option<Location> {
        self.places.location(keys.iter().find_map(|key| self.places.key(&[*key])))
    }

    /// The location of `value`, which is a value of one of `keys` or a part of one; else as [`Rule::location`].
    pub fn location_of_value(&self, keys: &[&str], value: &str) -> Option<Location> {
        self.places.location(self.places.find(keys, value, 0..value.len()))
    }

    /// The location of the fence of one of its examples, or of the rule as a whole.
    pub fn location_of_example(&self, example: &Example) -> Option<Location> {
        self.places.location(example.fence.clone())
    }

    /// Evidence as anybody but the engine gets it: without the matched text, where that is a secret, and without a condition that is
    /// written as that text.
    pub(crate) fn told_evidence(&self, mut evidence: Evidence) -> Evidence {
        if self.secret {
            Evidence::HIDDEN.clone_into(&mut evidence.text);
            let own = self.conditions.iter().chain(&self.all).find(|pattern| pattern.as_str() == evidence.pattern);
            if own.is_none_or(|pattern| pattern.is_in(pattern.as_str())) {
                Evidence::HIDDEN.clone_into(&mut evidence.pattern);
            }
        }
        evidence
    }

    /// The text that the model gets when the rule fires: the `reminder`, or else the body.
    pub fn told(&self) -> &str {
        self.reminder.as_deref().unwrap_or(&self.body)
    }

    /// Returns a hash of what the rule matches, the same as long as only its body and description are edited. It is kept
    /// in records, so that an edited rule counts as new; FNV-1a, since it must never change and need not resist
    /// attacks.
    pub fn content_hash(&self) -> u64 {
        let mut hash = FnvHasher::default();
        let mut add = |text: &str| {
            hash.write(text.as_bytes());
            hash.write_u8(0xff);
        };
        for (word, patterns) in [("any", &self.conditions), ("all", &self.all), ("unless", &self.unless)] {
            add(word);
            patterns.iter().for_each(|p| add(p.as_str()));
        }
        add("scope");
        self.scopes.iter().for_each(|s| add(&s.to_text()));
        add("globs");
        self.globs.iter().for_each(|g| add(g.as_str()));
        add("field");
        self.fields.iter().for_each(|f| add(f));
        self.fold.words().for_each(&mut add);
        hash.finish()
    }

    /// Whether it watches the agent of this name.
    pub fn watches_agent(&self, agent: &str) -> bool {
        self.agents.matches(&agent.to_lowercase(), "")
    }
}

/// Reads one rule and collects what is wrong with it.
pub(crate) struct Reader<'a> {
    name: &'a str,
    source: &'a RuleOrigin,
    pub(crate) places: &'a RulePlaces,
    pub(crate) trusted: bool,
    found: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn rule(&mut self, spec: &RuleSpec) -> Option<Rule> {
        let name = self.name.trim();
        if name.is_empty() || name.chars().any(char::is_control) {
            self.error(Code::RuleInvalidName, "a rule needs a name without control characters", Some("rename it"));
            return None;
        }
        let known = self.found.len();
        let written = [&spec.condition, &spec.ttsr_trigger, &spec.ttsr_trigger_old].into_iter().find(|s| !s.is_empty());
        let (written, refused) = written.map(|written| self.written(written, CONDITION)).unwrap_or_default();
        // A command line names no files that a glob could be about.
        let of_commands = split_all(&spec.field).iter().any(|field| field == crate::command_lines::COMMANDS);
        let (globs, regexes): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|c| !of_commands && looks_like_glob(c.text.trim()));
        let globs: Vec<String> = globs.into_iter().map(|glob| glob.text.trim().to_owned()).collect();
        let (excluded, globs): (Vec<_>, Vec<_>) = globs.into_iter().partition(|glob| glob::exclusion(glob).is_some());
        let files = FileConditions { globs, excluded };
        let watched = !(files.is_empty() && regexes.is_empty() && refused == 0 && spec.all.is_empty());
        let (body, examples) = self.sections(spec, watched);
        let mut rule = Rule {
            name: name.to_owned(),
            source: self.source.clone(),
            bucket: Bucket::Stream,
            description: spec.description.as_deref().map(str::trim).filter(|d| !d.is_empty()).map(str::to_owned),
            conditions: Vec::new(),
            all: Vec::new(),
            unless: Vec::new(),
            scopes: Vec::new(),
            globs: Globs::default(),
            fields: Vec::new(),
            agents: Globs::default(),
            interrupt: spec.interrupt,
            repeat: spec.repeat,
            gap: spec.gap,
            context: spec.context,
            action: spec.action,
            max_interrupts: spec.max_interrupts,
            enabled: spec.enabled.unwrap_or(true),
            required: if spec.required { Requirement::Rule } else { Requirement::None },
            untrusted: false,
            secret: spec.secret,
            fold: Fold::default(),
            incomplete: false,
            never: None,
            places: self.places.clone(),
            examples,
            reminder: self.reminder(spec),
            body,
        };
        if rule.told().is_empty() || (!watched && rule.body.is_empty()) {
            let help = match rule.examples.is_empty() {
                true => "write it after the front matter",
                false => {
                    "write it after the front matter, under no heading or under another one than those of the examples"
                }
            };
            self.error(Code::RuleNoBody, "the rule has no body, so there is nothing to send to the model", Some(help));
            return None;
        }
        rule.globs = self.globs(&spec.globs, GLOBS)?;
        let agents = Strings::from_iter(spec.agents.0.iter().map(|agent| agent.to_lowercase()));
        rule.agents = self.globs(&agents, &["agents"])?;
        if !watched {
            return self.without_condition(rule, spec);
        }
        rule.fields = self.fields(&spec.field)?;
        rule.fold = self.fold(&spec.fold)?;
        rule.scopes = self.scopes(spec, &files, rule.globs.is_empty())?;
        for glob in &files.excluded {
            if let Err(invalid) = rule.globs.add(glob) {
                self.invalid_glob(invalid, glob, CONDITION);
                return None;
            }
        }
        self.note_globs(spec, &files.globs, regexes.is_empty());
        let (mut all, lost_all) = self.written(&spec.all, &["all"]);
        let (mut unless, lost_unless) = self.written(&spec.unless, &["unless"]);
        // With several conditions, a requirement of one of them cannot become a requirement of the rule.
        let regexes = match regexes.as_slice() {
            [one] => match idiom::split(&one.text) {
                Some(parts) => {
                    all.extend(parts.all.into_iter().map(|part| one.part(part)));
                    unless.extend(parts.unless.into_iter().map(|part| one.part(part)));
                    parts.condition.into_iter().map(|part| one.part(part)).collect()
                }
                None => regexes,
            },
            _ => regexes,
        };
        rule.conditions = self.patterns(&regexes, rule.fold);
        rule.all = self.patterns(&all, rule.fold);
        self.drop_unlisted(&mut rule, &[&regexes, &all]);
        rule.unless = self.patterns(&unless, rule.fold);
        let any_lost = rule.conditions.is_empty() && (!regexes.is_empty() || refused > 0);
        let other_lost = rule.all.len() < all.len() || rule.unless.len() < unless.len() || lost_all + lost_unless > 0;
        if any_lost || other_lost {
            // Without one of these the rule would fire where it was never meant to.
            let message = "it cannot be used without the conditions that are not valid";
            let keys = [CONDITION, &["all", "unless"]].concat();
            self.disabled(Code::RuleNoValidCondition, message, None, &keys, known);
            return None;
        }
        if rule.conditions.is_empty() && rule.all.is_empty() {
            rule.conditions = Pattern::new(".*").map(Arc::new).into_iter().collect();
        }
        if !self.trusted {
            rule.never = self.never_fires(&rule);
        }
        self.note_lines(&rule, &[&regexes, &all], &unless);
        self.note_hides(&rule, &[&regexes, &all], &unless);
        self.note_secret_scope(&rule);
        self.unused(&rule, spec);
        rule.imply();
        Some(rule)
    }

    /// Why no text and no file makes the rule fire, which is reported.
    fn never_fires(&mut self, rule: &Rule) -> Option<String> {
        let (why, help, keys) = never::reason(rule)?;
        let message = format!("it can never fire: {why}");
        let span = keys.iter().find_map(|key| self.places.key(&[*key]));
        self.report(Severity::Error, Code::RuleUnreachable, message, Some(help.into()), span);
        Some(why)
    }

    /// The kinds of folding; a rule with a word that is none cannot see what its author meant.
    fn fold(&mut self, written: &Strings) -> Option<Fold> {
        let words = split_all(written);
        match Fold::of(words.iter().map(String::as_str)) {
            Ok(fold) => Some(fold),
            Err(word) => {
                let place = self.places.find(&["fold"], word, 0..word.len());
                let message = format!("`fold` has no kind `{word}`");
                let help = format!("the kinds are `{}`", fold::WORDS.join("`, `"));
                self.report(Severity::Error, Code::RuleInvalidValue, message, Some(help), place);
                None
            }
        }
    }

    /// A glob as a condition matches files only; where the scope includes other streams, everything in them would
    /// match.
    fn note_globs(&mut self, spec: &RuleSpec, globs: &[String], alone: bool) {
        for glob in globs {
            let (message, help) = if !dialect::notes(glob).is_empty() {
                ("is read as a file glob", "write a regular expression without slashes around it")
            } else if spec.secret || may_be_regex(glob) {
                (
                    "is read as a file glob: its rule watches writes of such files",
                    "write `(?:…)` around a regular expression",
                )
            } else if alone && spec.all.is_empty() && !spec.scope.is_empty() {
                let help = "remove `scope` to watch edits and writes of such files, or add a condition";
                ("is a file glob, so the rule fires on everything in its scopes", help)
            } else {
                continue;
            };
            let place = self.places.find(CONDITION, glob, 0..glob.len());
            let message = format!("condition `{}` {message}", shown(glob));
            self.report(Severity::Warning, Code::RuleGlobCondition, message, Some(help.into()), place);
        }
    }

    /// Reports the keys of a stream rule that change nothing.
    fn unused(&mut self, rule: &Rule, spec: &RuleSpec) {
        let always = spec.always_apply.then(|| Unused {
            key: "always_apply",
            why:
                "the rule has a condition, so its text goes to the model when it fires, and is not in the system prompt"
                    .into(),
            help: "remove the key, or the condition",
        });
        for Unused { key, why, help } in effect::unused(rule).into_iter().chain(always) {
            let message = format!("`{key}` has no effect: {why}");
            let place = self.places.key(&keys::names_of(key));
            self.report(Severity::Warning, Code::RuleKeyWithoutEffect, message, Some(help.to_owned()), place);
        }
    }

    fn without_condition(&mut self, mut rule: Rule, spec: &RuleSpec) -> Option<Rule> {
        let always = spec.always_apply || rule.globs.is_universal();
        let lists = ["scope", "field", "unless", "fold"].into_iter().filter(|key| self.places.is_given(key));
        let lists = lists.chain(GLOBS.iter().copied().filter(|key| spec.always_apply && self.places.is_given(key)));
        let values = [
            ("interrupt", rule.interrupt.is_some()),
            ("repeat", rule.repeat.is_some()),
            ("gap", rule.gap.is_some()),
            ("context", rule.context.is_some()),
            ("action", rule.action.is_some()),
            ("max_interrupts", rule.max_interrupts.is_some()),
            ("reminder", rule.reminder.is_some()),
            ("secret", rule.secret),
        ];
        let values = values.into_iter().filter(|(_, given)| *given).map(|(key, _)| key);
        let unused: Vec<&str> = lists.chain(values).collect();
        if let Some(key) = unused.first() {
            let (why, help) = match unused.iter().all(|key| GLOBS.contains(key)) {
                true => ("the rule is always applied, whatever files are worked on", ALWAYS_HELP),
                false => ("the rule has no `condition`", WITHOUT_HELP),
            };
            let verb = if unused.len() == 1 { "has" } else { "have" };
            let message = format!("`{}` {verb} no effect: {why}", unused.join("`, `"));
            let span = self.places.key(&[*key]).or_else(|| self.places.key(&keys::names_of(key)));
            self.report(Severity::Warning, Code::RuleKeyWithoutEffect, message, Some(help.into()), span);
        }
        if let Some(example) = rule.examples.first() {
            let message = "the rule has no condition, so its examples test nothing, and the model does not get them";
            let help = "add a `condition`, or give the sections other headings".to_owned();
            let place = example.fence.clone();
            self.report(Severity::Warning, Code::RuleInvalidExample, message.into(), Some(help), place);
        }
        if glob::are_void(&rule.globs, &Globs::default()) {
            let help = "remove the exclusion, or name other files";
            let message = "the rule is about no file: its globs leave out all that they include".to_owned();
            self.report(Severity::Error, Code::RuleNoValidGlob, message, Some(help.into()), self.places.key(GLOBS));
            return None;
        }
        let listed = rule.description.is_some() || !rule.globs.is_empty() || spec.on_request;
        rule.bucket = match (always, listed) {
            (true, _) => Bucket::AlwaysApply,
            (false, true) => Bucket::Rulebook,
            (false, false) => {
                let help = "add a `condition`, `always_apply = true`, or a `description` or `globs`, which list the rule in \
                            the rulebook";
                let message = "the rule has no condition, is not always applied and has no description and no globs";
                self.error(Code::RuleNoCondition, message, Some(help));
                return None;
            }
        };
        rule.scopes = vec![Scope::Text];
        Some(rule)
    }

    fn scopes(&mut self, spec: &RuleSpec, files: &FileConditions, any_file: bool) -> Option<Vec<Scope>> {
        let mut tokens = split_all(&spec.scope);
        // A glob as a condition means edits and writes of such files.
        for glob in &files.globs {
            tokens.push(format!("tool:edit({glob})"));
            tokens.push(format!("tool:write({glob})"));
        }
        if files.globs.is_empty() && !files.excluded.is_empty() {
            tokens.extend(["tool:edit".to_owned(), "tool:write".to_owned()]);
        }
        if tokens.is_empty() {
            let tool = Scope::Tool { name: None, glob: None };
            // Text and reasoning have no files, so `globs` without a scope means tools.
            return Some(match (any_file, spec.secret) {
                (false, _) => vec![tool],
                (true, false) => vec![Scope::Text, tool],
                // A secret is shown and recorded with the reasoning, too.
                (true, true) => vec![Scope::Text, Scope::Thinking, tool],
            });
        }
        let (mut scopes, known) = (Vec::new(), self.found.len());
        for token in &tokens {
            if self.refuses_controls("scope", token, &["scope"], |_| false) {
                continue;
            }
            match Scope::parse(token) {
                Ok(scope) => scopes.push(scope),
                Err(glob::InvalidScope { message, help }) => {
                    let span = self.places.find(&["scope"], token, 0..token.len());
                    self.report(Severity::Error, Code::RuleInvalidScope, message, help, span);
                }
            }
        }
        if scopes.is_empty() {
            let help = Some("correct one of them, or remove the key");
            self.disabled(Code::RuleNoValidScope, "none of its scopes is valid", help, &["scope"], known);
            return None;
        }
        Some(scopes)
    }

    /// The arguments to match. An invalid one refuses the rule: without it the rule would watch others.
    fn fields(&mut self, fields: &Strings) -> Option<Vec<String>> {
        let fields = fields.clean();
        for field in &fields {
            if self.refuses_controls("field", field, &["field"], |_| false) {
                return None;
            }
        }
        Some(fields)
    }

    /// `None` if none of the given values is valid: an empty list would mean "no restriction"; or if an exclusion is not, since
    /// the rule would fire on what its author left out.
    fn globs(&mut self, globs: &Strings, keys: &[&str]) -> Option<Globs> {
        let (mut out, mut lost, mut any, known) = (Globs::default(), false, false, self.found.len());
        for written in &globs.0 {
            let texts = match glob::split(written) {
                Ok(texts) => texts,
                Err(invalid) => {
                    (any, lost) = (true, lost || written.contains('!'));
                    self.invalid_glob(invalid, written, keys);
                    continue;
                }
            };
            for text in &texts {
                any = true;
                if self.refuses_controls("glob", text, keys, |_| false) {
                    lost |= glob::exclusion(text).is_some();
                    continue;
                }
                if let Err(invalid) = out.add(text) {
                    lost |= glob::exclusion(text).is_some();
                    self.invalid_glob(invalid, text, keys);
                }
            }
        }
        if any && (out.is_empty() || lost) {
            let message = if lost { "one of the globs that leave files out" } else { "none of its globs" };
            let message = format!("{message} is {}valid", if lost { "not " } else { "" });
            self.disabled(Code::RuleNoValidGlob, &message, None, keys, known);
            return None;
        }
        Some(out)
    }

    fn invalid_glob(&mut self, invalid: glob::InvalidScope, text: &str, keys: &[&str]) {
        let span = self.places.find(keys, text, 0..text.len());
        self.report(Severity::Error, Code::RuleInvalidGlob, invalid.message, invalid.help, span);
    }

    fn error(&mut self, code: Code, message: &str, help: Option<&str>) {
        self.report(Severity::Error, code, message.into(), help.map(str::to_owned), None);
    }

    /// Reports that the rule is disabled, with the one error that it is disabled for, or after several of them.
    fn disabled(&mut self, code: Code, message: &str, help: Option<&str>, keys: &[&str], known: usize) {
        let mut errors: Vec<&mut Diagnostic> = self.found[known..].iter_mut().filter(|one| one.is_error()).collect();
        match errors.as_mut_slice() {
            [one] => one.message.push_str("; the rule is disabled"),
            _ => {
                let (message, span) = (format!("the rule is disabled: {message}"), self.places.key(keys));
                self.report(Severity::Error, code, message, help.map(str::to_owned), span);
            }
        }
    }

    pub(crate) fn report(
        &mut self,
        severity: Severity,
        code: Code,
        message: String,
        help: Option<String>,
        span: Option<Range<usize>>,
    ) {
        let mut diagnostic = Diagnostic::new(severity, code, message).about_rule(self.name, Some(self.source));
        diagnostic.help = help;
        if let Some(location) = self.places.location(span) {
            diagnostic = diagnostic.at(location, "");
        }
        self.found.push(diagnostic);
    }
}

const WITHOUT_HELP: &str = "add a `condition`, or remove the key";

const ALWAYS_HELP: &str = "remove it, or the key that has the rule always applied";

/// The names of the key `globs`, here and in the files of other hosts.
pub(crate) const GLOBS: &[&str] = &["globs", "applyTo", "paths", "fileMatchPattern"];

/// Conditions that are globs: the files to watch edits and writes of, and those to leave out.
struct FileConditions {
    globs: Vec<String>,
    excluded: Vec<String>,
}

impl FileConditions {
    fn is_empty(&self) -> bool {
        self.globs.is_empty() && self.excluded.is_empty()
    }
}

fn split_all(entries: &Strings) -> Vec<String> {
    entries.0.iter().flat_map(|entry| split_tokens(entry)).collect()
}
