//! The connections of clients, from the listener to the request.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::request::{Connection, respond};

/// The pause after a connection could not be accepted, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of headers of a request; one with more gets status 431.
const MAX_HEADERS: usize = 256;
/// The minimum buffer size of the HTTP parser.
const MIN_BUFFER: usize = 8 << 10;

/// Accepts connections until the gateway closes, without waiting for any of them.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut places = (0, Arc::new(Semaphore::new(0)));
    loop {
        let limit = shared.site().limits.connections;
        if places.0 != limit {
            // Connections that were accepted under another limit count towards that one.
            places = (limit, Arc::new(Semaphore::new(limit as usize)));
        }
        let accepted = tokio::select! {
            () = shared.closing.cancelled() => return,
            accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&places.1).acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
        };
        match accepted {
            (place, Ok((stream, _))) => {
                let shared = Arc::clone(&shared);
                let tasks = shared.tasks.clone();
                tasks.spawn(async move {
                    let _place = place;
                    shared.connected(1);
                    connection(stream, &shared).await;
                    shared.connected(-1);
                });
            }
            (_, Err(error)) => {
                tracing::warn!("cannot accept a connection to the gateway: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: &Arc<Shared>) {
    drop(stream.set_nodelay(true));
    let own = Connection { here: stream.local_addr().ok(), stuck: CancellationToken::new() };
    let limits = shared.site().limits;
    let service = service_fn(|request| {
        let (shared, own) = (Arc::clone(shared), own.clone());
        async move { Ok::<_, Infallible>(respond(request, shared, own).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    // A head that is slightly too large is refused with a named error; a larger one only gets the status.
    http.timer(TokioTimer::new()).header_read_timeout(limits.client_timeout);
    http.max_buf_size((2 * limits.head_bytes).max(MIN_BUFFER)).max_headers(MAX_HEADERS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut closing = pin!(shared.closing.cancelled());
    let mut is_closing = false;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = own.stuck.cancelled() => return,
            () = closing.as_mut(), if !is_closing => {
                connection.as_mut().graceful_shutdown();
                is_closing = true;
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection to the gateway ended: {error}");
    }
}
