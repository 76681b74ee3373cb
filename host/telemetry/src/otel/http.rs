//! Sends one request to a receiver.

use std::time::Duration;

pub(crate) use net::place;
use net::{Proxies, cause};

pub(crate) use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
pub(crate) use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use tokio::time::timeout;

use crate::otel::otlp;
use crate::otel::settings::Target;

/// The most that is read of a response: it is empty, or contains what was rejected.
const MAX_RESPONSE: usize = 64 << 10;

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Sent {
    /// The receiver has it, except for so many spans or points, for this reason.
    Accepted { rejected: Option<(u64, String)> },
    /// It can be sent again, after this time if the receiver asks for it.
    Later { cause: String, after: Option<Duration> },
    /// It cannot be accepted.
    Refused { cause: String },
}

/// The connections to one receiver.
#[derive(Debug)]
pub(crate) struct Sender {
    client: Client,
    target: Target,
}

impl Sender {
    /// A sender; the error names what of this machine cannot be used.
    pub(crate) fn new(target: Target) -> Result<Self, String> {
        let proxies = Proxies::of_environment().map_err(|error| error.to_string())?;
        let client = net::client(&target.url, &proxies, None).map_err(|error| error.to_string())?;
        Ok(Self { client, target })
    }

    /// The receiver, for messages: without the path, which can contain a key.
    pub(crate) fn place(&self) -> String {
        place(&self.target.url)
    }

    /// Sends a body, within the time that the settings allow.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Sent {
        let request = self.client.post(self.target.url.clone()).headers(self.target.headers.clone());
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
            return Ok(Sent::Accepted { rejected: otlp::rejected(&body) });
        }
        let cause = format!("{} answered {status}", self.place());
        Ok(match status {
            // The list of the protocol.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Sent::Later { cause, after: asked.map(Duration::from_secs) },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Sent::Refused { cause: format!("{cause}; check OTEL_EXPORTER_OTLP_HEADERS") }
            }
            StatusCode::NOT_FOUND => {
                Sent::Refused { cause: format!("{cause}; check the path in OTEL_EXPORTER_OTLP_ENDPOINT") }
            }
            _ => Sent::Refused { cause },
        })
    }
}
