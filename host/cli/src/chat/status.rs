//! What a session has taken so far, for the status line and `/cost`.

use tidegate::model::Usage;
use tidegate::{Event, EventKind, Session};

use crate::screen::clean::flat;

/// Counted from the events of this process.
#[derive(Debug, Default)]
pub(super) struct Status {
    usage: Usage,
    /// Tokens that the last request and its answer have filled of the context.
    context: Option<u64>,
    is_thinking: bool,
}

impl Status {
    pub(super) fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::StepFinish { usage, context_tokens, .. } => {
                self.usage.add(*usage);
                self.context = context_tokens.or(self.context);
            }
            EventKind::CognitionReasoningDelta { .. } => self.is_thinking = true,
            EventKind::CognitionOutDelta { .. } | EventKind::StepStart { .. } | EventKind::TurnFinish { .. } => {
                self.is_thinking = false;
            }
            _ => {}
        }
    }

    pub(super) fn is_thinking(&self) -> bool {
        self.is_thinking
    }

    /// Model, tokens, cost and share of the context, as far as they are known.
    pub(super) fn line(&self, session: &Session) -> String {
        let mut parts = vec![flat(&session.model().1)];
        if self.usage != Usage::default() {
            parts.push(format!("{} in, {} out", tokens(self.usage.input), tokens(self.usage.output)));
        }
        parts.extend(cost(session));
        parts.extend(self.share(session).map(|share| format!("context {share} %")));
        parts.join(" · ")
    }

    fn share(&self, session: &Session) -> Option<u64> {
        let all = session.context_tokens().filter(|all| *all > 0)?;
        Some(self.context?.saturating_mul(100) / all)
    }

    /// What `/cost` prints.
    pub(super) fn lines(&self, session: &Session) -> Vec<String> {
        let spent = session.budget().spent();
        let known = |count: Option<u64>| count.map_or_else(|| "not counted".to_owned(), |count| tokens(Some(count)));
        let tokens = match (self.usage.input, self.usage.output) {
            (None, None) => "none were counted in this process".to_owned(),
            (input, output) => format!("in this process: {} in, {} out", known(input), known(output)),
        };
        let mut lines = vec![
            format!("tokens   {tokens}"),
            format!(
                "in all   {} tokens with those of child agents, {} turns, {} steps",
                spent.tokens, spent.turns, spent.steps
            ),
            format!("cost     {}", cost(session).unwrap_or_else(|| "not known: the model has no price".to_owned())),
        ];
        if let (Some(filled), Some(all)) = (self.context, session.context_tokens()) {
            let share = self.share(session).unwrap_or_default();
            lines.push(format!("context  {filled} of {all} tokens, {share} %"));
        }
        lines
    }
}

/// What the session has cost, where it is known.
fn cost(session: &Session) -> Option<String> {
    let spend = session.budget().spent().spend;
    (spend.dollars() > 0.0).then(|| spend.to_string())
}

fn tokens(count: Option<u64>) -> String {
    match count {
        None => "?".to_owned(),
        Some(count) if count < 10_000 => count.to_string(),
        Some(count) => format!("{:.1}k", count as f64 / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [None, Some(0), Some(9_999), Some(12_345)].map(tokens);
        assert_eq!(shown, ["?", "0", "9999", "12.3k"]);
    }
}
