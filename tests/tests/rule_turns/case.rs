//! The cases in `tests/corpus/rules/turns`.

use serde::Deserialize;

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) spec: Vec<u32>,
    /// Wire formats that can say it; empty = all.
    #[serde(default)]
    pub(crate) wires: Vec<String>,
    /// Cuts that the case is about: `whole`, or `pieces` for all others; absent = all.
    pub(crate) cuts: Option<String>,
    #[serde(default)]
    pub(crate) prefill: bool,
    #[serde(default)]
    pub(crate) settings: toml::Table,
    pub(crate) rule: Vec<RuleCase>,
    /// Strings that nothing contains that the host sends, emits, keeps or reports.
    #[serde(default)]
    pub(crate) nowhere: Vec<String>,
    pub(crate) turn: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleCase {
    pub(crate) name: String,
    pub(crate) spec: toml::Table,
}

/// One turn: the input, the model's answers, and the expected results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    /// The rules were edited before this turn: these are all there are now.
    pub(crate) rule: Option<Vec<RuleCase>>,
    /// The program was started again before this turn: the session is a new one that takes up what was kept.
    #[serde(default)]
    pub(crate) resumed: bool,
    /// The answers it gives, request by request. All must be asked for, and no more.
    pub(crate) answer: Vec<Answer>,
    /// `between`: the user interrupts between an abort and its retry.
    pub(crate) cancel: Option<String>,
    pub(crate) status: String,
    /// The report's text.
    pub(crate) text: Option<String>,
    /// What was shown, of all attempts.
    pub(crate) shown: String,
    /// Rules that fired with what was done, in order: `RULE interrupt`.
    #[serde(default)]
    pub(crate) fires: Vec<String>,
    /// Rules whose reminders were recorded, in order.
    #[serde(default)]
    pub(crate) injected: Vec<String>,
    /// Rules that extensions were notified of, in order.
    #[serde(default)]
    pub(crate) told: Vec<String>,
    /// Tools that ran, in order.
    #[serde(default)]
    pub(crate) ran: Vec<String>,
    #[serde(default)]
    pub(crate) request: Vec<Request>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    #[serde(default)]
    pub(crate) block: Vec<Block>,
    /// After the blocks comes this error instead of an end.
    pub(crate) fail: Option<String>,
}

impl Answer {
    /// Whether it calls a tool.
    pub(crate) fn calls(&self) -> bool {
        self.block.iter().any(|block| block.tool.is_some())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    pub(crate) text: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) call: Option<String>,
    pub(crate) json: Option<String>,
    /// The server restarts its answer here.
    #[serde(default)]
    pub(crate) anew: bool,
}

impl Block {
    /// What streams in.
    pub(crate) fn words(&self) -> &str {
        [&self.text, &self.thinking, &self.json].into_iter().flatten().next().map_or("", String::as_str)
    }
}

/// Strings that the body of a request must contain, and must not contain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// The request's number within the turn, from 1.
    pub(crate) number: usize,
    #[serde(default)]
    pub(crate) holds: Vec<String>,
    #[serde(default)]
    pub(crate) lacks: Vec<String>,
}
