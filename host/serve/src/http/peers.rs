//! Requests for a session that another host has open: they are passed on to it, and its answers are passed back.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use futures_util::{StreamExt as _, stream};
use http_body_util::BodyDataStream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use net::Proxies;
use reqwest::{Client, Url};
use tidegate::SessionId;
use tidegate::transcript::SessionHolder;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::time::timeout;

use super::problem::Problem;
use super::routes::Call;
use super::websocket;
use crate::inbound;

/// Marks a request that another host has passed on: it is answered where it arrives.
const PASSED_ON: HeaderName = HeaderName::from_static("tidegate-passed-on");

/// The time limit for a connection to another host.
const CONNECT: Duration = Duration::from_secs(5);

/// How often it is looked whether a host that does not answer still has the session.
const LOOK: Duration = Duration::from_secs(1);

/// Fields that are about one connection.
const OF_CONNECTION: [HeaderName; 5] =
    [header::CONNECTION, header::TE, header::TRAILER, header::TRANSFER_ENCODING, header::UPGRADE];

/// Fields of a request that were checked here, or that are set when it is passed on.
const CHECKED: [HeaderName; 3] = [header::CONTENT_LENGTH, header::HOST, header::ORIGIN];

/// The connections to other hosts, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Peers {
    clients: Mutex<BTreeMap<String, Client>>,
}

impl Peers {
    /// Returns the client for an address.
    ///
    /// # Errors
    /// The address is none, or the certificates of this machine cannot be used.
    fn client(&self, url: &Url) -> Result<Client, Problem> {
        let key = net::place(url);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let proxies = Proxies::of_environment().map_err(Problem::internal)?;
        let client = net::client(url, &proxies, Some(CONNECT)).map_err(Problem::internal)?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Passes a request on to the host that has its session open; `None`: none has, or it is this one.
///
/// # Errors
/// That host cannot be reached.
pub(super) async fn passed_on(call: &mut Call) -> Result<Option<Response<Body>>, Problem> {
    if call.head.headers.contains_key(PASSED_ON) {
        return Ok(None);
    }
    let Some(id) = call.session() else { return Ok(None) };
    let Some(SessionHolder { name, address: Some(address), .. }) = call.shared.sessions.elsewhere(&id).await? else {
        return Ok(None);
    };
    let base = Url::parse(&address).map_err(Problem::internal)?;
    let target = call.head.uri.path_and_query().map_or("/", |target| target.as_str());
    let url = base.join(target).map_err(Problem::internal)?;
    let client = call.shared.peers.client(&url)?;
    let mut headers = without(&call.head.headers, &[&OF_CONNECTION[..], &CHECKED].concat());
    headers.insert(PASSED_ON, HeaderValue::from_static("1"));
    let is_websocket = websocket::is_asked_for(&call.head.headers);
    if is_websocket {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    let limits = call.shared.limits;
    let body = std::mem::take(&mut *call.body.lock().unwrap_or_else(PoisonError::into_inner));
    let (bytes, _) = inbound::body::read(body, limits.body_bytes, limits.client_timeout, &call.shared.closing).await?;
    let sent = client.request(call.head.method.clone(), url).headers(headers).body(bytes).send();
    let answer = tokio::select! {
        answer = sent => answer.map_err(|error| {
            tracing::warn!("{name} at {address} does not answer: {}", net::cause(&error));
            Problem::open_elsewhere(&name)
        })?,
        () = lost(call, &id, &name) => return Err(Problem::open_elsewhere(&name)),
    };
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return upgraded(call, answer).map(Some);
    }
    Ok(Some(passed_back(call, answer)))
}

/// Copies until nothing is read for longer than the limit.
async fn copied(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, limit: Duration) -> io::Result<()> {
    let mut bytes = vec![0; 8 << 10];
    loop {
        let size = timeout(limit, from.read(&mut bytes)).await??;
        if size == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..size]).await?;
        to.flush().await?;
    }
}

/// Waits until the host with this name does not have the session any more: it can have stopped without its end.
async fn lost(call: &Call, id: &SessionId, name: &str) {
    loop {
        tokio::time::sleep(LOOK).await;
        match call.shared.sessions.elsewhere(id).await {
            Ok(holder) if holder.as_ref().is_none_or(|holder| holder.name != name) => return,
            Ok(_) | Err(_) => {}
        }
    }
}

fn without(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut headers = headers.clone();
    for name in names {
        headers.remove(name);
    }
    headers
}

/// Returns the answer of another host. Its stream ends when this server closes, and breaks off when that host is silent.
fn passed_back(call: &Call, answer: reqwest::Response) -> Response<Body> {
    let (head, body) = Response::<reqwest::Body>::from(answer).into_parts();
    let closing = call.shared.closing.clone().cancelled_owned();
    let limit = silence(call);
    let chunks = stream::unfold(Some(BodyDataStream::new(body)), move |chunks| async move {
        let mut chunks = chunks?;
        match timeout(limit, chunks.next()).await {
            Ok(next) => next.map(|chunk| (chunk.map_err(io::Error::other), Some(chunks))),
            Err(_) => {
                tracing::warn!("a stream that is passed on breaks off: the other host was silent for {limit:?}");
                Some((Err(io::ErrorKind::TimedOut.into()), None))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(Box::pin(chunks).take_until(closing)));
    *response.status_mut() = head.status;
    *response.headers_mut() = without(&head.headers, &OF_CONNECTION);
    response
}

/// The time without a byte after which another host counts as gone: it sends keep-alives and pings more often.
fn silence(call: &Call) -> Duration {
    call.shared.limits.keep_alive * 3
}

/// Connects a websocket with that of another host, until either ends or that host is silent.
fn upgraded(call: &mut Call, answer: reqwest::Response) -> Result<Response<Body>, Problem> {
    let here = call.head.extensions.remove::<OnUpgrade>().ok_or_else(|| Problem::internal("no upgrade"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = answer.headers().clone();
    let (closing, limit) = (call.shared.closing.clone(), silence(call));
    call.shared.tasks.spawn(async move {
        let both = async {
            let (Ok(here), Ok(there)) = (here.await, answer.upgrade().await) else { return };
            let ((mut from_here, to_here), (from_there, mut to_there)) = (split(TokioIo::new(here)), split(there));
            // Either of them has ended: both have.
            let ended = tokio::select! {
                ended = copy(&mut from_here, &mut to_there) => ended.map(drop),
                ended = copied(from_there, to_here, limit) => ended,
            };
            if let Err(error) = ended {
                tracing::warn!("a websocket that is passed on breaks off: {error}");
            }
        };
        tokio::select! {
            () = closing.cancelled() => {}
            () = both => {}
        }
    });
    Ok(response)
}
