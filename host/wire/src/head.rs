//! The head of an answer over HTTP: whether a stream of events follows, and the error where none does.

use flow::{FailureKind, ModelError};

use crate::{AnswerDecoder, failure};

fn header<'h>(headers: &'h [(String, String)], wanted: &str) -> Option<&'h str> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

pub fn content_type(headers: &[(String, String)]) -> Option<&str> {
    header(headers, "content-type")
}

/// How a body is compressed, if it is. Requests ask for none.
pub fn compression(headers: &[(String, String)]) -> Option<&str> {
    header(headers, "content-encoding").filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case("identity"))
}

/// Ends a decoder. Where the body had no event, its content type may say why.
///
/// # Errors
/// The answer was not complete.
pub fn finish(decoder: &mut AnswerDecoder, kind: Option<&str>) -> Result<(), ModelError> {
    decoder.finish().map_err(|mut error| {
        if !decoder.has_events() {
            let kind = kind.map_or("no content type".to_owned(), |kind| format!("content type {kind}"));
            error.message.push_str(&format!(" ({kind})"));
        }
        error
    })
}

/// Whether an answer with this head is a stream.
pub fn is_stream(status: u16, headers: &[(String, String)]) -> bool {
    status == 200 && is_event_stream(headers) && compression(headers).is_none()
}

/// A missing type is taken for a stream: the decoder will say if it is none.
fn is_event_stream(headers: &[(String, String)]) -> bool {
    content_type(headers).is_none_or(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The error of an answer that is not a stream.
pub fn no_stream(status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
    if status != 200 {
        return failure::refused(status, headers, body);
    }
    let kind = content_type(headers).unwrap_or_default();
    let message = if let Some(compression) = compression(headers) {
        format!(
            "the provider compressed its answer (`content-encoding: {}`) although the request asks for \
             `accept-encoding: identity`; switch compression off for this address, in the server or in the proxy \
             before it",
            failure::shortened(compression, 100)
        )
    } else if body.is_empty() {
        format!("the provider answered with an empty body: 0 bytes, content type {kind:?}; check `base_url`")
    } else {
        let begin = failure::excerpt(body);
        format!(
            "the provider answered with content type {kind:?} where a stream (text/event-stream) was expected; check \
             `base_url`. It begins: {begin}"
        )
    };
    // A server that answers nothing may answer something next time, whatever it calls it.
    let is_empty = body.is_empty() && compression(headers).is_none();
    let kind = if is_empty { FailureKind::Incomplete } else { FailureKind::Unsupported };
    ModelError { status: Some(status), ..ModelError::of_kind(kind, message) }
}
