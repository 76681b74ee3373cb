//! What can be written on the command line. The doc comments are the help.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// An agent host: sandboxed plugins change every stage of a turn, and rules stop the model mid-sentence.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The exit codes, as `--help` tells them.
const EXIT_CODES: &str = "\
Exit codes:
    0  the turn was completed; every check was good
    1  the turn failed, or a check was not good
    2  the command line, a file or a plugin is wrong; nothing was run
    3  a plugin rejected the input
    4  a rule ended the turn
    5  the turn reached its greatest number of steps
  130  cancelled";

/// What every command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// The operator's file [default: tidegate.toml of the workspace, where there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder that tools work in
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Load this plugin too: its folder. It may do what --grant allows
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) plugin: Vec<PathBuf>,
    /// Grant powers to the plugins given with --plugin: state, session, tools, prompt (comma-separated)
    #[arg(long, global = true, value_name = "POWERS", value_delimiter = ',')]
    pub(crate) grant: Vec<PowerWord>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run turns of one session and print the answers
    Run(Run),
    /// Plugins: what is loaded, and building one
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Stream rules: what watches the model
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// Check everything: the provider answers, plugins load, callbacks can be called, rules can fire
    Doctor(ProviderArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Print the plugins and, for each callback, who is called in which order
    List,
    /// Build a plugin written in Rust into its component
    Build {
        /// The folder with plugin.toml and Cargo.toml
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Print every rule: its state, source, scope and mode, and why it cannot fire where it cannot
    List,
}

/// Which model answers.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ProviderArgs {
    /// The provider: anthropic, openai-chat, openai-responses, recording
    #[arg(long, value_name = "KIND")]
    pub(crate) provider: Option<ProviderWord>,
    /// The model's name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Where the provider is [default: the vendor's own address]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key [default: the vendor's usual one]
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) api_key_env: Option<String>,
    /// Answer from this recording instead of a model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "base_url", "api_key_env"])]
    pub(crate) recording: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// What to do; `-` reads it from standard input. Several prompts are turns of one session, in order; it ends with the
    /// first turn that is not completed
    #[arg(required = true, value_name = "PROMPT")]
    pub(crate) prompts: Vec<String>,
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Record what goes over the wire to this file, secrets removed; it can be replayed with --recording
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// What to print: the answers as they stream, one JSON object a turn, or every event as a line of JSON
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Who may run what: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`; modes are allow, ask, deny
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
    /// Print what the session took: tokens, interrupts, time of each callback
    #[arg(long)]
    pub(crate) summary: bool,
}

/// What `run` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answers as they stream
    Text,
    /// One JSON object a turn, each on a line
    Json,
    /// Every event as a line of JSON
    StreamJson,
}

/// A provider, as written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProviderWord {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Recording,
}

/// A power, as written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PowerWord {
    State,
    Session,
    Tools,
    Prompt,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Args::command().debug_assert();
    }
}
