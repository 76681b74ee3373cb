//! `[gateway]` of the operator's file: the address of the server between agents and their models, its routes, its tokens, and its limits.

mod limits;
mod route;
mod token;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use self::limits::GatewayLimits;
pub use self::route::{GatewayRoute, RouteKey};
pub use self::token::GatewayToken;
use crate::document::{Document, Step, steps};
use crate::typed::GatewayFile;
use crate::{Code, Location, WithoutStore};
use flow::KeySource;

/// The server between agents and their models.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySettings {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// Names of the server in addition to its address, in lower case.
    pub hosts: Vec<String>,
    /// The header in which clients name their conversation, in lower case.
    pub conversation_header: Option<String>,
    /// The file with a line for each answer that a rule stopped.
    pub audit: Option<PathBuf>,
    /// How requests are handled while the store of conversations does not answer.
    pub without_store: WithoutStore,
    /// The routes of paths to servers, the longest path first.
    pub routes: Vec<GatewayRoute>,
    /// The tokens of clients; if there are none, everyone who can connect is admitted.
    pub tokens: Vec<GatewayToken>,
    /// The limits of the gateway.
    pub limits: GatewayLimits,
}

/// Headers that have another meaning.
const TAKEN: [&str; 8] =
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "host", "content-length", "content-type"];

impl GatewaySettings {
    pub(crate) fn read(document: &mut Document<'_>, typed: &GatewayFile) -> Self {
        let routes = route::read(document, &typed.route);
        let tokens = token::read(document, &typed.token, &routes);
        route::check_keys(document, &routes, &tokens);
        let listen = listen(document, &typed.listen, !tokens.is_empty());
        let mut sorted = routes;
        sorted.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        Self {
            listen,
            hosts: hosts(document, &typed.hosts),
            conversation_header: header(document, typed.conversation_header.as_deref()),
            audit: typed.audit.as_ref().map(|file| document.folder(&steps!["gateway", "audit"]).join(file)),
            without_store: typed.without_store,
            routes: sorted,
            tokens,
            limits: GatewayLimits::of(&typed.limits),
        }
    }
}

impl Default for GatewaySettings {
    fn default() -> Self {
        let typed = GatewayFile::default();
        Self {
            listen: typed.listen.parse().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))),
            hosts: Vec::new(),
            conversation_header: None,
            audit: None,
            without_store: typed.without_store,
            routes: Vec::new(),
            tokens: Vec::new(),
            limits: GatewayLimits::of(&typed.limits),
        }
    }
}

fn listen(document: &mut Document<'_>, text: &str, has_tokens: bool) -> SocketAddr {
    let at = steps!["gateway", "listen"];
    let Ok(address) = text.parse::<SocketAddr>() else {
        let message = format!("`{}` is not an IP address with a port", text.escape_debug());
        let help = "write it as `127.0.0.1:8790` or `[::1]:8790`; names of hosts are not accepted";
        document.error(Code::ConfigGateway, &at, message, help);
        return GatewaySettings::default().listen;
    };
    if !address.ip().is_loopback() && !has_tokens {
        let message = format!("other machines can reach {address}, and no `[[gateway.token]]` says who is admitted");
        let help = "add a token, or listen on 127.0.0.1";
        document.error(Code::ConfigGateway, &at, message, help);
    }
    address
}

fn hosts(document: &mut Document<'_>, typed: &[String]) -> Vec<String> {
    for (index, host) in typed.iter().enumerate() {
        let is_name = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let is_address = |host: &str| host.starts_with('[') && host.ends_with(']');
        if !is_name(host) && !is_address(host) {
            let message = format!("`{}` is not the name of a host", host.escape_debug());
            let help = "write it without scheme and port, such as `gateway.example.com`";
            document.error(Code::ConfigGateway, &steps!["gateway", "hosts", index], message, help);
        }
    }
    typed.iter().map(|host| host.to_ascii_lowercase()).collect()
}

fn header(document: &mut Document<'_>, name: Option<&str>) -> Option<String> {
    let name = name?;
    let is_token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    let lower = name.to_ascii_lowercase();
    if !is_token || TAKEN.contains(&lower.as_str()) {
        let message = format!("`{}` cannot name conversations", name.escape_debug());
        let help = "write the name of a header of your own, such as `x-conversation-id`";
        document.error(Code::ConfigHeader, &steps!["gateway", "conversation_header"], message, help);
    }
    Some(lower)
}

/// Returns the variable that `env:NAME` names. A value of another form is reported without its text, because it may be a key.
pub(crate) fn variable(document: &mut Document<'_>, at: &[Step], text: &str, what: &str) -> Option<String> {
    let name = text.strip_prefix("env:").unwrap_or_default();
    if let Ok(KeySource::Env(name)) = KeySource::of_variable(name) {
        return Some(name);
    }
    let help = "write `env:` and the name of an environment variable, such as `env:ANTHROPIC_API_KEY`. If this is a key or a token itself, put it into \
                a variable and remove it from this file";
    document.error(Code::ConfigInvalidVariable, at, format!("{what} does not name an environment variable"), help);
    None
}

/// Returns the path of a file that is relative to the file that names it.
fn file(document: &Document<'_>, at: &[Step], name: Option<&String>) -> Option<PathBuf> {
    let folder: &Path = document.folder(at);
    name.map(|name| folder.join(name))
}

/// Returns the location for diagnostics that are only known when the gateway starts.
fn place(document: &Document<'_>, at: &[Step]) -> Option<Location> {
    Some(document.place(at))
}
