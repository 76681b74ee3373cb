//! Admission of clients: tokens, and the number of concurrent requests of each.

use std::fmt;

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::OwnedSemaphorePermit;

use super::refusal::Refusal;
use crate::inbound::Permits;
use crate::token;

/// The token of a client, or of several.
#[derive(Clone)]
pub struct Token {
    /// The name of the token in logs, metrics and the audit file.
    pub name: String,
    /// The secret that clients send.
    pub value: String,
    /// The maximum number of concurrent requests.
    pub concurrent: u32,
    /// The paths of the routes that the token is for; `None` for all.
    pub routes: Option<Vec<String>>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).field("routes", &self.routes).finish_non_exhaustive()
    }
}

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The headers in which vendors' clients send their credentials.
pub(super) const CREDENTIALS: [HeaderName; 4] =
    [header::AUTHORIZATION, X_API_KEY, HeaderName::from_static("api-key"), HeaderName::from_static("x-goog-api-key")];

/// All clients that are admitted.
#[derive(Debug)]
pub(super) struct Access {
    clients: Vec<Client>,
    /// The limit for all requests, if there are no tokens.
    all: Permits,
}

#[derive(Debug)]
struct Client {
    token: Token,
    running: Permits,
}

/// An admitted client; its request counts as under way until this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    /// The name of its token; `None` if no token is needed.
    pub(super) name: Option<String>,
    _permit: OwnedSemaphorePermit,
}

impl Access {
    /// Creates the access for these tokens. `concurrent`: the maximum number of concurrent requests if there are no tokens. Requests that
    /// are under way in `before` count, as far as the limits are the same.
    pub(super) fn new(tokens: Vec<Token>, concurrent: u32, before: Option<&Self>) -> Self {
        let all = before.map(|before| &before.all).filter(|all| all.limit == concurrent);
        let clients = tokens.into_iter().map(|token| {
            let known = before.into_iter().flat_map(|before| &before.clients);
            let same = known.map(|client| (&client.token.name, &client.running));
            let same =
                same.into_iter().find(|(name, running)| **name == token.name && running.limit == token.concurrent);
            let running = same.map_or_else(|| Permits::new(token.concurrent), |(_, running)| running.clone());
            Client { token, running }
        });
        Self { clients: clients.collect(), all: all.cloned().unwrap_or_else(|| Permits::new(concurrent)) }
    }

    /// Returns whether clients need a token.
    pub(super) fn has_tokens(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Checks that a request has a known token.
    ///
    /// # Errors
    /// The request has no known token.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.client(headers).map(|_| ())
    }

    /// Admits a request to a route.
    ///
    /// # Errors
    /// The request has no known token, or a token for other routes, or too many requests are under way.
    pub(super) fn admit(&self, headers: &HeaderMap, target: &str, route: &str) -> Result<Admitted, Refusal> {
        let Some(client) = self.client(headers)? else {
            return Ok(Admitted { name: None, _permit: enter(&self.all)? });
        };
        if self.clients.iter().any(|client| target.contains(&client.token.value)) {
            return Err(Refusal::TokenInAddress);
        }
        if client.token.routes.as_ref().is_some_and(|routes| !routes.iter().any(|path| path == route)) {
            return Err(Refusal::OtherRoute);
        }
        Ok(Admitted { name: Some(client.token.name.clone()), _permit: enter(&client.running)? })
    }

    /// Returns the client of a request; `None` if no token is needed.
    fn client(&self, headers: &HeaderMap) -> Result<Option<&Client>, Refusal> {
        if !self.has_tokens() {
            return Ok(None);
        }
        let given: Vec<&str> = credentials(headers).map(|(_, given)| given).collect();
        // All tokens are compared, so that the time does not reveal which one is similar.
        let known: Vec<&Client> = self.clients.iter().filter(|client| client.is_in(&given)).collect();
        known.first().map(|client| Some(*client)).ok_or(Refusal::Token { is_given: !given.is_empty() })
    }

    /// Returns the headers for the server: without tokens and, if it gets another key, without the client's key.
    pub(super) fn forwarded(&self, mut headers: HeaderMap, is_replaced: bool) -> HeaderMap {
        if is_replaced {
            CREDENTIALS.iter().for_each(|name| drop(headers.remove(name)));
            return headers;
        }
        for name in CREDENTIALS {
            let is_token = |value: &HeaderValue| {
                let given: Vec<&str> = of_header(&name, value).into_iter().collect();
                self.clients.iter().filter(|client| client.is_in(&given)).count() > 0
            };
            let kept: Vec<HeaderValue> =
                headers.get_all(&name).iter().filter(|value| !is_token(value)).cloned().collect();
            headers.remove(&name);
            for value in kept {
                headers.append(name.clone(), value);
            }
        }
        headers
    }
}

impl Client {
    fn is_in(&self, given: &[&str]) -> bool {
        given.iter().filter(|given| token::same(given.as_bytes(), self.token.value.as_bytes())).count() > 0
    }
}

/// Returns the credentials in the headers of a request.
fn credentials(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &str)> {
    let named = headers.iter().filter(|(name, _)| CREDENTIALS.contains(name));
    named.filter_map(|(name, value)| Some((name, of_header(name, value)?)))
}

fn of_header<'v>(name: &HeaderName, value: &'v HeaderValue) -> Option<&'v str> {
    let text = value.to_str().ok()?;
    if *name == header::AUTHORIZATION { token::bearer(text) } else { Some(text.trim()) }
}

/// Takes a permit for a request.
fn enter(running: &Permits) -> Result<OwnedSemaphorePermit, Refusal> {
    running.enter().ok_or(Refusal::Concurrent { limit: running.limit })
}

/// Sets the header in which the server expects the key of a route.
pub(super) fn with_key(headers: &mut HeaderMap, key: &HeaderValue, is_anthropic: bool) {
    if is_anthropic {
        headers.insert(X_API_KEY, key.clone());
        return;
    }
    let mut bearer = b"Bearer ".to_vec();
    bearer.extend_from_slice(key.as_bytes());
    // A key that is a complete header begins with this.
    if let Ok(mut value) = HeaderValue::from_bytes(&bearer) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
}
