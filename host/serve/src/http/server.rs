//! From a connection to a route: what is checked of every request, and what every response has.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderName, Request, Response, StatusCode};
use hyper::body::Incoming;
use tidegate::config::{ServeLimits, ServeSettings};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::access::{self, Access};
use super::peers::Peers;
use super::problem::{PROBLEM, Problem};
use super::sessions::Sessions;
use super::{page, routes};
use crate::inbound::head::Names;
use crate::inbound::{self, Connection, ConnectionLimits, Inbound, LAST_BYTES, WriteLimits};

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: SocketAddr,
    hosts: Vec<String>,
    access: Access,
    pub(super) limits: ServeLimits,
    pub(super) sessions: Sessions,
    pub(super) peers: Peers,
    /// Tracks connections and websockets.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the server closes.
    pub(super) closing: CancellationToken,
    router: Router<Arc<Self>>,
}

impl Shared {
    pub(super) fn new(address: SocketAddr, settings: &ServeSettings, access: Access, sessions: Sessions) -> Self {
        Self {
            address,
            hosts: settings.hosts.clone(),
            access,
            limits: settings.limits,
            sessions,
            peers: Peers::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            router: routes::router(),
        }
    }

    /// Answers a request of an admitted user.
    async fn admitted(self: &Arc<Self>, head: Parts, body: Incoming) -> Result<Response<Body>, Problem> {
        let user = self.access.user(&head)?.clone();
        let permit = user.requests.enter().ok_or_else(|| busy(user.requests.limit, "concurrent"))?;
        let mut request = Request::from_parts(head, Body::new(body));
        request.extensions_mut().insert(user);
        let mut router = self.router.clone().with_state(Arc::clone(self));
        let answered = router.call(request).await.unwrap_or_else(|never| match never {});
        drop(permit);
        Ok(answered)
    }

    async fn answered(self: &Arc<Self>, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        let (head, body) = request.into_parts();
        let names = Names { address: self.address, here: connection.here, hosts: &self.hosts };
        if self.closing.is_cancelled() {
            return Problem::closing().response();
        }
        if let Err(fault) = inbound::head::check(&head, names, self.limits.head_bytes) {
            return Problem::from(fault).response();
        }
        // Links on other sites lead to it, and everyone gets the same.
        if let Some(response) = page::answer(&head) {
            return response;
        }
        let origin = match self.access.origin(&head.headers) {
            Ok(origin) => origin,
            Err(problem) => return problem.response(),
        };
        let is_preflight = access::is_preflight(&head);
        let mut response = if is_preflight && origin.is_some() {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        } else {
            self.admitted(head, body).await.unwrap_or_else(|problem| problem.response())
        };
        if let Some(origin) = origin {
            response.headers_mut().extend(access::allowed(origin, is_preflight));
        }
        response
    }
}

/// Too much of a user is under way.
pub(super) fn busy(limit: u32, setting: &str) -> Problem {
    let why = format!("{limit} are under way, which is the limit `{setting}` under `[serve.limits]`; try again later");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", why)
}

/// What every response has: nothing is guessed or framed by who gets it.
const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::VARY, HeaderValue::from_static("origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

impl Inbound for Shared {
    type Body = Body;

    const NAME: &str = "server for front ends";

    fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            connections: self.limits.connections,
            head_bytes: self.limits.head_bytes,
            head_timeout: self.limits.client_timeout,
            write: WriteLimits { usual: self.limits.idle_timeout, closing: LAST_BYTES.min(self.limits.idle_timeout) },
        }
    }

    fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    fn connected(&self, _: i64) {}

    fn slow_head(&self) -> (&'static str, String) {
        (PROBLEM, Problem::slow_head(self.limits.client_timeout).text())
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>, connection: Connection) -> Response<Body> {
        let mut response = self.answered(request, &connection).await;
        if response.status().is_client_error() {
            tracing::debug!(status = response.status().as_u16(), "a request is refused");
        }
        let headers = response.headers_mut();
        headers.extend(ALWAYS);
        // Nothing is kept but what says so of itself.
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }
}
