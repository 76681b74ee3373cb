//! The bodies of requests and responses: what crosses the wire, with its schema.

use std::collections::BTreeSet;

use chat::{Answer, Command, Outgoing, OutgoingId, QuestionId, Receipt};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tidegate::limit::LimitDecision;

use super::problem::Problem;
use super::sent::{check_content, check_message};
use super::sessions::MAX_ID;
use crate::conventions::attachment;

/// What a session is created with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSession {
    /// Chosen by the client: the same one again creates no other session.
    #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
    pub(super) id: Option<String>,
    /// The name of the agent, for rules and plugins that name agents. Default: `main`.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    pub(super) agent: Option<String>,
    /// One of the models that the operator offers. Default: the host's.
    pub(super) model: Option<String>,
}

/// Where a fork begins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFork {
    /// Chosen by the client: the same one again creates no other session.
    #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
    pub(super) id: Option<String>,
    /// The turn after which it continues, from 1. Default: the last one that has finished.
    #[serde(default, deserialize_with = "turn")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) turn: Option<u32>,
}

/// Reads the number of a turn. A number without a fraction is a whole one in JSON, however it is written.
fn turn<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    if number.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&number) {
        return Err(D::Error::custom("`turn` is a whole number from 1"));
    }
    // It is in the range, and has no fraction.
    Ok(Some(number as u32))
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SessionState {
    /// No turn runs.
    Idle,
    /// A turn runs.
    Running,
    /// A turn waits for a person: for an answer, or for a decision about a limit.
    Waiting,
    /// The last turn has no end: the command `continue` continues it.
    Interrupted,
}

/// What a list shows of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Summary {
    /// The session's id.
    pub(super) id: String,
    /// The start of the first input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// The name of its agent.
    pub(super) agent: String,
    /// The model that answers; absent where that is only known when the session is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The user whose it is.
    pub(super) owner: String,
    /// The users with whom it is shared.
    pub(super) users: BTreeSet<String>,
    /// Whether it is a conversation of a gateway, which can only be read, exported and deleted here. Absent where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(super) gateway: bool,
    /// What it is doing.
    pub(super) state: SessionState,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub(super) created_ms: u64,
    /// When something was recorded last, in milliseconds since 1970-01-01 UTC.
    pub(super) updated_ms: u64,
    /// The number of its last turn that has finished; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<u32>,
}

/// All sessions of a user, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    /// Those of the user, and those that are shared with the user.
    pub(super) sessions: Vec<Summary>,
}

/// A message of the user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageBody {
    /// Chosen by the client, and unique in the session: a message is taken once.
    #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
    id: String,
    /// What the user wrote.
    text: String,
    /// What goes with it.
    #[serde(default)]
    attachments: Vec<AttachmentBody>,
}

/// A file or an address that goes with a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttachmentBody {
    /// The name that the user sees.
    name: String,
    /// Its media type, such as `image/png`.
    media_type: String,
    /// An address, or the content in base64.
    source: String,
}

/// A decision about a tool call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum AnswerBody {
    /// The call runs as it was shown.
    Approve,
    /// The call runs with other arguments.
    Edit {
        /// The arguments as JSON.
        arguments: String,
    },
    /// The call runs, and later calls that the question names need no answer.
    Always,
    /// The call does not run.
    Deny {
        /// The reason, for the model.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// A decision about a request for a higher limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LimitBody {
    /// The limit is raised.
    Approve {
        /// The new limit. Default: the proposed one.
        #[serde(default)]
        max: Option<f64>,
    },
    /// The limit stays.
    Deny {
        /// The reason, for the record.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// A child agent, as questions name it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "clients send it as the state has it, and the id of the question is enough")]
pub(super) struct ChildBody {
    /// The thread of the child.
    id: String,
    /// The name of the agent.
    agent: String,
}

/// Something to do in a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum CommandBody {
    /// Start a turn with these messages.
    Prompt {
        /// The input of the turn.
        #[schemars(length(min = 1, max = 64))]
        messages: Vec<MessageBody>,
    },
    /// Give the running turn a message.
    Steer {
        /// The message, under an id of its own.
        message: MessageBody,
    },
    /// Stop what the model is writing, and give it a message.
    Interrupt {
        /// The message, under an id of its own.
        message: MessageBody,
    },
    /// Queue a message, which is sent when the session is idle.
    Queue {
        /// The message, under an id of its own.
        message: MessageBody,
    },
    /// Send from the queue now.
    Flush {
        /// Chosen by the client: the same one again does nothing.
        #[serde(default)]
        #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
        id: Option<String>,
    },
    /// Replace the text of a message that waits.
    Edit {
        /// The message with its new text.
        message: MessageBody,
    },
    /// Remove a message that waits.
    Remove {
        /// The id of the message.
        #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
        id: String,
    },
    /// Take a message back that waits.
    TakeBack {
        /// The id of the message.
        #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
        id: String,
    },
    /// Answer a question about a tool call.
    Answer {
        /// The id of the question.
        question: String,
        /// The id of the call.
        #[serde(default)]
        #[allow(dead_code, reason = "clients send it as the state has it, and the id of the question is enough")]
        call: Option<String>,
        /// The child agent that asks.
        #[serde(default)]
        #[allow(dead_code, reason = "clients send it as the state has it, and the id of the question is enough")]
        child: Option<ChildBody>,
        /// The decision of the user.
        answer: AnswerBody,
    },
    /// Cancel the running turn.
    Cancel {
        /// Chosen by the client: the same one again does nothing.
        #[serde(default)]
        #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
        id: Option<String>,
    },
    /// Continue the conversation without an input.
    Continue {
        /// Chosen by the client: the same one again does nothing.
        #[serde(default)]
        #[schemars(length(min = 1, max = 128), regex(pattern = ID))]
        id: Option<String>,
    },
    /// Decide about a request for a higher limit.
    DecideLimit {
        /// The id of the request.
        request: String,
        /// The decision of the user.
        decision: LimitBody,
    },
}

/// What became of a message.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReceiptBody {
    /// The id of the message.
    pub(super) id: String,
    /// What became of it.
    #[serde(flatten)]
    #[schemars(with = "ReceiptSchema")]
    pub(super) receipt: Receipt,
}

/// The schema of a receipt, which the chat primitives have, too.
#[derive(JsonSchema)]
#[schemars(rename = "Receipt")]
#[serde(tag = "receipt", rename_all = "snake_case")]
#[allow(dead_code, reason = "it is only a schema")]
enum ReceiptSchema {
    /// It waits in the front end.
    Queued,
    /// The session has it, and has not delivered it.
    Sent,
    /// It is in the conversation.
    Delivered {
        /// The turn, from 1.
        turn: u32,
        /// The step of the turn; 0: before the first.
        step: u32,
        /// The number of the event.
        seq: u64,
    },
    /// It was removed before it was delivered.
    Removed,
    /// The user has it back.
    Returned,
}

/// The answer to a command.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Receipts {
    /// One for each message that the command names.
    pub(super) receipts: Vec<ReceiptBody>,
}

impl MessageBody {
    pub(super) fn outgoing(self) -> Result<Outgoing, Problem> {
        let message = self.unchecked();
        check_message(&message)?;
        Ok(message)
    }

    /// Returns the new text of a message that waits. What else it has, the session knows.
    fn edited(self) -> Result<Outgoing, Problem> {
        let message = self.unchecked();
        check_content(&message)?;
        Ok(message)
    }

    fn unchecked(self) -> Outgoing {
        let attached = self.attachments.iter().map(|one| attachment(Some(&one.name), &one.media_type, &one.source));
        Outgoing::new(OutgoingId::new(self.id), &self.text, attached.collect())
    }
}

impl From<AnswerBody> for Answer {
    fn from(body: AnswerBody) -> Self {
        match body {
            AnswerBody::Approve => Self::Approve,
            AnswerBody::Edit { arguments } => Self::Edit { arguments: arguments.into() },
            AnswerBody::Always => Self::Always,
            AnswerBody::Deny { reason } => Self::Deny { reason: reason.map(Into::into) },
        }
    }
}

impl LimitBody {
    /// Returns the decision; `proposed`: the limit that the session asks for.
    pub(super) fn decision(self, proposed: Option<f64>) -> LimitDecision {
        match self {
            // A request that is not open is refused, whatever the limit is.
            Self::Approve { max } => LimitDecision::Approved { max: max.or(proposed).unwrap_or(f64::MAX) },
            Self::Deny { reason } => LimitDecision::Denied { reason: reason.unwrap_or_default() },
        }
    }
}

impl CommandBody {
    /// Whether it decides about something that the session asks. Other commands do not wait for what is about to be asked: such as one that
    /// cancels the turn that asks.
    pub(super) fn is_decision(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::DecideLimit { .. })
    }

    /// Returns the command of the chat primitives; `None`: it is one of the server alone.
    ///
    /// # Errors
    /// An id cannot be one.
    pub(super) fn of_chat(self) -> Result<Result<Command, ServerCommand>, Problem> {
        let named = |id: String| check_id(&id).map(|()| OutgoingId::new(id));
        Ok(Ok(match self {
            Self::Prompt { messages } => {
                if messages.is_empty() || messages.len() > MAX_MESSAGES {
                    return Err(Problem::invalid(format!("a prompt has between 1 and {MAX_MESSAGES} messages")));
                }
                Command::Prompt { messages: messages.into_iter().map(MessageBody::outgoing).collect::<Result<_, _>>()? }
            }
            Self::Steer { message } => Command::Steer { message: message.outgoing()? },
            Self::Interrupt { message } => Command::Interrupt { message: message.outgoing()? },
            Self::Queue { message } => Command::Queue { message: message.outgoing()? },
            Self::Edit { message } => Command::Edit { message: message.edited()? },
            Self::Remove { id } => Command::Remove { id: named(id)? },
            Self::TakeBack { id } => Command::TakeBack { id: named(id)? },
            Self::Answer { question, answer, .. } => Command::Answer {
                question: QuestionId::new(question),
                call: "".into(),
                child: None,
                answer: answer.into(),
            },
            Self::Flush { id } => return Ok(Err(ServerCommand::Once { what: Once::Flush, id: checked(id)? })),
            Self::Cancel { id } => return Ok(Err(ServerCommand::Once { what: Once::Cancel, id: checked(id)? })),
            Self::Continue { id } => return Ok(Err(ServerCommand::Once { what: Once::Continue, id: checked(id)? })),
            Self::DecideLimit { request, decision } => {
                return Ok(Err(ServerCommand::DecideLimit { request, decision }));
            }
        }))
    }
}

/// The most messages of a prompt.
const MAX_MESSAGES: usize = 64;

/// A command that is no message and no answer: what makes its repetition harmless is an id of its own.
#[derive(Debug)]
pub(super) enum ServerCommand {
    Once { what: Once, id: Option<String> },
    DecideLimit { request: String, decision: LimitBody },
}

/// What is done at most once for an id.
#[derive(Clone, Copy, Debug)]
pub(super) enum Once {
    Flush,
    Cancel,
    Continue,
}

/// The characters of an id, as a regular expression: all but those of control.
const ID: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

/// # Errors
/// It is empty or too long, or has characters that cannot be seen.
pub(super) fn check_id(id: &str) -> Result<(), Problem> {
    if id.is_empty() || id.chars().count() > MAX_ID || id.chars().any(char::is_control) {
        return Err(Problem::invalid(format!("an id has between 1 and {MAX_ID} characters, and none of control")));
    }
    Ok(())
}

/// # Errors
/// As [`check_id`].
pub(super) fn checked(id: Option<String>) -> Result<Option<String>, Problem> {
    id.as_deref().map_or(Ok(()), check_id).map(|()| id)
}
