//! What JavaScript can have an instance do, next to events.

use chat::{Answer, Attachment, ChildThread, OutgoingId, QuestionId, Receipt, SteeringMode};
use serde::Deserialize;
use serde_json::Value;

/// An action of the user or of the driver, as the [corpus](../../../../tests/corpus/chat/README.md) has them, and a few of the driver alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the method of a primitive that has its name")]
pub enum Action {
    Submit {
        text: String,
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    Steer {
        text: String,
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    Queue {
        text: String,
    },
    Interrupt {
        text: String,
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    Edit {
        id: OutgoingId,
        text: String,
    },
    Remove {
        id: OutgoingId,
    },
    TakeBack {
        id: OutgoingId,
    },
    Flush {},
    ClearQueue {},
    Clear {},
    SetMode {
        mode: SteeringMode,
    },
    Acknowledge {
        id: OutgoingId,
        r#as: Receipt,
    },
    Receipt {
        id: OutgoingId,
    },
    Respond {
        question: QuestionId,
        answer: Answer,
    },
    AnswerFailed {
        question: QuestionId,
        why: String,
    },
    PolicyFailed {
        question: QuestionId,
        why: String,
    },
    Attach {
        name: String,
        media_type: String,
        source: String,
    },
    Detach {
        index: usize,
    },
    Save {},
    Restore {
        chat: Value,
    },
    RestoreChild {
        child: ChildThread,
        chat: Value,
    },
}
