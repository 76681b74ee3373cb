//! What is wrong with a file: where, why, and what to do about it; rendered for people.

use std::fmt;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::Place;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file is used; something in it will not do what was meant.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where, and a few words beside the mark.
    pub place: Option<(Place, String)>,
    /// A second place that explains the first, with its words.
    pub also: Option<(Place, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), place: None, also: None, help: None }
    }

    /// A warning without a place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Adds where it is; `label` may be empty.
    #[must_use]
    pub fn at(mut self, place: Place, label: impl Into<String>) -> Self {
        self.place = Some((place, label.into()));
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn also(mut self, place: Place, label: impl Into<String>) -> Self {
        self.also = Some((place, label.into()));
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The diagnostic as people read it: message, file, line, caret, hint. Ends without a line end.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let paths = [&self.place, &self.also].map(|spot| spot.as_ref().map(|(place, _)| shown(&place.source.path)));
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()));
        if let Some((place, label)) = &self.place {
            group = group.element(snippet(place, label, paths[0].as_deref(), AnnotationKind::Primary));
        }
        if let Some((place, label)) = &self.also {
            group = group.element(snippet(place, label, paths[1].as_deref(), AnnotationKind::Context));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

/// The path with `/` on every system, so that the same file gives the same words.
fn shown(path: &Path) -> String {
    path.display().to_string().replace('\\', "/")
}

fn snippet<'a>(
    place: &'a Place,
    label: &'a str,
    path: Option<&'a str>,
    kind: AnnotationKind,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let mark = kind.span(place.span.clone()).label((!label.is_empty()).then_some(label));
    Snippet::source(place.source.text.as_str()).path(path).annotation(mark)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Everything that is wrong; at least one of them an error when it is returned as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// All of them as people read them, a blank line between two.
    pub fn render(&self, colour: bool) -> String {
        self.0.iter().map(|diagnostic| diagnostic.render(colour)).collect::<Vec<_>>().join("\n\n")
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
