//! `[gateway]` of `tidegate.toml` as typed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The gateway: an HTTP server between agents and the models that they use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewayFile {
    /// The address and the port that the gateway listens on. Port 0 selects a free port. An address that other machines can reach needs a
    /// `[[gateway.token]]`.
    #[schemars(length(min = 1))]
    pub(crate) listen: String,
    /// Names of this server that clients use in addition to the address itself, `127.0.0.1` and `localhost`, without a port: a request for
    /// another host is refused.
    #[schemars(inner(length(min = 1)))]
    pub(crate) hosts: Vec<String>,
    /// The PEM file with the certificate chain of this server, leaf first, relative to this file. With it, clients connect over TLS, and those
    /// without are refused. The file is read again when it changes.
    #[schemars(length(min = 1))]
    pub(crate) certificate: Option<String>,
    /// A file in PEM with the private key of `certificate`, relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) certificate_key: Option<String>,
    /// The header in which clients name their conversation. It counts before the headers and fields of known clients.
    #[schemars(length(min = 1))]
    pub(crate) conversation_header: Option<String>,
    /// The file, relative to this one, that gets one line of JSON for each answer that a rule stopped. It has no text of requests or
    /// answers.
    #[schemars(length(min = 1))]
    pub(crate) audit: Option<String>,
    /// How requests are handled while the server of `[state]` does not answer.
    pub(crate) without_store: WithoutStore,
    /// The routes of paths to servers. If several match, the one with the longest path is used.
    pub(crate) route: Vec<RouteFile>,
    /// The tokens of clients. If there are any, each request needs one.
    pub(crate) token: Vec<TokenFile>,
    /// The limits of the gateway.
    pub(crate) limits: GatewayLimitsFile,
}

impl Default for GatewayFile {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8790".to_owned(),
            hosts: Vec::new(),
            certificate: None,
            certificate_key: None,
            conversation_header: None,
            audit: None,
            without_store: WithoutStore::Refuse,
            route: Vec::new(),
            token: Vec::new(),
            limits: GatewayLimitsFile::default(),
        }
    }
}

/// How requests are handled while the store of conversations does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WithoutStore {
    /// Refuse them with status 503: budgets and masks of a conversation count on all instances or not at all.
    #[default]
    Refuse,
    /// Answer them with the data that this instance has of the conversation.
    Local,
}

/// A `[[gateway.route]]` table: the paths that one server answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteFile {
    /// The beginning of the paths, such as `/anthropic`, or `/` for all. It is removed before a request is sent to the server.
    #[schemars(length(min = 1))]
    pub(crate) path: String,
    /// The URL of the server, such as `https://api.anthropic.com` or `https://api.openai.com/v1`.
    #[schemars(length(min = 1))]
    pub(crate) upstream: String,
    /// The key that the server gets: `client`, the one that the client sends, or `env:NAME`, the one in this environment variable, which
    /// replaces the client's and needs a `[[gateway.token]]`.
    #[serde(default = "client_key")]
    #[schemars(length(min = 1))]
    pub(crate) key: String,
    /// Whether keys are sent to another machine over plain `http`, where everyone on the way can read them. Without it, an `upstream` with
    /// `http://` is one of this machine.
    #[serde(default)]
    pub(crate) allow_plaintext_key: bool,
    /// The names of the rules that watch the answers, in addition to those that are required. Default: all rules.
    #[schemars(inner(length(min = 1)))]
    #[serde(default)]
    pub(crate) rules: Option<Vec<String>>,
    /// The ids of the plugins that act on the route, in addition to those that are required. Default: all plugins.
    #[schemars(inner(length(min = 1)))]
    #[serde(default)]
    pub(crate) plugins: Option<Vec<String>>,
    /// The name of the agent that the clients of the route are, for rules with `agents`.
    #[serde(default = "main_agent")]
    #[schemars(length(min = 1))]
    pub(crate) agent: String,
    /// A file with the certificates (PEM) that the server's certificate is checked against, relative to this file. Default: those of the
    /// machine.
    #[schemars(length(min = 1))]
    #[serde(default)]
    pub(crate) ca: Option<String>,
}

fn client_key() -> String {
    "client".to_owned()
}

fn main_agent() -> String {
    "main".to_owned()
}

/// A `[[gateway.token]]` table: a client, or several that share a token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenFile {
    /// The name of the client in logs, metrics and the audit file.
    #[schemars(length(min = 1))]
    pub(crate) name: String,
    /// The environment variable that contains the token, as `env:NAME`. Clients send it as `Authorization: Bearer TOKEN`, or as the header
    /// `x-api-key`, `api-key` or `x-goog-api-key`; it is never forwarded.
    #[schemars(length(min = 1))]
    pub(crate) value: String,
    /// Maximum number of requests with this token at once. Default: `concurrent` of `[gateway.limits]`.
    #[schemars(range(min = 1, max = 100_000))]
    #[serde(default)]
    pub(crate) concurrent: Option<u32>,
    /// The paths of the routes that the token is for. Default: all routes.
    #[schemars(inner(length(min = 1)))]
    #[serde(default)]
    pub(crate) routes: Option<Vec<String>>,
}

/// The limits of the gateway.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewayLimitsFile {
    /// Maximum size of the body of a request, in MiB.
    #[schemars(range(min = 1, max = 1_024))]
    pub(crate) body_mib: u64,
    /// Maximum size of the head of a request (method, path and headers), in KiB.
    #[schemars(range(min = 4, max = 4_096))]
    pub(crate) head_kib: u64,
    /// Maximum size of what is held back of one answer, in MiB, and of an answer that does not stream. Beyond it, the answer ends.
    #[schemars(range(min = 1, max = 1_024))]
    pub(crate) held_mib: u64,
    /// Maximum number of events of one answer that are held back. Beyond it, the answer ends.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub(crate) held_frames: u64,
    /// Maximum number of requests at once: of each token, or where there are no tokens, of all clients together.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) concurrent: u32,
    /// Maximum number of open connections of clients; further ones wait.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) connections: u32,
    /// Time limit for the head of a request, from the last one of its connection on, and for each further part of its body, in
    /// milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) client_timeout_ms: u64,
    /// Time limit for establishing a connection to a server, in milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) connect_timeout_ms: u64,
    /// Time in milliseconds after which an exchange ends in which the server sends nothing, or in which the client takes nothing.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) idle_timeout_ms: u64,
    /// Time limit for a request in milliseconds, from its head to the end of its answer, with all retries.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) request_timeout_ms: u64,
    /// Time in milliseconds without a byte to the client of a stream after which a keep-alive is sent: an event or a comment without
    /// meaning.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub(crate) keep_alive_ms: u64,
    /// How long answers under way may take to end after SIGTERM, in milliseconds.
    #[schemars(range(max = 3_600_000))]
    pub(crate) drain_ms: u64,
}

impl Default for GatewayLimitsFile {
    fn default() -> Self {
        Self {
            body_mib: 64,
            head_kib: 64,
            held_mib: 32,
            held_frames: 100_000,
            concurrent: 64,
            connections: 1_024,
            client_timeout_ms: 30_000,
            connect_timeout_ms: 10_000,
            idle_timeout_ms: 600_000,
            request_timeout_ms: 3_600_000,
            keep_alive_ms: 10_000,
            drain_ms: 30_000,
        }
    }
}
