//! The limits of sessions as typed: the default of the program and the files that override it.

use schemars::JsonSchema;
use serde::Deserialize;

/// What a session may take, over all its turns and processes, and what tokens cost; or a part of it: a file gives only what it changes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ThreadLimitsFile {
    /// What a session may take. Before a request that would exceed a limit, the session waits for an approval.
    pub(crate) limits: SessionLimitsFile,
    /// How a higher limit is approved.
    pub(crate) approval: ApprovalFile,
    /// What tokens cost.
    pub(crate) price: Vec<PriceFile>,
}

/// What a session may take. Each is a number, or `"unlimited"`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionLimitsFile {
    /// Turns, however they end.
    pub(crate) turns: Option<CountFile>,
    /// Steps of all turns: answers of the model.
    pub(crate) steps: Option<CountFile>,
    /// Tokens of prompts and answers, as the provider counts them; where it does not, a quarter of their bytes.
    pub(crate) tokens: Option<CountFile>,
    /// Money, in US dollars.
    pub(crate) spend: Option<AmountFile>,
    /// Child threads that the session starts.
    pub(crate) spawns: Option<CountFile>,
    /// How deep child threads are nested: with 1 a session has children, and they have none.
    pub(crate) depth: Option<CountFile>,
    /// The time of its turns, such as `2h`, without the time in which an approval is waited for.
    pub(crate) duration: Option<String>,
}

/// A number of things.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum CountFile {
    /// At most so many.
    Number(u64),
    /// There is no limit.
    Word(Unlimited),
}

/// An amount of money.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum AmountFile {
    /// At most so much.
    Number(#[schemars(range(min = 0))] f64),
    /// There is no limit.
    Word(Unlimited),
}

/// The word for no limit.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) enum Unlimited {
    /// There is no limit.
    #[serde(rename = "unlimited")]
    Unlimited,
}

/// How a higher limit is approved.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalFile {
    /// How long an approval is waited for, such as `10m`; then the session is suspended, and can be continued later.
    pub(crate) timeout: Option<String>,
}

/// What the tokens of a model cost, in US dollars for a million of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceFile {
    /// The model's name. A date at the end of the name that is asked for does not count; `*` at the end stands for any rest. Of several
    /// entries the longest counts.
    #[schemars(length(min = 1))]
    pub(crate) id: String,
    /// Tokens of the prompt.
    #[schemars(range(min = 0))]
    pub(crate) input: Option<f64>,
    /// Tokens of the answer.
    #[schemars(range(min = 0))]
    pub(crate) output: Option<f64>,
    /// Tokens of the prompt, read from the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(crate) cache_read: Option<f64>,
    /// Tokens of the prompt, written to the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(crate) cache_write: Option<f64>,
}
