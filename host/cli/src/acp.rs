//! `tidegate acp`: serves an editor on standard input and output.

use std::path::Path;

use serve::acp::Server;
use tidegate::{Host, HostBuilder, Metrics, Operator};

use crate::args::{Acp, Common};
use crate::exit::{Exit, Failure};
use crate::{open, session, state};

/// Plugins times sessions: an editor has several of these open at once.
const MAX_INSTANCES: u32 = 1024;

/// Serves until the editor closes the connection, or a signal ends the program. `exported`: the metrics that are exported.
pub(crate) async fn run(common: &Common, args: Acp, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    let (common, exported) = (common.clone(), exported.cloned());
    let config = common.config.clone();
    let build = move |file: Option<&Path>| builder(&common, &args, file, exported.as_ref()).map_err(Failure::into_line);
    let server = Server::new(build).config(config);
    server.stdio(crate::run::stopped()).await.map_err(Failure::late)?;
    Ok(Exit::Completed)
}

fn builder(
    common: &Common,
    args: &Acp,
    file: Option<&Path>,
    exported: Option<&Metrics>,
) -> Result<HostBuilder, Failure> {
    let mut common = common.clone();
    if let Some(file) = file {
        common.config = Some(file.to_owned());
    }
    let builder = Host::builder(settings(&common, args)?)
        .max_instances(MAX_INSTANCES)
        .permissions(open::permissions(&args.permission)?)
        .remember_shown_prompts();
    let again = (common, args.clone());
    let builder = builder.follow(move || settings(&again.0, &again.1).map_err(Failure::into_line));
    Ok(match exported {
        Some(metrics) => builder.metrics(metrics),
        None => builder,
    })
}

/// The operator's settings with those of the arguments. Sessions are recorded, so that the editor can load them, unless the operator has
/// decided otherwise.
fn settings(common: &Common, args: &Acp) -> Result<Operator, Failure> {
    let mut operator = open::operator(common)?;
    open::choose_provider(&mut operator, &args.provider)?;
    if args.no_transcript {
        operator.transcript.enabled = Some(false);
    }
    session::keep(&mut operator);
    if operator.transcript.enabled == Some(true) {
        state::keep(&mut operator);
    }
    Ok(operator)
}
