//! The arguments of the command line. Their doc comments are the help texts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use tidegate::{PluginId, Power, ProviderKind};

/// An agent host: sandboxed plugins change every stage of a turn, and rules stop the model mid-sentence.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Without a command: continue the latest session of this workspace in a chat
    #[arg(long = "continue", conflicts_with = "resume")]
    go_on: bool,
    /// Without a command: continue the recorded session with this id in a chat
    #[arg(long, value_name = "ID")]
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
    0  the turn completed; every check passed
    1  the turn failed, or a check did not pass
    2  the command line, a file or a plugin is invalid; nothing was run
    3  a plugin rejected the input
    4  a rule ended the turn
    5  the turn reached its maximum number of steps
    6  the session was suspended at a limit; it can be continued
  130  cancelled

Environment:
  TIDEGATE_LOG    log filter for standard error, such as `debug` [default: error]
  NO_COLOR        if not empty, disables colors; --color overrides it
  CLICOLOR_FORCE  if neither empty nor 0, enables colors also without a terminal";

/// The keys that `chat --help` lists.
const CHAT_HELP: &str = "\
Keys:
  Enter      send; while a turn runs: give the message to the running turn
  Alt+Enter  queue the message until the turn has completed
  Ctrl+J     begin another line
  Esc        while a turn runs: interrupt it with the message, or cancel it
  Ctrl+C     cancel the turn, and take back the messages that wait
  Ctrl+D     end the chat
  y n e a    answer a question about a tool: yes, no, edit, always

`/help` lists the commands. $VISUAL or $EDITOR edits the arguments of a tool.";

/// The environment variables that `run --help` lists.
const RUN_HELP: &str = "\
Environment (if the program is built with the feature `otel`):
  OTEL_EXPORTER_OTLP_ENDPOINT  export traces and metrics to this OpenTelemetry receiver over HTTP,
                               such as http://localhost:4318; the text of prompts, answers and
                               tools is not exported
  OTEL_EXPORTER_OTLP_HEADERS   headers of the requests: NAME=VALUE,NAME=VALUE
  OTEL_SERVICE_NAME            the name of this program at the receiver [default: tidegate]";

/// What `acp --help` adds.
const ACP_HELP: &str = "\
Standard output carries only the protocol; log lines go to standard error. Each session works in the
folder that the editor names for it, with the tidegate.toml of that folder or the file of --config.";

/// The arguments that every command accepts.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Read this operator's file [default: tidegate.toml in the workspace, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder in which tools read, write and run commands
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Also load the plugin in this folder; it receives only the powers given with --grant
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) plugin: Vec<PathBuf>,
    /// Grant powers to the plugins given with --plugin (comma-separated)
    #[arg(long, global = true, value_name = "POWERS", value_delimiter = ',')]
    pub(crate) grant: Vec<Power>,
    /// Set a plugin's setting, overriding the operator's file; separate the items of a list with commas
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
    /// Print settings that come with the program
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
        /// The folder `sdk/rust` of Tidegate's source [default: searched for near the new folder]
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
pub(crate) enum SessionCommand {
    /// Print the recorded sessions of this workspace, the latest first
    List {
        /// Also print those of other workspaces
        #[arg(long)]
        all: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what happened in a session: inputs, answers, tools, rules, errors
    Show {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Print only this turn
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
        /// Print each record as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a session like `show`, and what another process adds to it, until Ctrl-C
    Follow {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Print each record as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a session as Markdown, as one HTML page that needs no network, or as its records
    #[command(after_help = EXPORT_HELP)]
    Export {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// The format of what is written
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
        /// Write to this file and replace it if it exists [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Create a session that continues another one from the end of a turn, and print its id; no record is copied
    Fork {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// The turn after which it continues [default: the last that has finished]
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
        /// The id of the new session [default: a new one]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Cancel the turn that another process runs in a session
    Cancel {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Approve the request of a session for a higher limit; a session that was suspended is then continued with `run --resume`
    Approve {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// The new limit: a number, or a time such as 90s, 5m or 1h [default: the one that is proposed]
        #[arg(long, value_name = "N")]
        max: Option<String>,
    },
    /// Deny the request of a session for a higher limit: it stays suspended
    Deny {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Remove the damaged lines of a transcript; the damaged file is kept next to it
    Repair {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Remove sessions for good; one that is open, or that a fork continues, is refused
    Rm {
        /// The ids of the sessions, or the starts of them
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the default of a file that can override it
    Show {
        /// Print the defaults of the program: the only ones so far
        #[arg(long, required = true)]
        defaults: bool,
        /// The file whose default is printed
        #[arg(value_enum, default_value_t = DefaultFile::ThreadEvents)]
        file: DefaultFile,
    },
}

/// A file whose default comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefaultFile {
    /// The catalogue of thread events: `.tidegate/thread_events.toml` overrides it
    ThreadEvents,
    /// The table of errors and retries: `.tidegate/errors.toml` overrides it
    Errors,
    /// The limits of sessions and the prices of models: `.tidegate/thread_limits.toml` overrides them
    ThreadLimits,
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

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Print every rule: its state, source, scope and mode, and the reason if it cannot fire
    #[command(
        after_help = "Example:\n    tidegate rules list --json | jq '.rules[] | select(.state != \"active\") | .name'"
    )]
    List(RulesList),
    /// Check rule files before using them: errors with their position, examples, reasons why a rule cannot fire
    #[command(after_help = CHECK_HELP)]
    Check(RulesCheck),
    /// Test a rule on a text or a tool call: where it fires and what happens, or why it does not fire
    #[command(after_help = TEST_HELP)]
    Test(RulesTest),
    /// Run rules over recordings and transcripts of past sessions, and compare with what happened then
    #[command(after_help = REPLAY_HELP)]
    Replay(RulesReplay),
    /// Print everything about one rule: conditions, scope, action, repeat policy, and its reminder to the model
    #[command(after_help = "Example:\n    tidegate rules explain ts-as-any")]
    Explain(RulesExplain),
}

const EXPORT_HELP: &str = "\
Example:
    tidegate session export 19ab --format html -o session.html

An export contains everything that was said, also what an extension removed from what the user saw.";

const EXPLAIN_HELP: &str = "\
Examples:
    tidegate explain                      # the last turn of the latest session of this workspace
    tidegate explain 3 --session 19ab
    tidegate explain --prompt 'Which port?'

Each change is printed with the original. With --prompt the request is printed part by part,
each with its origin; nothing is sent.";

const CHECK_HELP: &str = "\
Examples:
    tidegate rules check .tidegate/rules plugins/team-guard/plugin.toml --deny-warnings
    tidegate rules check - < no-print.md

Exit codes: 0 no errors, 1 an error (with --deny-warnings also a warning), 2 a file cannot be read.";

const TEST_HELP: &str = "\
Examples:
    tidegate rules test git-force-push --tool shell --arg command='git push -f'
    tidegate rules test ts-as-any --file src/main.ts
    tidegate rules test rules/no-guess.md --text 'It should probably work.' --verbose

The input is processed twice, as a whole and one character at a time; both results must be equal.

Exit codes: 0 the rule fires (with --expect-none: it does not fire), 1 the opposite, 2 usage error.";

const REPLAY_HELP: &str = "\
Examples:
    tidegate rules replay sessions/*.jsonl
    tidegate rules replay sessions/*.jsonl --rule rules/no-guess.md --verbose
    tidegate rules replay golden.jsonl --fail-on disagreement

A file is a recording (`tidegate run --record FILE`) or a transcript (`tidegate run --output stream-json > FILE`). The \
model's output is fixed: if a rule stops an answer now, the rest of that answer is ignored. Tokens marked ~ are estimates.

Results:
    same          the rule fired then and fires now, at the same position with the same action
    only now      the rule fires now and did not fire then
    only then     the rule fired then and does not fire now
    other action  the rule fires at the same position with another action
    unreached     the rule fired then in output that would not have been written now
    not recorded  the output on which the rule fired was not recorded
    unknown       the recording does not contain which rules fired

Exit codes: 0 done, 1 the condition of --fail-on was met, 2 a file cannot be read.";

/// The arguments of `rules list`.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesList {
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print several lines for each rule
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) verbose: bool,
}

/// The arguments of `rules check`.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesCheck {
    /// Rule files (.md, .mdc), manifests (plugin.toml), or folders that contain them; `-` reads a rule file from standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `rules test`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("input").required(true).args(["text", "thinking", "file", "tool"]))]
pub(crate) struct RulesTest {
    /// The name of a rule, or the path of a rule file
    pub(crate) rule: String,
    /// Text of the model's answer; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Text of the model's reasoning; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) thinking: Option<String>,
    /// Test as if the model wrote this text file, once with write_file and once with edit_file; relative to the workspace
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Test a call of this tool, with the arguments given by --arg or --json-args
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// A string argument of the call
    #[arg(long, value_name = "KEY=VALUE", requires = "tool", conflicts_with = "json_args", allow_hyphen_values = true)]
    pub(crate) arg: Vec<String>,
    /// All arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) json_args: Option<String>,
    /// The name of the agent that produces the output
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) agent: String,
    /// Succeed only if the rule does not fire
    #[arg(long)]
    pub(crate) expect_none: bool,
    /// Also print the reminder that the model receives
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `rules replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesReplay {
    /// Recordings and transcripts of sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Replay only this rule, even if it is disabled: a name, or the path of a rule file (repeatable)
    #[arg(long, value_name = "RULE")]
    pub(crate) rule: Vec<String>,
    /// Count every stream in which a rule matches, regardless of earlier reminders; without interrupts and comparison
    #[arg(long)]
    pub(crate) every: bool,
    /// The name of the agent that the sessions belong to [default: the one that a transcript names, or main]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The condition for exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Never, value_name = "WHAT")]
    pub(crate) fail_on: FailOn,
    /// Print every match
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print a JSON object that contains every match
    #[arg(long)]
    pub(crate) json: bool,
}

/// When `rules replay` exits with code 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Exit with 0 whatever fires
    Never,
    /// If any rule fires
    Fire,
    /// If a match would stop an answer
    Interrupt,
    /// If the result differs from the past session
    Disagreement,
}

/// The format of an exported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Text for people, with tables of totals
    Markdown,
    /// One page with the timeline, plots and tables, which needs neither the network nor scripts
    Html,
    /// The records, each as a line of JSON
    Jsonl,
}

/// The arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The number of the turn [default: the last]
    #[arg(value_name = "TURN", conflicts_with = "prompt")]
    pub(crate) turn: Option<u32>,
    /// The id of the recorded session, or the start of it [default: the latest session of this workspace]
    #[arg(long, value_name = "ID", conflicts_with = "prompt")]
    pub(crate) session: Option<String>,
    /// Print the request for this input instead; `-` is standard input; plugins see it as in a turn
    #[arg(long, value_name = "INPUT")]
    pub(crate) prompt: Option<String>,
    /// Print a JSON object, with all texts whole
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `rules explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesExplain {
    /// The name of a rule, or the path of a rule file
    pub(crate) rule: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
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

/// The arguments that select the model.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ProviderArgs {
    /// The provider: anthropic, openai-chat, openai-responses, recording
    #[arg(long, value_name = "KIND")]
    pub(crate) provider: Option<ProviderKind>,
    /// The model's name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The provider's base URL [default: the vendor's]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that contains the API key; "" for no key [default: the vendor's usual one]
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) api_key_env: Option<String>,
    /// Answer from this recording instead of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) recording: Option<PathBuf>,
}

/// The arguments of a chat.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Continue the latest session of this workspace
    #[arg(long = "continue", conflicts_with_all = ["resume", "no_transcript"])]
    pub(crate) go_on: bool,
    /// Continue the recorded session with this id, or with an id that starts with it
    #[arg(long, value_name = "ID", conflicts_with = "no_transcript")]
    pub(crate) resume: Option<String>,
    /// Do not record the session: it cannot be continued
    #[arg(long)]
    pub(crate) no_transcript: bool,
    /// Allow, ask about or deny tool calls: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Run {
    /// The prompt; `-` reads it from standard input. Several prompts run as turns of one session, in order, until a turn
    /// does not complete. With --continue or --resume and without a prompt, the session goes on where it was suspended,
    /// cancelled or interrupted
    #[arg(required_unless_present_any = ["go_on", "resume"], value_name = "PROMPT")]
    pub(crate) prompts: Vec<String>,
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Continue the latest session of this workspace
    #[arg(long = "continue", conflicts_with_all = ["resume", "session", "no_transcript"])]
    pub(crate) go_on: bool,
    /// Continue the recorded session with this id, or with an id that starts with it
    #[arg(long, value_name = "ID", conflicts_with_all = ["session", "no_transcript"])]
    pub(crate) resume: Option<String>,
    /// Run in the session with this id, which continues if it is recorded; plugins find the state that they kept in it.
    /// Default: a new session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Do not record the session: it cannot be continued
    #[arg(long)]
    pub(crate) no_transcript: bool,
    /// Record requests and responses to this file, with secrets masked; replay it with --recording
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Allow, ask about or deny tool calls: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
    /// Print a summary of the session: tokens, interrupts, and what plugins used of their limits
    #[arg(long)]
    pub(crate) summary: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
}

/// The arguments of `acp`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Acp {
    /// Shadows the argument of all commands, so that a value can be refused: each session names its own folder
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) workspace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Allow, ask about or deny tool calls: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
    /// Do not record sessions: the editor cannot list, load or resume them
    #[arg(long)]
    pub(crate) no_transcript: bool,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9464; host names are not accepted")
}

/// The arguments that select where metrics can be read.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Metrics {
    /// Serve metrics for Prometheus at http://IP:PORT/metrics while the program runs, such as 127.0.0.1:9464. There is no
    /// authentication: give a loopback address
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write metrics in the OpenMetrics text format to this file when the last turn has ended, also if it failed
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
}

/// The output format of `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answers: at a terminal as they stream, otherwise each one when it is accepted; if a turn is cancelled or
    /// interrupted, the part shown so far
    Text,
    /// One JSON object per turn, each on a line
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
