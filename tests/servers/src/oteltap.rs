//! OtelTap: an OpenTelemetry receiver, behind a recorder of what is sent to it.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::http;
use crate::install::{ensure_otel, folder, sources};
use crate::process::Server;

/// A running receiver of OTLP/HTTP.
#[derive(Debug)]
pub struct OtelTap(Server);

/// What a receiver was sent, in the JSON form of the protocol's messages.
#[derive(Debug)]
#[non_exhaustive]
pub struct Received {
    /// The spans, in the order in which they came.
    pub spans: Vec<Value>,
    /// The metrics of all requests, each with its points.
    pub metrics: Vec<Value>,
    /// The resource of each request with spans.
    pub resources: Vec<Value>,
    /// The requests themselves: `path`, `headers`, and the body as `hex`.
    pub requests: Vec<Value>,
}

impl OtelTap {
    /// Starts it; installs it first where it is missing.
    ///
    /// # Errors
    /// It cannot be installed or does not answer. The message holds the end of its log.
    pub fn start() -> Result<Self> {
        let python = ensure_otel()?.join("bin/python").display().to_string();
        let script = sources().join("otel_receiver.py").display().to_string();
        let server = Server::start("oteltap", &folder("logs"), |port| {
            vec![python.clone(), "-u".to_owned(), script.clone(), port.to_string()]
        })?;
        Ok(Self(server))
    }

    /// Returns the address, `http://127.0.0.1:PORT`: the endpoint of an exporter.
    pub fn base_url(&self) -> &str {
        self.0.base_url()
    }

    /// Returns what it was sent so far, in requests that it has answered.
    ///
    /// # Errors
    /// It did not take all of a request that the generated messages of the protocol can read.
    pub fn received(&self) -> Result<Received> {
        let answer = http::get(self.base_url(), "/received")?;
        ensure!(answer.status == 200, "{}\n{}", answer.body, self.0.log());
        let mut answer = answer.json()?;
        let mut list = |name: &str| match answer[name].take() {
            Value::Array(list) => Ok(list),
            other => Err(anyhow::anyhow!("{name} is not a list: {other}")),
        };
        let (spans, metrics) = (list("spans")?, list("metrics")?);
        Ok(Received { spans, metrics, resources: list("resources")?, requests: list("requests")? })
    }
}

impl Received {
    /// Whether the body of a request contains this text.
    ///
    /// # Errors
    /// A request has no body.
    pub fn contains(&self, text: &str) -> Result<bool> {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let bodies: Result<Vec<&str>> =
            self.requests.iter().map(|request| request["hex"].as_str().context("a request has no body")).collect();
        // A match that begins in the middle of a byte is none.
        Ok(bodies?.iter().any(|body| body.match_indices(&hex).any(|(at, _)| at % 2 == 0)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::Received;
    use serde_json::json;

    #[test]
    fn text_is_found_between_bytes_only() {
        let requests = vec![json!({"hex": "00616263"}), json!({"hex": "161626"})];
        let received = Received { spans: vec![], metrics: vec![], resources: vec![], requests };
        assert!(received.contains("abc").unwrap() && received.contains("b").unwrap());
        assert!(!received.contains("ac").unwrap() && !received.contains("aa").unwrap());
    }
}
