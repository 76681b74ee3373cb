//! What a rule requests for a match on each kind of stream.

use flow::Action;

use crate::group::{watches_text, watches_thinking};
use crate::{InterruptMode, Rule, RuleAction, Scope};

impl Rule {
    /// Whether it can fire on text or on reasoning.
    pub fn watches_prose(&self) -> bool {
        watches_text(self) || watches_thinking(self)
    }

    /// Whether it can fire on calls of some tool, offered or not.
    pub fn watches_tools(&self) -> bool {
        self.scopes.iter().any(|scope| matches!(scope, Scope::Tool { .. }))
    }

    /// The action that the rule requests for a match on a tool call (`true`) or in prose (`false`), ignoring budgets and
    /// earlier matches. `mode` is the interrupt mode in effect for the rule.
    pub fn requests(&self, mode: InterruptMode, tool: bool) -> Action {
        match self.action {
            Some(RuleAction::Remind) => Action::Remind,
            Some(RuleAction::Stop) => Action::Stop,
            Some(RuleAction::Block) if tool => Action::Block,
            None | Some(RuleAction::Interrupt | RuleAction::Block) if mode.allows(tool) => Action::Interrupt,
            None | Some(RuleAction::Interrupt | RuleAction::Block) => Action::Remind,
        }
    }
}
