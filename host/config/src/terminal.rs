//! `[terminal]` of the operator's file: how answers are shown.

use crate::typed::TerminalFile;

/// How answers are shown at a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSettings {
    /// Their Markdown is rendered.
    pub markdown: bool,
}

impl TerminalSettings {
    pub(crate) fn of(typed: &TerminalFile) -> Self {
        Self { markdown: typed.markdown }
    }
}
