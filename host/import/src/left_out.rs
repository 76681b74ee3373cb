//! What of a rule set is not carried over.

use std::fmt;

/// A feature of a scanner that a rule file does not have, or not exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// A lower bound of the entropy of the secret.
    Entropy,
    /// What a secret, a match or a line must not be.
    AllowList,
    /// The same, for all rules of the set.
    SetAllowList,
    /// Files that are not searched.
    AllowedFiles,
    /// The files that are searched.
    Files,
    /// Commits that are not searched: an answer is in no commit.
    Commits,
    /// Words and further expressions that have to be near. The rule asks for them with `all`, which is not the same in text that is shown
    /// while it is written.
    Nearby,
    /// The part that is secret: all of the match is hidden.
    SecretPart,
    /// A rule that has to match nearby, too.
    Required,
    /// What a secret must contain.
    Validation,
    /// A request that verifies a secret.
    Verification,
    /// Another rule set that this one extends.
    Extended,
    /// What a detector looks for, where that is code.
    Detector,
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
            Self::AllowedFiles => "allowed-files",
            Self::Files => "files",
            Self::Commits => "commits",
            Self::Nearby => "nearby",
            Self::SecretPart => "secret-part",
            Self::Required => "required",
            Self::Validation => "validation",
            Self::Verification => "verification",
            Self::Extended => "extended",
            Self::Detector => "detector",
            Self::Filter => "filter",
            Self::UnknownKey => "unknown-key",
        }
    }

    /// What it is, and what follows from leaving it out.
    pub fn about(self) -> &'static str {
        match self {
            Self::Entropy => "the entropy of the secret: values that are not random match, too",
            Self::AllowList => "allow list of the rule: what it excludes matches, too",
            Self::SetAllowList => "allow list of the set: what it excludes matches, too",
            Self::AllowedFiles => "files that are not searched: they are watched, too",
            Self::Files => "the files that are searched: all are watched",
            Self::Commits => "commits that are not searched: an answer is in none",
            Self::Nearby => "what has to be nearby is asked for with `all`: a secret that precedes it in text is shown",
            Self::SecretPart => "the part that is secret: all of a match is hidden",
            Self::Required => "rules that have to match nearby: the rule fires without them, too",
            Self::Validation => "what a secret must contain: values without it match, too",
            Self::Verification => "verification by a request: what matches counts as a secret",
            Self::Extended => "the rule set that it extends: import that one, too",
            Self::Detector => {
                "what the detector looks for is code: the conditions are Tidegate's own, for the same secrets"
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
    /// What it is in this rule, such as `at least 3.5`.
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
