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
use crate::listening::{ServerCertificate, ServerTable};
use crate::typed::GatewayFile;
use crate::{Code, Location, WithoutStore};

/// The server between agents and their models.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySettings {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// Names of the server in addition to its address, in lower case.
    pub hosts: Vec<String>,
    /// Its certificate; `None`: clients connect without TLS.
    pub certificate: Option<ServerCertificate>,
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

const TABLE: ServerTable = ServerTable { name: "gateway", code: Code::ConfigGateway, example: "127.0.0.1:8790" };

/// Headers that have another meaning.
const TAKEN: [&str; 8] =
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "host", "content-length", "content-type"];

impl GatewaySettings {
    pub(crate) fn read(document: &mut Document<'_>, typed: &GatewayFile) -> Self {
        let routes = route::read(document, &typed.route);
        let tokens = token::read(document, &typed.token, &routes);
        route::check_keys(document, &routes, &tokens);
        let listen = TABLE.listen(document, &typed.listen, !tokens.is_empty());
        let mut sorted = routes;
        sorted.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        Self {
            listen: listen.unwrap_or_else(|| Self::default().listen),
            hosts: TABLE.hosts(document, &typed.hosts),
            certificate: TABLE.certificate(document, typed.certificate.as_deref(), typed.certificate_key.as_deref()),
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
            certificate: None,
            conversation_header: None,
            audit: None,
            without_store: typed.without_store,
            routes: Vec::new(),
            tokens: Vec::new(),
            limits: GatewayLimits::of(&typed.limits),
        }
    }
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

/// Returns the path of a file that is relative to the file that names it.
fn file(document: &Document<'_>, at: &[Step], name: Option<&String>) -> Option<PathBuf> {
    let folder: &Path = document.folder(at);
    name.map(|name| folder.join(name))
}

/// Returns the location for diagnostics that are only known when the gateway starts.
fn place(document: &Document<'_>, at: &[Step]) -> Option<Location> {
    Some(document.place(at))
}
