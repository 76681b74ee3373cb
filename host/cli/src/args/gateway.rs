//! The arguments of `gateway`.

use std::net::SocketAddr;

use super::turns::address;

/// What `gateway --help` says about its settings and signals.
pub(super) const GATEWAY_HELP: &str = "\
Settings, in tidegate.toml:
    [[gateway.route]]
    path = \"/anthropic\"
    upstream = \"https://api.anthropic.com\"

Then ANTHROPIC_BASE_URL=http://127.0.0.1:8790/anthropic is what a client needs. /healthz says whether
the gateway works, /metrics has its numbers. Changed settings and rules are read before the next
request; SIGHUP has everything read again. SIGTERM lets running answers end, a second one does not.
TIDEGATE_LOG=debug logs more.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Gateway {
    /// Listen on this address instead of `listen` under `[gateway]`; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
}
