//! Primitives for front ends: pure state machines that make what a chat shows of a session's events.
//!
//! | primitive | state |
//! |---|---|
//! | [`MessageLog`] | the messages, with their tool calls |
//! | [`ToolConfirmations`] | questions about tool calls |
//! | [`MessageSteering`] | the user's messages that wait or are on their way |
//! | [`StreamingText`] | the text of the current answer |
//! | [`ChatSession`] | all of them, and the mode |
//!
//! Each works alone, or driven by a parent: `process` takes an event and returns whether what is shown has [`Changed`]. None does I/O, reads a
//! clock or starts a task: what is to be done with the session is a [`Command`] that the front end's driver carries out. A delta costs
//! the same however long the conversation is, and snapshots share everything with the state.
//!
//! ```
//! use flow::{Event, EventKind, Message, RunPosition};
//! use tidegate_chat::{ChatMode, ChatSession, Command};
//!
//! let mut chat = ChatSession::default();
//! chat.submit("Hello");
//! assert!(matches!(chat.take_commands().as_slice(), [Command::Prompt { .. }]));
//!
//! // The events of the session, as a subscription gives them.
//! let place = RunPosition { turn: 1, step: 1, attempt: 1 };
//! let kinds = [
//!     EventKind::TurnStart,
//!     EventKind::InputReceived { id: None, message: Message::user("Hello").into() },
//!     EventKind::CognitionOutDelta { text: "Good ".into(), index: 0, is_final: false },
//!     EventKind::CognitionOutDelta { text: "morning".into(), index: 1, is_final: false },
//! ];
//! for (seq, kind) in (0..).zip(kinds) {
//!     if chat.process(&Event::new(seq, 0, place, kind)).is_yes() {
//!         let state = chat.snapshot(); // draw it
//!         assert_eq!(state.mode, ChatMode::Streaming);
//!     }
//! }
//! let texts: Vec<String> = chat.snapshot().messages.messages().map(|message| message.text()).collect();
//! assert_eq!(texts, ["Hello", "Good morning"]);
//! ```
#![forbid(unsafe_code)]

mod answer;
mod attachments;
mod command;
mod confirmations;
mod limit;
mod list;
mod log;
mod message;
mod question;
#[cfg(feature = "schema")]
mod schema;
mod session;
mod steering;
mod streaming;
mod text;
mod turns;

pub use flow::is_blank;

pub use attachments::{Attachment, AttachmentError, Attachments};
pub use command::{Answer, Command, CommandSource, Outgoing, OutgoingId};
pub use confirmations::{AnswerError, ConfirmationPolicy, ConfirmationsState, Policy, ToolConfirmations};
pub use limit::PendingLimit;
pub use list::{List, Shared};
pub use log::{
    BlockChange, LogChange, LogOptions, LogSnapshot, LogState, MessageChange, MessageLog, MessagePart, RenderMode,
    ThreadChange, Transform,
};
pub use message::{
    Author, Block, BlockKind, Changed, ChatImage, ChatMessage, ChildThread, MessageId, Note, PlanItem, ToolEntry,
    ToolStatus, TurnError,
};
pub use question::{ArgumentState, PreviewState, Question, QuestionId};
#[cfg(feature = "schema")]
pub use schema::chat_schema;
pub use session::{
    ChatMode, ChatOptions, ChatSession, ChatState, EventHook, LastSubmitted, ModeDeriver, ModeInput, SavedChat,
    default_mode,
};
pub use steering::{
    FlushMode, MessageSteering, NotWaiting, Receipt, Sent, SteeringMode, SteeringOptions, SteeringProgress,
    SteeringState, Waiting, Way,
};
pub use streaming::StreamingText;
pub use text::{Str, Text};
pub use turns::{TurnSummary, TurnTokens};
