//! Requests that the gateway answers itself: each with a named error, in the shape that the clients of both vendors read.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::answer::Body;

/// Why a request gets no answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    /// The request is not one that a server here answers: its name, and why.
    Malformed(&'static str),
    /// It is for another host.
    Host,
    /// Websockets are not spoken.
    Upgrade,
    /// The path has steps, or is another way to write that of an endpoint.
    Disguised,
    /// No route has the path.
    NoRoute,
    /// The server behind the route is this gateway.
    Loop,
    /// There is no token, or none that is known.
    Token { is_given: bool },
    /// The token is for other routes.
    OtherRoute,
    /// The address contains a token.
    TokenInAddress,
    /// So many requests are under way.
    Concurrent { limit: u32 },
    /// The head has more bytes.
    Head { limit: usize },
    /// The body has more bytes.
    Body { limit: usize },
    /// The body does not come.
    SlowBody { limit: Duration },
    /// The body has broken off.
    BrokenBody(String),
    /// The server cannot be reached.
    Unreachable { place: String, cause: String },
    /// The server answers with nothing.
    SilentServer { limit: Duration },
    /// The whole took too long.
    Late { limit: Duration },
    /// The client has gone: nobody reads it.
    Gone,
    /// The gateway is about to end.
    Closing,
    /// What the server answers cannot be checked.
    Unchecked,
    /// The server sends the client elsewhere.
    Redirected { status: u16 },
    /// The server's answer is not HTTP.
    InvalidHead,
    /// What guards the request does not let it pass, or cannot work.
    Blocked { why: String, notice: String },
    /// What is remembered of the conversation cannot be read.
    Store(String),
}

/// How a refusal is answered.
struct Form {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    /// What the log has of it: nothing that a plugin has said, which can repeat what was asked.
    pub(super) fn notice(&self) -> String {
        if let Self::Blocked { notice, .. } = self { notice.clone() } else { format!("{self:?}") }
    }

    /// A request is blocked, for a reason that has no words of a plugin.
    pub(super) fn blocked(why: String) -> Self {
        Self::Blocked { notice: why.clone(), why }
    }

    fn form(&self) -> Form {
        let form = |status, code, message: String| Form { status, code, message };
        let plain = |status, code, message: &str| Form { status, code, message: message.to_owned() };
        match self {
            Self::Malformed(why) => plain(StatusCode::BAD_REQUEST, "gateway_request", why),
            Self::Host => plain(
                StatusCode::MISDIRECTED_REQUEST,
                "gateway_host",
                "this gateway answers requests to its own address, 127.0.0.1, localhost and the names in `hosts` under `[gateway]`",
            ),
            Self::Upgrade => plain(
                StatusCode::UPGRADE_REQUIRED,
                "gateway_websocket",
                "this gateway speaks server-sent events, and no websockets",
            ),
            Self::Disguised => plain(
                StatusCode::NOT_FOUND,
                "gateway_path",
                "the path has steps, or is another way to write that of an endpoint, and is not passed on",
            ),
            Self::NoRoute => plain(StatusCode::NOT_FOUND, "gateway_route", "no route has this path"),
            Self::Loop => {
                plain(StatusCode::LOOP_DETECTED, "gateway_loop", "the address of the model is this gateway itself")
            }
            Self::Token { is_given } => {
                let why = if *is_given { "the token is not known" } else { "a token is needed" };
                let how = "send it as `Authorization: Bearer TOKEN`, or as the header `x-api-key`, `api-key` or `x-goog-api-key`";
                form(StatusCode::UNAUTHORIZED, "gateway_token", format!("{why}; {how}"))
            }
            Self::OtherRoute => plain(StatusCode::FORBIDDEN, "gateway_token_route", "the token is not for this route"),
            Self::TokenInAddress => plain(
                StatusCode::BAD_REQUEST,
                "gateway_token_in_address",
                "the address contains a token, where logs show it: send it as a header, and replace it",
            ),
            Self::Concurrent { limit } => form(
                StatusCode::TOO_MANY_REQUESTS,
                "gateway_concurrent",
                format!(
                    "{limit} requests are under way, which is the limit `concurrent`; send it again when one has ended"
                ),
            ),
            Self::Head { limit } => form(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "gateway_head",
                format!(
                    "the head of the request has more than {limit} bytes, the limit `head_kib` under `[gateway.limits]`"
                ),
            ),
            Self::Body { limit } => form(
                StatusCode::PAYLOAD_TOO_LARGE,
                "gateway_body",
                format!(
                    "the body of the request has more than {limit} bytes, the limit `body_mib` under `[gateway.limits]`"
                ),
            ),
            Self::SlowBody { limit } => form(
                StatusCode::REQUEST_TIMEOUT,
                "gateway_slow_body",
                format!(
                    "no part of the body came within {limit:?}, the limit `client_timeout_ms` under `[gateway.limits]`"
                ),
            ),
            Self::BrokenBody(why) => {
                form(StatusCode::BAD_REQUEST, "gateway_body_broken", format!("the request broke off: {why}"))
            }
            Self::Unreachable { place, cause } => {
                form(StatusCode::BAD_GATEWAY, "gateway_unreachable", format!("cannot reach {place}: {cause}"))
            }
            Self::SilentServer { limit } => form(
                StatusCode::GATEWAY_TIMEOUT,
                "gateway_idle",
                format!(
                    "the server did not answer within {limit:?}, the limit `idle_timeout_ms` under `[gateway.limits]`"
                ),
            ),
            Self::Late { limit } => form(
                StatusCode::GATEWAY_TIMEOUT,
                "gateway_late",
                format!(
                    "the request took longer than {limit:?}, the limit `request_timeout_ms` under `[gateway.limits]`"
                ),
            ),
            Self::Gone => plain(StatusCode::BAD_REQUEST, "gateway_gone", "the client has closed its connection"),
            Self::Closing => {
                plain(StatusCode::SERVICE_UNAVAILABLE, "gateway_closing", "the gateway ends; send the request again")
            }
            Self::Redirected { status } => form(
                StatusCode::BAD_REQUEST,
                "gateway_redirect",
                format!(
                    "the model's server answered with status {status}, and elsewhere nothing is checked: correct its address"
                ),
            ),
            Self::Unchecked => plain(
                StatusCode::BAD_REQUEST,
                "gateway_unchecked",
                "the model's server answered in a way that cannot be checked",
            ),
            Self::Blocked { why, .. } => form(StatusCode::BAD_REQUEST, "gateway_blocked", why.clone()),
            Self::Store(why) => form(
                StatusCode::SERVICE_UNAVAILABLE,
                "gateway_store",
                format!(
                    "the conversation cannot be read: {why}; send the request again, or see `without_store` under `[gateway]`"
                ),
            ),
            Self::InvalidHead => {
                plain(StatusCode::BAD_GATEWAY, "gateway_head_of_server", "the server's answer has an invalid head")
            }
        }
    }

    /// Returns the word for it in metrics: who or what caused it.
    pub(super) fn outcome(&self) -> &'static str {
        match self.form().status {
            _ if *self == Self::Gone => "abandoned",
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "not_admitted",
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT => "limited",
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => "unreachable",
            _ => "refused",
        }
    }

    pub(super) fn response(&self) -> Response<Body> {
        let Form { status, code, message } = self.form();
        let error = json!({"type": kind(status, self), "code": code, "message": format!("tidegate: {message}")});
        let body = Bytes::from(json!({"type": "error", "error": error}).to_string());
        let mut response = Response::new(Full::new(body).map_err(|never| match never {}).boxed());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if is_final(status) {
            // Clients ask again in other ways otherwise, up to six times.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // What of the request was not read is none that follows.
        if matches!(self, Self::Body { .. } | Self::SlowBody { .. } | Self::Head { .. } | Self::Malformed(_)) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Returns the kind of an error as the vendors name it, by which their clients choose a class of exception.
fn kind(status: StatusCode, refusal: &Refusal) -> &'static str {
    match status {
        _ if matches!(refusal, Refusal::Unchecked | Refusal::Redirected { .. } | Refusal::Blocked { .. }) => {
            "policy_blocked"
        }
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => "api_error",
        _ => "invalid_request_error",
    }
}

/// Returns whether the same request gets the same answer.
fn is_final(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            // A client goes over to server-sent events by itself.
            | StatusCode::UPGRADE_REQUIRED
    )
}
