//! The program `tidegate`: reads arguments, opens a host, prints what happens, exits with a code that says how it went.
//! It decides nothing of its own: all of that is the library's.
#![forbid(unsafe_code)]

mod acp;
mod agents;
mod args;
mod ask;
mod chat;
mod config;
mod doctor;
mod ending;
mod exit;
mod explain;
mod gateway;
mod guard;
mod keys;
mod list;
mod listen;
mod markdown;
mod matches;
mod metrics;
mod open;
mod plugin;
mod print;
mod private;
mod rules;
mod run;
mod say;
mod screen;
mod serve;
mod session;
mod shown;
mod state;
mod style;
mod summary;
mod switch;
mod telemetry;
mod trust;
mod usage;
mod watch;

use std::time::Duration;

use clap::Parser;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{AgentsCommand, Args, Command, Common, PluginCommand};
use crate::exit::{Exit, Failure};
use crate::telemetry::Export;

/// Threads that wait for the disk: more of them, in a process with thousands of sessions, are no faster.
const BLOCKING_THREADS: usize = 32;
/// How long such a thread is kept without work. Where no other thread can be started, the work of open sessions is done by those that are
/// there: none of them must end for want of work a few seconds earlier.
const KEEP_ALIVE: Duration = Duration::from_secs(24 * 60 * 60);

fn main() -> std::process::ExitCode {
    let (common, command) = match Args::try_parse().and_then(Args::parsed) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    keys::protect(&command);
    style::choose(common.color);
    std::panic::set_hook(Box::new(|panic| screen::note(format_args!("internal error (a bug in tidegate): {panic}"))));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.max_blocking_threads(BLOCKING_THREADS).thread_keep_alive(KEEP_ALIVE).enable_all();
    let runtime = match runtime.build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::setup(format!("cannot start the runtime: {error}")).report(),
    };
    let ended: Result<Exit, Failure> = runtime.block_on(async {
        let export = Export::start(&command);
        start_logging(&export, default_log(&command));
        let ended = dispatch(&common, command, &export).await;
        export.finish().await;
        ended
    });
    let code = match ended {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    };
    // What is still under way, such as the look-up of an address, is not waited for.
    runtime.shutdown_background();
    code
}

/// Help goes to standard output, a wrong command line to standard error. Both are cleaned: arguments can be file names.
fn usage(error: &clap::Error) -> std::process::ExitCode {
    let mut text = error.render().to_string();
    for argument in std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()) {
        // An argument, or its value, is a part of a line, whatever it contains.
        for part in [argument.as_str()].into_iter().chain(argument.split_once('=').map(|(_, value)| value)) {
            if part.contains(['\n', '\r']) {
                text = text.replace(part, &screen::clean::flat(part));
            }
        }
    }
    if error.use_stderr() {
        screen::block(text.trim_end());
        return Exit::Wrong.into();
    }
    match std::io::Write::write_all(&mut screen::out(), text.as_bytes()) {
        Ok(()) => Exit::Completed.into(),
        Err(gone) => Failure::from(gone).report(),
    }
}

/// Completions are made of the command line's own definitions.
fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    use std::io::Write;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut <Args as clap::CommandFactory>::command(), "tidegate", &mut script);
    let mut out = screen::out();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Completed)
}

/// Prints the licenses that require it where their works are copied.
fn licenses() -> Result<Exit, Failure> {
    use std::io::Write;
    let mut out = screen::out();
    writeln!(out, "The program contains grammars of other works, which color the code in answers. Their licenses:")?;
    for license in two_face::acknowledgement::listing().for_syntaxes() {
        writeln!(out, "\n== {}\n\n{}", license.rel_path.display(), license.text.trim_end())?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

async fn dispatch(common: &Common, command: Command, export: &Export) -> Result<Exit, Failure> {
    match command {
        Command::Chat(chat) => chat::run(common, chat, export.metrics()).await,
        Command::Run(run) => run::run(common, run, export.metrics()).await,
        Command::Acp(acp) => acp::run(common, acp, export.metrics()).await,
        Command::Guard(guard) => guard::run(common, guard).await,
        Command::Gateway(gateway) => gateway::run(common, &gateway, export.metrics()).await,
        Command::Serve(args) => serve::run(common, args, export.metrics()).await,
        Command::Doctor(doctor) => doctor::run(common, &doctor).await,
        Command::Plugin { command: PluginCommand::New { folder, sdk } } => plugin::new(&folder, sdk.as_deref()),
        Command::Plugin { command: PluginCommand::List { json } } => list::plugins(common, json).await,
        Command::Plugin { command: PluginCommand::Show { folder } } => plugin::show(&folder),
        Command::Plugin { command: PluginCommand::Enable { id } } => switch::plugin(common, &id, true).await,
        Command::Plugin { command: PluginCommand::Disable { id } } => switch::plugin(common, &id, false).await,
        Command::Plugin { command: PluginCommand::Build { folder, watch: false } } => plugin::build(common, &folder),
        Command::Plugin { command: PluginCommand::Build { folder, watch: true } } => watch::build(common, &folder),
        Command::Explain(explain) => match &explain.prompt {
            Some(prompt) => explain::prompt(common, prompt, explain.json).await,
            None => session::explain(common, &explain),
        },
        Command::Config { command } => config::run(common, &command),
        Command::Trust(args) => trust::run(common, &args),
        Command::Agents { command: AgentsCommand::List { json } } => agents::list(common, json).await,
        Command::Session { command } => session::run(common, command).await,
        Command::State { command } => state::run(common, command).await,
        Command::Rules { command } => rules::run(common, command).await,
        Command::Completions { shell } => completions(shell),
        Command::Licenses => licenses(),
    }
}

/// The variable that chooses what is logged.
const LOG: &str = "TIDEGATE_LOG";

/// Returns the default log filter: for servers it includes their activity.
fn default_log(command: &Command) -> &'static str {
    if matches!(command, Command::Gateway(_) | Command::Serve(_)) { "warn,tidegate_serve=info" } else { "error" }
}

/// Log lines go to standard error: errors, and what `TIDEGATE_LOG` asks for, such as `TIDEGATE_LOG=debug`. Each begins with the spans
/// that it is in, whichever crates the filter names.
fn start_logging(export: &Export, default: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_env(LOG);
    if let (Err(error), Some(_)) = (&filter, std::env::var_os(LOG)) {
        screen::note(format_args!("{LOG} is ignored: {error}"));
    }
    let spans = format!("{}=info", tidegate::metrics::SPANS);
    let filter = match (filter, spans.parse()) {
        (Ok(filter), Ok(spans)) => filter.add_directive(spans),
        (Ok(filter), Err(_)) => filter,
        (Err(_), _) => tracing_subscriber::EnvFilter::new(default),
    };
    let log = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(screen::log::Log).with_filter(filter);
    tracing_subscriber::registry().with(log).with(export.layer()).init();
}
