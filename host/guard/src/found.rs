//! Matches of stream rules, reported as events.

use flow::{Action, EventKind, RuleMatch};
use rules::Judgement;

use crate::attempt::Effect;
use flow::ports::EventSink;

/// Emits the events about matches of one byte.
pub(crate) fn emit_matches(events: &dyn EventSink, matches: &[RuleMatch], judgement: &Judgement) {
    let decisions = judgement.actions.iter().zip(&judgement.first).zip(&judgement.again);
    for (found, ((action, first), again)) in matches.iter().zip(decisions) {
        events.emit(EventKind::RuleFired { found: found.clone(), action: *action, first: *first, again: *again });
    }
    for rule in &judgement.over_budget {
        let what =
            if judgement.action == Action::Stop { "ends it" } else { "is only reported, as are those that follow" };
        let message = format!(
            "the rule `{rule}` has used up its budget of this turn (`max_interrupts_per_turn`, or its own `max_interrupts`): this match {what}"
        );
        events.emit(EventKind::Notice { message });
    }
}

/// Emits the events about what rules have found in a whole call, of which nothing is shown and nothing is held back.
pub fn emit(events: &dyn EventSink, effects: &[Effect]) {
    for effect in effects {
        match effect {
            Effect::Fired { matches, judgement } => emit_matches(events, matches, judgement),
            Effect::Report(event) => events.emit(EventKind::clone(event)),
            Effect::ShowText(_) | Effect::ShowThinking(_) | Effect::Held { .. } | Effect::Restarted(_) => {}
        }
    }
}
