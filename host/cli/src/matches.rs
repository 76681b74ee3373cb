//! Which matches of stream rules a person is told of, and in which words.

use std::collections::BTreeSet;

use tidegate::{Action, RuleMatch};

/// The matches of one turn.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Rules that stopped the model in this turn, until one of their matches is let through.
    stopped: BTreeSet<String>,
}

impl Matches {
    pub(crate) fn begin_turn(&mut self) {
        self.stopped.clear();
    }

    /// Whether a match has a line. Matches that the model is only reminded of have one in each turn, since a word can occur often. What stops,
    /// blocks or is let through by a rule that has stopped the model before is never silent.
    pub(crate) fn tells(&mut self, found: &RuleMatch, action: Action, first: bool, again: bool) -> bool {
        match action {
            Action::Interrupt | Action::Stop => {
                self.stopped.insert(found.rule.clone());
                true
            }
            Action::Block => true,
            Action::Pass => self.stopped.remove(&found.rule) || first || again,
            Action::Remind => first || again,
        }
    }
}

/// What is done about a match. `again`: the rule's repeat mode does not let it act now.
pub(crate) fn done(action: Action, again: bool) -> &'static str {
    match action {
        _ if again => "matched again and is only reported: its repeat mode does not let it act now",
        Action::Interrupt => "stopped the model, which tries again",
        Action::Stop => "ended the turn",
        Action::Block => "blocks the tool call",
        Action::Remind => "reminds the model",
        Action::Pass => "matched without an action: its budget is spent, or its reminder is already pending",
    }
}
