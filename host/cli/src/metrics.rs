//! `--metrics` and `--metrics-file` of `run`, `chat` and `acp`: where the metrics of the program can be read.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tidegate::HostBuilder;
use tidegate::metrics::{Metrics, MetricsServer};

use crate::exit::{Exit, Failure};
use crate::{args, say};

/// The metrics of the program, where somebody wants them.
pub(crate) struct Measured {
    metrics: Option<Metrics>,
    file: Option<PathBuf>,
    /// Serves until it is dropped.
    _server: Option<MetricsServer>,
}

impl Measured {
    /// Opens the endpoint. What cannot work is found before anything runs. `exported`: metrics that are counted in any case.
    pub(crate) async fn start(args: &args::Metrics, exported: Option<&Metrics>) -> Result<Self, Failure> {
        let file = args.metrics_file.clone();
        if let Some(file) = &file {
            check(file)?;
        }
        let is_wanted = args.metrics.is_some() || file.is_some();
        let metrics = exported.cloned().or_else(|| is_wanted.then(Metrics::new));
        let _server = match (args.metrics, &metrics) {
            (Some(address), Some(metrics)) => Some(serve(address, metrics).await?),
            _ => None,
        };
        Ok(Self { metrics, file, _server })
    }

    /// Where hosts count, if that is wanted.
    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.metrics.as_ref()
    }

    /// Counts what the host's sessions do, where that is wanted.
    pub(crate) fn count(&self, builder: HostBuilder) -> HostBuilder {
        match self.metrics() {
            Some(metrics) => builder.metrics(metrics),
            None => builder,
        }
    }

    /// Writes the file, however the program ended. A file that cannot be written is a failure of an end that was none; otherwise the
    /// exit code says how it ended.
    pub(crate) fn finish(self, ended: Result<Exit, Failure>) -> Result<Exit, Failure> {
        let (Some(metrics), Some(file)) = (&self.metrics, &self.file) else { return ended };
        let Err(error) = metrics.write_file(file) else { return ended };
        let failure = Failure::late(format_args!("cannot write the metrics to {}: {error}", file.display()));
        match ended {
            Ok(Exit::Completed) => Err(failure),
            other => {
                failure.say();
                other
            }
        }
    }
}

async fn serve(address: SocketAddr, metrics: &Metrics) -> Result<MetricsServer, Failure> {
    let server = MetricsServer::bind(address, metrics).await.map_err(|error| match error.hint() {
        Some(hint) => Failure::setup(format_args!("{error}\nhelp: {hint}")),
        None => Failure::setup(&error),
    })?;
    if !address.ip().is_loopback() {
        say::note(format_args!(
            "warning: whoever can reach {} can read the metrics; 127.0.0.1 can be reached from this machine alone",
            server.address()
        ));
    }
    if address.port() == 0 {
        say::note(format_args!("metrics: http://{}/metrics", server.address()));
    }
    Ok(server)
}

/// What would make writing the file fail at the end, as far as it is known at the start.
fn check(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = file.display();
    if file.is_dir() || file.file_name().is_none() {
        return Err(Failure::setup(format_args!("--metrics-file {shown}: this is a folder; add the name of a file")));
    }
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(Failure::setup(format_args!("--metrics-file {shown}: there is no folder {folder}; create it")));
    }
    Ok(())
}
