//! What is shown of the answer under way, and what remains of it.

use tidegate::EventKind;
use tidegate::rule::Action;

/// Follows the events of a session.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    text: String,
    /// A rule stopped the answer or it is repeated: when it is reported as partial, only its kept prefix remains.
    voided: bool,
    /// The answer ended early, and that many bytes of it are kept if another attempt follows. Nothing announces one where a
    /// provider restarts its answer.
    kept: Option<u64>,
}

impl Shown {
    /// Takes an event. Gives the text of an answer when it is accepted.
    pub(crate) fn take(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::CognitionOutDelta { text, .. } => {
                self.cut();
                self.text.push_str(text);
            }
            EventKind::RuleFired { action: Action::Interrupt | Action::Stop, .. } => self.voided = true,
            EventKind::RetryScheduled { .. } => self.voided = !self.text.is_empty(),
            EventKind::CognitionOut { partial: Some(partial), .. } => {
                self.cut();
                self.kept = Some(partial.kept_bytes);
                if std::mem::take(&mut self.voided) {
                    self.cut();
                }
            }
            EventKind::CognitionOut { partial: None, .. } => {
                self.cut();
                self.voided = false;
                return Some(std::mem::take(&mut self.text));
            }
            _ => {}
        }
        None
    }

    /// Another attempt has followed: of the one before it only the kept prefix remains.
    fn cut(&mut self) {
        let kept = self.remains().len();
        self.text.truncate(kept);
        self.kept = None;
    }

    /// The part of the answer that remains if another attempt follows.
    pub(crate) fn remains(&self) -> &str {
        let kept = self.kept.and_then(|kept| usize::try_from(kept).ok()).unwrap_or(usize::MAX).min(self.text.len());
        &self.text[..self.text.floor_char_boundary(kept)]
    }

    /// The turn has ended: what was shown of an answer that was not accepted, the part that a rule stopped left out.
    pub(crate) fn rest(&mut self) -> String {
        let Self { text, voided, .. } = std::mem::take(self);
        if voided { String::new() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use tidegate::event::Partial;

    use super::*;

    fn delta(text: &str) -> EventKind {
        EventKind::CognitionOutDelta { text: text.into(), index: 0, is_final: false }
    }

    fn ended(kept_bytes: Option<u64>) -> EventKind {
        EventKind::CognitionOut {
            text: String::new(),
            keep: tidegate::event::KeptText::Original,
            model: None,
            author: tidegate::message::Origin::Model,
            shown: None,
            retained: tidegate::event::Retained::Nothing,
            partial: kept_bytes.map(|kept_bytes| Partial::new("e", 0, kept_bytes)),
            blocks: Vec::new(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        }
    }

    /// What was accepted, and what is left at the turn's end.
    fn shown(events: &[EventKind]) -> (String, String) {
        let mut shown = Shown::default();
        let accepted = events.iter().filter_map(|event| shown.take(event)).collect();
        (accepted, shown.rest())
    }

    #[test]
    fn a_restarted_answer_is_there_once() {
        for (events, accepted, rest) in [
            (vec![delta("old"), ended(Some(0)), delta("new"), ended(None)], "new", ""),
            (vec![delta("kept old"), ended(Some(5)), delta("new"), ended(None)], "kept new", ""),
            (vec![delta("a"), ended(Some(0)), delta("b"), ended(Some(0)), delta("c"), ended(None)], "c", ""),
            // An attempt that showed nothing.
            (vec![delta("old"), ended(Some(0)), ended(None)], "", ""),
            (vec![delta("old"), ended(Some(0)), ended(Some(0))], "", ""),
            // The turn ends with what was cut off.
            (vec![delta("cut off"), ended(Some(0))], "", "cut off"),
            (vec![delta("old"), ended(Some(0)), delta("cut off"), ended(Some(0))], "", "cut off"),
        ] {
            assert_eq!(shown(&events), (accepted.to_owned(), rest.to_owned()), "{events:?}");
        }
    }

    #[test]
    fn an_answer_that_is_repeated_after_an_error_leaves_nothing() {
        let again = EventKind::RetryScheduled { retry: 1, max_retries: 2, delay_ms: 0, asked: false };
        let events = [delta("old"), again, ended(Some(0))];
        assert_eq!(shown(&events), (String::new(), String::new()));
    }
}
