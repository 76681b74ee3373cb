//! What an operator can set for stream rules, with the defaults. Values only; `session` and `gate` act on them.

use serde::Deserialize;

/// Settings of the whole rule engine. Rules may override `interrupt_mode`, `repeat_mode`, `repeat_gap` and `context_mode`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RuleSettings {
    /// `false` switches the monitor off: no rule is compiled, nothing is held.
    pub enabled: bool,
    /// What becomes of the partial answer when a rule interrupts.
    pub context_mode: ContextMode,
    /// On which streams a match interrupts.
    pub interrupt_mode: InterruptMode,
    /// How often a rule may be injected.
    pub repeat_mode: RepeatMode,
    /// For `after-gap`: completed turns between two injections of a rule.
    pub repeat_gap: u32,
    /// `false` drops the built-in pack.
    pub builtin_rules: bool,
    /// Names of rules to leave out, wherever they come from. Trimmed; empty names are ignored.
    pub disabled_rules: Vec<String>,
    /// Names of rules that have to be in force, wherever they come from: without one of them the host does not run.
    pub required: Vec<String>,
    /// Milliseconds between the abort and the next attempt.
    pub retry_delay_ms: u64,
    /// What is held back while a match may be in progress.
    pub hold: Hold,
    /// For `hold = "match"`: the most bytes of one block that are held; then they are let go, which is reported.
    pub hold_max_bytes: u64,
    /// For `hold = "match"`: the longest that bytes are held, in milliseconds. The caller owns the clock.
    pub hold_max_ms: u64,
    /// The most interrupts of one turn, over all rules.
    pub max_interrupts_per_turn: u32,
    /// What a match does when a budget for interrupts is spent.
    pub on_budget: OnBudget,
}

impl Default for RuleSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            context_mode: ContextMode::Discard,
            interrupt_mode: InterruptMode::Always,
            repeat_mode: RepeatMode::Once,
            repeat_gap: 10,
            builtin_rules: true,
            disabled_rules: Vec::new(),
            required: Vec::new(),
            retry_delay_ms: 50,
            hold: Hold::Match,
            hold_max_bytes: 4096,
            hold_max_ms: 1500,
            max_interrupts_per_turn: 3,
            on_budget: OnBudget::Pass,
        }
    }
}

/// What becomes of the partial answer when a rule interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ContextMode {
    /// It leaves the model's context.
    Discard,
    /// It stays, the reminder after it.
    Keep,
    /// What came before the line of the match stays as the beginning of the answer.
    Rewind,
}

/// On which streams a match interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InterruptMode {
    /// Matches of every stream interrupt.
    Always,
    /// On text and thinking.
    ProseOnly,
    /// On tool calls.
    ToolOnly,
    /// On none: the model is told afterwards.
    Never,
}

impl InterruptMode {
    /// Whether a match on a tool call (`true`) or in prose (`false`) interrupts.
    pub fn allows(self, tool: bool) -> bool {
        match self {
            Self::Always => true,
            Self::ProseOnly => !tool,
            Self::ToolOnly => tool,
            Self::Never => false,
        }
    }

    /// The mode's word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::ProseOnly => "prose-only",
            Self::ToolOnly => "tool-only",
            Self::Never => "never",
        }
    }
}

/// How often a rule may be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RepeatMode {
    /// Once in a session.
    Once,
    /// Again when the gap of completed turns has passed.
    AfterGap,
    /// Whenever it matches.
    Always,
}

impl RepeatMode {
    /// The mode's word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::AfterGap => "after-gap",
            Self::Always => "always",
        }
    }
}

/// What is held back from the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// Nothing: text is shown as it comes.
    Off,
    /// Bytes that may belong to a match in progress.
    Match,
    /// Each block until it is complete, where an interrupting rule watches it.
    Block,
}

/// What a match does when a budget for interrupts is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnBudget {
    /// It is noted and the answer goes on.
    Pass,
    /// The turn ends.
    Stop,
}
