//! An HTTP endpoint with one path, `/metrics`, for a Prometheus server. It has no authentication and no encryption.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use crate::Metrics;
use crate::text::{self, Format};

/// The path of the metrics.
const PATH: &str = "/metrics";
/// So many connections are open at once: for one more the oldest is closed. A request takes a millisecond, so the oldest is one that sends
/// nothing, or sends or reads slowly.
const CONNECTIONS: usize = 64;
/// A connection whose request and response take longer is closed.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection is closed where its request is not complete by then.
const REQUEST_PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of a request's head; a larger one is refused with status 431.
const MAX_HEAD: usize = 16 << 10;
/// The pause after a connection could not be accepted, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// An endpoint that serves [`Metrics`] at `http://ADDRESS/metrics` until it is dropped.
///
/// A `GET` is answered with OpenMetrics text if the header `Accept` prefers it, and with the text format of Prometheus otherwise.
/// Whoever can reach the address can read the metrics: use a loopback address, or put a proxy in front that authenticates.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// An endpoint cannot be opened at an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve metrics at {address}: {source}")]
#[non_exhaustive]
pub struct ServeError {
    /// The address that was asked for.
    pub address: SocketAddr,
    /// What the system reports.
    pub source: io::Error,
}

impl ServeError {
    /// Returns what can be done, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self.source.kind() {
            io::ErrorKind::AddrInUse => {
                Some("another program uses this port: stop it, or choose another port; port 0 takes a free one")
            }
            io::ErrorKind::AddrNotAvailable => {
                Some("no network interface of this machine has this address; 127.0.0.1 is the machine itself")
            }
            io::ErrorKind::PermissionDenied => Some("ports below 1024 need a privilege: choose a higher one"),
            _ => None,
        }
    }
}

impl MetricsServer {
    /// Opens the endpoint, in a task of the Tokio runtime that this is called in. Port 0 takes a free one.
    ///
    /// # Errors
    /// The address is in use, is not one of this machine, or needs a privilege.
    pub async fn bind(address: SocketAddr, metrics: &Metrics) -> Result<Self, ServeError> {
        let failed = |source| ServeError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let task = tokio::spawn(accept(listener, metrics.clone()));
        Ok(Self { address, task })
    }

    /// Returns the address that it listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections for ever, and waits for none of them. Their tasks end with this one.
async fn accept(listener: TcpListener, metrics: Metrics) {
    let (mut connections, mut open) = (JoinSet::new(), VecDeque::new());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                while connections.try_join_next().is_some() {}
                open.retain(|one: &AbortHandle| !one.is_finished());
                if open.len() >= CONNECTIONS
                    && let Some(oldest) = open.pop_front()
                {
                    tracing::debug!("{CONNECTIONS} connections to the metrics are open: the oldest is closed");
                    oldest.abort();
                }
                open.push_back(connections.spawn(connection(stream, metrics.clone())));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection to the metrics: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one request; the response says that the connection is closed.
async fn connection(stream: TcpStream, metrics: Metrics) {
    let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request, &metrics))));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(REQUEST_PATIENCE).max_buf_size(MAX_HEAD);
    match tokio::time::timeout(PATIENCE, http.serve_connection(TokioIo::new(stream), service)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a request for the metrics failed: {error}"),
        Err(_) => tracing::debug!("a request for the metrics took too long"),
    }
}

fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "the metrics can be read with GET\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let format = wanted(request.headers());
    typed(StatusCode::OK, format.media_type(), text::render(&metrics.read(), format))
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", text)
}

fn typed(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The format that a client prefers: OpenMetrics where it names it and does not weight it below plain text.
fn wanted(headers: &HeaderMap) -> Format {
    let (mut open, mut plain) = (0.0, 0.0_f32);
    let accepted = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let value = |name: &str| {
            parameters
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim_matches('"'))
        };
        let weight: f32 = value("q").map_or(Ok(1.0), str::parse).unwrap_or(0.0);
        let known_version = matches!(value("version"), None | Some("1.0.0" | "0.0.1"));
        match media_type.as_str() {
            "application/openmetrics-text" if known_version => open = weight.max(open),
            "text/plain" | "text/*" | "*/*" => plain = weight.max(plain),
            _ => {}
        }
    }
    if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_negotiated() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html, */*;q=0.8", Format::Prometheus),
            (prometheus, Format::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", Format::OpenMetrics),
            ("application/openmetrics-text;q=0.2, text/plain;q=0.5", Format::Prometheus),
            ("application/openmetrics-text;version=2.0.0", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("application/openmetrics-text;q=x", Format::Prometheus),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(wanted(&headers), format, "{accept}");
        }
        assert_eq!(wanted(&HeaderMap::new()), Format::Prometheus);
    }
}
