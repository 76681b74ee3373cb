//! The arguments of `rules`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

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
    /// Write rule files for the rules of a secret scanner: gitleaks, TruffleHog, detect-secrets
    #[command(after_help = IMPORT_HELP)]
    Import(RulesImport),
    /// Print everything about one rule: conditions, scope, action, repeat policy, and its reminder to the model
    #[command(after_help = "Example:\n    tidegate rules explain ts-as-any")]
    Explain(RulesExplain),
}

const CHECK_HELP: &str = "\
Examples:
    tidegate rules check .tidegate/rules plugins/team-guard/plugin.toml --deny-warnings
    tidegate rules check
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
    tidegate rules replay ~/.local/state/tidegate/sessions/*/transcript.jsonl
    tidegate rules replay day.jsonl --rule rules/no-guess.md --verbose
    tidegate rules replay golden.jsonl --fail-on disagreement

A file is a recording (`tidegate run --record FILE`), the transcript of a session, or the output of `tidegate run --output \
stream-json`. The model's output is fixed: if a rule stops an answer now, the rest of that answer is ignored. Tokens marked ~ are estimates.

Results:
    same          the rule fired then and fires now, at the same position with the same action
    only now      the rule fires now and did not fire then
    only then     the rule fired then and does not fire now
    other action  the rule fires at the same position with another action
    unreached     the rule fired then in output that would not have been written now
    not recorded  the output on which the rule fired was not recorded
    unknown       the recording does not contain which rules fired

Exit codes: 0 done, 1 the condition of --fail-on was met, 2 a file cannot be read.";

const IMPORT_HELP: &str = "\
Examples:
    tidegate rules import gitleaks.toml --dry-run
    tidegate rules import gitleaks.toml
    tidegate rules import detectors.yaml --out ~/.config/tidegate/rules/detectors

Formats: gitleaks (TOML), custom detectors of TruffleHog (YAML), rules of TruffleHog 2 (JSON), baselines of detect-secrets (JSON).

Each rule about text becomes a rule file with `secret = true`: a match is shown nowhere and kept nowhere. Each rule about names of files alone \
becomes one that stops calls which write such a file. A file is only written if it loads and if the rule fires on the examples made for it. \
Features that cannot be carried over, such as the entropy of a secret, are named here and in the file.

Exit codes: 0 rule files were written, or would be, 1 the rule set has no rule that can be used, 2 the file cannot be read, or rule files are \
in the way (also with --dry-run).";

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
    /// Rule files (.md, .mdc), manifests (plugin.toml), or folders that contain them; `-` reads a rule file from standard input;
    /// without any, the rule folders of this host
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Print every warning, also where there are many of one kind
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) verbose: bool,
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

/// The arguments of `rules import`.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesImport {
    /// The rule set of a secret scanner
    pub(crate) file: PathBuf,
    /// Write the rule files into this folder [default: .tidegate/rules/NAME of the workspace; NAME is the file's name without extension]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite rule files that are there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Write nothing, and print what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print a JSON object
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
