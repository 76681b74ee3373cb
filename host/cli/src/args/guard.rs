//! The arguments of `guard`.

use std::ffi::OsString;

/// What `guard --help` says about its clients.
pub(super) const GUARD_HELP: &str = "\
Example:
    tidegate guard -- claude

The command gets ANTHROPIC_BASE_URL, OPENAI_BASE_URL, OPENAI_API_BASE and
OPENCODE_CONFIG_CONTENT, which Claude Code, opencode and the SDKs of both vendors read; codex
gets flags with a provider. Its own key goes to its own provider. Text that a rule stops never
reaches it: the model is asked again within the same answer. Plugins act on requests and answers,
and reminders that stop nothing are in the next request. The exit code is that of the command.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Guard {
    /// Listen on this port of the machine itself [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Where requests of the Messages API go [default: ANTHROPIC_BASE_URL, else Anthropic]
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic_url: Option<String>,
    /// Where requests of Chat Completions and the Responses API go [default: OPENAI_BASE_URL, else OpenAI]
    #[arg(long, value_name = "URL")]
    pub(crate) openai_url: Option<String>,
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
