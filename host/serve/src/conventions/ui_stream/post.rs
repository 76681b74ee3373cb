//! What `useChat` sends: the whole list of its messages, of which the last one says what it wants.

use chat::{Answer, Attachment, Outgoing, OutgoingId};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::conventions::post::attachment;
use crate::conventions::{Post, PostError, Reply};

/// A request of `useChat`, with its `DefaultChatTransport`. What an application adds to it is ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// The conversation as the client has it. Only the last message is used.
    messages: Vec<UiMessage>,
    /// `submit-message`, or `regenerate-message`, which is not supported.
    #[serde(default)]
    trigger: Option<String>,
    /// With a message of the user: that it replaces an earlier one, which is not supported.
    #[serde(default)]
    message_id: Option<String>,
}

/// A message of a UI.
#[derive(Debug, Deserialize, JsonSchema)]
struct UiMessage {
    /// Chosen by the client, and unique in the session.
    id: String,
    /// `user` or `assistant`.
    role: String,
    /// Its parts, of which text, files and answered questions are used.
    parts: Vec<UiPart>,
}

/// A part of a message; what other kinds of parts have is ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UiPart {
    /// The kind of the part.
    r#type: String,
    /// Of a part of the type `text`.
    #[serde(default)]
    text: Option<String>,
    /// Of a file: its address, which can be one with the content.
    #[serde(default)]
    url: Option<String>,
    /// Of a file.
    #[serde(default)]
    media_type: Option<String>,
    /// Of a file.
    #[serde(default)]
    filename: Option<String>,
    /// Of a call: `approval-responded` where it was answered and the answer was not sent.
    #[serde(default)]
    state: Option<String>,
    /// Of a call: the answer.
    #[serde(default)]
    approval: Option<Approval>,
}

/// An answer to a question about a call.
#[derive(Debug, Deserialize, JsonSchema)]
struct Approval {
    /// The id of the question.
    id: String,
    #[serde(default)]
    approved: Option<bool>,
    /// Of a denial, for the model.
    #[serde(default)]
    reason: Option<String>,
}

impl Request {
    /// Returns what the client wants.
    ///
    /// # Errors
    /// It is something that sessions do not have, or nothing.
    pub(crate) fn post(self) -> Result<Post, PostError> {
        if self.trigger.as_deref() == Some("regenerate-message") {
            const WHY: &str =
                "a session does not take an answer back: fork it at an earlier turn, or send another message";
            return Err(PostError::NotSupported(WHY));
        }
        let is_change = self.message_id.is_some();
        let last = self.messages.into_iter().next_back();
        let nothing = || PostError::Invalid("there is no message".to_owned());
        let last = last.ok_or_else(nothing)?;
        match last.role.as_str() {
            "user" if is_change => Err(PostError::NotSupported(
                "a message that was sent cannot be changed: fork the session at an earlier turn",
            )),
            "user" => Ok(Post { messages: vec![last.outgoing()?], replies: Vec::new() }),
            "assistant" => last.answered(),
            other => Err(PostError::Invalid(format!("a message has the role `user` or `assistant`, not `{other}`"))),
        }
    }
}

impl UiMessage {
    fn outgoing(self) -> Result<Outgoing, PostError> {
        let texts: Vec<&str> = self.parts.iter().filter_map(UiPart::text).collect();
        let files: Vec<Attachment> = self.parts.iter().filter_map(UiPart::file).collect();
        if texts.iter().all(|text| text.is_empty()) && files.is_empty() {
            return Err(PostError::Invalid("the message has neither text nor files".to_owned()));
        }
        Ok(Outgoing::new(OutgoingId::new(self.id), &texts.join("\n"), files))
    }

    fn answered(self) -> Result<Post, PostError> {
        let replies: Vec<Reply> = self.parts.into_iter().filter_map(UiPart::reply).collect();
        if replies.is_empty() {
            return Err(PostError::Invalid(
                "the last message has no answer to a question, and is not the user's".into(),
            ));
        }
        Ok(Post { messages: Vec::new(), replies })
    }
}

impl UiPart {
    fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| self.r#type == "text")
    }

    fn file(&self) -> Option<Attachment> {
        let url = self.url.as_deref().filter(|_| self.r#type == "file")?;
        Some(attachment(self.filename.as_deref(), self.media_type.as_deref().unwrap_or_default(), url))
    }

    fn reply(self) -> Option<Reply> {
        let approval = self.approval.filter(|_| self.state.as_deref() == Some("approval-responded"))?;
        let answer = match approval.approved? {
            true => Answer::Approve,
            false => Answer::Deny { reason: approval.reason.map(Into::into) },
        };
        Some(Reply { id: approval.id, answer, max: None })
    }
}
