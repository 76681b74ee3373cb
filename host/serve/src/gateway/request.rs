//! One request of a client: refuses it, or sends it to a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway::Wire;
use hyper::body::Incoming;
use hyper::header;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::answer::Body;
use super::exchange::exchange;
use super::forward::{Upstream, has_anthropic};
use super::progress::Progress;
use super::refusal::Refusal;
use super::site::Open;
use super::{Shared, access, head, is_same, own, path, trailers};
use crate::inbound::body::BodyFault;
use crate::inbound::head::{HeadFault, Names};
use crate::inbound::{self, Connection};

/// The time in which a client can take the last bytes of an answer whose time limit is over.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Answers a request.
pub(super) async fn respond(request: Request<Incoming>, shared: Arc<Shared>, connection: Connection) -> Response<Body> {
    let since = Instant::now();
    let (head, body) = request.into_parts();
    connection.deadline.set(None);
    if let Some(answered) = own::health(&head, &shared) {
        return answered;
    }
    let site = shared.current().await;
    match answered((head, body), &shared, &site, &connection, since).await {
        Ok(response) => response,
        Err((route, refusal)) => refused(&shared, route.as_deref(), &refusal),
    }
}

/// Counts and logs a refusal.
fn refused(shared: &Shared, route: Option<&Upstream>, refusal: &Refusal) -> Response<Body> {
    let route = route.map_or("none", |route| &route.route.path);
    tracing::info!(route, outcome = refusal.outcome(), "a request is refused: {}", refusal.notice());
    if matches!(refusal, Refusal::Token { .. }) {
        shared.metrics.gateway_rejected();
    }
    shared.metrics.gateway_request(route, refusal.outcome());
    refusal.response()
}

type Refused = (Option<Arc<Upstream>>, Refusal);

async fn answered(
    (head, body): (Parts, Incoming),
    shared: &Arc<Shared>,
    site: &Arc<Open>,
    connection: &Connection,
    since: Instant,
) -> Result<Response<Body>, Refused> {
    check(&head, shared, site, connection.here).map_err(|refusal| (None, refusal))?;
    if let Some(answered) = own::metrics(&head, shared, site) {
        return Ok(answered);
    }
    let path = head.uri.path();
    path::check(path).map_err(|_| (None, Refusal::Disguised))?;
    let found = site.route(path, &head.headers).cloned();
    let route = found.ok_or_else(|| (None, site.access.check(&head.headers).err().unwrap_or(Refusal::NoRoute)))?;
    let of_route = |refusal| (Some(Arc::clone(&route)), refusal);
    let wire = route.wire(path).map_err(|_| of_route(Refusal::Disguised))?;
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let admitted = site.access.admit(&head.headers, target, &route.route.path).map_err(of_route)?;
    let mut headers = site.access.forwarded(head::passed(&head.headers), route.route.key.is_some());
    if let Some(key) = &route.route.key {
        let is_anthropic = wire.map_or_else(|| has_anthropic(&head.headers), |wire| wire == Wire::Anthropic);
        access::with_key(&mut headers, &key.0, is_anthropic);
    }
    if trailers::are_accepted(&head.headers) {
        trailers::accept(&mut headers);
    }
    let is_read = matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE);
    let mut sent = route.request(head.method, &head.uri, headers);
    if is_same(&sent.url, shared.address) {
        return Err(of_route(Refusal::Loop));
    }
    let (late, limits) = (since + site.limits.request_timeout, site.limits);
    connection.deadline.set(Some(late + LAST_WORDS));
    let read = inbound::body::read(body, limits.body_bytes, limits.client_timeout, &shared.closing);
    let read = timeout_at(late, read).await;
    let read = read.map_err(|_| Refusal::Late { limit: limits.request_timeout });
    let (body, fields) = read.and_then(|read| Ok(read?)).map_err(of_route)?;
    // Admission and the conversation are decided by the credentials in the head.
    sent.trailers = site.access.forwarded(head::passed(&fields), true);
    // Requests that only read or delete, such as for a list of stored answers, get no answer of a model.
    let wire = wire.filter(|_| !(is_read && body.is_empty()));
    let progress = Progress::new(Arc::clone(shared), Arc::clone(site), Arc::clone(&route), admitted, since);
    let gone = CancellationToken::new();
    // Dropped with this future when the client disconnects before it has an answer, so that the exchange is ended nevertheless.
    let _here = gone.clone().drop_guard();
    let own = Arc::clone(shared);
    let answering = shared.tasks.spawn(async move {
        let answered = exchange(progress, sent, (wire, body), &gone).await;
        answered.unwrap_or_else(|refusal| refused(&own, Some(&route), &refusal))
    });
    answering.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => (None, Refusal::Closing),
    })
}

/// Waits for a future as long as the client is connected and the time limit allows.
pub(super) async fn within<T>(
    progress: &Progress,
    gone: &CancellationToken,
    waited: impl Future<Output = T>,
) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        () = gone.cancelled() => Err(Refusal::Gone),
        done = timeout_at(progress.late(), waited) => done.map_err(|_| progress.too_late()),
    }
}

/// Refuses requests for reasons that do not depend on routes and tokens.
fn check(head: &Parts, shared: &Shared, site: &Open, here: Option<SocketAddr>) -> Result<(), Refusal> {
    if shared.closing.is_cancelled() {
        return Err(Refusal::Closing);
    }
    let names = Names { address: shared.address, here, hosts: &site.hosts };
    inbound::head::check(head, names, site.limits.head_bytes)?;
    let upgrades = head.headers.get_all(header::UPGRADE).iter();
    if head.method == Method::GET
        && upgrades.into_iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
    {
        return Err(Refusal::Upgrade);
    }
    Ok(())
}

impl From<HeadFault> for Refusal {
    fn from(fault: HeadFault) -> Self {
        match fault {
            HeadFault::Malformed(why) => Self::Malformed(why),
            HeadFault::Host => Self::Host,
            HeadFault::Size { limit } => Self::Head { limit },
        }
    }
}

impl From<BodyFault> for Refusal {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Size { limit } => Self::Body { limit },
            BodyFault::Slow { limit } => Self::SlowBody { limit },
            BodyFault::Closing => Self::Closing,
            BodyFault::Broken(why) => Self::BrokenBody(why),
        }
    }
}
