//! Human-readable diagnostics: code, message, the source line with a caret, and help.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use flow::{Diagnostic, Label, Severity};

/// Renders one diagnostic. The result does not end with a line end.
pub fn render(diagnostic: &Diagnostic, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.headline()).id(diagnostic.code.as_str()));
    for (index, label) in diagnostic.labels.iter().enumerate() {
        let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        group = group.element(snippet(label, kind));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

fn snippet(label: &Label, kind: AnnotationKind) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    let words = Some(label.text.as_str()).filter(|words| !words.is_empty());
    let mark = kind.span(label.location.span.clone()).label(words);
    let file = &label.location.file;
    Snippet::source(file.text.as_str()).path(file.shown()).annotation(mark)
}

/// Several problems. When it is returned as an error, at least one of them is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Renders all of them, with an empty line between two.
    pub fn render(&self, colour: bool) -> String {
        self.0.iter().map(|diagnostic| render(diagnostic, colour)).collect::<Vec<_>>().join("\n\n")
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
