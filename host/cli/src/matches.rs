//! Decides which matches of stream rules are printed, and with which words.

use std::collections::BTreeSet;

use tidegate::{Action, RuleMatch};

/// The matches of one turn.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Rules that stopped the model in this turn, until one of their matches is let through.
    stopped: BTreeSet<String>,
    /// Rules that the model is reminded of in this turn: a further match passes, and nothing is wrong.
    reminded: BTreeSet<String>,
}

impl Matches {
    pub(crate) fn begin_turn(&mut self) {
        self.stopped.clear();
        self.reminded.clear();
    }

    /// Whether a match has a line. Matches that the model is only reminded of have one in each turn, since a word can occur often. What stops
    /// or blocks has a line each time, and so has the first match that a rule lets through after it has stopped the model.
    pub(crate) fn tells(&mut self, found: &RuleMatch, action: Action, first: bool, again: bool) -> bool {
        match action {
            Action::Interrupt | Action::Stop => {
                self.stopped.insert(found.rule.clone());
                true
            }
            Action::Block => true,
            Action::Pass => self.stopped.remove(&found.rule) || first || again,
            Action::Remind => {
                self.reminded.insert(found.rule.clone());
                first || again
            }
        }
    }

    /// Whether a match that has a line is a problem of the turn: the rule would have acted, and its budget is spent.
    pub(crate) fn is_let_through(&self, found: &RuleMatch, action: Action, again: bool) -> bool {
        action == Action::Pass && !again && !self.reminded.contains(&found.rule)
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
