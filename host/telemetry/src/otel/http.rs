//! Sends requests to a receiver, again where they failed in passing.

use std::time::Duration;

use bytes::Bytes;
pub(crate) use net::place;
use net::{Proxies, cause};
pub(crate) use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
pub(crate) use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::otel::settings::Target;

/// The most that is read of a response: it is empty, or contains what was rejected.
const MAX_RESPONSE: usize = 64 << 10;
/// The pause after a failed request, doubled with each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// What became of a request.
#[derive(Debug)]
enum Sent {
    /// The receiver has it, except for what its response may say.
    Accepted(Bytes),
    /// It can be sent again, after this time if the receiver asks for it.
    Later { cause: String, after: Option<Duration> },
    /// It cannot be accepted.
    Refused(String),
}

/// The connections to one receiver.
#[derive(Debug)]
pub(crate) struct Sender {
    /// The error names what of this machine cannot be used.
    client: Result<Client, String>,
    target: Target,
}

impl Sender {
    pub(crate) fn new(target: Target) -> Self {
        let proxies = Proxies::of_environment().map_err(|error| error.to_string());
        let client =
            proxies.and_then(|proxies| net::client(&target.url, &proxies, None).map_err(|error| error.to_string()));
        Self { client, target }
    }

    /// The receiver, for messages: without the path, which can contain a key.
    fn place(&self) -> String {
        place(&self.target.url)
    }

    /// Why a part of what was accepted was not.
    pub(crate) fn rejection(&self, why: &str) -> String {
        format!("{} rejected them: {why}", self.place())
    }

    /// Sends a body until the receiver has it or refuses it. Once the export is finished, it is sent one last time, without a pause.
    /// Returns the response, which may say that a part was rejected, or why it was not accepted.
    pub(crate) async fn deliver(
        &self,
        body: impl Fn() -> Bytes,
        mut finishing: watch::Receiver<bool>,
    ) -> Result<Bytes, String> {
        let mut pause = FIRST_PAUSE;
        loop {
            let is_last = *finishing.borrow();
            match self.send(body()).await {
                Sent::Accepted(response) => return Ok(response),
                Sent::Refused(cause) => return Err(cause),
                Sent::Later { cause, .. } if is_last => return Err(cause),
                // A receiver can ask for a longer pause, and not for none.
                Sent::Later { after, .. } => {
                    let pause = after.unwrap_or_default().clamp(pause, LAST_PAUSE);
                    let _ = timeout(pause, finishing.wait_for(|is| *is)).await;
                }
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Sends a body, within the time that the settings allow.
    async fn send(&self, body: Bytes) -> Sent {
        let client = match &self.client {
            Ok(client) => client,
            Err(cause) => return Sent::Refused(cause.clone()),
        };
        let request = client.post(self.target.url.clone()).headers(self.target.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(body);
        match timeout(self.target.timeout, async { self.read(request.send().await?).await }).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(error)) => {
                Sent::Later { cause: format!("cannot reach {}: {}", self.place(), cause(&error)), after: None }
            }
            Err(_) => {
                let seconds = self.target.timeout.as_secs_f64();
                Sent::Later { cause: format!("{} did not answer within {seconds} s", self.place()), after: None }
            }
        }
    }

    async fn read(&self, mut response: Response) -> reqwest::Result<Sent> {
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await? {
            body.extend(bytes.iter().take(MAX_RESPONSE - body.len()));
            if body.len() == MAX_RESPONSE {
                break;
            }
        }
        if status.is_success() {
            return Ok(Sent::Accepted(body.into()));
        }
        let cause = format!("{} answered {status}", self.place());
        Ok(match status {
            // The list of the protocol.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Sent::Later { cause, after: asked.map(Duration::from_secs) },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Sent::Refused(format!("{cause}; check OTEL_EXPORTER_OTLP_HEADERS"))
            }
            StatusCode::NOT_FOUND => Sent::Refused(format!("{cause}; check the path in OTEL_EXPORTER_OTLP_ENDPOINT")),
            _ => Sent::Refused(cause),
        })
    }
}
