//! Routes to the servers of models, and requests on their way there.

use std::convert::Infallible;
use std::error::Error as _;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use gateway::Wire;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, TRAILER};
use hyper::{Method, Uri};
use net::Proxies;
use reqwest::{Body, Client, Url};

use super::received::Answer;
use super::{Conversations, path, trailers};

/// The paths that one server answers.
pub struct Route {
    /// The common prefix of the paths, `/` or `/part`, which is removed.
    pub path: String,
    /// The URL of the server.
    pub upstream: String,
    /// Which of the requests with these paths the route is for.
    pub clients: Clients,
    /// The key that replaces the client's; `None` to pass the client's key on.
    pub key: Option<Key>,
    /// A file with the certificates for checking the server's; `None` for those of the environment.
    pub ca: Option<PathBuf>,
    /// The conversations of its requests.
    pub conversations: Arc<Conversations>,
}

/// Which requests a route is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clients {
    /// All requests with its path.
    #[default]
    All,
    /// Requests of clients of the Messages API, recognized by their path or their headers.
    Anthropic,
    /// All other requests with its path.
    Others,
}

/// A key of a server, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(super) HeaderValue);

impl Key {
    /// Creates a key from the text that is sent; `None` if it has characters that are not allowed in a header.
    pub fn new(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(text.trim()).ok().filter(|value| !value.is_empty())?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("path", &self.path).field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// A route whose server can be reached.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) route: Route,
    base: Url,
    client: Client,
}

/// The URL of a server of models cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {url} as the address of a model: {cause}")]
pub struct UpstreamError {
    url: String,
    cause: String,
}

impl Upstream {
    pub(super) fn new(route: Route, connect_timeout: Duration) -> Result<Self, UpstreamError> {
        let url = &route.upstream;
        let failed = |cause: String| UpstreamError { url: url.to_owned(), cause };
        let base = Url::parse(url).map_err(|error| failed(format!("{error}; it looks like https://host/v1")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(failed("it does not begin with http:// or https:// and a host".to_owned()));
        }
        let proxies = Proxies::of_environment().map_err(|error| failed(error.to_string()))?;
        let timeout = Some(connect_timeout);
        let client = match &route.ca {
            Some(file) => net::client_trusting(file, &base, &proxies, timeout),
            None => net::client(&base, &proxies, timeout),
        };
        let client = client.map_err(|error| failed(error.to_string()))?;
        Ok(Self { base, client, route })
    }

    /// Returns whether a request is for this route.
    pub(super) fn takes(&self, path: &str, headers: &HeaderMap) -> bool {
        let Some(rest) = path::below(&self.route.path, path) else { return false };
        let is_anthropic = || {
            let is_messages =
                rest.starts_with("/v1/messages") || rest.starts_with("/messages") || matches!(rest, "" | "/");
            is_messages || headers.contains_key("x-api-key") || has_anthropic(headers)
        };
        match self.route.clients {
            Clients::All => true,
            Clients::Anthropic => is_anthropic(),
            Clients::Others => !is_anthropic(),
        }
    }

    /// The wire format of an endpoint that answers are guarded on.
    ///
    /// # Errors
    /// The path is an alias of an endpoint's path.
    pub(super) fn wire(&self, path: &str) -> Result<Option<Wire>, path::Disguised> {
        path::wire(self.base.path(), path::below(&self.route.path, path).unwrap_or_default())
    }

    /// Creates the request to the server.
    pub(super) fn request(&self, method: Method, uri: &Uri, headers: HeaderMap) -> Sent {
        let rest = path::below(&self.route.path, uri.path()).unwrap_or_default();
        let mut url = self.base.clone();
        url.set_path(&path::on_server(self.base.path(), rest));
        url.set_query(uri.query());
        Sent { method, url, headers, trailers: HeaderMap::new(), client: self.client.clone() }
    }
}

/// Returns whether a request has a header that only clients of the Messages API send.
pub(super) fn has_anthropic(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("anthropic-"))
}

/// A request as it goes to a server, without its body.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// The trailers of its body.
    pub(super) trailers: HeaderMap,
    client: Client,
}

impl Sent {
    /// Removes the fields that only describe the client's own body.
    pub(super) fn without_digests(&mut self) {
        trailers::without_digests(&mut self.headers);
        trailers::without_digests(&mut self.trailers);
    }

    /// Sends the request. `plain`: the answer must not be compressed, because it is read.
    pub(super) async fn send(&self, body: Bytes, plain: bool) -> Result<Answer, reqwest::Error> {
        let mut headers = self.headers.clone();
        if plain {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let body = match trailers::announcement(self.trailers.keys().cloned()) {
            Some(names) => {
                headers.insert(TRAILER, names);
                followed_by(body, self.trailers.clone())
            }
            None => Body::from(body),
        };
        let request = self.client.request(self.method.clone(), self.url.clone()).headers(headers).body(body);
        request.send().await.map(Answer::of)
    }

    /// Sends the request again after a stopped answer. Repeats it once if the server closes the connection at once, as it does with an idle one:
    /// a client would repeat a request of its own.
    pub(super) async fn send_again(&self, body: Bytes) -> Result<Answer, reqwest::Error> {
        let begun = Instant::now();
        match self.send(body.clone(), true).await {
            Err(error) if begun.elapsed() < AT_ONCE && was_closed(&error) => self.send(body, true).await,
            sent => sent,
        }
    }
}

/// The time after which a server that closes a connection may have worked on the request.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Returns whether the connection was closed before an answer.
fn was_closed(error: &reqwest::Error) -> bool {
    let is_close = |source: &(dyn std::error::Error + 'static)| {
        let http = source.downcast_ref::<hyper::Error>();
        let system = source.downcast_ref::<io::Error>().map(io::Error::kind);
        http.is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
            || matches!(system, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted))
    };
    let mut source = error.source();
    while let Some(cause) = source {
        if is_close(cause) {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Returns a body with trailers, which is sent in chunks.
fn followed_by(body: Bytes, trailers: HeaderMap) -> Body {
    let data = Some(body).filter(|body| !body.is_empty()).map(Frame::data);
    let frames = data.into_iter().chain([Frame::trailers(trailers)]).map(Ok::<_, Infallible>);
    Body::wrap(StreamBody::new(stream::iter(frames)))
}
