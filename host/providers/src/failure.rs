//! What a provider's failure means: HTTP status, error codes and headers → a class and a human-readable message.

use flow::{ErrorClass, ModelError};
use serde_json::Value;

use crate::model::compression;

/// The headers that are read when a request was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// How long to wait, in milliseconds.
    pub(crate) retry_after_ms: Option<u64>,
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
        let seconds = || get("retry-after").and_then(number).map(|seconds| (seconds * 1000.0).ceil() as u64);
        let until = || {
            let date = |name: &str| httpdate::parse_http_date(get(name)?).ok();
            let wait = date("retry-after")?.duration_since(date("date")?).unwrap_or_default();
            u64::try_from(wait.as_millis()).ok()
        };
        let should_retry = get("x-should-retry").and_then(|word| word.parse().ok());
        Self { retry_after_ms: millis.or_else(seconds).or_else(until), should_retry }
    }
}

/// The error of a response without a success status.
pub(crate) fn refused(status: u16, headers: &[(String, String)], body: &[u8]) -> ModelError {
    let hints = Hints::read(headers);
    let words = Words::of_body(body);
    let mut class = words.class().filter(|class| *class == ErrorClass::Quota || status == 200);
    if class.is_none() {
        class = Some(of_status(status));
    }
    let class = match (class.unwrap_or(ErrorClass::Permanent), hints.should_retry) {
        (ErrorClass::Permanent, Some(true)) => ErrorClass::Transient,
        (ErrorClass::Transient | ErrorClass::RateLimited, Some(false)) => ErrorClass::Permanent,
        (class, _) => class,
    };
    let said = words.said().unwrap_or_else(|| match compression(headers) {
        Some(word) => format!("(a body that is compressed with {})", shortened(word, 100)),
        None => excerpt(body),
    });
    let advice = advice(status, class);
    ModelError {
        class,
        message: format!("the provider answered HTTP {status}: {said}{advice}"),
        status: Some(status),
        code: words.code.map(|code| shortened(&code, MAX_CODE)),
        retry_after_ms: hints.retry_after_ms,
    }
}

/// The error that a provider reported inside its stream, from the JSON it sent.
pub(crate) fn in_stream(data: &str) -> ModelError {
    let words = Words::of_body(data.as_bytes());
    let class = words.class().or_else(|| words.status.map(of_status)).unwrap_or(ErrorClass::Transient);
    let said = words.said().unwrap_or_else(|| excerpt(data.as_bytes()));
    ModelError {
        class,
        message: format!("the provider reported an error inside its answer: {said}"),
        status: words.status,
        code: words.code.map(|code| shortened(&code, MAX_CODE)),
        retry_after_ms: None,
    }
}

/// The maximum number of characters of a provider's error message; enough for any cause, since it is printed.
const MAX_SAID: usize = 2000;

/// The most characters of a provider's word for a failure.
const MAX_CODE: usize = 100;

/// The first bytes of something unexpected, as one line. What was cut off is marked as in [`shortened`].
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if body.len() > 400 {
        line.push('…');
    }
    if line.is_empty() { "(no body)".to_owned() } else { shortened(&line, 200) }
}

/// The text, or its start and `…`: the mark tells the masking of secrets that one could be cut there.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn of_status(status: u16) -> ErrorClass {
    match status {
        402 => ErrorClass::Quota,
        408 | 409 | 425 | 500..=599 => ErrorClass::Transient,
        429 => ErrorClass::RateLimited,
        _ => ErrorClass::Permanent,
    }
}

fn advice(status: u16, class: ErrorClass) -> &'static str {
    match (status, class) {
        (401 | 403, _) => " (check the API key and its permissions)",
        (404, _) => " (check the model's name and `base_url`)",
        (_, ErrorClass::Quota) => " (the account has no credit left; see its billing page)",
        (300..=399, _) => {
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
    status: Option<u16>,
}

impl Words {
    fn of_body(body: &[u8]) -> Self {
        let Ok(value) = crate::surrogates::from_slice::<Value>(body) else { return Self::default() };
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
            code: text("code").or(kind),
            status: number("code").or_else(|| number("status")).filter(|status| (400..600).contains(status)),
        }
    }

    fn said(&self) -> Option<String> {
        self.message.as_deref().map(|said| shortened(said, MAX_SAID))
    }

    /// What the words alone say.
    fn class(&self) -> Option<ErrorClass> {
        if self.message.as_deref().is_some_and(|said| said.contains("credit balance is too low")) {
            return Some(ErrorClass::Quota); // sent as an `invalid_request_error`
        }
        match self.code.as_deref()? {
            "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" | "billing_not_active" => {
                Some(ErrorClass::Quota)
            }
            "rate_limit_error" | "rate_limit_exceeded" | "rate_limit_reached" => Some(ErrorClass::RateLimited),
            "overloaded_error"
            | "api_error"
            | "timeout_error"
            | "server_error"
            | "internal_error"
            | "overloaded"
            | "service_unavailable"
            | "timeout" => Some(ErrorClass::Transient),
            "invalid_request_error"
            | "authentication_error"
            | "permission_error"
            | "not_found_error"
            | "invalid_prompt"
            | "invalid_api_key"
            | "model_not_found"
            | "context_length_exceeded"
            | "exceed_context_size_error" => Some(ErrorClass::Permanent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn status_decides_unless_the_words_say_quota() {
        let cases = [
            (400, ErrorClass::Permanent),
            (401, ErrorClass::Permanent),
            (402, ErrorClass::Quota),
            (404, ErrorClass::Permanent),
            (408, ErrorClass::Transient),
            (409, ErrorClass::Transient),
            (429, ErrorClass::RateLimited),
            (500, ErrorClass::Transient),
            (529, ErrorClass::Transient),
        ];
        for (status, class) in cases {
            assert_eq!(refused(status, &[], b"").class, class, "{status}");
        }
        let body = br#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
        let error = refused(429, &[], body);
        assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Quota, Some("insufficient_quota")));
    }

    #[test]
    fn the_provider_has_the_last_word_on_trying_again() {
        assert_eq!(refused(500, &headers(&[("x-should-retry", "false")]), b"").class, ErrorClass::Permanent);
        assert_eq!(refused(400, &headers(&[("X-Should-Retry", "true")]), b"").class, ErrorClass::Transient);
    }

    #[test]
    fn waits_are_read_in_all_three_spellings() {
        let wait = |list: &[(&str, &str)]| Hints::read(&headers(list)).retry_after_ms;
        assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "9")]), Some(1500));
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
        assert_eq!(in_stream(failed).class, ErrorClass::RateLimited);
    }
}
