//! Requests over HTTP/1.1: one connection an answer, closed the moment the answer is dropped.

use std::ffi::OsString;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flow::ports::BoxFuture;
use flow::{Address, FailureKind, KeySource, ModelError};
use futures_core::Stream;
use net::{Proxies, Proxy, place};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use wire::Wire;

use crate::config::{HttpConfig, ProviderError, Secret, Secrets};
use crate::model::{Chunks, Reply, Transport};

/// The most bytes that are read of a list of models; those of the largest gateways have less than one MiB.
pub(crate) const MAX_MODELS_BYTES: usize = 8 << 20;

/// The transport to one server: address, headers and time limits.
pub(crate) struct Http {
    /// Made when first needed: reading the machine's certificates takes longer than all else at the start of a program.
    client: OnceLock<Client>,
    connect_timeout: Duration,
    proxies: Proxies,
    url: Url,
    /// The list of models, for [`crate::check()`].
    models_url: Url,
    headers: HeaderMap,
    idle: Duration,
    /// The key and the configured header values: whatever must not be written down.
    secrets: Secrets,
    vendor: bool,
}

impl Http {
    pub(crate) fn new(config: &HttpConfig) -> Result<Self, ProviderError> {
        let base = base_url(config.wire, config.base_url.as_deref())?;
        let key = key(config)?;
        refuse_plaintext(config, &base, key.is_some())?;
        let (mut headers, mut secrets) = (HeaderMap::new(), Vec::new());
        // Without it a server may choose; a compressor in the way of a stream would delay it anyway.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if config.wire == Wire::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        if let Some(key) = key {
            authorize(config.wire, &key, &mut headers)?;
            secrets.push(key);
        }
        for (name, value) in &config.headers {
            let bad = |cause: String| ProviderError::Setting { key: "headers", cause: format!("{name:?}: {cause}") };
            let name = HeaderName::try_from(name).map_err(|cause| bad(cause.to_string()))?;
            headers
                .insert(name, secret_value(value).ok_or_else(|| bad("its value is not valid in a header".to_owned()))?);
            secrets.extend(scheme_less(value).map(|word| Secret(word.to_owned())));
            secrets.push(Secret(value.clone()));
        }
        let proxies =
            Proxies::of_environment().map_err(|error| ProviderError::Environment { message: error.to_string() })?;
        let password = proxies.of(&base).and_then(Proxy::password);
        secrets.extend(password.map(Secret::new));
        Ok(Self {
            client: OnceLock::new(),
            connect_timeout: config.connect_timeout,
            proxies,
            url: below(&base, config.wire.endpoint()),
            models_url: below(&base, "models"),
            headers,
            idle: config.idle_timeout,
            secrets: Secrets::new(secrets),
            vendor: config.base_url.is_none(),
        })
    }

    pub(crate) fn is_vendor(&self) -> bool {
        self.vendor
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Asks for the list of models: status, and the body if it is not larger than [`MAX_MODELS_BYTES`].
    pub(crate) async fn models(&self) -> Result<(u16, Option<Vec<u8>>), ModelError> {
        let client = self.client()?;
        let send = async {
            let mut response = client.get(self.models_url.clone()).headers(self.headers.clone()).send().await?;
            let (status, mut body) = (response.status().as_u16(), Vec::new());
            while let Some(bytes) = response.chunk().await? {
                if body.len() + bytes.len() > MAX_MODELS_BYTES {
                    return Ok((status, None));
                }
                body.extend_from_slice(&bytes);
            }
            Ok((status, Some(body)))
        };
        match timeout(self.idle, send).await {
            Ok(answer) => answer.map_err(|cause| self.failed(&cause)),
            Err(_) => Err(self.silent("after the request")),
        }
    }

    /// The server, for messages: no path, no query, no user; and the proxy before it.
    pub(crate) fn place(&self) -> String {
        let place = place(&self.url);
        self.proxies.of(&self.url).map_or_else(|| place.clone(), |proxy| format!("{place} through {proxy}"))
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = net::client(&self.url, &self.proxies, Some(self.connect_timeout))
            .map_err(|error| ModelError::of_kind(FailureKind::Request, error.to_string()))?;
        // Where two requests are the first at once, both have the same client.
        Ok(self.client.get_or_init(|| client))
    }

    fn failed(&self, cause: &reqwest::Error) -> ModelError {
        broken(&self.place(), self.connect_timeout, cause)
    }

    fn silent(&self, when: &str) -> ModelError {
        silent(&self.place(), self.idle, when)
    }
}

impl Transport for Http {
    fn send(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Reply, ModelError>> {
        Box::pin(async move {
            let request = self.client()?.post(self.url.clone()).headers(self.headers.clone());
            let request =
                request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream").body(body);
            let response = match timeout(self.idle, request.send()).await {
                Ok(sent) => sent.map_err(|cause| self.failed(&cause))?,
                Err(_) => return Err(self.silent("after the request")),
            };
            let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
            let status = response.status().as_u16();
            let body = Box::pin(response.bytes_stream());
            let timer = Box::pin(sleep_until(Instant::now()));
            let body = Body { body, place: self.place(), idle: self.idle, timer, waiting: false };
            Ok(Reply { status, headers, body: Box::new(body) })
        })
    }
}

/// A response's body with a limit on silence.
struct Body {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    place: String,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// The timer runs. It starts when we begin to wait, not when the last chunk came: a slow reader is not the
    /// server's fault.
    waiting: bool,
}

impl Chunks for Body {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ModelError>>> {
        if let Poll::Ready(next) = self.body.as_mut().poll_next(cx) {
            self.waiting = false;
            return Poll::Ready(next.map(|chunk| chunk.map_err(|cause| broken(&self.place, self.idle, &cause))));
        }
        if !std::mem::replace(&mut self.waiting, true) {
            self.timer.as_mut().reset(Instant::now() + self.idle);
        }
        match self.timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(silent(&self.place, self.idle, "inside its answer")))),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn base_url(wire: Wire, given: Option<&str>) -> Result<Url, ProviderError> {
    let bad = |cause: String| ProviderError::Setting { key: "base_url", cause };
    let text = given.unwrap_or(wire.default_base_url()).trim_end_matches('/');
    let mut url = Url::parse(text)
        .map_err(|cause| bad(format!("{text:?} is not a URL ({cause}); it looks like https://host/v1")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad(format!("{text:?} does not begin with http:// or https:// and a host")));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "it must not contain a user, password, query or fragment; put a key into the variable that `api_key_env` names".to_owned()
        ));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if let Some(cause) = names_endpoint(wire, &url, &path) {
        return Err(bad(cause));
    }
    let versioned = path
        .rsplit('/')
        .next()
        .is_some_and(|last| last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    // OpenAI's servers are usually given with their version, Anthropic's without; both are taken either way.
    if !versioned && (wire == Wire::Anthropic || path.is_empty()) {
        url.set_path(&format!("{path}/v1"));
    }
    Ok(url)
}

/// The error of an address that already names the endpoint, which is appended to it.
fn names_endpoint(wire: Wire, url: &Url, path: &str) -> Option<String> {
    let mut wires = [wire, Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses].into_iter();
    let (named, base) =
        wires.find_map(|named| Some((named, path.strip_suffix(named.endpoint())?.strip_suffix('/')?)))?;
    let (endpoint, place) = (named.endpoint(), format!("{}{base}", place(url)));
    Some(if named == wire {
        format!("it ends with `/{endpoint}`, which is added to it; write {place}")
    } else {
        let (named, wire) = (named.as_str(), wire.as_str());
        format!(
            "it ends with `/{endpoint}`, the endpoint of the provider {named}, and this provider is {wire}; write \
             {place}, and check the provider"
        )
    })
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

fn key(config: &HttpConfig) -> Result<Option<Secret>, ProviderError> {
    if let Some(key) = &config.given_key {
        return match key.0.trim() {
            "" => Err(ProviderError::Setting { key: "key", cause: "the key that was given is empty".to_owned() }),
            key => Ok(Some(Secret::new(key))),
        };
    }
    let variable = match &config.key {
        KeySource::Env(variable) => variable.as_str(),
        KeySource::Usual if config.base_url.is_none() => config.wire.default_key_env(),
        KeySource::Usual | KeySource::None => return Ok(None),
    };
    let provider = config.wire.as_str();
    match system::environment::variable(variable).map(OsString::into_string) {
        Some(Ok(key)) if !key.trim().is_empty() => Ok(Some(Secret(key.trim().to_owned()))),
        // Also where it is set and empty, or no text.
        _ => Err(ProviderError::NoKey { provider, variable: variable.to_owned() }),
    }
}

/// # Errors
/// Something that must stay secret would be sent so that others can read it.
fn refuse_plaintext(config: &HttpConfig, base: &Url, has_key: bool) -> Result<(), ProviderError> {
    let first = || config.headers.first().map(|(name, _)| format!("the header `{name}`"));
    let Some(secret) = has_key.then(|| "the key".to_owned()).or_else(first) else { return Ok(()) };
    let is_exposed = Address::of_url(base.as_str()).map_or(true, |address| address.is_exposed());
    if is_exposed && !config.allow_plaintext_key {
        return Err(ProviderError::PlaintextKey { secret, place: place(base) });
    }
    Ok(())
}

fn authorize(wire: Wire, key: &Secret, headers: &mut HeaderMap) -> Result<(), ProviderError> {
    let bad = || ProviderError::Setting {
        key: "key",
        cause: "the key contains characters that are not allowed in a header".to_owned(),
    };
    match wire {
        Wire::Anthropic => {
            headers.insert("x-api-key", secret_value(&key.0).ok_or_else(bad)?);
        }
        Wire::OpenAiChat | Wire::OpenAiResponses => {
            headers.insert("authorization", secret_value(&format!("Bearer {}", key.0)).ok_or_else(bad)?);
        }
    }
    Ok(())
}

/// What follows the scheme in a value such as `Bearer WORD`: a copy of it need not include the scheme.
fn scheme_less(value: &str) -> Option<&str> {
    let (scheme, word) = value.split_once(' ')?;
    let known = ["bearer", "basic", "token", "apikey", "key"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    known.then(|| word.trim())
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn silent(place: &str, idle: Duration, when: &str) -> ModelError {
    let seconds = idle.as_secs_f64();
    ModelError::of_kind(
        FailureKind::Transport,
        format!("{place} was silent for {seconds} s {when} (`idle_timeout_ms` of the provider)"),
    )
}

/// What to look at where no connection came about.
fn advice(place: &str, why: &str) -> &'static str {
    if why.contains("proxy authorization required") {
        "; the proxy wants a user and a password: name them in its variable, http://USER:PASSWORD@HOST:PORT"
    } else if place.contains(" through the proxy ") {
        "; is the proxy running, does it let the request through, and is `base_url` right?"
    } else {
        "; is it running, and is `base_url` right?"
    }
}

fn broken(place: &str, connect_timeout: Duration, cause: &reqwest::Error) -> ModelError {
    let why = net::cause(cause);
    let message = if cause.is_connect() && cause.is_timeout() {
        let seconds = connect_timeout.as_secs_f64();
        format!("cannot connect to {place} within {seconds} s (`connect_timeout_ms` of the provider)")
    } else if cause.is_connect() {
        format!("cannot connect to {place}: {why}{}", advice(place, &why))
    } else {
        format!("the connection to {place} broke: {why}")
    };
    let kind = if cause.is_builder() { FailureKind::Request } else { FailureKind::Transport };
    ModelError::of_kind(kind, message)
}
