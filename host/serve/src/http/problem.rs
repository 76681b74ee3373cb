//! Errors of requests, as RFC 9457 describes them.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use tidegate::state::StateError;
use tidegate::transcript::{JournalError, TranscriptError};
use tidegate::{CommandError, HostError};

use crate::inbound::body::BodyFault;
use crate::inbound::head::HeadFault;

/// The media type of problems.
pub(super) const PROBLEM: &str = "application/problem+json";

/// An error as the body of a response, `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Problem {
    /// The kind of the problem as an address: always `about:blank`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The words of the status.
    title: String,
    /// The HTTP status.
    pub(super) status: u16,
    /// Names the problem for programs; new codes are added.
    pub(super) code: &'static str,
    /// What failed and what to do, for a person.
    detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        Self { kind: "about:blank", title, status: status.as_u16(), code, detail: detail.into() }
    }

    /// Everything that a user has no access to, so that nobody learns which sessions others have.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is nothing with this address, or it is not yours")
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }

    pub(super) fn internal(detail: impl std::fmt::Display) -> Self {
        tracing::error!("a request has failed: {detail}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the request has failed; the log of the server says why",
        )
    }

    pub(super) fn closing() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "the server ends; send the request again")
    }

    /// What failed and what to do, for a person.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// Another process has the session, named `by`.
    pub(super) fn open_elsewhere(by: &str) -> Self {
        let why = format!(
            "{by} has the session open: send the request again when it is closed there, or when that host has ended"
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "open_elsewhere", why)
    }

    /// The session is a conversation of a gateway.
    pub(super) fn of_gateway() -> Self {
        let why = "the session is a conversation of a gateway, whose client continues it: here it can only be read, exported and deleted";
        Self::new(StatusCode::CONFLICT, "of_gateway", why)
    }

    /// The store of records or of state does not answer. Why is in the log only, since it names servers.
    fn store_away(why: &str) -> Self {
        tracing::warn!("{why}");
        let detail = "the store of this server does not answer: send the request again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_away", detail)
    }

    /// A head is not complete within the time limit.
    pub(super) fn slow_head(limit: Duration) -> Self {
        let why = format!(
            "the head of the request was not complete within {limit:?}, the limit `client_timeout_ms` under `[serve.limits]`"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", why)
    }

    /// The body of its response.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.text()));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        match self.status {
            401 => drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            429 | 503 => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"))),
            // Unread bytes of the request are not a further request.
            408 | 413 | 431 => drop(headers.insert(header::CONNECTION, HeaderValue::from_static("close"))),
            _ if self.code == "malformed" => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

impl From<HeadFault> for Problem {
    fn from(fault: HeadFault) -> Self {
        match fault {
            HeadFault::Malformed(why) => Self::new(StatusCode::BAD_REQUEST, "malformed", why),
            HeadFault::Host => Self::new(
                StatusCode::MISDIRECTED_REQUEST,
                "wrong_host",
                "the server answers requests to its own address, 127.0.0.1, localhost and the names in `hosts` under `[serve]`",
            ),
            HeadFault::Size { limit } => Self::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "too_large",
                format!(
                    "the head of the request has more than {limit} bytes, the limit `head_kib` under `[serve.limits]`"
                ),
            ),
        }
    }
}

impl From<BodyFault> for Problem {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Size { limit } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!(
                    "the body of the request has more than {limit} bytes, the limit `body_mib` under `[serve.limits]`"
                ),
            ),
            BodyFault::Slow { limit } => Self::new(
                StatusCode::REQUEST_TIMEOUT,
                "too_slow",
                format!(
                    "no part of the body came within {limit:?}, the limit `client_timeout_ms` under `[serve.limits]`"
                ),
            ),
            BodyFault::Closing => Self::closing(),
            BodyFault::Broken(why) => {
                Self::new(StatusCode::BAD_REQUEST, "malformed", format!("the request broke off: {why}"))
            }
        }
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        match &error {
            HostError::NoInstance { .. }
            | HostError::NoDescriptors { .. }
            | HostError::NoThreads(_)
            | HostError::NoMemory { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", error.with_hint()),
            HostError::NotRecorded => Self::new(StatusCode::CONFLICT, "not_recorded", error.with_hint()),
            HostError::Transcript(cause) => Self::from(cause.clone()),
            HostError::State(StateError::Leased { by, .. }) => Self::open_elsewhere(by),
            HostError::State(StateError::Unavailable { .. }) => Self::store_away(&error.with_hint()),
            _ => Self::internal(error.with_hint()),
        }
    }
}

impl From<TranscriptError> for Problem {
    fn from(error: TranscriptError) -> Self {
        match &error {
            TranscriptError::Missing { .. } => Self::not_found(),
            TranscriptError::NoTurn { .. } => Self::new(StatusCode::CONFLICT, "no_such_turn", error.to_string()),
            TranscriptError::Forked { .. } => {
                Self::new(StatusCode::CONFLICT, "has_forks", "other sessions continue this one: delete them first")
            }
            TranscriptError::Journal(JournalError::Locked { by }) => Self::open_elsewhere(by),
            TranscriptError::Journal(JournalError::Away { reason }) => Self::store_away(reason),
            _ => Self::internal(error),
        }
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        use tidegate::question::AnswerError;
        let (status, code) = match &error {
            CommandError::Answer { error: AnswerError::NotOpen { .. }, .. } => {
                (StatusCode::CONFLICT, "no_such_question")
            }
            CommandError::Answer { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "answer_refused"),
            CommandError::Blank { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_message"),
            CommandError::NotWaiting(_) => (StatusCode::CONFLICT, "not_waiting"),
            _ => (StatusCode::BAD_REQUEST, "invalid_request"),
        };
        Self::new(status, code, error.to_string())
    }
}
