//! What is shown of the answer under way, and what remains of it.

use tidegate::{Action, EventKind};

/// Follows the events of a session.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    text: String,
    /// A rule stopped the answer or it is repeated: when it is reported as partial, only its kept prefix remains.
    voided: bool,
}

impl Shown {
    /// Takes an event. Gives the text of an answer when it is accepted.
    pub(crate) fn take(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::CognitionOutDelta { text, .. } => self.text.push_str(text),
            EventKind::RuleFired { action: Action::Interrupt | Action::Stop, .. } => self.voided = true,
            EventKind::RetryScheduled { .. } => self.voided = !self.text.is_empty(),
            EventKind::CognitionOut { partial: Some(partial), .. } if std::mem::take(&mut self.voided) => {
                let kept = usize::try_from(partial.stands_bytes).unwrap_or(usize::MAX).min(self.text.len());
                self.text.truncate(self.text.floor_char_boundary(kept));
            }
            EventKind::CognitionOut { partial: None, .. } => {
                self.voided = false;
                return Some(std::mem::take(&mut self.text));
            }
            _ => {}
        }
        None
    }

    /// The turn has ended: what was shown of an answer that was not accepted, the part that a rule stopped left out.
    pub(crate) fn rest(&mut self) -> String {
        let voided = std::mem::take(&mut self.voided);
        let text = std::mem::take(&mut self.text);
        if voided { String::new() } else { text }
    }
}
