//! A provider's failure as facts: HTTP status, error codes, headers, and a human-readable message. What follows from them is data.

use flow::{FailureKind, ModelError, RetryHeader};
use serde_json::Value;

use crate::head::compression;

/// The headers that are read when a request was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// How long to wait, in milliseconds, by the header that asks for it.
    pub(crate) waits: Vec<(RetryHeader, u64)>,
    /// The provider's own opinion on trying again.
    pub(crate) should_retry: Option<bool>,
}

impl Hints {
    /// Reads `retry-after-ms`, `retry-after` (seconds; a date counts from the response's own `date`) and
    /// `x-should-retry`.
    pub(crate) fn read(headers: &[(String, String)]) -> Self {
        let get = |name: &str| headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim());
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0 && *number < 1e12);
        let millis = get("retry-after-ms").and_then(number).map(|ms| ms.ceil() as u64);
        let seconds = get("retry-after").and_then(number).map(|seconds| (seconds * 1000.0).ceil() as u64);
        let until = || {
            let date = |name: &str| httpdate::parse_http_date(get(name)?).ok();
            let wait = date("retry-after")?.duration_since(date("date")?).unwrap_or_default();
            u64::try_from(wait.as_millis()).ok()
        };
        let found = [(RetryHeader::RetryAfterMs, millis), (RetryHeader::RetryAfter, seconds.or_else(until))];
        let waits = found.into_iter().filter_map(|(header, wait)| Some((header, wait?))).collect();
        let should_retry = get("x-should-retry").and_then(|word| word.parse().ok());
        Self { waits, should_retry }
    }
}

/// The error of a response without a success status.
pub fn refused(status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
    let hints = Hints::read(headers);
    let words = Words::of_body(body);
    let said = words.said().unwrap_or_else(|| match compression(headers) {
        Some(word) => format!("(a body that is compressed with {})", shortened(word, 100)),
        None => excerpt(body),
    });
    let place = words.place(&said).map(|place| format!(" (`{place}`)")).unwrap_or_default();
    let message = format!("the provider answered HTTP {status}: {said}{place}{}", advice(status));
    let mut error = words.error(FailureKind::Http, message);
    error.status = Some(status);
    error.retry_after_ms = hints.waits.first().map(|(_, ms)| *ms);
    (error.facts.waits, error.facts.should_retry) = (hints.waits, hints.should_retry);
    error
}

/// The error that a provider reported inside its stream, from the JSON it sent.
pub(crate) fn in_stream(data: &str) -> ModelError {
    let words = Words::of_body(data.as_bytes());
    let said = words.said().unwrap_or_else(|| excerpt(data.as_bytes()));
    words.error(FailureKind::Stream, format!("the provider reported an error inside its answer: {said}"))
}

/// The maximum number of characters of a provider's error message; enough for any cause, since it is printed.
const MAX_SAID: usize = 2000;

/// The most characters of a provider's word for a failure.
const MAX_CODE: usize = 100;

/// The first bytes of something unexpected, as one line. What was cut off is marked as in [`shortened`].
pub fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if body.len() > 400 {
        line.push('…');
    }
    if line.is_empty() { "(no body)".to_owned() } else { shortened(&line, 200) }
}

/// The text, or its start and `…`: the mark tells the masking of secrets that one could be cut there.
pub fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            " (check the API key and its permissions; with `base_url`, a key is sent only if `api_key_env` names its variable)"
        }
        407 => {
            " (a proxy between this machine and the provider wants a user and a password: name them in the variable of the proxy, \
             http://USER:PASSWORD@HOST:PORT)"
        }
        404 => " (check the model's name and `base_url`)",
        300..=399 => {
            " (redirects are not followed, so that the key is not sent elsewhere; set `base_url` to the new address)"
        }
        _ => "",
    }
}

/// The message of an error body, in the shapes in use: `{"error": {type, code, message}}`, `{"error": "…"}`,
/// `{"message": "…"}`, `{"detail": …}`, and the `error` event of the Responses format.
#[derive(Debug, Default)]
struct Words {
    message: Option<String>,
    code: Option<String>,
    kind: Option<String>,
    status: Option<u16>,
    /// Where in the request the fault is: `messages[3].content`.
    param: Option<String>,
}

impl Words {
    fn of_body(body: &[u8]) -> Self {
        let Ok(value) = crate::surrogates::from_slice::<Value>(body) else { return Self::default() };
        // Gemini's endpoint for the format of OpenAI answers with a list of one error.
        let value = match value {
            Value::Array(mut list) if !list.is_empty() => list.swap_remove(0),
            value => value,
        };
        let error = match &value {
            Value::Object(map) => {
                map.get("response").and_then(|r| r.get("error")).or_else(|| map.get("error")).unwrap_or(&value)
            }
            _ => &value,
        };
        if let Value::String(text) = error {
            return Self { message: Some(text.clone()), ..Self::default() };
        }
        let text =
            |key: &str| error.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let kind = text("type").filter(|kind| kind != "error");
        let number = |key: &str| error.get(key).and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
        Self {
            message: text("message").or_else(|| text("detail")).or_else(|| text("error")),
            code: text("code"),
            param: text("param"),
            kind,
            status: number("code").or_else(|| number("status")).filter(|status| (400..600).contains(status)),
        }
    }

    fn said(&self) -> Option<String> {
        self.message.as_deref().map(|said| shortened(said, MAX_SAID))
    }

    /// Where the fault is, if it is a place within the request and the message does not name it.
    fn place(&self, said: &str) -> Option<String> {
        let place = self.param.as_deref().filter(|param| param.contains(['.', '[']) && !said.contains(*param))?;
        Some(shortened(place, MAX_CODE))
    }

    /// An error with what the words say.
    fn error(&self, kind: FailureKind, message: String) -> ModelError {
        let mut error = ModelError::of_kind(kind, message);
        let identifier = |text: &Option<String>| text.as_deref().map(|text| shortened(text, MAX_CODE));
        error.status = self.status;
        error.code = identifier(&self.code).or_else(|| identifier(&self.kind));
        error.facts.error_type = identifier(&self.kind);
        error.facts.said = self.said();
        error
    }
}

#[cfg(test)]
mod classes;

#[cfg(test)]
mod overflow;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_a_provider_says_is_reported_as_facts() {
        let body = br#"{"error":{"message":"No credit","type":"billing","code":"insufficient_quota"}}"#;
        let error = refused(429, &headers(&[("X-Should-Retry", "true")]), body);
        assert_eq!((error.class, error.status, error.code.as_deref()), (None, Some(429), Some("insufficient_quota")));
        assert_eq!((error.facts.kind, error.facts.should_retry), (Some(FailureKind::Http), Some(true)));
        assert_eq!(error.facts.error_type.as_deref(), Some("billing"));
        assert_eq!(error.facts.said.as_deref(), Some("No credit"));
        let error = refused(503, &[], b"<html>busy</html>");
        assert_eq!((error.code, error.facts.said), (None, None));
        let error = in_stream(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#);
        assert_eq!(
            (error.code.as_deref(), error.facts.error_type.as_deref()),
            (Some("overloaded_error"), Some("overloaded_error"))
        );
        assert_eq!((error.status, error.facts.kind), (None, Some(FailureKind::Stream)));
    }

    #[test]
    fn waits_are_read_in_all_three_spellings() {
        let wait = |list: &[(&str, &str)]| refused(429, &headers(list), b"").retry_after_ms;
        let both = [("retry-after", "9"), ("retry-after-ms", "1500")];
        assert_eq!(wait(&both), Some(1500));
        let waits = vec![(RetryHeader::RetryAfterMs, 1500), (RetryHeader::RetryAfter, 9000)];
        assert_eq!(refused(429, &headers(&both), b"").facts.waits, waits);
        assert_eq!(wait(&[("Retry-After", "7")]), Some(7000));
        assert_eq!(wait(&[("retry-after", "0.25")]), Some(250));
        let (date, later) = ("Tue, 29 Feb 2028 23:59:50 GMT", "Wed, 01 Mar 2028 00:00:05 GMT");
        assert_eq!(wait(&[("date", date), ("retry-after", later)]), Some(15_000));
        assert_eq!(wait(&[("date", later), ("retry-after", date)]), Some(0));
        assert_eq!(wait(&[("date", "Sun, 00 Nov 1994 08:49:37 GMT"), ("retry-after", later)]), None);
        assert_eq!(wait(&[("retry-after", "-3")]), None);
        assert_eq!(wait(&[("retry-after", "soon")]), None);
    }

    #[test]
    fn the_message_is_found_in_every_shape() {
        for body in [
            r#"{"type":"error","error":{"type":"overloaded_error","message":"too busy"}}"#,
            r#"{"error":"too busy"}"#,
            r#"{"message":"too busy"}"#,
            r#"{"detail":"too busy"}"#,
            "too  busy\n",
        ] {
            let error = refused(503, &[], body.as_bytes());
            assert_eq!(error.message, "the provider answered HTTP 503: too busy", "{body}");
        }
        let failed =
            r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}"#;
        assert_eq!(in_stream(failed).code.as_deref(), Some("rate_limit_exceeded"));
    }
}
