//! How much memory an event takes, for what keeps events.

use std::io::{self, Write};

use flow::EventKind;
use record::Body;

/// The bytes of an event's record. All that an event has is in its record, also what a later version adds, so that its texts, images and
/// values take about so much memory and no more.
pub(crate) fn recorded(kind: &EventKind) -> usize {
    let mut counted = Counted(0);
    // Nothing is refused: records have string keys, and what is written to only counts.
    let _ = serde_json::to_writer(&mut counted, &Body::of(kind));
    counted.0
}

/// Keeps nothing of what is written but its length.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flow::{CallFailure, CallbackOutcome, Confirmation, Message, Part, ToolOutcome, TurnStatus};

    use super::*;

    #[test]
    fn a_long_text_is_counted_wherever_an_event_has_it() {
        assert!(recorded(&EventKind::TurnStart) < 100);
        let text = "x".repeat(1_000);
        let message = Arc::new(Message::user(text.as_str()));
        let id = || flow::InputId::new("input-1");
        let plugin = || "p".parse::<flow::PluginId>().unwrap_or_else(|error| panic!("{error}"));
        let call = || flow::CallId::new("1");
        let failure = || CallFailure {
            plugin: plugin(),
            called: flow::CallbackKind::PlainText.into(),
            cause: flow::FailureCause::Trap,
            message: text[..400].to_owned(),
            frames: vec![text[..600].to_owned()],
        };
        let callback = |outcome| {
            EventKind::ExtensionCallback(flow::CallbackReport::new(plugin(), flow::CallbackKind::PlainText, outcome, 0))
        };
        let tool =
            |outcome| EventKind::ExtensionTool(flow::ToolReport::new(plugin(), "t".to_owned(), call(), outcome, 0));
        // The signature of a PNG file and what follows, in base64.
        let image = flow::Image::new("image/png", format!("iVBORw0KGgo{}", "A".repeat(993)));
        let image = image.unwrap_or_else(|error| panic!("{error}"));
        let image = Message { parts: vec![Part::Image(image)], ..Message::user("") };
        let kinds = [
            EventKind::InputReceived { id: None, message: Arc::new(image) },
            EventKind::InputQueued { id: id(), way: flow::InputWay::Queue, message: Arc::clone(&message) },
            EventKind::InputReceived { id: None, message: Arc::clone(&message) },
            EventKind::InputEdited { id: id(), text: text.clone() },
            EventKind::HistoryReplaced { messages: vec![message] },
            EventKind::Notice { message: text.clone() },
            EventKind::ToolCallProgress { call: flow::CallId::new("1"), message: text.clone(), percent: None },
            EventKind::ToolConfirmationResolved {
                question: flow::QuestionId::new("question-1"),
                call: flow::CallId::new("1"),
                decision: Confirmation::Edited { arguments: text.clone() },
                by: String::new(),
            },
            EventKind::TurnFinish { status: TurnStatus::failed(text.as_str()) },
            EventKind::TurnFinish { status: TurnStatus::Rejected { by: plugin(), reason: text.clone() } },
            EventKind::TurnFinish {
                status: TurnStatus::Suspended { reason: flow::SuspendReason::Limit, message: text.clone() },
            },
            callback(CallbackOutcome::Skipped(text.clone())),
            callback(CallbackOutcome::NotPermitted(text.clone())),
            callback(CallbackOutcome::Ignored(text.clone())),
            callback(CallbackOutcome::Failed(failure())),
            tool(ToolOutcome::Rejected(text.clone())),
            tool(ToolOutcome::NotPermitted(text.clone())),
            tool(ToolOutcome::Failed(failure())),
            EventKind::ExtensionUnregistered {
                plugin: plugin(),
                action: flow::RegistrationAction::Disable,
                reason: text.clone(),
            },
            EventKind::ContextCompactionEnd {
                summary: Some(text.clone()),
                prune_before_turn: 1,
                kept: 0,
                left_out: Vec::new(),
                used_tokens: 0,
                error: None,
                usage: flow::Usage::default(),
                spend: None,
                charged: flow::Charged::default(),
            },
        ];
        for kind in kinds {
            let size = recorded(&kind);
            assert!((1_000..2_500).contains(&size), "{} has {size}", kind.name());
        }
    }
}
