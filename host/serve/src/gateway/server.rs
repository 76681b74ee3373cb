//! The connections of clients, which are those of every server of this crate.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::Body;
use super::request::respond;
use super::shared::Shared;
use crate::inbound::{Connection, ConnectionLimits, Inbound, WriteLimits};

impl Inbound for Shared {
    type Body = Body;

    const NAME: &str = "gateway";

    fn limits(&self) -> ConnectionLimits {
        let limits = self.site().limits;
        ConnectionLimits {
            connections: limits.connections,
            head_bytes: limits.head_bytes,
            head_timeout: limits.client_timeout,
            // After it closes, the time limit of the drain applies.
            write: WriteLimits { usual: limits.idle_timeout, closing: limits.idle_timeout },
        }
    }

    fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    fn connected(&self, change: i64) {
        Self::connected(self, change);
    }

    fn slow_head(&self) -> (&'static str, String) {
        let limit = self.site().limits.client_timeout;
        let why = format!("the head of the request was not complete within {limit:?}, the limit `client_timeout_ms`\n");
        ("text/plain; charset=utf-8", why)
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>, connection: Connection) -> Response<Body> {
        respond(request, self, connection).await
    }
}
