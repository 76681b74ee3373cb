//! What a client of AG-UI sends: `RunAgentInput`.

use chat::{Answer, Attachment, Outgoing, OutgoingId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Run;
use crate::conventions::post::attachment;
use crate::conventions::{Post, PostError, Reply};

/// The input of a run, `RunAgentInput` of AG-UI 1.0. Tools, context, state and properties of the client are ignored: a session has its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// Chosen by the client; events repeat it.
    thread_id: String,
    /// Chosen by the client; events repeat it.
    run_id: String,
    /// The conversation as the client has it. The messages of the user at its end are sent to the session.
    #[serde(default)]
    messages: Vec<Value>,
    /// Answers to the interrupts of the run before.
    #[serde(default)]
    resume: Vec<Resume>,
}

/// An answer to an interrupt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Resume {
    /// The id of the interrupt.
    interrupt_id: String,
    /// `resolved`, or `cancelled`, which denies.
    status: Status,
    #[serde(default)]
    payload: Option<Payload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Resolved,
    Cancelled,
}

/// The answer of a person, as the schema of the interrupt describes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Payload {
    approved: bool,
    /// Replaces the arguments of the call.
    #[serde(default)]
    edited_args: Option<Value>,
    /// Later calls that the question names need no answer.
    #[serde(default)]
    always: bool,
    /// Of a denial, for the model.
    #[serde(default)]
    reason: Option<String>,
    /// Of a limit: the new one.
    #[serde(default)]
    max: Option<f64>,
}

/// A message of the user.
#[derive(Debug, Deserialize)]
struct UserMessage {
    id: String,
    content: Content,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message: text, or a file.
#[derive(Debug, Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    source: Option<Source>,
}

/// Where a file is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    /// Its address, or its content in base64.
    #[serde(default)]
    value: String,
    #[serde(default)]
    mime_type: Option<String>,
}

impl Request {
    /// Returns what the run is called, and what the client wants.
    ///
    /// # Errors
    /// A message or an answer makes no sense. The run is there all the same, to say so.
    pub(crate) fn post(self) -> (Run, Result<Post, PostError>) {
        let Self { thread_id: thread, run_id: run, messages, resume } = self;
        let post = said(&messages).and_then(|messages| {
            let replies = resume.into_iter().map(Resume::reply).collect::<Result<Vec<_>, _>>()?;
            Ok(Post { messages, replies })
        });
        let is_continued = post.as_ref().is_ok_and(|post| post.messages.is_empty());
        (Run { thread, run, messages, is_continued }, post)
    }
}

/// Returns the messages of the user at the end of the conversation.
fn said(messages: &[Value]) -> Result<Vec<Outgoing>, PostError> {
    let mut said = Vec::new();
    for message in messages.iter().rev().take_while(|message| message["role"] == "user") {
        let read = UserMessage::deserialize(message);
        let read =
            read.map_err(|error| PostError::Invalid(format!("a message of the user cannot be read: {error}")))?;
        said.push(read.outgoing()?);
    }
    said.reverse();
    Ok(said)
}

impl UserMessage {
    fn outgoing(self) -> Result<Outgoing, PostError> {
        let parts = match self.content {
            Content::Text(text) => vec![Part { text: Some(text), source: None }],
            Content::Parts(parts) => parts,
        };
        let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_deref()).collect();
        let files: Vec<Attachment> = parts.iter().filter_map(Part::file).collect();
        if texts.iter().all(|text| text.is_empty()) && files.is_empty() {
            return Err(PostError::Invalid("the message has neither text nor files".to_owned()));
        }
        Ok(Outgoing::new(OutgoingId::new(self.id), &texts.join("\n"), files))
    }
}

impl Part {
    fn file(&self) -> Option<Attachment> {
        let source = self.source.as_ref()?;
        Some(attachment(None, source.mime_type.as_deref().unwrap_or_default(), &source.value))
    }
}

impl Resume {
    fn reply(self) -> Result<Reply, PostError> {
        let Self { interrupt_id: id, status, payload } = self;
        let payload = match (status, payload) {
            (Status::Cancelled, _) => None,
            (Status::Resolved, Some(payload)) => Some(payload),
            (Status::Resolved, None) => {
                return Err(PostError::Invalid(format!("the answer to the interrupt `{id}` has no `payload`")));
            }
        };
        let max = payload.as_ref().and_then(|payload| payload.max);
        Ok(Reply { id, answer: payload.map_or(Answer::Deny { reason: None }, Payload::answer), max })
    }
}

impl Payload {
    fn answer(self) -> Answer {
        match self {
            Self { approved: false, reason, .. } => Answer::Deny { reason: reason.map(Into::into) },
            Self { edited_args: Some(arguments), .. } => Answer::Edit { arguments: arguments.to_string().into() },
            Self { always: true, .. } => Answer::Always,
            _ => Answer::Approve,
        }
    }
}
