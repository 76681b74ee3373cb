//! The payloads of stream rules: matches, held output, reminders.

use serde::{Deserialize, Serialize};

use super::Absent;

payloads! {
    /// The payload of `rule_fired`.
    RuleFired {
        /// The name of the rule.
        rule: String,
        /// `text`, `thinking` or `tool`.
        stream: String,
        /// What is done about it.
        action: String,
        /// The first of this stream and rule in the turn.
        first: bool,
        /// Only reported: its repeat mode does not let it act.
        again: bool,
        /// What was found.
        evidence: Evidence,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
    }

    /// What a rule found.
    Evidence {
        /// The condition that matched; empty where `unread` is set.
        pattern: String,
        /// The matched text, at most 200 bytes of it.
        text: String,
        /// First byte of the match in its stream.
        start: u64,
        /// The byte after its last.
        end: u64,
        /// The line that it begins on, from 1.
        line: u32,
        /// For tools: the argument.
        field: Option<String>,
        /// For tools: the file the call is about.
        path: Option<String>,
        /// The rule guards this call and could not read its arguments.
        unread: Option<bool>,
    }

    /// The payload of `rule_hold_released`.
    RuleHoldReleased {
        /// On which stream.
        stream: String,
        /// How many bytes.
        bytes: u64,
        /// `hold_max_bytes` or `hold_max_ms`.
        bound: String,
    }

    /// The payload of `rule_held`.
    RuleHeld {
        /// On which stream.
        stream: String,
        /// The rules that made them wait.
        rules: Vec<String>,
        /// How often holding began.
        holds: u32,
        /// The most bytes that were held at once.
        bytes_max: u64,
        /// The longest that a byte was held, in milliseconds.
        ms_max: u64,
        /// How the last hold ended.
        outcome: String,
    }

    /// The payload of `ttsr_injection`.
    TtsrInjection {
        /// Names of the rules, each once.
        rules: Vec<String>,
        /// Bytes of the answer that were discarded.
        discarded_bytes: u64,
        /// What a resumed session needs to know, one for each rule.
        records: Vec<Injected>,
    }

    /// A reminder that went to the model.
    Injected {
        /// The name of the rule.
        rule: String,
        /// 16 hexadecimal digits for what the rule matched on then.
        hash: String,
        /// Turns of the thread that had been completed then.
        turn: u64,
        /// On which stream it fired.
        stream: String,
        /// What was done.
        action: String,
        /// Tokens of the answer that were discarded for this rule.
        tokens_discarded: u64,
        /// The provider did not count them.
        tokens_estimated: bool,
        /// What was found.
        evidence: Evidence,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
    }

    /// The payload of `ttsr_rearmed`.
    TtsrRearmed {
        /// Names of the rules, each once.
        rules: Vec<String>,
    }

    /// The payload of `rules_reloaded`.
    RulesReloaded {
        /// Rules in use now.
        active: u64,
        /// What was found while they were read.
        notices: Vec<String>,
    }
}
