//! What a gateway serves: routes, clients and limits. A reload puts another one in its place; requests that have begun keep theirs.

use std::sync::Arc;

use hyper::header::HeaderMap;
use tidegate::config::GatewayLimits;

use super::access::{Access, Token};
use super::audit::Audit;
use super::forward::{Route, Upstream, UpstreamError};

/// What a gateway serves.
#[derive(Debug, Default)]
pub struct Site {
    /// Which server answers which requests; the first that takes one counts.
    pub routes: Vec<Route>,
    /// Who is admitted; with none, everybody who can connect.
    pub tokens: Vec<Token>,
    /// Names of this server in addition to its address, in lower case.
    pub hosts: Vec<String>,
    /// What is taken at most.
    pub limits: GatewayLimits,
    /// The file with a line for each answer that a rule stopped.
    pub audit: Option<Audit>,
}

/// A site whose servers can be reached.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) routes: Vec<Arc<Upstream>>,
    pub(super) access: Access,
    pub(super) hosts: Vec<String>,
    pub(super) limits: GatewayLimits,
    pub(super) audit: Option<Audit>,
}

impl Open {
    /// `before`: what was served until now, whose requests under way count.
    pub(super) fn new(site: Site, before: Option<&Self>) -> Result<Self, UpstreamError> {
        let Site { routes, tokens, hosts, limits, audit } = site;
        let routes = routes.into_iter().map(|route| Upstream::new(route, limits.connect_timeout).map(Arc::new));
        Ok(Self {
            routes: routes.collect::<Result<_, _>>()?,
            access: Access::new(tokens, limits.concurrent, before.map(|before| &before.access)),
            hosts,
            limits,
            audit,
        })
    }

    pub(super) fn route(&self, path: &str, headers: &HeaderMap) -> Option<&Arc<Upstream>> {
        self.routes.iter().find(|route| route.takes(path, headers))
    }
}
