//! A proxy between an agent and its model: it speaks the wire formats of providers over HTTP, and guards every answer by stream rules.
//!
//! What becomes of an answer is decided by the crate `gateway`; this module owns the connections. Requests and answers pass as they are
//! where no rule acts, and what is not an answer of a model passes untouched.

mod answer;
mod forward;
mod head;
mod report;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;

use gateway::Conversations;
use reqwest::Url;
use tidegate::rule::RuleSet;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use self::forward::UpstreamError;
use self::forward::Upstreams;
pub use self::report::{Report, RuleCount};

/// The most bytes of a request's body; a larger one is refused with status 413.
pub const MAX_BODY: usize = 64 << 20;

/// Where requests go.
#[derive(Clone, Debug)]
pub struct UpstreamUrls {
    /// The Messages API, without its version, such as `https://api.anthropic.com`.
    pub anthropic: String,
    /// OpenAI's formats, with their version, such as `https://api.openai.com/v1`.
    pub openai: String,
}

impl Default for UpstreamUrls {
    /// The vendors' own addresses.
    fn default() -> Self {
        Self { anthropic: "https://api.anthropic.com".to_owned(), openai: "https://api.openai.com/v1".to_owned() }
    }
}

/// A proxy that listens until it is dropped.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    report: Arc<Report>,
    task: JoinHandle<()>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    upstreams: Upstreams,
    conversations: Conversations,
    report: Arc<Report>,
}

/// A gateway cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It does not listen for other machines: their requests would leave this one as those of its user.
    #[error("cannot listen on {0}: a gateway listens on addresses of this machine alone; write 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system reports.
        source: std::io::Error,
    },
    /// An address of a model cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl Gateway {
    /// Listens on an address of this machine; port 0 takes a free one. Answers are guarded by these rules.
    ///
    /// # Errors
    /// The address is not one of this machine or is in use, or an upstream's URL cannot be used.
    pub async fn open(address: SocketAddr, upstreams: &UpstreamUrls, rules: Arc<RuleSet>) -> Result<Self, OpenError> {
        if !address.ip().is_loopback() {
            return Err(OpenError::NotLoopback(address));
        }
        let upstreams = Upstreams::new(upstreams)?;
        let failed = |source| OpenError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let report = Arc::new(Report::default());
        let conversations = Conversations::new(rules);
        let shared = Shared { address, upstreams, conversations, report: Arc::clone(&report) };
        let task = tokio::spawn(server::accept(listener, Arc::new(shared)));
        Ok(Self { address, report, task })
    }

    /// The address that it listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether two addresses are one server: a gateway in front of itself would ask itself for ever.
fn is_same(url: &Url, address: SocketAddr) -> bool {
    let is_local = url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    is_local && url.port_or_known_default() == Some(address.port())
}
