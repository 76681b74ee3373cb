//! What a front end's driver is to do: the primitives decide, and the driver calls the session.

use flow::InputId;
use serde::{Deserialize, Serialize};

use crate::attachments::Attachment;
use crate::confirmations::ToolConfirmations;
use crate::message::{Changed, ChildThread};
use crate::question::QuestionId;
use crate::session::ChatSession;
use crate::steering::MessageSteering;
use crate::text::Str;

/// Something to do with the session. A primitive collects commands, and its `take_commands` gives them in order; a driver carries each
/// out once, and reports back what did not work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Command {
    /// Start a turn with these messages as one input.
    Prompt {
        /// At least one message.
        messages: Vec<Outgoing>,
    },
    /// Give the running turn a message, before its next request. If the turn ends first, the message starts the next one.
    Steer {
        /// The message, which was sent as nothing else before.
        message: Outgoing,
    },
    /// Abort the running attempt, whose text is kept, and give the model a message then.
    Interrupt {
        /// The message that the model reads next.
        message: Outgoing,
    },
    /// Queue a message in the session, which sends it when it is idle.
    Queue {
        /// The message, which was sent as nothing else before.
        message: Outgoing,
    },
    /// Send from the session's queue now.
    Flush,
    /// Replace the text of a message that was handed over, unless it was delivered.
    Edit {
        /// The message with its new text.
        message: Outgoing,
    },
    /// Remove a message that was handed over, unless it was delivered.
    Remove {
        /// The id that the message was handed over with.
        id: OutgoingId,
    },
    /// Take a message back that waits in the session, such as to the input line, unless it was delivered. The session returns it to the driver.
    TakeBack {
        /// The id that the message was handed over with.
        id: OutgoingId,
    },
    /// Answer a question about a tool call.
    Answer {
        /// The id of the question, as the state has it.
        question: QuestionId,
        /// The id of the call.
        call: Str,
        /// The child agent that asks; absent for the session itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        child: Option<ChildThread>,
        /// The decision of the person or of the policy.
        answer: Answer,
    },
}

/// A primitive that asks for something to be done with the session: whatever carries commands out works for each of them.
///
/// ```
/// use tidegate_chat::{Command, CommandSource, MessageSteering};
///
/// fn carry_out(source: &mut impl CommandSource) -> Vec<Command> {
///     source.take_commands() // … and the session is called for each of them.
/// }
///
/// let mut steering = MessageSteering::default();
/// steering.submit("Hello", Vec::new());
/// assert!(matches!(carry_out(&mut steering).as_slice(), [Command::Prompt { .. }]));
/// ```
pub trait CommandSource {
    /// What the driver is to do, in order. It is given once.
    fn take_commands(&mut self) -> Vec<Command>;

    /// The driver reports that an answer was refused, or could not be delivered: the question is open again. A primitive that answers no
    /// questions changes nothing.
    fn answer_failed(&mut self, id: &QuestionId, why: &str) -> Changed;
}

impl<M> CommandSource for ChatSession<M> {
    fn take_commands(&mut self) -> Vec<Command> {
        Self::take_commands(self)
    }

    fn answer_failed(&mut self, id: &QuestionId, why: &str) -> Changed {
        Self::answer_failed(self, id, why)
    }
}

impl CommandSource for ToolConfirmations {
    fn take_commands(&mut self) -> Vec<Command> {
        Self::take_commands(self)
    }

    fn answer_failed(&mut self, id: &QuestionId, why: &str) -> Changed {
        Self::answer_failed(self, id, why)
    }
}

impl CommandSource for MessageSteering {
    fn take_commands(&mut self) -> Vec<Command> {
        Self::take_commands(self)
    }

    fn answer_failed(&mut self, _: &QuestionId, _: &str) -> Changed {
        Changed::No
    }
}

/// A decision about a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// The call runs with the arguments that were shown.
    Approve,
    /// The call runs with these arguments instead; the host checks them first.
    Edit {
        /// The arguments as JSON.
        arguments: Str,
    },
    /// The call runs, and later calls that [`Question::always`](crate::Question::always) covers need no answer in this session.
    Always,
    /// The call does not run.
    Deny {
        /// The user's reason, for the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Str>,
    },
}

impl From<Answer> for flow::Answer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Approve => Self::Approve,
            Answer::Edit { arguments } => Self::Edit { arguments: arguments.to_string() },
            Answer::Always => Self::Always,
            Answer::Deny { reason } => {
                Self::Deny { reason: reason.map(|reason| reason.to_string()).unwrap_or_default() }
            }
        }
    }
}

impl Answer {
    /// A denial with a reason that the model reads.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: Some(Str::from(reason.into())) }
    }
}

/// Names a message of the user from before it is sent. Unique in a session if each front end has a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct OutgoingId(pub(crate) Str);

impl OutgoingId {
    /// Wraps an id, such as that of an input which another front end has sent.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Str::from(id.into()))
    }

    /// The id as text: the front end's name and a number.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&OutgoingId> for InputId {
    fn from(id: &OutgoingId) -> Self {
        Self::new(id.as_str())
    }
}

impl PartialEq<InputId> for OutgoingId {
    fn eq(&self, id: &InputId) -> bool {
        self.as_str() == id.as_str()
    }
}

/// A message of the user on its way to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Outgoing {
    /// Names it in receipts.
    pub id: OutgoingId,
    /// What the user wrote.
    pub text: Str,
    /// What goes with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl Outgoing {
    /// A message under an id that no other message of the session has.
    pub fn new(id: OutgoingId, text: &str, attachments: Vec<Attachment>) -> Self {
        Self { id, text: text.into(), attachments }
    }
}
