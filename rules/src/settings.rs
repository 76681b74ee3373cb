//! What an operator can set for stream rules, with the defaults. Values only; `session` and `gate` act on them.

use serde::{Deserialize, Serialize};

/// Settings of the whole rule engine. Rules may override `interrupt_mode`, `repeat_mode`, `repeat_gap` and `context_mode`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RuleSettings {
    /// Whether stream rules are active. `false`: no rule is compiled, and nothing is held back.
    pub enabled: bool,
    /// What happens to the partial answer when a rule interrupts.
    pub context_mode: ContextMode,
    /// The streams on which a match interrupts.
    pub interrupt_mode: InterruptMode,
    /// How often the reminder of a rule is injected.
    pub repeat_mode: RepeatMode,
    /// For `after-gap`: the number of completed turns between two injections of a rule.
    pub repeat_gap: u32,
    /// Whether to use the built-in rules.
    pub builtin_rules: bool,
    /// Names of rules to disable, whatever their source. Names are trimmed; empty names are ignored.
    pub disabled_rules: Vec<String>,
    /// Names of rules that must be active, whatever their source. If one of them is not active, the host does not run.
    pub required: Vec<String>,
    /// The delay between the abort and the next attempt, in milliseconds.
    pub retry_delay_ms: u64,
    /// Which bytes are held back while a match is possible.
    pub hold: Hold,
    /// For `hold = "match"`: the maximum number of bytes of one block that are held back. Beyond it they are released, which
    /// is reported.
    pub hold_max_bytes: u64,
    /// For `hold = "match"`: the maximum time for which bytes are held back, in milliseconds.
    pub hold_max_ms: u64,
    /// The maximum number of interrupts in one turn, over all rules. Those that only rules of the project's own folder asked for count for
    /// such rules alone.
    pub max_interrupts_per_turn: u32,
    /// What a match does when the budget for interrupts is exhausted.
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

/// What happens to the partial answer when a rule interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ContextMode {
    /// It is removed from the model's context.
    Discard,
    /// It is kept, followed by the reminder.
    Keep,
    /// The lines before the match are kept as the start of the answer.
    Rewind,
}

/// The streams on which a match interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InterruptMode {
    /// Matches on all streams interrupt.
    Always,
    /// Matches on text and thinking interrupt.
    ProseOnly,
    /// Matches on tool calls interrupt.
    ToolOnly,
    /// None: the model receives the reminder afterwards.
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

/// How often the reminder of a rule is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RepeatMode {
    /// Once in a session.
    Once,
    /// Again after the gap of completed turns.
    AfterGap,
    /// On every match.
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

/// Which bytes are held back from the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// None: text is shown as it arrives.
    Off,
    /// Bytes that can belong to a match in progress.
    Match,
    /// Each block that an interrupting rule watches, until it is complete.
    Block,
}

/// What a match does when the budget for interrupts is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnBudget {
    /// It is recorded, and the answer continues.
    Pass,
    /// The turn ends.
    Stop,
}
