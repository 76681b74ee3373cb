//! The arguments of `serve`.

use std::net::SocketAddr;

use super::turns::{Metrics, ProviderArgs, address};

/// What `serve --help` adds.
pub(super) const SERVE_HELP: &str = "\
Standard output has the address, where a browser finds a page. Without tokens, every program of this machine is admitted, as one user:
    curl -X POST http://127.0.0.1:8791/v1/sessions -H 'Content-Type: application/json' -d '{}'

With tokens, in tidegate.toml, each user has sessions of their own:
    [[serve.token]]
    name = \"anna\"
    value = \"env:ANNA_TOKEN\"

All sessions work in the folder of --workspace. SIGTERM closes them: a question that is open is asked
again after the next start, and everything else that runs is cancelled.";

/// The arguments of the server for front ends.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Serve {
    /// Listen on this address instead of `listen` under `[serve]`; port 0 selects a free port
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Allow, ask about or deny tool calls: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
    /// Do not record sessions: they end with the program
    #[arg(long)]
    pub(crate) no_transcript: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
}
