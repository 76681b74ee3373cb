//! Requests on their way to the servers of models.

use std::time::Duration;

use bytes::Bytes;
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

    /// The wire format of an endpoint that answers are guarded on.
    ///
    /// # Errors
    /// The path is another way to write one, or has steps back that could lead to one.
    pub(super) fn wire(path: &str) -> Result<Option<Wire>, Disguised> {
        let read = plain(path)?;
        // The version is in the path, or in the address of the server.
        let relative = read.trim_start_matches('/');
        let first = relative.split('/').next().unwrap_or_default();
        let is_version = first.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let endpoint = if is_version { relative[first.len()..].trim_start_matches('/') } else { relative };
        let wires = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];
        let wire = wires.into_iter().find(|wire| wire.endpoint() == endpoint);
        if wire.is_some() && read != path { Err(Disguised) } else { Ok(wire) }
    }

    /// A request on its way to the server that its path and its headers name.
    pub(super) fn request(&self, method: Method, uri: &Uri, headers: HeaderMap) -> Sent {
        let (upstream, path) = self.upstream(uri.path(), &headers);
        let mut url = upstream.base.clone();
        url.set_path(&format!("{}{path}", upstream.base.path().trim_end_matches('/')));
        url.set_query(uri.query());
        Sent { method, url, headers, client: upstream.client.clone() }
    }

    /// The server for a path, and the path on it.
    fn upstream<'p>(&self, path: &'p str, headers: &HeaderMap) -> (&Upstream, &'p str) {
        let is_messages = path.starts_with("/v1/messages") || path.starts_with("/messages") || path == "/";
        if is_messages || headers.keys().any(|name| name == "x-api-key" || name.as_str().starts_with("anthropic-")) {
            return (&self.anthropic, path);
        }
        (&self.openai, path.strip_prefix("/v1").unwrap_or(path))
    }
}

/// A path leads to an endpoint and is not written as one.
#[derive(Debug)]
pub(super) struct Disguised;

/// A path as a server may read it: without escapes and empty parts, in lower case.
///
/// # Errors
/// It has steps, which lead elsewhere.
fn plain(path: &str) -> Result<String, Disguised> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    let path = String::from_utf8_lossy(&bytes).replace('\\', "/").to_lowercase();
    let parts = path.split('/').map(|part| part.split(['?', '#', ';']).next().unwrap_or_default().trim());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| [".", ".."].contains(part)) {
        return Err(Disguised);
    }
    Ok(parts.iter().flat_map(|part| ["/", part]).collect())
}

/// A request as it goes to a server, without its body.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    client: Client,
}

impl Sent {
    /// Sends it. `plain`: the answer must not be compressed, because it is read.
    pub(super) async fn send(&self, body: Bytes, plain: bool) -> Result<Response, reqwest::Error> {
        let mut headers = self.headers.clone();
        if plain {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        self.client.request(self.method.clone(), self.url.clone()).headers(headers).body(body).send().await
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_one_path() {
        for (path, wire) in [
            ("/v1/messages", Some(Some(Wire::Anthropic))),
            ("/v1/responses", Some(Some(Wire::OpenAiResponses))),
            ("/chat/completions", Some(Some(Wire::OpenAiChat))),
            ("/v1/threads/1/messages", Some(None)),
            ("/v1/files/A.txt", Some(None)),
            ("/v1/messages/count_tokens", Some(None)),
            ("/v1/responses/resp_1/cancel", Some(None)),
            ("/v1/models", Some(None)),
            ("/", Some(None)),
            ("/v1/messages/", None),
            ("//v1/messages", None),
            ("/v1/./messages", None),
            ("/v1/x/../messages", None),
            ("/x/../chat/completions", None),
            ("/../../v1/other", None),
            ("/v1/%2e%2e/other", None),
            ("/v1/chat/completions%3Fx", None),
            ("/v1/%6dessages", None),
            ("/v1%2Fmessages", None),
            ("/V1/Messages", None),
            ("/v1/messages%20", None),
            ("/v1/messages;a", None),
            ("/v1\\messages", None),
        ] {
            assert_eq!(Upstreams::wire(path).ok(), wire, "{path}");
        }
    }
}
