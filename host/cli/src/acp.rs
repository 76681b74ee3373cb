//! `tidegate acp`: serves an editor on standard input and output, or editors on websockets.

use std::path::Path;

use serve::acp::Server;
use tidegate::metrics::Metrics;
use tidegate::trust::WorkspaceSettings;
use tidegate::{Host, HostBuilder, Operator};

use crate::args::{Acp, Common};
use crate::ending::Ending;
use crate::exit::{Exit, Failure};
use crate::listen::Listener;
use crate::metrics::Measured;
use crate::open;

/// Plugins times sessions that are in use: an editor has several of these open at once.
const MAX_INSTANCES: u32 = 1024;

/// Why `--workspace` is refused.
const NO_WORKSPACE: &str = "`acp` does not take --workspace: the editor names a folder for each session, whose tidegate.toml is read. \
    Leave the flag out, and name another file for all sessions with --config";

/// Serves until the editor closes the connection, or a signal ends the program. `exported`: the metrics that are exported.
pub(crate) async fn run(common: &Common, args: Acp, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    if args.workspace.as_deref().is_some_and(|folder| folder != Path::new(".")) {
        return Err(Failure::setup(NO_WORKSPACE));
    }
    let common = common.clone();
    let reader = open::reader(&common);
    check(&common, &args)?;
    let listener = Listener::open(&args.listen).await?;
    let measured = Measured::start(&args.metrics, exported).await?;
    let counted = measured.metrics().cloned();
    let build = move |settings: &WorkspaceSettings| {
        builder(&common, &args, settings, counted.as_ref()).map_err(Failure::into_line)
    };
    let server = Server::new(reader, build);
    let ending = Ending::watch();
    ending.begin_work();
    let requested = async {
        ending.requested().await;
    };
    let served = match listener {
        Some(listener) => listener.serve(server, &ending).await,
        None => server.stdio(requested).await.map_err(Failure::late),
    };
    measured.finish(served.map(|()| Exit::Completed))
}

/// Reports what is wrong for every session now, and not to the editor when it opens one.
fn check(common: &Common, args: &Acp) -> Result<(), Failure> {
    open::permissions(&args.permission)?;
    match &common.config {
        // The same for each workspace.
        Some(_) => drop(settings_of(common, args, open::reader(common).read(Path::new("."))?.operator().clone())?),
        None => {
            // The plugins that `--set` names may be those of the sessions' files.
            open::choose_provider(&mut Operator::default(), &args.provider)?;
            open::plugins(common)?;
        }
    }
    if let Some(recording) = &args.provider.recording {
        let unreadable =
            |why: &dyn std::fmt::Display| Failure::setup(format_args!("cannot read {}: {why}", recording.display()));
        let file = std::fs::File::open(recording).map_err(|error| unreadable(&error))?;
        // It can be opened, and not read.
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(unreadable(&"it is a folder"));
        }
    }
    Ok(())
}

fn builder(
    common: &Common,
    args: &Acp,
    settings: &WorkspaceSettings,
    counted: Option<&Metrics>,
) -> Result<HostBuilder, Failure> {
    let builder = Host::builder(settings_of(common, args, settings.operator().clone())?)
        .max_instances(MAX_INSTANCES)
        .permissions(open::permissions(&args.permission)?)
        .remember_shown_prompts();
    let (common, args, settings) = (common.clone(), args.clone(), settings.clone());
    let builder = builder.follow(move || {
        settings.again().and_then(|operator| settings_of(&common, &args, operator).map_err(Failure::into_line))
    });
    Ok(match counted {
        Some(metrics) => builder.metrics(metrics),
        None => builder,
    })
}

fn settings_of(common: &Common, args: &Acp, operator: Operator) -> Result<Operator, Failure> {
    open::session_settings(common, operator, &args.provider, args.no_transcript, false)
}
