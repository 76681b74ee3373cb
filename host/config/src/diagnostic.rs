//! Human-readable diagnostics: code, message, the source line with a caret, and help.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use flow::{Diagnostic, Label, Severity};

use crate::mask;

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

/// The most bytes that are marked: of a line that is longer than the screen the renderer shows what is near the mark.
const MAX_MARKED: usize = 100;

fn snippet(label: &Label, kind: AnnotationKind) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    let words = Some(label.text.as_str()).filter(|words| !words.is_empty());
    let file = &label.location.file;
    // A byte order mark is not a character of the first line.
    let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text);
    let shift = |at: usize| at.saturating_sub(file.text.len() - text.len());
    let span = &label.location.span;
    let (start, end) = (shift(span.start), shift(span.end));
    let mark = kind.span(start..end.min(text.floor_char_boundary(start + MAX_MARKED))).label(words);
    Snippet::source(mask::without_known(text, &(start..end))).path(file.shown()).annotation(mark)
}

/// A diagnostic with its place and what to do, in one line. Characters that control a terminal are escaped: rule files come from
/// strangers.
pub fn in_one_line(one: &Diagnostic) -> String {
    let place = one.location().map(|at| format!(" ({}:{})", at.file.shown(), at.line())).unwrap_or_default();
    let help = one.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    let line = format!("{}{place}{help}", one.headline());
    line.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Several problems. When it is returned as an error, at least one of them is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Renders all of them, with an empty line between two.
    pub fn render(&self, colour: bool) -> String {
        self.0.iter().map(|diagnostic| render(diagnostic, colour)).collect::<Vec<_>>().join("\n\n")
    }

    /// All of them in one line, as in [`in_one_line`].
    pub fn in_one_line(&self) -> String {
        self.0.iter().map(in_one_line).collect::<Vec<_>>().join("; ")
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
