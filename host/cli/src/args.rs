//! What can be written on the command line. The doc comments are the help.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use tidegate::{Power, ProviderKind};

/// An agent host: sandboxed plugins change every stage of a turn, and rules stop the model mid-sentence.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `--help` says of exit codes and the environment.
const AFTER_HELP: &str = "\
Exit codes:
    0  the turn was completed; every check was good
    1  the turn failed, or a check was not good; for `rules test` the rule did not fire, for `rules replay` what --fail-on
       names was found
    2  the command line, a file or a plugin is wrong; nothing was run
    3  a plugin rejected the input
    4  a rule ended the turn
    5  the turn reached its greatest number of steps
  130  cancelled

Environment:
  TIDEGATE_LOG    what is logged to standard error, such as `debug` or `tidegate_providers=trace` [default: error]
  NO_COLOR        no colours, if it is not empty; --color wins over it
  CLICOLOR_FORCE  colours also where the output is not a terminal, if it is neither empty nor 0";

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
    /// Grant powers to the plugins given with --plugin: state, session, history, tools, prompt (comma-separated)
    #[arg(long, global = true, value_name = "POWERS", value_delimiter = ',')]
    pub(crate) grant: Vec<Power>,
    /// Set a plugin's setting, whatever the operator's file says; a list is separated by commas
    #[arg(long, global = true, value_name = "PLUGIN.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// At a terminal that understands them, unless NO_COLOR is set
    Auto,
    /// Color output that goes to a file or a pipe, too
    Always,
    /// Print without color, at a terminal too
    Never,
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
    Doctor(Doctor),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n    tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate"
    )]
    Completions {
        /// The shell to print the completion script for
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Create a plugin written in Rust: a package that builds, has a test, and can be tried without a key
    New {
        /// The folder to create; its last part is the plugin's id
        folder: PathBuf,
        /// The folder `sdk/rust` of Tidegate's source, unless it is found near the new folder
        #[arg(long, value_name = "FOLDER")]
        sdk: Option<PathBuf>,
    },
    /// Print the plugins and, for each callback, who is called in which order
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what a plugin asks for, before anything of it is granted or loaded
    Show {
        /// The folder with plugin.toml
        folder: PathBuf,
    },
    /// Build a plugin written in Rust into its component
    Build {
        /// The folder with plugin.toml and Cargo.toml
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Print every rule: its state, source, scope and mode, and why it cannot fire where it cannot
    #[command(
        after_help = "Example:\n    tidegate rules list --json | jq '.rules[] | select(.state != \"active\") | .name'"
    )]
    List(RulesList),
    /// Check rule files before they are switched on: what is wrong at its place, their examples, what keeps them from firing
    #[command(after_help = CHECK_HELP)]
    Check(RulesCheck),
    /// Try a rule on words or a tool call: where it fires, what is done then, and why not where it does not
    #[command(after_help = TEST_HELP)]
    Test(RulesTest),
    /// Ask what rules would have done in old sessions: recordings and transcripts, compared with what happened
    #[command(after_help = REPLAY_HELP)]
    Replay(RulesReplay),
    /// Print everything about one rule: what it looks for and where, what it does and why, what the model is told
    #[command(after_help = "Example:\n    tidegate rules explain ts-as-any")]
    Explain(RulesExplain),
}

const CHECK_HELP: &str = "\
Examples:
    tidegate rules check .tidegate/rules plugins/team-guard/plugin.toml --deny-warnings
    tidegate rules check - < no-print.md

Exit codes: 0 nothing wrong, 1 an error (or with --deny-warnings a warning), 2 something cannot be read.";

const TEST_HELP: &str = "\
Examples:
    tidegate rules test git-force-push --tool shell --arg command='git push -f'
    tidegate rules test ts-as-any --file src/main.ts
    tidegate rules test rules/no-guess.md --text 'It should probably work.' --verbose

The input is fed at once and character by character; both have to come to the same.

Exit codes: 0 it fires (with --expect-none: it does not), 1 the other way round, 2 wrong use.";

const REPLAY_HELP: &str = "\
Examples:
    tidegate rules replay sessions/*.jsonl
    tidegate rules replay sessions/*.jsonl --rule rules/no-guess.md --verbose
    tidegate rules replay golden.jsonl --fail-on disagreement

A file is a recording (`tidegate run --record FILE`) or a transcript (`tidegate run --output stream-json > FILE`). What was \
said is fixed: where a rule stops an answer now, the rest of that answer is left out. Tokens marked ~ are estimates.

Now and then:
    same          the same rule at the same place, with the same action
    only now      it did not fire then
    only then     it does not fire now
    other action  the same rule at the same place, with another action
    unreached     it fired then in what would not have been written now
    not recorded  what it fired on was not written down
    unknown       a recording does not say which rules fired

Exit codes: 0 done, 1 what --fail-on names was found, 2 a file cannot be read.";

/// What `rules list` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesList {
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print several lines a rule
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) verbose: bool,
}

/// What `rules check` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesCheck {
    /// Rule files (.md, .mdc), manifests (plugin.toml), folders that hold either; `-` is a rule file on standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A warning is as bad as an error
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `rules test` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("input").required(true).args(["text", "thinking", "file", "tool"]))]
pub(crate) struct RulesTest {
    /// The name of a rule, or the path of a rule file
    pub(crate) rule: String,
    /// Words of the model for the user; `-` reads them from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Words of the model's reasoning; `-` reads them from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) thinking: Option<String>,
    /// A text file, as if the model wrote it: with write_file, and with edit_file. Relative to the workspace, as tools are
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// A call of this tool; its arguments are given by --arg or --json-args
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// An argument of the call that is a text
    #[arg(long, value_name = "KEY=VALUE", requires = "tool", conflicts_with = "json_args", allow_hyphen_values = true)]
    pub(crate) arg: Vec<String>,
    /// All arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) json_args: Option<String>,
    /// The agent that writes
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) agent: String,
    /// That it does not fire is good, that it fires is not
    #[arg(long)]
    pub(crate) expect_none: bool,
    /// Print what the model is told, too
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `rules replay` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesReplay {
    /// Recordings and transcripts
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only this rule: a name, or the path of a rule file. Tried even where it is switched off; can be given again
    #[arg(long, value_name = "RULE")]
    pub(crate) rule: Vec<String>,
    /// Count every stream in which a rule matches, whatever was injected before; nothing interrupts, nothing is compared
    #[arg(long)]
    pub(crate) every: bool,
    /// The agent whose sessions these are
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) agent: String,
    /// What makes the exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Never, value_name = "WHAT")]
    pub(crate) fail_on: FailOn,
    /// Print every match
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print a JSON object, every match in it
    #[arg(long)]
    pub(crate) json: bool,
}

/// What makes `rules replay` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Exit with success whatever was found
    Never,
    /// Fail if any rule fires
    Fire,
    /// A match that would stop an answer
    Interrupt,
    /// Now differs from then
    Disagreement,
}

/// What `rules explain` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesExplain {
    /// The name of a rule, or the path of a rule file
    pub(crate) rule: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `doctor` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which model answers.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ProviderArgs {
    /// The provider: anthropic, openai-chat, openai-responses, recording
    #[arg(long, value_name = "KIND")]
    pub(crate) provider: Option<ProviderKind>,
    /// The model's name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Where the provider is [default: the vendor's own address]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key; "" for no key [default: the vendor's usual one]
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) api_key_env: Option<String>,
    /// Answer from this recording instead of a model
    #[arg(long, value_name = "FILE")]
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
    /// What to print: the answers, one JSON object a turn, or every event as a line of JSON
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
    /// The answers: at a terminal as they stream, elsewhere each when it is accepted; of a turn that is cancelled or cut off,
    /// also what was shown until then
    Text,
    /// One JSON object a turn, each on a line
    Json,
    /// Every event as a line of JSON
    StreamJson,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Args::command().debug_assert();
    }
}
