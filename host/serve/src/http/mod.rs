//! Sessions over HTTP, for front ends in browsers and in other languages: commands as requests, events as server-sent events or on a
//! websocket. It has no logic of its own. `host/SERVE.md` describes it for authors of front ends and for operators.
//!
//! | module | what it does |
//! |---|---|
//! | `server`, `access` | admission of requests: names of the server, origins, tokens, limits |
//! | `routes`, `handlers`, `openapi` | the table of routes, what each does, and their description |
//! | `sessions`, `known`, `open` | which sessions there are, whose they are, and their handles |
//! | `commands`, `bodies`, `summary`, `problem` | what crosses the wire in requests and responses |
//! | `sent` | the messages that were handed over: an id names one message |
//! | `events`, `followed`, `source`, `wire_event`, `sse`, `websocket` | what crosses the wire in streams: of sessions that are open here, and of conversations of a gateway |
//! | `front`, `turn_stream`, `convention` | the conventions of other front ends: what their clients send, and a turn as they read it |
//! | `begin`, `waiting`, `again` | where the stream of such a turn begins, where it ends at a question, and messages that come again |
//! | `page` | the page in the program, for a browser |
//! | `export` | a session as a file |
//! | `peers` | requests for a session that another host has open |

mod access;
mod again;
mod begin;
mod bodies;
mod commands;
mod convention;
mod events;
mod export;
mod followed;
mod front;
mod handlers;
mod known;
mod open;
mod openapi;
mod page;
mod peers;
mod problem;
mod routes;
mod sent;
mod server;
mod sessions;
mod source;
mod sse;
mod summary;
mod turn_stream;
mod waiting;
mod websocket;
mod wire_event;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tidegate::Host;
use tidegate::config::{Policy, ServeSettings, ServeToken, ServerCertificate};
use tidegate::diagnostic::{DiagnosticCode as Code, Diagnostics, Health};
use tidegate::transcript::TranscriptStore;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::access::{Access, LOCAL, User};
pub use self::openapi::openapi;
use self::server::Shared;
use self::sessions::Sessions;
use crate::inbound::Tls;
use crate::inbound::tokens::{Named, Of};

/// The common part of diagnostics about tokens and the certificate.
const OF: Of = Of { code: Code::ConfigServe, server: "server" };

/// A server for front ends that listens until it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    url: String,
    task: JoinHandle<()>,
}

/// A server for front ends cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Without tokens it does not listen for other machines: everyone who can connect could run commands here.
    #[error(
        "cannot listen on {0}: without a token, the server listens on addresses of this machine alone; write 127.0.0.1 or [::1]"
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
    /// The certificate or a token is missing or cannot be used.
    #[error(transparent)]
    Settings(#[from] Diagnostics),
}

/// Checks the variables of tokens against the policy of the machine.
///
/// # Errors
/// The policy does not permit one of them.
pub fn check_policy(settings: &ServeSettings, policy: &Policy) -> Result<(), Diagnostics> {
    settings.tokens.iter().try_for_each(|token| policy.check_variable("serve.token.value", &token.variable))
}

/// Checks a certificate: whether clients accept it at this time, and why not.
///
/// # Errors
/// It cannot be used.
pub fn check_certificate(certificate: &ServerCertificate) -> Result<(Health, String), Diagnostics> {
    Tls::open(certificate, OF, None).map(|tls| tls.state().health())
}

impl Server {
    /// Listens as the settings say; port 0 selects a free port. The sessions are those of the host in this workspace.
    ///
    /// # Errors
    /// The address is in use, or is not one of this machine and nobody needs a token; the certificate cannot be used, or a token is missing.
    pub async fn open(settings: &ServeSettings, host: Host, workspace: &Path) -> Result<Self, OpenError> {
        let address = settings.listen;
        if !address.ip().is_loopback() && settings.tokens.is_empty() {
            return Err(OpenError::NotLoopback(address));
        }
        let (users, origins) = (users(settings)?, settings.origins.iter().cloned().collect());
        let tls = settings.certificate.as_ref().map(|files| Tls::open(files, OF, host.metrics()).map(Arc::new));
        let tls = tls.transpose()?;
        let access = Access { users, origins, is_secure: tls.is_some() };
        let failed = |source| OpenError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let url = crate::inbound::url(address, tls.is_some());
        if let Some(store) = host.transcripts() {
            announce(store, settings, (address, &url));
        }
        let sessions = Sessions::new(host, workspace);
        let shared = Arc::new(Shared::new(address, settings, access, sessions));
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

    /// Whether it has the page for a browser; otherwise the program was built without it.
    pub fn has_page() -> bool {
        page::is_built()
    }

    /// Stops accepting requests, ends streams, and closes all sessions, whose state is saved. Turns that run are cancelled; a question about a
    /// tool call of a recorded session stays open, and is asked again when the session is used next.
    pub async fn close(self) {
        self.shared.closing.cancel();
        self.shared.sessions.close().await;
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.closing.cancel();
    }
}

/// Has other hosts know where this one is reached.
fn announce(store: &TranscriptStore, settings: &ServeSettings, (address, url): (SocketAddr, &str)) {
    match &settings.address {
        Some(of_others) => store.announce(of_others),
        None if !address.ip().is_unspecified() => store.announce(url),
        None => {}
    }
}

/// Reads the tokens of users from the environment; without any there is one user, who needs none.
fn users(settings: &ServeSettings) -> Result<Vec<User>, Diagnostics> {
    let limits = settings.limits;
    let user = |name: &str, token: &str| User::new(name, token, limits.concurrent, limits.streams);
    if settings.tokens.is_empty() {
        return Ok(vec![user(LOCAL, "")]);
    }
    let mut found = Vec::new();
    let named = settings.tokens.iter();
    let named = named.map(|ServeToken { name, variable, place }| Named { name, variable, place: place.as_ref() });
    let values = OF.values(named, &mut found);
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    let users = settings.tokens.iter().zip(&values);
    Ok(users.filter_map(|(token, value)| Some(user(&token.name, value.as_deref()?))).collect())
}
