//! Who sends a request: a user with a token, a page of an origin, or nobody who is admitted.

use std::collections::BTreeSet;

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};

use super::problem::Problem;
use crate::inbound::Permits;
use crate::token;

/// The user of all requests where there are no tokens.
pub(super) const LOCAL: &str = "local";

/// The name of the protocol of websockets here; a browser offers the token next to it.
pub(super) const PROTOCOL: &str = "tidegate";
const BEARER: &str = "bearer.";

/// Where a browser says which page sends a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Headers of requests that pages of other origins are allowed to send.
const ALLOWED: &str = "authorization, content-type, last-event-id";

/// A user, and how much of the server the user has in use.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) name: String,
    /// The token; empty where none is needed.
    token: String,
    pub(super) requests: Permits,
    pub(super) streams: Permits,
}

impl User {
    pub(super) fn new(name: &str, token: &str, concurrent: u32, streams: u32) -> Self {
        let (name, token) = (name.to_owned(), token.to_owned());
        Self { name, token, requests: Permits::new(concurrent), streams: Permits::new(streams) }
    }
}

/// All users, and the origins of pages.
#[derive(Debug)]
pub(super) struct Access {
    /// At least one; the first is that of all requests if it has no token.
    pub(super) users: Vec<User>,
    pub(super) origins: BTreeSet<String>,
    /// Clients connect over TLS. Without it, a server with TLS can be in front.
    pub(super) is_secure: bool,
}

impl Access {
    /// Returns the user of a request.
    ///
    /// # Errors
    /// It has no known token, or one in its address.
    pub(super) fn user(&self, head: &Parts) -> Result<&User, Problem> {
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        if self.users.iter().any(|user| !user.token.is_empty() && target.contains(&user.token)) {
            let why = "the address contains a token, where logs show it: send it as a header, and replace it";
            return Err(Problem::new(StatusCode::BAD_REQUEST, "token_in_address", why));
        }
        if let [only] = self.users.as_slice()
            && only.token.is_empty()
        {
            return Ok(only);
        }
        let given = given(&head.headers);
        // All tokens are compared, so that the time does not reveal which one is similar.
        let is_of = |user: &&User| {
            let same = given.iter().filter(|given| token::same(given.as_bytes(), user.token.as_bytes()));
            same.count() > 0
        };
        let known: Vec<&User> = self.users.iter().filter(is_of).collect();
        known.first().copied().ok_or_else(|| {
            let why = if given.is_empty() { "a token is needed" } else { "the token is not known" };
            let how =
                "send it as `Authorization: Bearer TOKEN`; a websocket of a browser as the protocol `bearer.TOKEN`";
            Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", format!("{why}; {how}"))
        })
    }

    /// Returns the origin that has to be named in the response; `None`: the request is of no page of another origin.
    ///
    /// # Errors
    /// The request is of a page whose origin is not named.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
        let refused = || {
            let why = "pages of this origin are not allowed; name it in `origins` under `[serve]`";
            Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", why)
        };
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (origin, more) = (origins.next(), origins.next());
        if more.is_some() {
            return Err(refused());
        }
        let Some(origin) = origin else {
            // Requests of pages for images, styles and links have no origin.
            let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
            let is_own = site.is_none_or(|site| [&b"same-origin"[..], b"none"].contains(&site));
            return if is_own { Ok(None) } else { Err(refused()) };
        };
        let Ok(text) = origin.to_str() else { return Err(refused()) };
        if self.origins.contains(text) {
            return Ok(Some(origin.clone()));
        }
        // The host is one of the server's own: it was checked before.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_ascii_lowercase);
        let plain = text.strip_prefix("http://").filter(|_| !self.is_secure);
        let own = plain.or_else(|| text.strip_prefix("https://"));
        if own.is_some() && own == host.as_deref() { Ok(None) } else { Err(refused()) }
    }
}

/// Returns the tokens that a request gives.
fn given(headers: &HeaderMap) -> Vec<&str> {
    let bearers = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| token::bearer(value.to_str().ok()?));
    bearers.chain(protocols(headers).filter_map(|protocol| protocol.strip_prefix(BEARER))).collect()
}

/// Returns the protocols that a request for a websocket offers.
pub(super) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim)
}

/// Returns the headers that allow a page of another origin to read a response. `is_preflight`: it is the answer to the question of a browser
/// whether the page is allowed to send a request.
pub(super) fn allowed(origin: HeaderValue, is_preflight: bool) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = vec![(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin)];
    let mut more = |name, value| headers.push((name, HeaderValue::from_static(value)));
    if is_preflight {
        more(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE");
        more(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
        more(header::ACCESS_CONTROL_MAX_AGE, "600");
    }
    headers
}

/// Returns whether a request asks for a browser whether a page is allowed to send another one.
pub(super) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use axum::http::Request;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789ABCDEF";
    const OTHER: &str = "1123456789abcdef0123456789ABCDEF";

    fn head(target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(target).header("host", "127.0.0.1:1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_is_of_the_user_of_its_token() {
        let users = vec![User::new("anna", TOKEN, 1, 1), User::new("bert", OTHER, 1, 1)];
        let access = Access { users, origins: BTreeSet::new(), is_secure: false };
        let (bearer, protocol) = (format!("Bearer {OTHER}"), format!("tidegate, bearer.{TOKEN}"));
        for (target, headers, expected) in [
            ("/", &[][..], Err("unauthorized")),
            ("/", &[("authorization", &*bearer)], Ok("bert")),
            ("/", &[("sec-websocket-protocol", &*protocol)], Ok("anna")),
            ("/", &[("authorization", TOKEN)], Err("unauthorized")),
            ("/", &[("authorization", "Bearer ")], Err("unauthorized")),
            ("/", &[("sec-websocket-protocol", "tidegate, bearer.")], Err("unauthorized")),
            (&*format!("/?token={TOKEN}"), &[], Err("token_in_address")),
        ] {
            let found = access.user(&head(target, headers)).map(|user| user.name.as_str()).map_err(|error| error.code);
            assert_eq!(found, expected, "{target} {headers:?}");
        }
    }

    #[test]
    fn only_pages_of_the_server_and_of_named_origins_are_allowed() {
        let origins = BTreeSet::from(["https://app.example.com".to_owned()]);
        let access = Access { users: vec![User::new(LOCAL, "", 1, 1)], origins, is_secure: false };
        for (headers, expected) in [
            (&[][..], Some(None)),
            (&[("origin", "https://app.example.com")], Some(Some("https://app.example.com"))),
            (&[("origin", "http://127.0.0.1:1")], Some(None)),
            (&[("origin", "https://127.0.0.1:1")], Some(None)),
            (&[("origin", "http://127.0.0.1:2")], None),
            (&[("origin", "null")], None),
            (&[("origin", "http://evil.example")], None),
            (&[("origin", "https://app.example.com"), ("origin", "http://evil.example")], None),
            (&[("sec-fetch-site", "cross-site")], None),
            (&[("sec-fetch-site", "same-site")], None),
            (&[("sec-fetch-site", "same-origin")], Some(None)),
            (&[("sec-fetch-site", "none")], Some(None)),
        ] {
            let found = access.origin(&head("/", headers).headers).ok();
            let found = found.as_ref().map(|origin| origin.as_ref().map(|origin| origin.to_str().unwrap()));
            assert_eq!(found, expected, "{headers:?}");
        }
        // Whoever is between a browser and a page without TLS writes that page.
        let access = Access { is_secure: true, ..access };
        for (origin, is_own) in [("https://127.0.0.1:1", true), ("http://127.0.0.1:1", false)] {
            let found = access.origin(&head("/", &[("origin", origin)]).headers);
            assert_eq!(found.is_ok(), is_own, "{origin}");
        }
    }
}
