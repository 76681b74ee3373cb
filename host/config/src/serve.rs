//! `[serve]` of the operator's file: the address of the server for front ends, the origins of pages, the users, and the limits.

use std::net::SocketAddr;
use std::time::Duration;

use flow::Address;

use crate::document::{Document, steps};
use crate::listening::{ServerCertificate, ServerTable};
use crate::typed::{ServeFile, ServeLimitsFile, ServeTokenFile};
use crate::{Code, Location};

const TABLE: ServerTable = ServerTable { name: "serve", code: Code::ConfigServe, example: "127.0.0.1:8791" };

/// The server for front ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeSettings {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// The URL at which other hosts reach it; `None`: where it listens.
    pub address: Option<String>,
    /// Names of the server in addition to its address, in lower case.
    pub hosts: Vec<String>,
    /// Its certificate; `None`: clients connect without TLS.
    pub certificate: Option<ServerCertificate>,
    /// Origins of pages that are allowed to call it, as browsers send them.
    pub origins: Vec<String>,
    /// The tokens of users; if there are none, everyone who can connect is the user `local`.
    pub tokens: Vec<ServeToken>,
    /// The limits of the server.
    pub limits: ServeLimits,
}

/// A user, and where the token of the user is.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeToken {
    /// The name of the user.
    pub name: String,
    /// The environment variable that contains the token.
    pub variable: String,
    /// The span of the entry.
    pub place: Option<Location>,
}

/// The limits of the server for front ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeLimits {
    /// The maximum size of a request body in bytes.
    pub body_bytes: usize,
    /// The maximum size of a request head in bytes.
    pub head_bytes: usize,
    /// The maximum number of concurrent requests of a user, without streams of events.
    pub concurrent: u32,
    /// The maximum number of open streams of events of a user.
    pub streams: u32,
    /// The maximum number of open connections of clients.
    pub connections: u32,
    /// The time limit for the head of a request, and for each further part of its body.
    pub client_timeout: Duration,
    /// The time limit for a client that takes nothing of what is sent to it.
    pub idle_timeout: Duration,
    /// The time without an event after which a stream gets a keep-alive.
    pub keep_alive: Duration,
}

impl ServeSettings {
    pub(crate) fn read(document: &mut Document<'_>, typed: &ServeFile) -> Self {
        let tokens = tokens(document, &typed.token);
        let listen = TABLE.listen(document, &typed.listen, !tokens.is_empty());
        Self {
            listen: listen.unwrap_or_else(|| Self::default().listen),
            address: address(document, typed.address.as_deref()),
            hosts: TABLE.hosts(document, &typed.hosts),
            certificate: TABLE.certificate(document, typed.certificate.as_deref(), typed.certificate_key.as_deref()),
            origins: origins(document, &typed.origins),
            tokens,
            limits: ServeLimits::of(&typed.limits),
        }
    }
}

impl Default for ServeSettings {
    fn default() -> Self {
        let typed = ServeFile::default();
        Self {
            listen: typed.listen.parse().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))),
            address: None,
            hosts: Vec::new(),
            certificate: None,
            origins: Vec::new(),
            tokens: Vec::new(),
            limits: ServeLimits::of(&typed.limits),
        }
    }
}

/// Reads the URL of this server, which has no path.
fn address(document: &mut Document<'_>, typed: Option<&str>) -> Option<String> {
    let typed = typed?;
    let rest = typed.strip_prefix("http://").or_else(|| typed.strip_prefix("https://"));
    let is_origin = rest.is_some_and(|rest| !rest.contains(['/', '?', '#', '@'])) && Address::of_url(typed).is_ok();
    if !is_origin {
        let message = format!("`{}` is not the URL of a server", typed.escape_debug());
        let help = "write it with its scheme and without a path, such as `http://10.0.0.2:8791`";
        document.error(TABLE.code, &steps!["serve", "address"], message, help);
    }
    Some(typed.to_owned())
}

impl ServeLimits {
    fn of(typed: &ServeLimitsFile) -> Self {
        let bytes = |count: u64, shift: u32| usize::try_from(count << shift).unwrap_or(usize::MAX);
        Self {
            body_bytes: bytes(typed.body_mib, 20),
            head_bytes: bytes(typed.head_kib, 10),
            concurrent: typed.concurrent,
            streams: typed.streams,
            connections: typed.connections,
            client_timeout: Duration::from_millis(typed.client_timeout_ms),
            idle_timeout: Duration::from_millis(typed.idle_timeout_ms),
            keep_alive: Duration::from_millis(typed.keep_alive_ms),
        }
    }
}

fn tokens(document: &mut Document<'_>, typed: &[ServeTokenFile]) -> Vec<ServeToken> {
    let mut tokens: Vec<ServeToken> = Vec::new();
    for (index, token) in typed.iter().enumerate() {
        let before: Vec<_> = tokens.iter().map(|other| (other.name.as_str(), other.variable.as_str())).collect();
        let variable = TABLE.token(document, index, (&token.name, &token.value), &before);
        if !is_user(&token.name) {
            let message = format!("`{}` is not the name of a user", token.name.escape_debug());
            let help = "write at most 64 letters, digits and `-._@`, such as `anna`";
            document.error(Code::ConfigServe, &steps!["serve", "token", index, "name"], message, help);
        }
        let place = Some(document.place(&steps!["serve", "token", index, "value"]));
        tokens.push(ServeToken { name: token.name.clone(), variable, place });
    }
    tokens
}

/// Returns whether this can be the name of a user: it is a part of paths.
pub fn is_user(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain) && name.bytes().any(|byte| byte != b'.')
}

fn origins(document: &mut Document<'_>, typed: &[String]) -> Vec<String> {
    for (index, origin) in typed.iter().enumerate() {
        if !is_origin(origin) {
            let message = format!("`{}` is not an origin", origin.escape_debug());
            let help = "write scheme, host and port as browsers send them, in lower case and without a path, such as \
                        `https://app.example.com` or `http://localhost:3000`";
            document.error(Code::ConfigServe, &steps!["serve", "origins", index], message, help);
        }
    }
    typed.to_vec()
}

/// Whether a browser sends this as an `Origin` of its own.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte);
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_plain))
}
