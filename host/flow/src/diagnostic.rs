//! Diagnostics: what is wrong with a file or a rule, where, and what to do about it.
//!
//! One type from the crate that finds a problem to the terminal and to JSON. A diagnostic is plain data: who shows it
//! reads its fields; its message is never parsed. Rendering with the source line and a caret is the job of `config`.

mod code;
mod source;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use code::DiagnosticCode;
pub use source::{Location, SourceFile};

use crate::{PluginId, RuleOrigin};

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The file is used; something in it may not do what its author meant.
    Warning,
    /// The file, or the part of it that the diagnostic is about, is not used.
    Error,
}

impl Severity {
    /// `warning` or `error`, as it is shown and as it is written to JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The thing a diagnostic is about, where that is more than a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A stream rule.
    Rule {
        /// The rule's name.
        name: String,
        /// The file or manifest that defines it; `None` where no rule has the name.
        origin: Option<RuleOrigin>,
    },
    /// The plugin of this id.
    Plugin(PluginId),
}

/// A range of a source file, with a few words to show next to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The marked range.
    pub location: Location,
    /// The words next to the mark; may be empty.
    pub text: String,
}

/// A problem that was found in a file or in what it declares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Which kind of problem it is; stable across versions.
    pub code: DiagnosticCode,
    /// How serious it is.
    pub severity: Severity,
    /// The rule or plugin it is about. The message does not repeat its name.
    pub subject: Option<Subject>,
    /// The problem in one line.
    pub message: String,
    /// The places it is about. The first one is where the problem is, the others explain it.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without subject, labels and help.
    pub fn new(severity: Severity, code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self { code, severity, subject: None, message: message.into(), labels: Vec::new(), help: None }
    }

    /// Creates a diagnostic that keeps its file or item from being used.
    pub fn error(code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// Creates a diagnostic in spite of which its file or item is used.
    pub fn warning(code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Names the rule it is about.
    #[must_use]
    pub fn about_rule(mut self, name: impl Into<String>, origin: Option<&RuleOrigin>) -> Self {
        self.subject = Some(Subject::Rule { name: name.into(), origin: origin.cloned() });
        self
    }

    /// Names the plugin it is about.
    #[must_use]
    pub fn about_plugin(mut self, plugin: &PluginId) -> Self {
        self.subject = Some(Subject::Plugin(plugin.clone()));
        self
    }

    /// Adds a place; `text` may be empty. The first call gives the place of the problem itself.
    #[must_use]
    pub fn at(mut self, location: Location, text: impl Into<String>) -> Self {
        self.labels.push(Label { location, text: text.into() });
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The place of the problem itself.
    pub fn location(&self) -> Option<&Location> {
        self.labels.first().map(|label| &label.location)
    }

    /// The name of the rule it is about.
    pub fn rule(&self) -> Option<&str> {
        match &self.subject {
            Some(Subject::Rule { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Whether it is about the rule of this name from this origin. One that names no origin is about all rules of its name.
    pub fn is_about_rule(&self, rule: &str, from: &RuleOrigin) -> bool {
        match &self.subject {
            Some(Subject::Rule { name, origin }) => name == rule && origin.as_ref().is_none_or(|origin| origin == from),
            _ => false,
        }
    }

    /// The first line of the diagnostic as it is shown: the subject and the message. The origin of a rule is left out
    /// where a label shows the file anyway.
    pub fn headline(&self) -> String {
        let message = &self.message;
        match &self.subject {
            Some(Subject::Rule { name, origin: Some(origin) }) if !self.shows(origin) => {
                format!("rule `{name}` ({origin}): {message}")
            }
            Some(Subject::Rule { name, .. }) => format!("rule `{name}`: {message}"),
            Some(Subject::Plugin(id)) => format!("plugin `{id}`: {message}"),
            None => message.clone(),
        }
    }

    /// Whether the first label is in the file that defines the rule. Its path may be written in another way than the origin's.
    fn shows(&self, origin: &RuleOrigin) -> bool {
        self.location().is_some_and(|at| at.file.path.file_name() == Path::new(&origin.path).file_name())
    }

    /// The same diagnostic with every string in it changed by `change`, except the text of its files: for output where
    /// control characters and line ends must not be printed as they are.
    #[must_use]
    pub fn map_strings(mut self, change: impl Fn(&str) -> String) -> Self {
        self.message = change(&self.message);
        self.help = self.help.as_deref().map(&change);
        if let Some(Subject::Rule { name, origin }) = &mut self.subject {
            *name = change(name);
            origin.iter_mut().for_each(|origin| origin.path = change(&origin.path));
        }
        for label in &mut self.labels {
            label.text = change(&label.text);
            let file = &label.location.file;
            let path = file.path.to_string_lossy();
            let changed = change(&path);
            if changed != path {
                label.location.file = SourceFile::new(changed, file.text.as_str());
            }
        }
        self
    }
}

impl Label {
    /// A place in `file` without words next to it.
    pub fn new(file: &Arc<SourceFile>, span: Range<usize>) -> Self {
        Self { location: Location::new(file, span), text: String::new() }
    }
}

/// In one line: severity, code, subject, message and help.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity.as_str(), self.code, self.headline())?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}
