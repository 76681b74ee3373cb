//! A proxy between agents and their models: it implements the wire formats of providers over HTTP, and guards every answer by stream rules.
//!
//! What becomes of an answer is decided by the crate `gateway`; this module owns the connections. Requests and answers pass as they are
//! where no rule acts, and what is not an answer of a model passes untouched.
//!
//! | module | what it does |
//! |---|---|
//! | `server`, `request` | connections; refusing requests and sending them to a server |
//! | `access`, `path`, `forward` | admission, routes of paths, requests to servers |
//! | `conversations` | the conversation of a request, and its memory |
//! | `received`, `trailers` | the answer of a server, and fields behind a body |
//! | `answer`, `progress` | sending the answer to the client, with times and metrics |
//! | `site`, `settings`, `reload` | the served configuration, its source, and its replacement while requests run |
//! | `refusal`, `own` | responses of the gateway itself |
//! | `doctor` | checks of the servers of routes |

mod access;
mod answer;
mod audit;
mod conversations;
mod doctor;
mod exchange;
mod forward;
mod head;
mod own;
mod passing;
mod path;
mod progress;
mod received;
mod refusal;
mod reload;
mod report;
mod request;
mod server;
mod settings;
mod shared;
mod site;
mod trailers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use gateway::{HeldLimits, Watching};
use reqwest::Url;
use tidegate::config::ServerCertificate;
use tidegate::diagnostic::{Diagnostics, Health};
use tidegate::metrics::Metrics;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use self::access::Token;
pub use self::audit::Audit;
pub use self::conversations::{Acting, Conversations};
pub use self::doctor::doctor;
pub use self::forward::{Clients, Key, Route, UpstreamError};
pub use self::reload::Source;
pub use self::report::{PluginCount, Report, RuleCount};
pub use self::settings::{KeptConversations, check_policy};
use self::shared::Shared;
pub use self::site::Site;
use crate::inbound::Tls;

/// The servers of the two vendors, for a client that has no routes. Requests for one that is `None` are refused.
#[derive(Clone, Debug)]
pub struct UpstreamUrls {
    /// The Messages API, without its version, such as `https://api.anthropic.com`.
    pub anthropic: Option<String>,
    /// OpenAI's formats, with their version, such as `https://api.openai.com/v1`.
    pub openai: Option<String>,
}

impl Default for UpstreamUrls {
    /// The vendors' own addresses.
    fn default() -> Self {
        let url = |text: &str| Some(text.to_owned());
        Self { anthropic: url("https://api.anthropic.com"), openai: url("https://api.openai.com/v1") }
    }
}

impl UpstreamUrls {
    /// Returns routes for clients of both vendors, which are distinguished by the paths and headers of their requests.
    pub fn routes(&self, conversations: &Arc<Conversations>) -> Vec<Route> {
        let route = |path: &str, upstream: &Option<String>, clients| {
            upstream.clone().map(|upstream| Route {
                path: path.to_owned(),
                upstream,
                clients,
                key: None,
                ca: None,
                conversations: Arc::clone(conversations),
            })
        };
        let routes = [
            route("/", &self.anthropic, Clients::Anthropic),
            // Both the base URL of the client and that of the server contain the version.
            route("/v1", &self.openai, Clients::Others),
            route("/", &self.openai, Clients::Others),
        ];
        routes.into_iter().flatten().collect()
    }
}

/// A proxy that listens until it is dropped.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    url: String,
    task: JoinHandle<()>,
}

/// A gateway cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Without tokens it does not listen for other machines: all requests would be sent as those of its user.
    #[error(
        "cannot listen on {0}: without a token, a gateway listens on addresses of this machine alone; write 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system reports.
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] Diagnostics),
    /// An address of a model cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

/// Checks a certificate: whether clients accept it at this time, and why not.
///
/// # Errors
/// It cannot be used.
pub fn check_certificate(certificate: &ServerCertificate) -> Result<(Health, String), Diagnostics> {
    Tls::open(certificate, settings::OF, None).map(|tls| tls.state().health())
}

impl Gateway {
    /// Listens on an address; port 0 selects a free port. With a certificate, clients connect over TLS. `metrics`: where it counts.
    ///
    /// # Errors
    /// The address is in use, or is not one of this machine and nobody needs a token; the certificate, or an upstream's URL, cannot be used.
    pub async fn open(
        address: SocketAddr,
        certificate: Option<&ServerCertificate>,
        site: Site,
        metrics: &Metrics,
    ) -> Result<Self, OpenError> {
        if !address.ip().is_loopback() && site.tokens.is_empty() {
            return Err(OpenError::NotLoopback(address));
        }
        let tls = certificate.map(|files| Tls::open(files, settings::OF, Some(metrics)).map(Arc::new)).transpose()?;
        let site = site::Open::new(site, None)?;
        let failed = |source| OpenError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let url = crate::inbound::url(address, tls.is_some());
        let shared = Arc::new(Shared::new(address, site, metrics.clone(), tls.clone()));
        let task = tokio::spawn(crate::inbound::accept(listener, tls, Arc::clone(&shared)));
        Ok(Self { shared, url, task })
    }

    /// The address that it listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The URL at which this machine reaches it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it has done so far.
    pub fn report(&self) -> &Report {
        &self.shared.report
    }

    /// Serves this source from now on, as soon as it changes.
    pub fn follow(&self, source: Arc<dyn Source>) {
        self.shared.reload.follow(source);
    }

    /// Reloads everything, in the background. Requests that begin meanwhile wait for it.
    pub fn reload(&self) {
        self.shared.reload.ask();
        drop(self.shared.check());
    }

    /// Stops accepting requests, and waits for answers under way. Returns the number of connections that are left after this time, which
    /// break off.
    pub async fn close(self, patience: Duration) -> u64 {
        self.shared.closing.cancel();
        self.shared.tasks.close();
        match tokio::time::timeout(patience, self.shared.tasks.wait()).await {
            Ok(()) => 0,
            Err(_) => self.shared.connections(),
        }
    }

    /// Returns the time for [`Gateway::close`] according to the limits.
    pub fn drain(&self) -> Duration {
        self.shared.site().limits.drain
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.closing.cancel();
    }
}

/// Whether two addresses are one server: a gateway in front of itself would ask itself for ever.
fn is_same(url: &Url, address: SocketAddr) -> bool {
    let is_local = url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    is_local && url.port_or_known_default() == Some(address.port())
}
