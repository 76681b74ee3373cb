//! What is wrong with a rule, said so that a person can mend it. Others draw the caret; this holds the place.

use std::fmt;
use std::ops::Range;

use crate::Source;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The rule works, but perhaps not as meant.
    Warning,
    /// The rule, or this part of it, is not used.
    Error,
}

/// One finding about one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The rule's name.
    pub rule: String,
    /// Where the rule comes from.
    pub source: Source,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The place, in bytes of the rule file's text; none where the rule has no file of its own.
    pub span: Option<Range<usize>>,
}

impl Diagnostic {
    pub(crate) fn new(severity: Severity, rule: &str, source: &Source, message: impl Into<String>) -> Self {
        Self { severity, rule: rule.into(), source: source.clone(), message: message.into(), help: None, span: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn at(mut self, span: Option<Range<usize>>) -> Self {
        self.span = span;
        self
    }

    /// Line and column of the place in `text` (the file's text), both from 1, columns counted in characters; a byte order
    /// mark is none.
    pub fn line_column(&self, text: &str) -> Option<(usize, usize)> {
        let at = self.span.as_ref()?.start.min(text.len());
        let before = text.get(..at)?;
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before[line_start..].trim_start_matches('\u{feff}');
        Some((before.matches('\n').count() + 1, line.chars().count() + 1))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.severity == Severity::Error { "error" } else { "warning" };
        write!(f, "{word}: rule `{}` ({}): {}", self.rule, self.source, self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}
