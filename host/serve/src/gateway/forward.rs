//! Requests on their way to the servers of models.

use std::time::Duration;

use gateway::Wire;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use hyper::{Method, Uri};
use net::Proxies;
use reqwest::{Client, Response, Url};

use super::UpstreamUrls;

/// How long a connection to a server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The servers behind a gateway.
#[derive(Debug)]
pub(super) struct Upstreams {
    anthropic: Upstream,
    openai: Upstream,
}

#[derive(Debug)]
struct Upstream {
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

impl Upstreams {
    pub(super) fn new(urls: &UpstreamUrls) -> Result<Self, UpstreamError> {
        Ok(Self { anthropic: Upstream::new(&urls.anthropic)?, openai: Upstream::new(&urls.openai)? })
    }

    /// The wire format of an endpoint that answers are guarded on; `None`: what it answers is no answer of a model.
    pub(super) fn wire(method: &Method, path: &str) -> Option<Wire> {
        let endpoint = path.strip_prefix("/v1/").filter(|_| *method == Method::POST)?;
        [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses].into_iter().find(|wire| wire.endpoint() == endpoint)
    }

    /// The URL that a request goes to.
    pub(super) fn url(&self, uri: &Uri, headers: &HeaderMap) -> Url {
        let (upstream, path) = self.upstream(uri.path(), headers);
        let mut url = upstream.base.clone();
        url.set_path(&format!("{}{path}", upstream.base.path().trim_end_matches('/')));
        url.set_query(uri.query());
        url
    }

    /// Sends a request. `plain`: the answer must not be compressed, because it is read.
    pub(super) async fn send(&self, request: &Sent, body: Vec<u8>, plain: bool) -> Result<Response, reqwest::Error> {
        let mut headers = request.headers.clone();
        if plain {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let client = &self.upstream(request.path.as_str(), &request.headers).0.client;
        client.request(request.method.clone(), request.url.clone()).headers(headers).body(body).send().await
    }

    /// The server for a path, and the path on it.
    fn upstream<'p>(&self, path: &'p str, headers: &HeaderMap) -> (&Upstream, &'p str) {
        let is_messages = path.starts_with("/v1/messages") || path == "/";
        if is_messages || headers.keys().any(|name| name == "x-api-key" || name.as_str().starts_with("anthropic-")) {
            return (&self.anthropic, path);
        }
        (&self.openai, path.strip_prefix("/v1").unwrap_or(path))
    }
}

/// A request as it goes to a server, without its body.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl Upstream {
    fn new(url: &str) -> Result<Self, UpstreamError> {
        let failed = |cause: String| UpstreamError { url: url.to_owned(), cause };
        let base = Url::parse(url).map_err(|error| failed(format!("{error}; it looks like https://host/v1")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(failed("it does not begin with http:// or https:// and a host".to_owned()));
        }
        let proxies = Proxies::of_environment().map_err(|error| failed(error.to_string()))?;
        let client = net::client(&base, &proxies, Some(CONNECT_TIMEOUT)).map_err(|error| failed(error.to_string()))?;
        Ok(Self { base, client })
    }
}
