//! Decides which matches of stream rules are printed, and with which words.

use std::collections::BTreeSet;

use tidegate::rule::{Action, RuleMatch};

/// The matches of one turn.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Rules of which a match that passed has a line in this turn.
    passed: BTreeSet<String>,
    /// Rules that the model is reminded of in this turn: a further match passes, and nothing is wrong.
    reminded: BTreeSet<String>,
}

impl Matches {
    pub(crate) fn begin_turn(&mut self) {
        self.passed.clear();
        self.reminded.clear();
    }

    /// Whether a match has a line. What stops or blocks has one each time. Matches that the model is only reminded of, and those that a rule
    /// lets through, have one for each rule in a turn, since a word can occur often.
    pub(crate) fn should_report(&mut self, found: &RuleMatch, action: Action, first: bool, again: bool) -> bool {
        match action {
            Action::Interrupt | Action::Stop | Action::Block => true,
            Action::Pass => self.is_let_through(found, action) && self.passed.insert(found.rule.clone()),
            Action::Remind => {
                self.reminded.insert(found.rule.clone());
                first || again
            }
        }
    }

    /// Whether a match is a problem of the turn: the rule would have acted, and is used up, or its budget is spent.
    pub(crate) fn is_let_through(&self, found: &RuleMatch, action: Action) -> bool {
        action == Action::Pass && !self.reminded.contains(&found.rule)
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
