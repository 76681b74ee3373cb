//! The arguments of the command line. Their doc comments are the help texts.

mod gateway;
mod guard;
#[cfg(test)]
mod page;
mod rules;
mod serve;
mod session;
mod turns;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use tidegate::PluginId;
use tidegate::plugin::Power;

use self::gateway::GATEWAY_HELP;
pub(crate) use self::gateway::Gateway;
use self::guard::GUARD_HELP;
pub(crate) use self::guard::Guard;
pub(crate) use self::rules::{
    FailOn, RulesCheck, RulesCommand, RulesExplain, RulesImport, RulesList, RulesReplay, RulesTest,
};
use self::serve::SERVE_HELP;
pub(crate) use self::serve::Serve;
use self::session::EXPLAIN_HELP;
pub(crate) use self::session::{ExplainArgs, ExportFormat, SessionCommand};
use self::turns::{ACP_HELP, CHAT_HELP, RUN_HELP};
pub(crate) use self::turns::{Acp, CHOOSE, Chat, Listen, Metrics, Output, ProviderArgs, Run};

/// An agent host: sandboxed plugins change every stage of a turn, and rules stop the model mid-sentence.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Without a command: continue the latest session of this workspace in a chat
    #[arg(long = "continue", conflicts_with = "resume")]
    go_on: bool,
    /// Without a command: continue the recorded session with this id in a chat; without an id, choose one from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = CHOOSE)]
    resume: Option<String>,
    /// None: a chat.
    #[command(subcommand)]
    command: Option<Command>,
}

impl Args {
    /// The command, or the chat that there is without one.
    ///
    /// # Errors
    /// Flags of the chat are before another command.
    pub(crate) fn parsed(self) -> Result<(Common, Command), clap::Error> {
        let Self { common, go_on, resume, command } = self;
        match command {
            Some(_) if go_on || resume.is_some() => {
                let text = "`--continue` and `--resume` are flags of a command: write them after it";
                Err(<Self as clap::CommandFactory>::command().error(clap::error::ErrorKind::ArgumentConflict, text))
            }
            Some(command) => Ok((common, command)),
            None => Ok((common, Command::Chat(Chat { go_on, resume, ..Chat::default() }))),
        }
    }
}

/// The exit codes and environment variables that `--help` lists.
const AFTER_HELP: &str = "\
Exit codes:
    0  the turn completed; every check passed; nobody reads standard output any more
    1  the turn failed, or a check did not pass
    2  the command line, a file or a plugin is invalid; nothing was run
    3  a plugin rejected the input
    4  a rule ended the turn
    5  the turn reached its maximum number of steps
    6  the session was suspended at a limit; it can be continued
    7  the model did not get any further: it repeated itself, or its answers were cut off
  130  cancelled, such as by a signal

Environment:
  TIDEGATE_SETTINGS  settings as in tidegate.toml, on top of all files, such as `turn.max_steps=9`
  TIDEGATE_LOG       log filter for standard error, such as `debug` [default: error]
  NO_COLOR           if not empty, disables colors; --color overrides it
  CLICOLOR_FORCE     if neither empty nor 0, enables colors also without a terminal

Commands of the tool `shell` get a short list of variables, such as PATH and HOME, and those
that `env` of `[tools.shell]` names; `tidegate doctor` lists both, and what is left out.";

/// The arguments that every command accepts.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Read this operator's file in the place of the workspace's tidegate.toml, on top of the user's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Let the workspace's tidegate.toml count in this run although it is not trusted, whatever it asks for; for scripts that have
    /// checked it
    #[arg(long, global = true)]
    pub(crate) trust_workspace: bool,
    /// The folder in which tools read, write and run commands
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Also load the plugin in this folder; it receives only the powers given with --grant
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) plugin: Vec<PathBuf>,
    /// Grant powers to the plugins given with --plugin (comma-separated)
    #[arg(long, global = true, value_name = "POWERS", value_delimiter = ',')]
    pub(crate) grant: Vec<Power>,
    /// Set a plugin's setting, overriding the operator's file; separate the items of a list with commas. For other settings there is
    /// the variable TIDEGATE_SETTINGS
    #[arg(long, global = true, value_name = "PLUGIN.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// When to print colors
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
}

/// When the output has colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// At a terminal that supports them, unless NO_COLOR is set
    Auto,
    /// Also in output that goes to a file or a pipe
    Always,
    /// Not even at a terminal
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Chat with the model at the terminal; so does `tidegate` without a command
    #[command(after_help = CHAT_HELP)]
    Chat(Chat),
    /// Run turns of one session and print the answers
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Serve an editor with the Agent Client Protocol (ACP) on standard input and output; the editor starts this command
    #[command(after_help = ACP_HELP)]
    Acp(Acp),
    /// Run an agent of your own, with stream rules between it and its model
    #[command(after_help = GUARD_HELP)]
    Guard(Guard),
    /// Serve agents and programs of a team: an HTTP server in front of models, with stream rules, tokens and limits
    #[command(after_help = GATEWAY_HELP)]
    Gateway(Gateway),
    /// Serve sessions over HTTP, for front ends in browsers and in other languages
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// Create, build, list, enable and disable plugins
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// List the agents that the model can start
    Agents {
        #[command(subcommand)]
        command: AgentsCommand,
    },
    /// List, check, test and replay stream rules, which watch the model's output
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// List, show, follow, export, fork, cancel, repair and remove recorded sessions, and decide about their limits
    Session {
        #[command(subcommand)]
        command: SessionCommand,
    },
    /// List, show and clear the state that plugins keep for sessions
    State {
        #[command(subcommand)]
        command: StateCommand,
    },
    /// Print which extension or rule changed what in a recorded turn; or the request that a turn would send
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Show what the workspace's tidegate.toml asks for, and trust it as it is now
    #[command(after_help = TRUST_HELP)]
    Trust(Trust),
    /// Print the settings in force and where they come from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Check that the provider answers, plugins load, callbacks can be called and rules can fire
    Doctor(Doctor),
    /// Print the completion script for a shell
    #[command(
        after_help = "Example:\n    tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate"
    )]
    Completions {
        /// The shell to print the completion script for
        shell: clap_complete::Shell,
    },
    /// Print the licenses of the bundled grammars, which color the code in answers
    Licenses,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents that files of the workspace and of the user declare
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Create a plugin written in Rust: a package with a test and a recording to run it without a key
    New {
        /// The folder to create; its last part is the plugin's id
        folder: PathBuf,
        /// The clone of Tidegate, or the folder `sdk/rust` in it [default: searched for near the new folder]
        #[arg(long, value_name = "FOLDER")]
        sdk: Option<PathBuf>,
    },
    /// Print the plugins and the order in which each callback calls them
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what a plugin requests, without granting or loading anything
    Show {
        /// The folder that contains plugin.toml
        folder: PathBuf,
    },
    /// Enable a plugin of the operator's file; a running program uses it from its next turn on
    Enable {
        /// The plugin's id
        #[arg(value_name = "PLUGIN")]
        id: PluginId,
    },
    /// Disable a plugin of the operator's file; what it keeps in sessions stays
    Disable {
        /// The plugin's id
        #[arg(value_name = "PLUGIN")]
        id: PluginId,
    },
    /// Build the component of a plugin written in Rust
    Build {
        /// The folder that contains plugin.toml and Cargo.toml
        folder: PathBuf,
        /// Build again whenever the source changes; a running host uses the new component from its next turn on
        #[arg(long)]
        watch: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting of tidegate.toml that is set or has a default; or, with --defaults, the whole default of a table
    Show {
        /// Print where each comes from: file and line, or the program's default
        #[arg(long)]
        origin: bool,
        /// Print a JSON array, with the origins
        #[arg(long)]
        json: bool,
        /// Print the default of TABLE instead, with comments: copy from it what you change
        #[arg(long, conflicts_with_all = ["origin", "json"])]
        defaults: bool,
        /// With --defaults: the table whose default is printed [default: events]
        #[arg(value_enum, requires = "defaults")]
        table: Option<DefaultTable>,
    },
}

/// A table of `tidegate.toml` with a default that is too long for the list of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefaultTable {
    /// The catalogue of thread events
    #[value(alias = "thread-events")]
    Events,
    /// The classes of errors, and how each is retried
    Errors,
    /// The limits of sessions, and the prices of models
    #[value(alias = "thread-limits")]
    Limits,
}

const TRUST_HELP: &str = "\
A workspace's tidegate.toml can name addresses, keys, permissions and plugins, and comes with what you clone.
It counts after you trusted it, as it was then; a changed file is asked about again, with the difference.
What counts anyway: the choice among the models that your own file offers, tools that it denies, and the tables
errors, events and limits.session as far as they ask for nothing that your own file does not permit.";

/// The arguments of `trust`.
#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// List the workspaces that are trusted
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) list: bool,
    /// Do not trust the workspace any more; a session that runs goes on as it began
    #[arg(long)]
    pub(crate) revoke: bool,
    /// With --list: print a JSON object
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Print the sessions with stored state: plugins, number of keys, size, and when the state expires
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the keys that plugins keep for a session, with the start of their values
    Show {
        /// The id of the session
        session: String,
        /// Print a JSON object with the whole values
        #[arg(long)]
        json: bool,
    },
    /// Delete the state of a session that is not open
    Clear {
        /// The id of the session
        session: String,
        /// Delete only the state of the plugin with this id
        #[arg(long, value_name = "ID")]
        of: Option<String>,
    },
}

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Args::command().debug_assert();
    }
}
