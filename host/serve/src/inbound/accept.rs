//! The connections of clients, from the listener to the request.

use std::convert::Infallible;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use net::TlsStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ending::Ended;
use super::patient::{Deadline, Patient, Remaining, WriteLimits};
use super::tls::Tls;

/// The pause after a connection could not be accepted, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of headers of a request; one with more gets status 431.
const MAX_HEADERS: usize = 256;
/// The minimum buffer size of the HTTP parser.
const MIN_BUFFER: usize = 8 << 10;

/// The connection of a client.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// The local address of the connection.
    pub(crate) here: Option<SocketAddr>,
    /// That of the response that is written; it has none unless somebody sets it.
    pub(crate) deadline: Deadline,
}

/// The limits of connections, as they are now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// The maximum number of open connections; further ones wait.
    pub(crate) connections: u32,
    /// The maximum size of a head in bytes.
    pub(crate) head_bytes: usize,
    /// The time limit for a head.
    pub(crate) head_timeout: Duration,
    pub(crate) write: WriteLimits,
}

/// A server over HTTP.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// The body of its responses.
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    /// The name of the server in logs.
    const NAME: &str;

    /// Returns the limits of connections that are accepted now.
    fn limits(&self) -> ConnectionLimits;

    /// Cancelled when the server closes.
    fn closing(&self) -> &CancellationToken;

    /// Tracks the connections.
    fn tasks(&self) -> &TaskTracker;

    /// Counts a connection that begins (1) or ends (-1).
    fn connected(&self, change: i64);

    /// Returns the answer to a head that is not complete within the time limit: the media type and the body.
    fn slow_head(&self) -> (&'static str, String);

    /// Answers a request.
    fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Connection,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Returns the URL of a server.
pub(crate) fn url(address: SocketAddr, is_encrypted: bool) -> String {
    format!("{}://{address}", if is_encrypted { "https" } else { "http" })
}

/// Accepts connections until the server closes, without waiting for any of them. `tls`: the certificate; `None`: plaintext.
pub(crate) async fn accept<S: Inbound>(listener: TcpListener, tls: Option<Arc<Tls>>, server: Arc<S>) {
    // It ends with this future.
    let mut following = JoinSet::new();
    if let Some(tls) = &tls {
        following.spawn(Arc::clone(tls).follow());
    }
    let mut places = (0, Arc::new(Semaphore::new(0)));
    loop {
        let limit = server.limits().connections;
        if places.0 != limit {
            // Connections that were accepted under another limit count towards that one.
            places = (limit, Arc::new(Semaphore::new(limit as usize)));
        }
        let accepted = tokio::select! {
            () = server.closing().cancelled() => return,
            accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&places.1).acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
        };
        match accepted {
            (place, Ok((stream, _))) => {
                let (server, tls) = (Arc::clone(&server), tls.clone());
                let tasks = server.tasks().clone();
                tasks.spawn(async move {
                    let _place = place;
                    server.connected(1);
                    let remaining = connection(stream, tls.as_deref(), &server).await;
                    server.connected(-1);
                    if let Some((remaining, ended)) = remaining {
                        tokio::select! {
                            () = server.closing().cancelled() => {}
                            () = remaining.end(ended, || server.slow_head()) => {}
                        }
                    }
                });
            }
            (_, Err(error)) => {
                tracing::warn!("cannot accept a connection to the {}: {error}", S::NAME);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A connection with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Debug + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Debug + Unpin + Send> Stream for T {}

/// Serves a connection until HTTP has ended. Returns the stream that is left, and why HTTP has ended.
async fn connection<S: Inbound>(
    stream: TcpStream,
    tls: Option<&Tls>,
    server: &Arc<S>,
) -> Option<(Remaining<Box<dyn Stream>>, Ended)> {
    drop(stream.set_nodelay(true));
    let own = Connection { here: stream.local_addr().ok(), deadline: Deadline::default() };
    let limits = server.limits();
    let stream: Box<dyn Stream> = match tls {
        Some(tls) => {
            let opened = tokio::select! {
                () = server.closing().cancelled() => return None,
                opened = encrypted::<S>(stream, tls, limits.head_timeout) => opened?,
            };
            match opened {
                Opened::Encrypted(stream) => stream,
                Opened::Plain(stream) => return Some((Remaining::unanswered(stream), Ended::Plain)),
            }
        }
        None => Box::new(stream),
    };
    let has_request = AtomicBool::new(false);
    let service = service_fn(|request| {
        has_request.store(true, Ordering::Relaxed);
        let (server, own) = (Arc::clone(server), own.clone());
        async move { Ok::<_, Infallible>(server.respond(request, own).await) }
    });
    let stream = Patient::new(stream, limits.write, own.deadline.clone(), server.closing());
    let remains = stream.remains();
    let ended = {
        let mut connection = pin!(http(limits).serve_connection(TokioIo::new(stream), service).with_upgrades());
        let mut closing = pin!(server.closing().cancelled());
        let mut is_closing = false;
        loop {
            tokio::select! {
                // A head that was received completely is a request.
                biased;
                ended = connection.as_mut() => break ended,
                () = closing.as_mut(), if !is_closing => {
                    // HTTP would wait for the rest of a first head.
                    if !has_request.load(Ordering::Relaxed) {
                        return None;
                    }
                    connection.as_mut().graceful_shutdown();
                    is_closing = true;
                }
            }
        }
    };
    if let Err(error) = &ended {
        tracing::debug!("a connection to the {} ended: {error}", S::NAME);
    }
    let is_slow = ended.is_err_and(|error| error.is_timeout());
    Some((remains.take()?, if is_slow { Ended::Slow } else { Ended::Done }))
}

/// A connection to a server with a certificate.
enum Opened {
    Encrypted(Box<TlsStream<TcpStream>>),
    /// The client does not begin TLS.
    Plain(Box<TcpStream>),
}

async fn encrypted<S: Inbound>(stream: TcpStream, tls: &Tls, limit: Duration) -> Option<Opened> {
    let opened = async {
        let mut first = [0];
        stream.peek(&mut first).await?;
        // The method of a request. The first record of TLS begins with 0x16.
        if first[0].is_ascii_alphabetic() {
            return Ok(Opened::Plain(Box::new(stream)));
        }
        tls.acceptor().accept(stream).await.map(|stream| Opened::Encrypted(Box::new(stream)))
    };
    match timeout(limit, opened).await {
        Ok(Ok(opened)) => return Some(opened),
        Ok(Err(error)) => tracing::debug!("a connection to the {} is not encrypted: {error}", S::NAME),
        Err(_) => tracing::debug!("a connection to the {} was not encrypted in time", S::NAME),
    }
    None
}

fn http(limits: ConnectionLimits) -> hyper::server::conn::http1::Builder {
    let mut http = hyper::server::conn::http1::Builder::new();
    // A head that is slightly too large is refused with a named error; a larger one only gets the status.
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    http.max_buf_size((2 * limits.head_bytes).max(MIN_BUFFER)).max_headers(MAX_HEADERS);
    http
}
