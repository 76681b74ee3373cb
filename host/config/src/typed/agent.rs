//! An agent file's front matter as typed.

use schemars::JsonSchema;
use serde::Deserialize;

use super::OneOrMany;

/// The front matter of an agent file, `NAME.md`. What follows it is the agent's system prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "agent file")]
pub(crate) struct AgentFile {
    /// The agent's name, if it is repeated here: the file's name without `.md`.
    pub(crate) name: Option<String>,
    /// When to use the agent, in one or two sentences. The model chooses by it.
    #[schemars(length(min = 1))]
    pub(crate) description: String,
    /// The tools that the agent can use, out of those of the session that starts it: names and globs such as `notes_*`, as a list or separated
    /// by commas. Default: all of them.
    pub(crate) tools: Option<OneOrMany<String>>,
    /// The model that answers, by its name at the session's provider. Default: the model of the session that starts the agent.
    #[schemars(length(min = 1))]
    pub(crate) model: Option<String>,
    /// How much the agent can use. What the session that starts it has left is a limit, too.
    #[serde(default)]
    pub(crate) limits: AgentLimitsFile,
}

/// How much an agent can use for one task.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentLimitsFile {
    /// The most accepted answers of its model.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) steps: Option<u64>,
    /// The most tokens of its requests and answers.
    #[schemars(range(min = 1))]
    pub(crate) tokens: Option<u64>,
    /// The most that it can cost, in US dollars. The price of its model must be known.
    #[schemars(range(min = 0.0))]
    pub(crate) spend: Option<f64>,
    /// The most agents that it can start.
    #[schemars(range(max = 1_000))]
    pub(crate) spawns: Option<u64>,
    /// How many levels of agents there can be below it; 0: it starts none.
    #[schemars(range(max = 16))]
    pub(crate) depth: Option<u64>,
    /// The longest that it can work, such as `90s` or `10m`.
    pub(crate) duration: Option<String>,
}
