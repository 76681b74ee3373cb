//! An attempt that ends before its answer is complete.

use std::sync::Arc;

use flow::{EventKind, Message, Retained};
use rules::RuleSession;

use super::Attempt;

/// What there is of an answer that did not come to its end.
#[derive(Debug)]
pub struct Unfinished {
    /// What is reported of it, in order.
    pub events: Vec<EventKind>,
    /// What stays of it in the conversation, with a note that gives the cause.
    pub message: Option<Arc<Message>>,
}

impl Attempt {
    /// Ends the attempt, for this reason. `None` where nothing of its answer was received and it continues from nothing. `with_reasoning`: its
    /// reasoning stays too.
    pub fn cut(&mut self, rules: &RuleSession, why: &str, with_reasoning: bool) -> Option<Unfinished> {
        self.hide_rest(rules);
        let mut answer = std::mem::take(self).answer;
        if answer.blocks.is_empty() && answer.prefix == 0 {
            return None;
        }
        answer.keep_shown();
        let message = answer.marked(why, with_reasoning);
        let retained = if message.is_some() { Retained::Marked } else { Retained::Nothing };
        let events = answer.cut_events(why, 0, (retained, with_reasoning && message.is_some())).collect();
        Some(Unfinished { events, message })
    }
}
