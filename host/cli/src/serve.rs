//! `tidegate serve`: the server for front ends, with the settings of `[serve]`.

use std::io::Write as _;

use serve::http::{Server, check_policy};
use tidegate::config::{ServeSettings, machine_policy};
use tidegate::metrics::Metrics;
use tidegate::{Host, Operator};

use crate::args::{Common, Serve};
use crate::ending::Ending;
use crate::exit::{Exit, Failure};
use crate::metrics::Measured;
use crate::{open, run, say, screen, trust};

/// Plugins times sessions that are in use: many users have several of these open at once.
const MAX_INSTANCES: u32 = 4096;

/// Serves until a signal ends the program. `exported`: the metrics that are exported.
pub(crate) async fn run(common: &Common, args: Serve, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    let ending = Ending::watch();
    let found = trust::decided(common).await?;
    let operator = settings(common, &args, found.operator().clone())?;
    let mut served = open::under_policy(operator.clone())?.serve;
    served.listen = args.listen.unwrap_or(served.listen);
    if let Some(policy) = machine_policy()? {
        check_policy(&served, &policy)?;
    }
    let measured = Measured::start(&args.metrics, exported).await?;
    let again = (common.clone(), args.clone());
    let builder = Host::builder(operator)
        .max_instances(MAX_INSTANCES)
        .permissions(open::permissions(&args.permission)?)
        .remember_shown_prompts()
        .follow(move || found.again().and_then(|now| settings(&again.0, &again.1, now).map_err(Failure::into_line)));
    let host = measured.count(builder).open().await?;
    let opened = Server::open(&served, host.clone(), &common.workspace).await;
    let server = opened.map_err(|error| match error {
        serve::http::OpenError::Settings(diagnostics) => diagnostics.into(),
        other => Failure::setup(other),
    })?;
    ending.begin_work();
    say_where(&server, &served)?;
    run::remove_expired(&host, &common.workspace).await;
    ending.requested().await;
    server.close().await;
    measured.finish(Ok(Exit::Completed))
}

fn settings(common: &Common, args: &Serve, operator: Operator) -> Result<Operator, Failure> {
    open::session_settings(common, operator, &args.provider, args.no_transcript, false)
}

fn say_where(server: &Server, settings: &ServeSettings) -> Result<(), Failure> {
    let address = server.address();
    let mut out = screen::out();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    if !Server::has_page() {
        say::note(
            "serve: the page is missing: this program was built without it; run `cargo xtask page`, and build it again",
        );
    }
    if settings.tokens.is_empty() {
        say::note("serve: every program of this machine is admitted: there is no `[[serve.token]]`");
    }
    if !address.ip().is_loopback() && settings.certificate.is_none() {
        say::note(format_args!(
            "warning: tokens and sessions are not encrypted on their way to {address}: set `certificate` under `[serve]`, or put a server with TLS in front of it"
        ));
    }
    Ok(())
}
