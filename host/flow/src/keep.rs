//! Which text a session keeps of what a callback changes: what it was given, or what the user saw.

use crate::{Callback, KeptText, Registered, RuleMatch, StreamKind};

#[allow(clippy::derivable_impls, reason = "the type is that of a macro, which has no defaults")]
impl Default for KeptText {
    fn default() -> Self {
        Self::Original
    }
}

impl KeptText {
    /// Whether a callback has a choice: what it changes is shown, and the conversation could have either text.
    pub fn is_choice_of(callback: &Callback) -> bool {
        match callback {
            Callback::PlainText(_) | Callback::Tag(_) | Callback::ToolCall | Callback::ToolResult => true,
            Callback::InputMessages | Callback::LlmOutput(_) | Callback::TtsrTriggered => false,
        }
    }
}

/// Of what the user saw is kept in place of what the model, or a tool, wrote.
///
/// One extension is enough: it has checked the text as those before it left it, so that nothing else of it is known to be harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The text of answers.
    pub answer: bool,
    /// The reasoning, block by block.
    pub thinking: bool,
    /// The arguments of calls of tools.
    pub calls: bool,
    /// The results of these calls.
    pub results: bool,
}

impl Keeping {
    /// What these callbacks, of all extensions of a session, ask for.
    pub fn of<'r>(registered: impl IntoIterator<Item = &'r Registered>) -> Self {
        let mut own = Self::default();
        for one in registered.into_iter().filter(|one| one.keep == KeptText::Shown) {
            match &one.callback {
                Callback::PlainText(options) => {
                    own.answer |= options.answer;
                    own.thinking |= options.thinking;
                }
                Callback::Tag(_) => own.answer = true,
                Callback::ToolCall => own.calls = true,
                Callback::ToolResult => own.results = true,
                Callback::InputMessages | Callback::LlmOutput(_) | Callback::TtsrTriggered => {}
            }
        }
        own
    }

    /// The matches as anybody but the engine gets them: what matched was not seen, so that it is in none whose stream is kept as it was
    /// seen.
    #[must_use]
    pub fn evidence_of(self, mut matches: Vec<RuleMatch>) -> Vec<RuleMatch> {
        for found in &mut matches {
            let hides = match found.stream {
                StreamKind::Text => self.answer,
                StreamKind::Thinking => self.thinking,
                StreamKind::Tool { .. } => self.calls,
            };
            if hides {
                found.evidence.hide();
            }
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TextOptions, TextUnit};

    #[test]
    fn one_extension_is_enough() {
        let of = |callback: Callback, keep| Registered { keep, ..Registered::from(callback) };
        let text = |answer, thinking| Callback::PlainText(TextOptions { unit: TextUnit::Line, answer, thinking });
        let (answer, thinking) = (text(true, false), text(false, true));
        let both = [of(answer.clone(), KeptText::Original), of(thinking.clone(), KeptText::Shown)];
        assert_eq!(Keeping::of(&both), Keeping { thinking: true, ..Keeping::default() });
        let tags = [of(answer, KeptText::Original), of(Callback::Tag(Vec::new()), KeptText::Shown)];
        assert_eq!(Keeping::of(&tags), Keeping { answer: true, ..Keeping::default() });
        let tools = [Callback::ToolCall, Callback::ToolResult].map(|one| of(one, KeptText::Shown));
        assert_eq!(Keeping::of(&tools), Keeping { calls: true, results: true, ..Keeping::default() });
        assert_eq!(Keeping::of(&[of(thinking, KeptText::Original)]), Keeping::default());
    }
}
