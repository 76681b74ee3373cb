//! `[serve]` of `tidegate.toml` as typed.

use schemars::JsonSchema;
use serde::Deserialize;

/// The server for front ends: sessions over HTTP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServeFile {
    /// The address and the port that the server listens on. Port 0 selects a free port. An address that other machines can reach needs a
    /// `[[serve.token]]`.
    #[schemars(length(min = 1))]
    pub(crate) listen: String,
    /// The URL at which other hosts of the same Redis server reach this one, such as `http://10.0.0.2:8791`: requests for a session that runs here are
    /// passed on to it, with the tokens of users. Default: `listen`, unless that is an address of all networks.
    #[schemars(length(min = 1))]
    pub(crate) address: Option<String>,
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
    /// Origins of pages that are allowed to call the server from a browser, such as `https://app.example.com`, in addition to the server's own.
    #[schemars(inner(length(min = 1)))]
    pub(crate) origins: Vec<String>,
    /// The tokens of users. If there are any, each request needs one.
    pub(crate) token: Vec<ServeTokenFile>,
    /// The limits of the server.
    pub(crate) limits: ServeLimitsFile,
}

impl Default for ServeFile {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8791".to_owned(),
            address: None,
            hosts: Vec::new(),
            certificate: None,
            certificate_key: None,
            origins: Vec::new(),
            token: Vec::new(),
            limits: ServeLimitsFile::default(),
        }
    }
}

/// A `[[serve.token]]` table: a user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServeTokenFile {
    /// The name of the user, who owns the sessions that are created with the token: letters, digits and `-._@`. The name `local` has the sessions
    /// of the time without tokens, and those of the terminal.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) name: String,
    /// The environment variable that contains the token, as `env:NAME`. Clients send it as `Authorization: Bearer TOKEN`.
    #[schemars(length(min = 1))]
    pub(crate) value: String,
}

/// The limits of the server for front ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServeLimitsFile {
    /// Maximum size of the body of a request, in MiB.
    #[schemars(range(min = 1, max = 1_024))]
    pub(crate) body_mib: u64,
    /// Maximum size of the head of a request (method, path and headers), in KiB.
    #[schemars(range(min = 4, max = 4_096))]
    pub(crate) head_kib: u64,
    /// Maximum number of requests of a user at once, streams of events not included.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) concurrent: u32,
    /// Maximum number of open streams of events of a user.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) streams: u32,
    /// Maximum number of open connections of clients; further ones wait.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) connections: u32,
    /// Time limit for the head of a request, from the last one of its connection on, and for each further part of its body, in
    /// milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) client_timeout_ms: u64,
    /// Time in milliseconds after which the connection of a client ends that takes nothing of what is sent to it.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) idle_timeout_ms: u64,
    /// Time in milliseconds without an event after which a stream gets a comment without meaning.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub(crate) keep_alive_ms: u64,
}

impl Default for ServeLimitsFile {
    fn default() -> Self {
        Self {
            body_mib: 32,
            head_kib: 32,
            concurrent: 64,
            streams: 256,
            connections: 1_024,
            client_timeout_ms: 30_000,
            idle_timeout_ms: 60_000,
            keep_alive_ms: 15_000,
        }
    }
}
