//! A rule set as read, whatever its format.

use std::fmt;

use flow::{Diagnostic, Location};

use crate::LeftOut;
use crate::engine::Engine;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `gitleaks.toml`, with `[[rules]]`.
    Gitleaks,
    /// The configuration of TruffleHog 3 in YAML, with custom `detectors`.
    Trufflehog,
    /// The rules of TruffleHog 2 in JSON: names and regular expressions.
    TrufflehogRegexes,
    /// The baseline of detect-secrets in JSON.
    DetectSecrets,
}

impl Format {
    /// All formats, as a message lists them.
    pub const READ: &str = "gitleaks (TOML with `[[rules]]`), TruffleHog custom detectors (YAML with `detectors`), TruffleHog 2 rules (JSON, \
                            `{\"name\": \"expression\"}`), and detect-secrets baselines (JSON with `plugins_used`)";
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gitleaks => "gitleaks rules",
            Self::Trufflehog => "TruffleHog custom detectors",
            Self::TrufflehogRegexes => "TruffleHog 2 rules",
            Self::DetectSecrets => "detect-secrets baseline",
        })
    }
}

/// A rule set with all its parts.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) format: Format,
    pub(crate) detectors: Vec<Detector>,
    /// The allow lists of the set, for all detectors.
    pub(crate) allowed: Vec<AllowList>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) left_out: Vec<LeftOut>,
}

impl Set {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, detectors: Vec::new(), allowed: Vec::new(), skipped: Vec::new(), left_out: Vec::new() }
    }
}

/// A rule of the set that is no rule file, and why.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Its name in the rule set.
    pub id: String,
    /// The reason, at its place in the rule set.
    pub why: Diagnostic,
}

/// One rule of a set.
#[derive(Debug)]
pub(crate) struct Detector {
    /// Its name in the rule set.
    pub(crate) id: String,
    pub(crate) place: Location,
    pub(crate) description: String,
    /// The expressions that it looks for, of which one has to match.
    pub(crate) expressions: Vec<Expression>,
    /// Expressions that have to match in the same text as well, each of them.
    pub(crate) also: Vec<Expression>,
    /// One of these words has to be in the same text, in any case.
    pub(crate) keywords: Vec<String>,
    /// An expression for the paths of the files that it is about.
    pub(crate) path: Option<Expression>,
    pub(crate) part: Part,
    pub(crate) allowed: Vec<AllowList>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// A regular expression, as [`Engine::spell`] spells it, and its place.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    pub(crate) place: Location,
}

impl Expression {
    pub(crate) fn read_by(self, engine: Engine) -> Self {
        Self { text: engine.spell(&self.text), ..self }
    }
}

/// Which part of a match is the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The first group that is not empty; without groups all of it.
    FirstGroup,
    Group(usize),
    Match,
}

/// A list of values that are no secrets, and of places where none are.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowList {
    pub(crate) target: Target,
    /// Expressions that are found in the target.
    pub(crate) expressions: Vec<String>,
    /// Words that the secret contains, in any case.
    pub(crate) words: Vec<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) commits: usize,
    /// All kinds of these have to be true, not one of them.
    pub(crate) all: bool,
}

impl AllowList {
    /// Whether it consists of expressions about the secret, one of which is enough.
    pub(crate) fn is_about_secret_alone(&self) -> bool {
        let others = !self.words.is_empty() || (self.all && (!self.paths.is_empty() || self.commits > 0));
        self.target == Target::Secret && !self.expressions.is_empty() && !others
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    #[default]
    Secret,
    Match,
    Line,
}
