//! What a client of a convention wants.

use chat::{Answer, Attachment, Outgoing};

/// What a request asks for. With nothing in it, a client wants to see the turn that runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Post {
    /// Messages of the user, under the ids of the client.
    pub(crate) messages: Vec<Outgoing>,
    /// Answers to what the turn waits for.
    pub(crate) replies: Vec<Reply>,
}

/// An answer to a question about a call, or to a request for a higher limit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    /// The id of the question or of the request.
    pub(crate) id: String,
    pub(crate) answer: Answer,
    /// Of a limit: the new one.
    pub(crate) max: Option<f64>,
}

/// A request is not one that a session can carry out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PostError {
    /// The convention has it, and sessions do not.
    #[error("{0}")]
    NotSupported(&'static str),
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
}

/// Returns a file of a message. The content is taken out of an address that contains it.
pub(crate) fn attachment(name: Option<&str>, media_type: &str, source: &str) -> Attachment {
    let inside = source.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let source = inside.map_or(source, |(_, content)| content);
    Attachment::new(name.unwrap_or("attachment"), media_type, source)
}
