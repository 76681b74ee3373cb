//! The features of a rule set that are not carried over.

use std::fmt;

/// A feature of a scanner that a rule file does not have, or not exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// A lower bound of the entropy of the secret.
    Entropy,
    /// Values that a secret, a match or a line must not have.
    AllowList,
    /// The same, for all rules of the set.
    SetAllowList,
    /// An allow list for a rule that is not there.
    TargetRule,
    /// Files that are not searched.
    AllowedFiles,
    /// The files that are searched.
    Files,
    /// Commits that are not searched: an answer is in no commit.
    Commits,
    /// Words that have to be near, which the rule does without.
    Keywords,
    /// Streams that are not watched, because the rule is about files.
    Streams,
    /// Words and further expressions that have to be near. The rule asks for them with `all`, which is not the same in text that is shown
    /// while it is written.
    Nearby,
    /// The part that is secret: all of the match is hidden.
    SecretPart,
    /// A rule that has to match nearby, too.
    Required,
    /// Characters that a secret must contain.
    Validation,
    /// A request that verifies a secret.
    Verification,
    /// Another rule set that this one extends.
    Extended,
    /// The search of a detector, where that is code.
    Detector,
    /// Characters that the engine of the scanner matches in addition.
    Engine,
    /// A filter that is code, or a list in a file of its own.
    Filter,
    /// A key that the format does not have.
    UnknownKey,
}

impl Feature {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entropy => "entropy",
            Self::AllowList => "allow-list",
            Self::SetAllowList => "set-allow-list",
            Self::TargetRule => "target-rule",
            Self::AllowedFiles => "allowed-files",
            Self::Files => "files",
            Self::Commits => "commits",
            Self::Keywords => "keywords",
            Self::Streams => "streams",
            Self::Nearby => "nearby",
            Self::SecretPart => "secret-part",
            Self::Required => "required",
            Self::Validation => "validation",
            Self::Verification => "verification",
            Self::Extended => "extended",
            Self::Detector => "detector",
            Self::Engine => "engine",
            Self::Filter => "filter",
            Self::UnknownKey => "unknown-key",
        }
    }

    /// The name of the feature for a person, and the effect of leaving it out.
    pub fn about(self) -> &'static str {
        match self {
            Self::Entropy => "the entropy of the secret: values that are not random match, too",
            Self::AllowList => "allow list of the rule: what it excludes matches, too",
            Self::SetAllowList => "allow list of the set: what it excludes matches, too",
            Self::TargetRule => "allow list whose `targetRules` names no imported rule",
            Self::AllowedFiles => "files that are not searched: they are watched, too",
            Self::Files => "the files that are searched: all are watched",
            Self::Commits => "commits that are not searched: an answer is in none",
            Self::Keywords => "keywords: the rule fires without them, too",
            Self::Streams => "text and commands: they are not watched, only calls that name such a file are",
            Self::Nearby => {
                "`all` asks for words or expressions nearby: in text, a secret before them is shown; a secret in another argument or block \
                 passes"
            }
            Self::SecretPart => "the part that is secret: all of a match is hidden",
            Self::Required => "rules that have to match nearby: the rule fires without them, too",
            Self::Validation => "characters that a secret must contain: values without them match, too",
            Self::Verification => "verification by a request: what matches counts as a secret",
            Self::Extended => "the rule set that it extends: import that one, too",
            Self::Detector => "the detector is code: the conditions are Tidegate's own, for the same secrets",
            Self::Engine => {
                "letters and digits that are not ASCII: Python's `\\w`, `\\d` and `\\b` include them, those of a condition do not"
            }
            Self::Filter => "filters that are code or a list elsewhere: what they exclude matches, too",
            Self::UnknownKey => "keys that the format does not have",
        }
    }
}

/// Something that is not carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The kind of it.
    pub feature: Feature,
    /// The value in this rule, such as `at least 3.5`.
    pub what: String,
}

impl LeftOut {
    pub(crate) fn new(feature: Feature, what: impl Into<String>) -> Self {
        Self { feature, what: what.into() }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.feature.about();
        if self.what.is_empty() { f.write_str(about) } else { write!(f, "{about} ({})", self.what) }
    }
}
