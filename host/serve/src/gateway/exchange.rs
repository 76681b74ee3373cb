//! One exchange: a request goes to the server, and its answer to the client.

use bytes::Bytes;
use gateway::Wire;
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use hyper::header::{self, HeaderMap, HeaderValue};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Body, Guarded};
use super::conversations::{Asked, Asks, Begun, Start};
use super::forward::Sent;
use super::head::{self, Kind};
use super::path::Unguarded;
use super::progress::Progress;
use super::received::Answer;
use super::refusal::Refusal;
use super::request::within;
use super::{access, passing, path, trailers};

/// Sends a request to the server, and begins to answer it. `gone`: cancelled when the client disconnects before the answer begins.
pub(super) async fn exchange(
    progress: Progress,
    mut sent: Sent,
    (wire, body): (Option<Wire>, Bytes),
    gone: &CancellationToken,
) -> Result<Response<Body>, Refusal> {
    let content = wire.is_none().then(|| path::unguarded(sent.url.path()));
    let is_unread = content == Some(Unguarded::Unread) && has_content(&body);
    let asks = asks(&progress, content, wire, is_unread).await?;
    let (mut begun, body) = match asks {
        Some(asks) => match begin(&progress, &mut sent, asks, body, gone).await? {
            Start::Ask(begun, body) => (Some(begun).filter(|_| asks.1 == Asks::Answer), body),
            Start::Answered { begun, body, is_stream } => return answered_here(progress, &begun, body, is_stream),
        },
        None => (None, body),
    };
    let first = within(&progress, gone, first(&progress, &sent, body, begun.is_some())).await.flatten();
    let checked = first.and_then(|answer| check(answer, asks.is_some(), begun.is_some()));
    // Other responses than answers of a model, such as errors, have nothing that rules watch.
    if !checked.as_ref().is_ok_and(|answer| answer.status.is_success())
        && let Some(mut unanswered) = begun.take()
    {
        unanswered.end(false).await;
    }
    let answer = checked?;
    let asked = &sent.headers;
    let Some(begun) = begun else {
        if is_unread && answer.status.is_success() {
            progress.unread(sent.url.path());
        }
        return Ok(response(&answer, asked, false)?.0.map(|()| passing::body(answer, progress)));
    };
    let (client, stream) = answer::channel();
    let (response, has_trailers) = response(&answer, asked, true)?;
    let is_stream = head::kind(&answer.headers) == Kind::Events;
    let tasks = progress.shared.tasks.clone();
    tasks.spawn(Guarded { begun, sent, client, progress, has_trailers }.run(answer, is_stream));
    Ok(response.map(|()| stream))
}

/// Returns whether a body can have texts.
fn has_content(body: &Bytes) -> bool {
    !matches!(body.trim_ascii(), b"" | b"{}")
}

/// Returns what a request asks for in its wire format; `None` if nothing acts on it. `content`: that of a request to another endpoint.
async fn asks(
    progress: &Progress,
    content: Option<Unguarded>,
    wire: Option<Wire>,
    is_unread: bool,
) -> Result<Option<(Wire, Asks)>, Refusal> {
    let conversations = &progress.route.route.conversations;
    if let Some(wire) = wire {
        return Ok(conversations.act().then_some((wire, Asks::Answer)));
    }
    match content.filter(|_| conversations.have_plugins()) {
        Some(Unguarded::Count(wire)) => Ok(Some((wire, Asks::Count))),
        Some(Unguarded::Compact(wire)) => Ok(Some((wire, Asks::Compaction))),
        Some(Unguarded::Unread) if is_unread => conversations.pass_unread().await.map(|()| None),
        _ => Ok(None),
    }
}

/// Begins the exchange in its conversation, which can change the body.
async fn begin(
    progress: &Progress,
    sent: &mut Sent,
    (wire, asks): (Wire, Asks),
    body: Bytes,
    gone: &CancellationToken,
) -> Result<Start, Refusal> {
    let header = |name: &str| sent.headers.get(name).and_then(|value| value.to_str().ok());
    let owner = owner(progress, &sent.headers);
    let asked = Asked { wire, body: &body, owner: &owner, asks };
    let mut start = progress.route.route.conversations.begin(asked, header, (progress, gone)).await?;
    if let Start::Ask(begun, prepared) = &mut start {
        if *prepared != body {
            sent.without_digests();
        }
        if asks != Asks::Answer {
            begun.end(false).await;
        }
    }
    Ok(start)
}

/// Returns the identity of the owner of a client's conversations: its token where it has one, which stays the same when a login to the server is
/// renewed, else its credentials for the server.
fn owner(progress: &Progress, headers: &HeaderMap) -> Vec<u8> {
    if let Some(name) = progress.token() {
        return [b"token\0", name.as_bytes()].concat();
    }
    let keys = access::CREDENTIALS.into_iter().flat_map(|name| headers.get_all(name)).map(HeaderValue::as_bytes);
    std::iter::once(b"keys".as_slice()).chain(keys).collect::<Vec<_>>().join(&0)
}

/// Returns the answer of a plugin, or one with the reason why the request is not sent.
fn answered_here(progress: Progress, begun: &Begun, body: Bytes, is_stream: bool) -> Result<Response<Body>, Refusal> {
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    let body = Full::new(body).map_err(|never| match never {}).boxed();
    let response = Response::builder().header(header::CONTENT_TYPE, kind).body(body);
    progress.guarded(begun, "answered");
    response.map_err(|_| Refusal::InvalidHead)
}

/// Waits for the head of the server's answer.
async fn first(progress: &Progress, sent: &Sent, body: Bytes, is_guarded: bool) -> Result<Answer, Refusal> {
    let limit = progress.site.limits.idle_timeout;
    match timeout(limit, sent.send(body, is_guarded)).await {
        Ok(Ok(answered)) => Ok(answered),
        Ok(Err(cause)) => Err(Refusal::Unreachable { place: net::place(&sent.url), cause: net::cause(&cause) }),
        Err(_) => Err(Refusal::SilentServer { limit }),
    }
}

/// Refuses answers that would pass what acts on the exchange.
fn check(answer: Answer, is_acted_on: bool, is_guarded: bool) -> Result<Answer, Refusal> {
    let (status, headers) = (answer.status, &answer.headers);
    if status.is_informational() {
        // Nobody has asked for another protocol, in which nothing would be checked.
        return Err(Refusal::InvalidHead);
    }
    if is_acted_on && status.is_redirection() && headers.contains_key(header::LOCATION) {
        // A client that follows a redirect would send its own request past the gateway.
        return Err(Refusal::Redirected { status: status.as_u16() });
    }
    match head::unreadable(headers).filter(|_| is_guarded && status.is_success()) {
        Some(why) => Err(Refusal::Unchecked { why }),
        None => Ok(answer),
    }
}

/// Returns the response with the head of an answer, and whether its trailers follow.
fn response(answer: &Answer, asked: &HeaderMap, is_guarded: bool) -> Result<(Response<()>, bool), Refusal> {
    let mut response = Response::builder().status(answer.status);
    let trailers = trailers::announced(&answer.headers).filter(|_| trailers::are_accepted(asked));
    let has_trailers = trailers.is_some();
    if let Some(headers) = response.headers_mut() {
        *headers = head::passed(&answer.headers);
        headers.extend(trailers.map(|names| (header::TRAILER, names)));
        if is_guarded {
            trailers::without_digests(headers);
        }
    }
    let response = response.body(()).map_err(|_| Refusal::InvalidHead)?;
    Ok((response, has_trailers))
}
