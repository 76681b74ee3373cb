//! What the rules without a condition add to the system prompt.

use crate::RuleSet;

impl RuleSet {
    /// Blocks for the system prompt: the bodies of the rules that always apply, highest layer first.
    pub fn system_blocks(&self) -> Vec<String> {
        self.always_apply().map(|rule| rule.body.clone()).collect()
    }
}
