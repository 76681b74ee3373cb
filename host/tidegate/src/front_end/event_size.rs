//! How much memory an event takes, for what keeps events.

use std::io::{self, Write};

use flow::EventKind;
use record::Body;

/// The approximate size of a delta's record without its text.
const OF_DELTA: usize = 64;

/// Returns the size of an event's record in bytes, or `most + 1` if it is larger: no more of it is serialized. All data of an event is in
/// its record, including data of later versions, so that its texts, images and values take about as much memory and no more.
pub(crate) fn recorded(kind: &EventKind, most: usize) -> usize {
    let above = most.saturating_add(1);
    match kind {
        // Deltas are by far the most frequent events.
        EventKind::CognitionOutDelta { text, .. } | EventKind::CognitionReasoningDelta { text } => {
            (OF_DELTA + text.len()).min(above)
        }
        _ => {
            let mut counted = Counted { bytes: 0, most };
            // Serialization stops with an error at the limit: records have string keys, and everything else can be serialized.
            let written = serde_json::to_writer(&mut counted, &Body::of(kind));
            written.map_or(above, |()| counted.bytes)
        }
    }
}

/// Counts the written bytes without keeping them, and fails beyond a limit.
struct Counted {
    bytes: usize,
    most: usize,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        if self.bytes > self.most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
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
        assert!(recorded(&EventKind::TurnStart, 1_000) < 100);
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
            EventKind::CognitionOutDelta { text: text.clone(), index: 0, is_final: false },
            EventKind::CognitionReasoningDelta { text: text.clone() },
            EventKind::InputReceived { id: None, message: Arc::new(image) },
            EventKind::InputQueued { id: id(), way: flow::InputWay::Queue, message: Arc::clone(&message) },
            EventKind::InputReceived { id: None, message: Arc::clone(&message) },
            EventKind::InputEdited { id: id(), text: text.clone(), hidden: false },
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
            let size = recorded(&kind, usize::MAX);
            assert!((1_000..2_500).contains(&size), "{} has {size}", kind.name());
            assert_eq!((recorded(&kind, size), recorded(&kind, size - 1), recorded(&kind, 9)), (size, size, 10));
        }
    }
}
