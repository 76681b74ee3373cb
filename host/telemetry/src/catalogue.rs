//! The table of all metrics: names, kinds, labels, buckets and their meaning.

use crate::names::{EVENT, EXTENSION, MODEL, ROUTE, RULE, TOOL};

/// What kind of numbers a metric has.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A count that only grows, from 0 at the start of the host.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// How many observations there were up to each of these upper bounds, and their sum.
    Histogram(&'static [f64]),
}

impl MetricKind {
    /// The kind's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// One metric, as the documentation describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricInfo {
    /// Its name with dots, such as `rule.fired.total`.
    pub name: &'static str,
    /// What kind of numbers it has.
    pub kind: MetricKind,
    /// The names of its labels, in their order.
    pub labels: &'static [&'static str],
    /// What is counted, in one sentence.
    pub help: &'static str,
}

impl MetricInfo {
    /// Returns the name of its series in both text formats: underscores for dots, and `_total` at the end of a counter's.
    pub fn series(&self) -> String {
        let family = self.family();
        if self.kind == Counter { format!("{family}_total") } else { family }
    }

    /// The name without `_total`, which is what OpenMetrics calls the metric.
    pub(crate) fn family(&self) -> String {
        self.name.strip_suffix(".total").unwrap_or(self.name).replace('.', "_")
    }
}

/// Defines [`METRICS`] with an identifier for each.
macro_rules! metrics {
    ($($id:ident = $name:literal, $kind:expr, $labels:expr, $help:literal;)+) => {
        /// The place of a metric in [`METRICS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Id {
            $($id,)+
        }

        /// All metrics, in the order in which they are written.
        pub const METRICS: &[MetricInfo] =
            &[$(MetricInfo { name: $name, kind: $kind, labels: &$labels, help: $help },)+];
    };
}

use MetricKind::{Counter, Gauge, Histogram};

/// Milliseconds of a callback: most take microseconds, and the default limits end at a second.
const CALLBACK_MS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0];
/// Milliseconds of a tool call: up to ten minutes, for builds and for persons who are asked.
const TOOL_MS: &[f64] =
    &[1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, 10_000.0, 30_000.0, 60_000.0, 300_000.0, 600_000.0];
/// Bytes of state: powers of four, and the default limits of 10 MiB and 64 MiB.
const STATE_BYTES: &[f64] =
    &[256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 10_485_760.0, 67_108_864.0];

/// Milliseconds that a gateway adds: a few microseconds, except for text that is held back.
const ADDED_MS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 100.0, 1000.0, 10_000.0];

/// No metric has more labels.
pub(crate) const MOST_LABELS: usize = 3;
metrics! {
    Registrations = "extension.registration.total", Counter, ["action", EXTENSION],
        "Changes of the extensions of sessions: register, enable, reload, unregister or disable.";
    Callbacks = "extension.callback.total", Counter, ["callback_type", EXTENSION, "outcome"],
        "Callbacks by outcome: passed, changed, skipped (nothing to do), not_permitted (its breaker is open, or its time is used up), ignored (the answer was not used) or error.";
    CallbackTime = "extension.callback.duration_ms", Histogram(CALLBACK_MS), ["callback_type", EXTENSION],
        "Milliseconds that callbacks took, waiting included; those that were not called are left out.";
    Tools = "extension.tool.total", Counter, [TOOL, EXTENSION, "outcome"],
        "Calls of tools of extensions by outcome: done, rejected, not_permitted (its breaker is open), error or stopped (with the turn).";
    ToolRunTime = "extension.tool.duration_ms", Histogram(TOOL_MS), [TOOL, EXTENSION],
        "Milliseconds that tools of extensions ran; those that were not called are left out.";
    StateOperations = "extension.state.operations", Counter, ["operation", EXTENSION],
        "Operations on the state of extensions: get, set, delete, clear, evict or roll_back; all but get when committed.";
    StateSize = "extension.state.size_bytes", Histogram(STATE_BYTES), [EXTENSION],
        "Bytes of state that an extension has in a session, observed after each committed change.";
    StateEvictions = "extension.state.evictions", Counter, [EXTENSION],
        "Keys that were evicted because the state of an extension reached its limit.";
    BreakerState = "extension.breaker.state", Gauge, [EXTENSION],
        "Circuit breaker of the callbacks, of all sessions or in the open session in which it is worst: 0 closed, 1 half open, 2 open.";
    BreakerOpened = "extension.breaker.opened.total", Counter, [EXTENSION],
        "Times that the circuit breaker of the callbacks opened in a session, after failed trial calls too.";
    Instances = "extension.instances", Gauge, [],
        "Instances of extensions that exist, idle ones included.";
    InstanceLimit = "extension.instances.limit", Gauge, [],
        "The most instances of extensions that can exist at once: `instances` under `[limits]`.";
    InstanceWaits = "extension.instances.waits.total", Counter, [],
        "Calls that waited for an instance, because a call was running in each.";
    InstancesReclaimed = "extension.instances.reclaimed.total", Counter, [],
        "Idle instances that were dropped for a call of another session or extension; they are made again when they are needed.";
    RuleFired = "rule.fired.total", Counter, [RULE, "action"],
        "Matches of stream rules by action: pass, remind, interrupt, block or stop.";
    RuleTokens = "rule.tokens_discarded", Counter, [RULE],
        "Tokens of answers that a rule stopped and whose reminder went to the model; estimated where the provider had not counted.";
    CustomEvents = "event.custom.total", Counter, [EVENT, EXTENSION],
        "Events of declared types, by type and extension; without an extension, those of the program that embeds the host.";
    Turns = "turn.total", Counter, ["status"],
        "Turns that ended: completed, rejected, stopped_by_rule, cancelled, failed, step_limit, no_progress or suspended.";
    Requests = "model.request.total", Counter, [MODEL],
        "Requests to the model: every attempt, repeated and stopped ones included.";
    ModelErrors = "model.error.total", Counter, ["class", MODEL],
        "Requests to the model that failed, by error class.";
    Retries = "model.retry.total", Counter, ["class", MODEL],
        "Requests to the model that were scheduled to be sent again, by the class of the error before.";
    Tokens = "model.tokens.total", Counter, ["type", MODEL],
        "Tokens of all attempts, as far as the provider counts them: input, output, cache_read or cache_write.";
    ToolCalls = "tool.call.total", Counter, [TOOL, "outcome"],
        "Tool calls by outcome: ok or error; calls that were denied, blocked or name no tool are errors.";
    GatewayRequests = "gateway.request.total", Counter, [ROUTE, "outcome"],
        "Requests to the gateway: relayed (not checked), checked, ended (by a rule or a limit), refused, not_admitted, limited, unreachable, broken (by the server), silent, late or abandoned (by the client).";
    GatewayRetries = "gateway.retry.total", Counter, [ROUTE],
        "Requests that the gateway sent again, because a rule stopped the answer.";
    GatewayFirstByte = "gateway.first_byte.added_ms", Histogram(ADDED_MS), [ROUTE],
        "Milliseconds between the first byte of a server's answer and the first byte to the client.";
    GatewayFrame = "gateway.frame.added_ms", Histogram(ADDED_MS), [ROUTE],
        "Milliseconds that the gateway worked on each part of an answer as it came from the server.";
    GatewayHeld = "gateway.held.bytes", Gauge, [],
        "Bytes of all answers that are held back at the moment, because they may belong to a match.";
    GatewayConnections = "gateway.connections", Gauge, [],
        "Connections of clients that are open.";
    GatewayConversations = "gateway.conversations", Gauge, [],
        "Conversations that are in memory.";
    GatewayUnstored = "gateway.conversations.unstored", Gauge, [],
        "Conversations with data that is in memory only, because the state store is away.";
    GatewayConversationChanges = "gateway.conversation.total", Counter, ["outcome"],
        "Conversations that left memory for others (evicted), that a store in memory has forgotten (forgotten), that branched off another one (branched), that were opened without the store (local), and of which something was lost (lost).";
    GatewayRejected = "gateway.token.rejected.total", Counter, [],
        "Requests without a token that is known.";
    GatewayReloads = "gateway.reload.total", Counter, ["outcome"],
        "Reloads of changed settings and rules: done or failed.";
    CertificateExpiry = "server.certificate.expiration_timestamp_seconds", Gauge, [],
        "The time at which the certificate for clients that is in use expires, in seconds since 1970-01-01 UTC.";
    CertificateFailed = "server.certificate.renewal_failed", Gauge, [],
        "1 while the files of the certificate for clients, which have changed, cannot be used, and the previous one remains in use; else 0.";
    ToolTime = "tool.call.duration_ms", Histogram(TOOL_MS), [TOOL],
        "Milliseconds that tool calls took, waiting for a person who is asked included.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions_fit_both_formats() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        for metric in METRICS {
            assert!(metric.name.chars().all(plain), "{}", metric.name);
            assert!(metric.labels.iter().all(|label| label.chars().all(plain)), "{:?}", metric.labels);
            // What would have to be escaped, differently in the two formats.
            assert!(!metric.help.contains(['\\', '\n', '"']) && metric.help.ends_with('.'), "{}", metric.help);
            let labels: std::collections::BTreeSet<_> = metric.labels.iter().collect();
            assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
            assert!(labels.len() <= MOST_LABELS, "{}", metric.name);
            if let Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted() && !bounds.is_empty(), "{}", metric.name);
            }
        }
        let names: std::collections::BTreeSet<_> = METRICS.iter().map(MetricInfo::series).collect();
        assert_eq!(names.len(), METRICS.len());
    }
}
