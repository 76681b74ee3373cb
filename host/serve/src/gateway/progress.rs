//! The progress of an answer: its times against the limits, its metrics, and its lines in the audit file.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate::config::GatewayLimits;
use tidegate::rule::Action;
use tokio::time::Instant;

use super::Shared;
use super::access::Admitted;
use super::conversations::Begun;
use super::forward::Upstream;
use super::refusal::Refusal;
use super::site::Open;

/// The time limits of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) idle: Duration,
    pub(super) keep_alive: Duration,
    request: Duration,
}

impl Times {
    pub(super) fn of(limits: &GatewayLimits) -> Self {
        Self { idle: limits.idle_timeout, keep_alive: limits.keep_alive, request: limits.request_timeout }
    }

    pub(super) fn idle_words(&self) -> String {
        format!("the server sent nothing within {:?}, the limit `idle_timeout_ms` under `[gateway.limits]`", self.idle)
    }

    pub(super) fn late_words(&self) -> String {
        format!(
            "the request took longer than {:?}, the limit `request_timeout_ms` under `[gateway.limits]`",
            self.request
        )
    }
}

/// An admitted exchange, until it is over.
pub(super) struct Progress {
    pub(super) shared: Arc<Shared>,
    pub(super) site: Arc<Open>,
    pub(super) route: Arc<Upstream>,
    admitted: Admitted,
    since: Instant,
    /// The time of the last bytes from the server.
    heard: Instant,
    /// The time of the last bytes to the client.
    said: Instant,
    /// The time of the first byte of the answer, until the client has got one.
    first: Option<Instant>,
    has_begun: bool,
    /// The number of bytes that are counted as held back.
    held: u64,
    /// The number of matches that are counted.
    noted: usize,
}

impl Progress {
    pub(super) fn new(
        shared: Arc<Shared>,
        site: Arc<Open>,
        route: Arc<Upstream>,
        admitted: Admitted,
        since: Instant,
    ) -> Self {
        let now = Instant::now();
        Self {
            shared,
            site,
            route,
            admitted,
            since,
            heard: now,
            said: now,
            first: None,
            has_begun: false,
            held: 0,
            noted: 0,
        }
    }

    pub(super) fn limits(&self) -> Times {
        Times::of(&self.site.limits)
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Returns the time at which the request times out.
    pub(super) fn late(&self) -> Instant {
        self.since + self.limits().request
    }

    /// Returns the refusal for a request that timed out.
    pub(super) fn too_late(&self) -> Refusal {
        Refusal::Late { limit: self.limits().request }
    }

    /// Returns the time at which a silent server times out.
    pub(super) fn silent(&self) -> Instant {
        self.heard + self.limits().idle
    }

    pub(super) fn is_silent(&self) -> bool {
        Instant::now() >= self.silent()
    }

    /// Returns the time of the next keep-alive of a stream, or the time limit for silence.
    pub(super) fn quiet(&self, is_stream: bool) -> Instant {
        if is_stream { self.silent().min(self.said + self.limits().keep_alive) } else { self.silent() }
    }

    /// Notes bytes from the server.
    pub(super) fn received(&mut self) {
        self.heard = Instant::now();
        if !self.has_begun {
            self.has_begun = true;
            self.first = Some(self.heard);
        }
    }

    /// Notes the number of bytes that the client has got.
    pub(super) fn sent(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.said = Instant::now();
        if let Some(first) = self.first.take() {
            self.shared.metrics.gateway_first_byte(self.name(), first.elapsed());
        }
    }

    /// Notes the time spent on a part of the answer.
    pub(super) fn worked(&self, time: Duration) {
        self.shared.metrics.gateway_frame(self.name(), time);
    }

    pub(super) fn asked_again(&self) {
        self.shared.metrics.gateway_retry(self.name());
    }

    /// Returns the name of the client's token; `None` if no token is needed.
    pub(super) fn token(&self) -> Option<&str> {
        self.admitted.name.as_deref()
    }

    fn name(&self) -> &str {
        &self.route.route.path
    }

    /// Counts held bytes and matches since the last call, and writes stopped answers to the audit file.
    pub(super) fn noted(&mut self, begun: &Begun) {
        let (exchange, conversation) = (begun.own.exchange(), begun.conversation());
        self.hold(begun.own.held_bytes() as u64);
        let new = &exchange.fired()[self.noted..];
        self.noted += new.len();
        let stops = |action: Action| matches!(action, Action::Interrupt | Action::Block | Action::Stop);
        // The matches of one attempt stop it once.
        for together in new.chunk_by(|a, b| a.attempt == b.attempt) {
            let stopping: Vec<_> = together.iter().filter(|fired| stops(fired.action)).collect();
            let Some(first) = stopping.first() else { continue };
            let rules: Vec<&str> = stopping.iter().map(|fired| fired.found.rule.as_str()).collect();
            let line = json!({
                "time_ms": now_ms(),
                "route": self.name(),
                "client": self.admitted.name,
                "conversation": conversation,
                "attempt": first.attempt,
                "action": first.action.as_str(),
                "stream": first.found.stream.as_str(),
                "rules": rules,
            });
            tracing::info!(route = self.name(), rules = ?rules, attempt = first.attempt, "a rule stopped an answer");
            if let Some(audit) = &self.site.audit {
                audit.write(&line);
            }
        }
    }

    fn hold(&mut self, bytes: u64) {
        self.shared.hold(self.held, bytes);
        self.held = bytes;
    }

    /// Reports a request to an endpoint that the gateway does not read, where rules or plugins would act on its answer.
    pub(super) fn unread(&self, path: &str) {
        if self.route.route.conversations.act() {
            tracing::info!(
                route = self.name(),
                path,
                "a request passed unchecked: the gateway does not read this endpoint"
            );
            self.shared.report.note(&format!(
                "a request for `{path}` passed unchecked, because the gateway does not read this endpoint"
            ));
        }
    }

    /// Ends a guarded answer.
    pub(super) fn guarded(mut self, begun: &Begun, outcome: &'static str) {
        self.noted(begun);
        self.shared.report.count(begun.own.exchange());
        if let Some(caller) = begun.own.caller() {
            self.shared.report.count_plugins(caller.take_tallies());
        }
        self.shared.count_conversations_later();
        self.over(outcome);
    }

    /// Ends the exchange.
    pub(super) fn over(mut self, outcome: &'static str) {
        self.hold(0);
        self.shared.metrics.gateway_request(self.name(), outcome);
        let time = self.since.elapsed();
        tracing::info!(route = self.name(), client = self.admitted.name, outcome, ?time, "a request is over");
    }
}

fn now_ms() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis()
}
