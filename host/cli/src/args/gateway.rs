//! The arguments of `gateway`.

use std::net::SocketAddr;

use super::turns::address;

/// The settings and signals in `gateway --help`.
pub(super) const GATEWAY_HELP: &str = "\
Settings, in tidegate.toml:
    [[gateway.route]]
    path = \"/anthropic\"
    upstream = \"https://api.anthropic.com\"

A client then needs ANTHROPIC_BASE_URL=http://127.0.0.1:8790/anthropic. /healthz reports whether
the gateway works, /metrics exports its metrics. Changed settings and rules are loaded before the next
request; SIGHUP reloads everything. SIGTERM lets running answers end; a second one ends them at once.
TIDEGATE_LOG=debug logs more.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Gateway {
    /// Listen on this address instead of `listen` under `[gateway]`; port 0 selects a free port
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
}
