//! The default table gives errors the classes that they had when code decided about them: the judge of these tests is that code.

use flow::{ErrorClass, ModelError};
use serde_json::{Value, json};

use super::{in_stream, refused};

/// Identifiers of each group, with one that is in none.
const IDENTIFIERS: [Option<&str>; 26] = [
    None,
    Some("unheard_of"),
    Some("insufficient_quota"),
    Some("billing_error"),
    Some("billing_hard_limit_reached"),
    Some("billing_not_active"),
    Some("rate_limit_error"),
    Some("rate_limit_exceeded"),
    Some("rate_limit_reached"),
    Some("overloaded_error"),
    Some("api_error"),
    Some("timeout_error"),
    Some("server_error"),
    Some("internal_error"),
    Some("overloaded"),
    Some("service_unavailable"),
    Some("timeout"),
    Some("invalid_request_error"),
    Some("authentication_error"),
    Some("permission_error"),
    Some("not_found_error"),
    Some("invalid_prompt"),
    Some("invalid_api_key"),
    Some("model_not_found"),
    Some("context_length_exceeded"),
    Some("exceed_context_size_error"),
];

/// What the words of an error said about its class.
fn of_words(said: &str, identifier: Option<&str>) -> Option<ErrorClass> {
    if said.contains("credit balance is too low") {
        return Some(ErrorClass::Quota);
    }
    match IDENTIFIERS.iter().position(|one| *one == identifier)? {
        2..=5 => Some(ErrorClass::Quota),
        6..=8 => Some(ErrorClass::RateLimited),
        9..=16 => Some(ErrorClass::Transient),
        17..=23 => Some(ErrorClass::Permanent),
        24..=25 => Some(ErrorClass::ContextOverflow),
        _ => None,
    }
}

fn of_status(status: u16) -> ErrorClass {
    match status {
        402 => ErrorClass::Quota,
        413 => ErrorClass::ContextOverflow,
        408 | 409 | 425 | 500..=599 => ErrorClass::Transient,
        429 => ErrorClass::RateLimited,
        _ => ErrorClass::Permanent,
    }
}

/// The class of a response without a success status.
fn refused_before(status: u16, should_retry: Option<bool>, said: &str, identifier: Option<&str>) -> ErrorClass {
    let wins = [ErrorClass::Quota, ErrorClass::ContextOverflow];
    let words = of_words(said, identifier).filter(|class| wins.contains(class));
    match (words.unwrap_or_else(|| of_status(status)), should_retry) {
        (ErrorClass::Permanent, Some(true)) => ErrorClass::Transient,
        (ErrorClass::Transient | ErrorClass::RateLimited, Some(false)) => ErrorClass::Permanent,
        (class, _) => class,
    }
}

/// The class of an error inside an answer.
fn in_stream_before(status: Option<u16>, said: &str, identifier: Option<&str>) -> ErrorClass {
    of_words(said, identifier).or_else(|| status.map(of_status)).unwrap_or(ErrorClass::Transient)
}

const SAID: [&str; 2] = ["no", "Your credit balance is too low to access the API"];

/// The error objects with an identifier: as a type, as a code, and as a code with a type of another class.
fn bodies(said: &str, identifier: Option<&str>) -> Vec<Value> {
    let Some(identifier) = identifier else { return vec![json!({"message": said})] };
    vec![
        json!({"message": said, "type": identifier}),
        json!({"message": said, "code": identifier}),
        json!({"message": said, "code": identifier, "type": "overloaded_error"}),
    ]
}

#[test]
fn errors_inside_an_answer_have_their_class() {
    let mut cases = 0;
    for identifier in IDENTIFIERS {
        for said in SAID {
            for status in [
                None,
                Some(400),
                Some(402),
                Some(404),
                Some(408),
                Some(425),
                Some(429),
                Some(500),
                Some(529),
                Some(599),
            ] {
                for mut body in bodies(said, identifier) {
                    if let Some(status) = status {
                        body["status"] = json!(status);
                    }
                    let event = json!({"type": "error", "error": body}).to_string();
                    let error = in_stream(&event);
                    assert_eq!(class_of(&error), in_stream_before(status, said, identifier), "{event}");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 1000, "only {cases} cases");
}

#[test]
fn refused_requests_have_their_class() {
    let mut cases = 0;
    for status in [301, 400, 401, 402, 403, 404, 408, 409, 413, 425, 429, 500, 502, 529, 599] {
        for should_retry in [None, Some(true), Some(false)] {
            let header = |word: bool| ("x-should-retry".to_owned(), word.to_string());
            let headers: Vec<_> = should_retry.map(header).into_iter().collect();
            for (said, identifier) in SAID.into_iter().flat_map(|said| IDENTIFIERS.map(|identifier| (said, identifier)))
            {
                for body in bodies(said, identifier) {
                    let body = json!({"error": body}).to_string();
                    let error = refused(status, &headers, body.as_bytes());
                    let expected = refused_before(status, should_retry, said, identifier);
                    assert_eq!(class_of(&error), expected, "{status} {should_retry:?} {body}");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 5000, "only {cases} cases");
}

fn class_of(error: &ModelError) -> ErrorClass {
    static TABLE: std::sync::LazyLock<flow::RetryTable> =
        std::sync::LazyLock::new(|| config::errors::of_sources(&[]).unwrap_or_else(|found| panic!("{found}")));
    TABLE.classify(error).class
}
