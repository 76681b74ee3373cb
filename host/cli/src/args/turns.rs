//! The arguments of `chat`, `run` and `acp`, which run turns: the model, permissions, output and metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use tidegate::model::ProviderKind;

/// The keys that `chat --help` lists.
pub(super) const CHAT_HELP: &str = "\
Keys:
  Enter      send; while a turn runs: give the message to the running turn
  Alt+Enter  queue the message until the turn has completed
  Ctrl+J     begin another line
  Esc        while a turn runs: interrupt it with the message, or cancel it
  Ctrl+C     cancel the turn, and take back the messages that wait
  Ctrl+D     end the chat
  Ctrl+Z     stop the program until the shell's `fg`
  Tab        complete a command, its argument, or a file after `@`
  y n e a    answer a question about a tool: yes, no, edit, always

`/help` lists the commands. $VISUAL or $EDITOR edits the arguments of a tool.";

/// The id of the session that is to be chosen from a list: no session has it.
pub(crate) const CHOOSE: &str = "";

/// The arguments of a chat.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Continue the latest session of this workspace
    #[arg(long = "continue", conflicts_with_all = ["resume", "no_transcript"])]
    pub(crate) go_on: bool,
    /// Continue the recorded session with this id, or with an id that starts with it; without an id, choose one from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = CHOOSE, conflicts_with = "no_transcript")]
    pub(crate) resume: Option<String>,
    /// Do not record the session: it cannot be continued
    #[arg(long)]
    pub(crate) no_transcript: bool,
    /// Allow, ask about or deny tool calls: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
}

/// The environment variables that `run --help` lists.
pub(super) const RUN_HELP: &str = "\
Environment (if the program is built with the feature `otel`):
  OTEL_EXPORTER_OTLP_ENDPOINT  export traces and metrics to this OpenTelemetry receiver over HTTP,
                               such as http://localhost:4318; the text of prompts, answers and
                               tools is not exported
  OTEL_EXPORTER_OTLP_HEADERS   headers of the requests: NAME=VALUE,NAME=VALUE
  OTEL_SERVICE_NAME            the name of this program at the receiver [default: tidegate]";

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
    /// With --output stream-json, print only what was shown, for front ends; the text that a rule or a plugin stopped is left out
    #[arg(long, requires = "output")]
    pub(crate) shown: bool,
    /// Allow, ask about or deny tool calls: `shell=allow`, `shell(git status*)=allow`, `write_file=deny`
    #[arg(long, value_name = "TOOL=MODE")]
    pub(crate) permission: Vec<String>,
    /// Print a summary of the session: tokens, interrupts, and what plugins used of their limits
    #[arg(long)]
    pub(crate) summary: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
}

/// The output format of `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answers: at a terminal as they stream, otherwise each one when it is accepted; if a turn is cancelled or
    /// interrupted, the part shown so far
    Text,
    /// One JSON object per turn, each on a line
    Json,
    /// Every event as a line of JSON, also text that rules stopped; a front end gives --shown, too
    StreamJson,
}

/// What `acp --help` adds.
pub(super) const ACP_HELP: &str = "\
Standard output carries only the protocol, or with --listen the URL; log lines go to standard error. Each session works in the
folder that the editor names for it, with the user's tidegate.toml and that of the folder or of --config.";

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
    #[command(flatten)]
    pub(crate) listen: Listen,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
}

/// The arguments of the protocol over websockets.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Listen {
    /// Serve websockets at this loopback address, such as 127.0.0.1:0, instead of standard input and output. The URL, with a
    /// token that each client needs, is printed on standard output
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Read the token from this environment variable [default: a new token]
    #[arg(long, value_name = "VARIABLE", requires = "listen")]
    pub(crate) token_env: Option<String>,
    /// Allow pages of this origin, such as http://localhost:3000, if they have the token; others are refused
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub(crate) allow_origin: Vec<String>,
    /// Take an address that other machines can reach. There is no encryption: whoever reads the token on its way can run commands here
    #[arg(long, requires = "listen")]
    pub(crate) allow_remote: bool,
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
    /// The environment variable that contains the API key; "" for no key [default: the vendor's usual one; none with a base URL]
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) api_key_env: Option<String>,
    /// Answer from this recording instead of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) recording: Option<PathBuf>,
}

impl ProviderArgs {
    /// Nothing of it says which model answers.
    pub(crate) fn names_no_model(&self) -> bool {
        self.provider.is_none() && self.model.is_none() && self.recording.is_none()
    }
}

/// The arguments that select where metrics can be read.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Metrics {
    /// Serve metrics for Prometheus at http://IP:PORT/metrics while the program runs, such as 127.0.0.1:9464. There is no
    /// authentication: give a loopback address
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write metrics in the OpenMetrics text format to this file when the program ends, also if a turn failed
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
}

pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9464; host names are not accepted")
}
