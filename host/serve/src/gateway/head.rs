//! Heads of requests and responses that pass through.

use hyper::header::{self, HeaderMap, HeaderName};

/// Headers of one connection, which a proxy does not pass on (RFC 9110, 7.6.1), and those that are made anew.
const OWN: [HeaderName; 9] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The headers that pass.
pub(super) fn passed(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    let is_passed = |name: &HeaderName| !is_own(name) && named.iter().all(|own| name.as_str() != own);
    headers.iter().filter(|(name, _)| is_passed(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns whether a field is one of the connection, whatever the header `Connection` names.
pub(super) fn is_own(name: &HeaderName) -> bool {
    OWN.contains(name) || name == "keep-alive" || name == "expect"
}

/// How the body of a response comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Events,
    Json,
    Other,
}

pub(super) fn kind(headers: &HeaderMap) -> Kind {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media_type.as_str() {
        "text/event-stream" => Kind::Events,
        "application/json" => Kind::Json,
        _ => Kind::Other,
    }
}

/// Returns why the body of a response cannot be read: it has another type, or is compressed although that was not asked for.
pub(super) fn unreadable(headers: &HeaderMap) -> Option<String> {
    let value =
        |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).escape_debug().to_string());
    let is_encoded = |encoding: &String| !encoding.eq_ignore_ascii_case("identity");
    if let Some(encoding) = value(header::CONTENT_ENCODING).filter(is_encoded) {
        return Some(format!("it is compressed (`content-encoding: {encoding}`)"));
    }
    let is_readable = kind(headers) != Kind::Other;
    let found = || value(header::CONTENT_TYPE).map_or_else(|| "missing".to_owned(), |kind| format!("`{kind}`"));
    (!is_readable).then(|| format!("its content type is {}, not `text/event-stream` or `application/json`", found()))
}
