//! The program `tidegate`: reads arguments, opens a host, prints what happens, exits with a code that says how it went.
//! It decides nothing of its own: all of that is the library's.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this crate owns the terminal")]

mod args;
mod ask;
mod doctor;
mod exit;
mod list;
mod open;
mod plugin;
mod print;
mod rules;
mod run;
mod say;
mod style;
mod summary;
mod trouble;

use clap::Parser;

use crate::args::{Args, Command, PluginCommand};
use crate::exit::{Exit, Failure};

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    start_logging();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::setup(format!("cannot start the runtime: {error}")).report(),
    };
    match runtime.block_on(dispatch(args)) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

async fn dispatch(args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::Run(run) => run::run(&args.common, run).await,
        Command::Doctor(provider) => doctor::run(&args.common, &provider).await,
        Command::Plugin { command: PluginCommand::List } => list::plugins(&args.common).await,
        Command::Plugin { command: PluginCommand::Build { folder } } => plugin::build(&folder),
        Command::Rules { command } => rules::run(&args.common, command).await,
    }
}

/// Log lines go to standard error: errors, and what `TIDEGATE_LOG` asks for, such as `TIDEGATE_LOG=debug`.
fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TIDEGATE_LOG");
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error")))
        .with_writer(std::io::stderr)
        .init();
}
