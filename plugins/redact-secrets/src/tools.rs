//! Calls of tools, their results, and the questions about them.

use serde_json::{Value, json};
use tidegate_sdk::prelude::*;
use tidegate_secrets::{Lines, find};

use crate::{RedactSecrets, count};

/// A longer string is none that its name alone tells to be a secret.
const LONGEST_NAMED: usize = 1024;

impl OnToolCall for RedactSecrets {
    /// Before others: what they deny or replace is shown, too. A call that was not searched must neither run nor be shown.
    fn call_options(&self) -> CallOptions {
        CallOptions::default().priority(95).on_failure(OnFailure::Reject)
    }

    /// A call with a secret does not run: with a marker in the place of the secret it would do something else, such as write the marker into a
    /// file.
    fn on_tool_call(&mut self, call: &AskedCall) -> Result<CallAnswer> {
        let mut kinds = Vec::new();
        let shown = self.arguments(call, &mut kinds)?;
        if kinds.is_empty() {
            return Ok(CallAnswer::Pass);
        }
        count(&kinds)?;
        kinds.sort_unstable();
        kinds.dedup();
        let reason = format!(
            "the arguments contain a secret ({}). Do not write secrets: name a variable of the environment or a file that has it, or write a \
             placeholder such as `<password>`",
            kinds.join(", ")
        );
        CallAnswer::deny_showing(reason, shown)
    }
}

impl OnToolResult for RedactSecrets {
    /// Late, so that it sees what others made of the result.
    fn result_options(&self) -> ResultOptions {
        ResultOptions::default().priority(5).on_failure(OnFailure::Withhold)
    }

    fn on_tool_result(&mut self, result: &GivenResult) -> Result<ResultAnswer> {
        let mut kinds = Vec::new();
        let answer = result.map_texts(|text| self.lines(text, &mut kinds));
        // The same is in the result, once the call that a person is asked about has run.
        if result.stage == ResultStage::Done {
            count(&kinds)?;
        }
        Ok(answer)
    }
}

impl RedactSecrets {
    /// The text with markers in the place of its secrets; `None` where there is none.
    fn lines(&self, text: &str, kinds: &mut Vec<&'static str>) -> Option<String> {
        let (mut lines, mut shown, mut is_redacted) = (Lines::default(), String::new(), false);
        for line in text.split_inclusive('\n') {
            let redacted = self.redacted(line, lines.take(line, ""), kinds);
            is_redacted |= redacted.is_some();
            shown.push_str(redacted.as_deref().unwrap_or(line));
        }
        is_redacted.then_some(shown)
    }

    /// The arguments with markers in the place of their secrets.
    fn arguments(&self, call: &AskedCall, kinds: &mut Vec<&'static str>) -> Result<Value> {
        let redacted = call.map_strings(|text| self.lines(text, kinds))?;
        let mut shown = redacted.map_or_else(|| call.read(), Ok)?;
        self.named(&mut shown, kinds);
        Ok(shown)
    }

    /// Redacts values whose name is not in the same string: that of a member, or the string before in a list.
    fn named(&self, value: &mut Value, kinds: &mut Vec<&'static str>) {
        let is_short = |value: &Value| value.as_str().map_or(value.is_number(), |text| text.len() <= LONGEST_NAMED);
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if !is_short(member) {
                        self.named(member, kinds);
                    } else if let Some(mut redacted) = self.line(&json!({ name: &*member }), kinds) {
                        *member = redacted.get_mut(name).map_or_else(|| self.last(kinds), Value::take);
                    }
                }
            }
            Value::Array(items) if !items.iter().all(is_short) => {
                items.iter_mut().for_each(|item| self.named(item, kinds));
            }
            Value::Array(_) => {
                if let Some(redacted) = self.line(value, kinds) {
                    *value = if redacted.is_array() { redacted } else { json!([self.last(kinds)]) };
                }
            }
            _ => {}
        }
    }

    /// A value as its line of JSON, redacted; `Null` where a marker makes it no JSON.
    fn line(&self, value: &Value, kinds: &mut Vec<&'static str>) -> Option<Value> {
        let line = value.to_string();
        let redacted = self.redacted(&line, find(&line), kinds)?;
        Some(serde_json::from_str(&redacted).unwrap_or_default())
    }

    /// The marker of the secret that was found last.
    fn last(&self, kinds: &[&'static str]) -> Value {
        json!(self.marker(kinds.last().copied().unwrap_or("secret")))
    }
}
