//! The configuration that a gateway serves: routes, clients and limits. A reload replaces it; requests that have begun keep theirs.

use std::sync::Arc;

use hyper::header::HeaderMap;
use tidegate::config::GatewayLimits;

use super::access::{Access, Token};
use super::audit::Audit;
use super::forward::{Route, Upstream, UpstreamError};

/// The configuration that a gateway serves.
#[derive(Debug, Default)]
pub struct Site {
    /// The routes; the first one that accepts a request is used.
    pub routes: Vec<Route>,
    /// The tokens; if there are none, everyone who can connect is admitted.
    pub tokens: Vec<Token>,
    /// Names of this server in addition to its address, in lower case.
    pub hosts: Vec<String>,
    /// The limits of the gateway.
    pub limits: GatewayLimits,
    /// The file that gets a line for each answer that a rule stopped.
    pub audit: Option<Audit>,
}

/// A configuration whose servers can be reached.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) routes: Vec<Arc<Upstream>>,
    pub(super) access: Access,
    pub(super) hosts: Vec<String>,
    pub(super) limits: GatewayLimits,
    pub(super) audit: Option<Audit>,
}

impl Open {
    /// Opens the servers of a configuration. `before`: the previous configuration, whose requests under way count.
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
