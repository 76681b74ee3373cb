//! What rules about secrets matched is left out of what is kept of an answer: of its text, its reasoning and its calls.
//!
//! Text and reasoning keep their length, so that all places in them remain right: their bytes become asterisks. Arguments remain
//! JSON: the values in which a rule matches are replaced.

use flow::{BlockId, CallId, Evidence, RuleMatch, StreamKind};
use rules::{Rule, RuleSession, RuleSet};
use serde_json::Value;

use super::{Attempt, Surface, prose_of};

/// The rules about secrets that matched in calls, until the calls are complete and their arguments are replaced.
#[derive(Debug, Default)]
pub(super) struct SecretCalls {
    found: Vec<(CallId, String)>,
    /// Calls that such a rule could not read.
    unread: Vec<CallId>,
}

impl SecretCalls {
    /// Notes matches of rules about secrets, and removes what the evidence of others could contain of them. Returns whether there is one
    /// among the matches.
    pub(super) fn note(&mut self, matches: &mut [RuleMatch], rules: &RuleSet) -> bool {
        let secret = |found: &RuleMatch| !found.evidence.unread && is_secret(rules, &found.rule);
        let any = matches.iter().any(secret);
        for found in matches.iter_mut() {
            if let StreamKind::Tool { call, .. } = &found.stream {
                if secret(found) {
                    self.found.push((call.clone(), found.rule.clone()));
                } else if is_secret(rules, &found.rule) {
                    self.unread.push(call.clone());
                }
            }
            let in_call =
                matches!(&found.stream, StreamKind::Tool { call, .. } if self.found.iter().any(|(id, _)| id == call));
            if (any || in_call) && !found.evidence.unread {
                Evidence::HIDDEN.clone_into(&mut found.evidence.text);
            }
        }
        any
    }

    fn of<'s>(&'s self, call: &'s CallId) -> impl Iterator<Item = &'s str> {
        self.found.iter().filter(move |(id, _)| id == call).map(|(_, rule)| rule.as_str())
    }
}

impl Attempt {
    /// A call is complete: replaces what rules about secrets found in its arguments. Nothing is kept of arguments that such a rule cannot read;
    /// the call is blocked for that.
    pub(super) fn hide_call(&mut self, id: BlockId, rules: &RuleSession) {
        let Some(block) = self.answer.block(id) else { return };
        let StreamKind::Tool { call, name } = block.kind().clone() else { return };
        let found: Vec<&Rule> = self.secret_calls.of(&call).filter_map(|rule| rules.rules().rule(rule)).collect();
        if self.secret_calls.unread.contains(&call) {
            block.hide_arguments(|_| unreadable());
        } else if !found.is_empty() {
            block.hide_arguments(|arguments| hidden_arguments(&name, arguments, &found));
        }
    }

    /// Makes asterisks of the bytes of a stream from this one on, but for those that were shown.
    pub(super) fn hide_from(&mut self, surface: Surface, from: u64) {
        let Some(prose) = prose_of(surface, &mut self.text, &mut self.thinking) else { return };
        let mut from = usize::try_from(from).unwrap_or(usize::MAX).max(prose.released());
        prose.hide_from(from);
        if surface == Surface::Text {
            return star(&mut self.answer.text, from);
        }
        for block in self.answer.blocks.iter_mut().filter(|block| *block.kind() == StreamKind::Thinking) {
            let text = block.text_mut();
            star(text, from);
            from = from.saturating_sub(text.len());
        }
    }

    /// Nothing more comes of the answer: hides what may have been the start of a secret in its text and its reasoning.
    pub(super) fn hide_undecided(&mut self, rules: &RuleSession) {
        let Some(gate) = &self.gate else { return };
        let undecided = [Surface::Text, Surface::Thinking].map(|surface| {
            let holding = gate.holding(surface.stream());
            let any = holding.iter().any(|rule| is_secret(rules.rules(), rule));
            any.then(|| (surface, gate.decided(surface.stream())))
        });
        for (surface, from) in undecided.into_iter().flatten() {
            self.hide_from(surface, from);
        }
    }

    /// The answer is kept as it is, complete or not: hides what may have been the start of a secret, and the arguments of calls that
    /// were cut off behind one.
    pub(super) fn hide_rest(&mut self, rules: &RuleSession) {
        let Some(gate) = &mut self.gate else { return };
        for (call, rule) in gate.cut_off() {
            if is_secret(rules.rules(), &rule) {
                self.secret_calls.found.push((call, rule));
            }
        }
        // At the end of an answer nothing is undecided any more.
        if self.answer.stop.is_none() {
            self.hide_undecided(rules);
        }
        for block in &mut self.answer.blocks {
            let StreamKind::Tool { call, .. } = block.kind() else { continue };
            if !block.has_ended() && self.secret_calls.of(call).next().is_some() {
                block.hide_arguments(|_| unreadable());
            }
        }
    }
}

fn is_secret(rules: &RuleSet, rule: &str) -> bool {
    rules.rule(rule).is_some_and(|rule| rule.secret)
}

pub(super) fn star(text: &mut String, from: usize) {
    let from = text.floor_char_boundary(from.min(text.len()));
    let bytes = text.len() - from;
    text.truncate(from);
    text.extend(std::iter::repeat_n('*', bytes));
}

/// The arguments without the values in which one of the rules matches. Where none can be named, without all that it watches.
fn hidden_arguments(tool: &str, arguments: &str, rules: &[&Rule]) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(arguments) else { return unreadable() };
    for rule in rules {
        let mut hides = |text: &str| rule.conditions.iter().chain(&rule.all).any(|pattern| pattern.is_in(text));
        let watched = |field: &str| rule.reads(tool, field);
        if !replace(&mut value, "", &watched, &mut hides) {
            replace(&mut value, "", &watched, &mut |_| true);
        }
    }
    value.to_string()
}

/// Replaces the values that are `watched` and `hides` names. Returns whether there were any.
fn replace(
    value: &mut Value,
    field: &str,
    watched: &dyn Fn(&str) -> bool,
    hides: &mut dyn FnMut(&str) -> bool,
) -> bool {
    let is_watched = watched(field);
    let mut any = false;
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let field = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                any |= replace(value, &field, watched, hides);
            }
            return any;
        }
        Value::Array(list) => {
            for value in list {
                any |= replace(value, &format!("{field}[]"), watched, hides);
            }
            return any;
        }
        Value::Null => {}
        Value::String(text) => any = is_watched && hides(text),
        Value::Bool(_) | Value::Number(_) => any = is_watched && hides(&value.to_string()),
    }
    if any {
        *value = Evidence::HIDDEN.into();
    }
    any
}

/// In the place of arguments that cannot be read to their end.
fn unreadable() -> String {
    serde_json::json!({ "arguments": Evidence::HIDDEN }).to_string()
}
