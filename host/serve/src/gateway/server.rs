//! The connections of clients.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::Wire;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::answer::{self, Body, Guarded};
use super::forward::{Sent, Upstreams};
use super::head::{self, Kind};
use super::{MAX_BODY, Shared, is_same};

/// The pause after a connection could not be accepted, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// A connection is closed where the head of its request is not complete by then.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a request's head; a larger one is refused with status 431.
const MAX_HEAD: usize = 256 << 10;

/// Accepts connections for ever, and waits for none of them. Their tasks end with this one.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                while connections.try_join_next().is_some() {}
                connections.spawn(connection(stream, Arc::clone(&shared)));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection to the gateway: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(respond(request, shared).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_PATIENCE).max_buf_size(MAX_HEAD);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!("a connection to the gateway ended: {error}");
    }
}

async fn respond(request: Request<Incoming>, shared: Arc<Shared>) -> Response<Body> {
    let (head, body) = request.into_parts();
    if let Some(refused) = refuse(&head.method, &head.headers, &shared) {
        return refused;
    }
    let Ok(wire) = Upstreams::wire(head.uri.path()) else {
        let message = "the path has steps, or is another way to write that of an endpoint, and is not passed on";
        return error(StatusCode::NOT_FOUND, message);
    };
    let sent = shared.upstreams.request(head.method, &head.uri, head::passed(&head.headers));
    if is_same(&sent.url, shared.address) {
        return error(StatusCode::LOOP_DETECTED, "the address of the model is this gateway itself");
    }
    let body = match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return self::error(StatusCode::PAYLOAD_TOO_LARGE, &format!("the request has more than {MAX_BODY} bytes"));
        }
        Err(error) => return self::error(StatusCode::BAD_REQUEST, &format!("the request broke off: {error}")),
    };
    exchange(shared, sent, wire, body).await
}

/// Sends a request on, and begins to answer it.
async fn exchange(shared: Arc<Shared>, sent: Sent, wire: Option<Wire>, body: Bytes) -> Response<Body> {
    let header = |name: &str| sent.headers.get(name).and_then(|value| value.to_str().ok());
    let watched = wire.filter(|_| shared.conversations.are_watched());
    let guarded = watched.map(|wire| shared.conversations.begin(wire, body.clone(), header));
    // With the reminders of earlier answers.
    let body = guarded.as_ref().and_then(|(_, exchange)| exchange.request()).unwrap_or(body);
    let answered = match sent.send(body, guarded.is_some()).await {
        Ok(answered) => answered,
        Err(cause) => {
            let place = net::place(&sent.url);
            return error(StatusCode::BAD_GATEWAY, &format!("cannot reach {place}: {}", net::cause(&cause)));
        }
    };
    let (status, kind) = (answered.status(), head::kind(answered.headers()));
    let mut response = Response::builder().status(status);
    if let Some(headers) = response.headers_mut() {
        *headers = head::passed(answered.headers());
    }
    let (client, stream) = answer::channel();
    match guarded {
        // What is no answer of a model has nothing that rules watch, such as an error.
        Some((place, exchange)) if status.is_success() => {
            if kind == Kind::Other || head::is_encoded(answered.headers()) {
                return blocked("the model's server answered in a way that cannot be checked");
            }
            let guarded = Guarded { shared, place, exchange, sent, client };
            tokio::spawn(guarded.run(answered, kind == Kind::Events));
        }
        _ => drop(tokio::spawn(answer::pass(answered, client))),
    }
    response.body(stream).unwrap_or_else(|_| error(StatusCode::BAD_GATEWAY, "the server's answer has an invalid head"))
}

/// What is answered without anybody being asked.
fn refuse(method: &Method, headers: &HeaderMap, shared: &Shared) -> Option<Response<Body>> {
    if !is_own_host(headers, shared) {
        // A page of some website may have made the browser ask under a name of its own.
        return Some(error(
            StatusCode::MISDIRECTED_REQUEST,
            "this gateway answers requests to 127.0.0.1 and localhost",
        ));
    }
    let upgrades =
        headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if *method == Method::GET && upgrades {
        return Some(error(StatusCode::UPGRADE_REQUIRED, "this gateway speaks server-sent events, and no websockets"));
    }
    None
}

fn is_own_host(headers: &HeaderMap, shared: &Shared) -> bool {
    let port = shared.address.port();
    let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .is_some_and(|host| own.iter().any(|one| one.eq_ignore_ascii_case(host)))
}

/// A refusal that clients show instead of asking again.
fn blocked(message: &str) -> Response<Body> {
    let mut response = error(StatusCode::BAD_REQUEST, message);
    response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

/// An error of the gateway's own, in the shape that both vendors' clients read.
fn error(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({"type": "error", "error": {"type": "policy_blocked", "message": format!("tidegate: {message}")}});
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
