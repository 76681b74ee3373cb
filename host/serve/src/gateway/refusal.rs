//! Requests that the gateway refuses: each with a named error, in a form that the clients of both vendors read.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::answer::Body;

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    /// The request has a form that is not supported here (the reason).
    Malformed(&'static str),
    /// The request is for another host.
    Host,
    /// Websockets are not supported.
    Upgrade,
    /// The path has `..` segments, or is an alias of an endpoint's path.
    Disguised,
    /// No route has the path.
    NoRoute,
    /// The server behind the route is this gateway.
    Loop,
    /// The request has no token, or an unknown one.
    Token { is_given: bool },
    /// The token is for other routes.
    OtherRoute,
    /// The address contains a token.
    TokenInAddress,
    /// The limit of concurrent requests is reached.
    Concurrent { limit: u32 },
    /// The head exceeds the limit, in bytes.
    Head { limit: usize },
    /// The body exceeds the limit, in bytes.
    Body { limit: usize },
    /// The body did not arrive in time.
    SlowBody { limit: Duration },
    /// The body has broken off.
    BrokenBody(String),
    /// The server cannot be reached.
    Unreachable { place: String, cause: String },
    /// The server did not answer in time.
    SilentServer { limit: Duration },
    /// The whole request took too long.
    Late { limit: Duration },
    /// The client has disconnected: nobody reads the response.
    Gone,
    /// The gateway is about to end.
    Closing,
    /// The server's answer cannot be checked.
    Unchecked { why: String },
    /// A plugin guards requests, and the gateway does not read those of the endpoint.
    Unread { by: String },
    /// The server answered with a redirect.
    Redirected { status: u16 },
    /// The server's answer is not HTTP.
    InvalidHead,
    /// A rule or plugin does not let the request pass, or cannot work.
    Blocked { why: String, notice: String },
    /// The memory of the conversation cannot be read.
    Store(String),
}

/// The response to a refused request.
struct Form {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    /// Returns the text for the log. It has no words of plugins, which can repeat the request.
    pub(super) fn notice(&self) -> String {
        if let Self::Blocked { notice, .. } = self { notice.clone() } else { format!("{self:?}") }
    }

    /// Creates the refusal of a blocked request whose reason has no words of a plugin.
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
            Self::Unchecked { why } => form(
                StatusCode::BAD_REQUEST,
                "gateway_unchecked",
                format!("the model's server answered in a way that cannot be checked: {why}"),
            ),
            Self::Unread { by } => form(
                StatusCode::BAD_REQUEST,
                "gateway_unread",
                format!(
                    "the plugin `{by}` guards requests, and the gateway reads those of `/messages`, `/chat/completions` and `/responses`, not of this endpoint; \
                     send the texts there, or run without the plugin; `tidegate gateway` can have a `[[gateway.route]]` for this path whose `plugins` does not name it"
                ),
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

    /// Returns the outcome for metrics: who or what caused the refusal.
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
            // Otherwise clients retry in other ways, up to six times.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Unread bytes of the request are not a further request.
        if matches!(self, Self::Body { .. } | Self::SlowBody { .. } | Self::Head { .. } | Self::Malformed(_)) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Returns the type of an error in the vendors' terms, by which their clients choose an exception class.
fn kind(status: StatusCode, refusal: &Refusal) -> &'static str {
    match status {
        _ if matches!(
            refusal,
            Refusal::Unchecked { .. } | Refusal::Unread { .. } | Refusal::Redirected { .. } | Refusal::Blocked { .. }
        ) =>
        {
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

/// Returns whether the same request will be refused again.
fn is_final(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            // Clients fall back to server-sent events.
            | StatusCode::UPGRADE_REQUIRED
    )
}
