//! What a report says about rules: matches, held output, reminders.

use record::{RuleFired, RuleHeld, RuleHoldReleased, TtsrInjection};

use super::{Block, Kind, View};
use crate::figures::{of, took_ms};

pub(super) fn fired(fired: &RuleFired) -> View<'_> {
    let evidence = &fired.evidence;
    let place = match (fired.stream.as_str(), &fired.tool) {
        ("text", _) => "the answer".to_owned(),
        ("thinking", _) => "the reasoning".to_owned(),
        (_, Some(tool)) => format!("a call of {tool}"),
        (other, None) => other.to_owned(),
    };
    let field = evidence.field.as_ref().map(|field| format!(", argument {field}")).unwrap_or_default();
    let path = evidence.path.as_ref().map(|path| format!(", file {path}")).unwrap_or_default();
    let again = if fired.again { ", only reported" } else { "" };
    let at = format!("line {}, bytes {} to {}", evidence.line, evidence.start, evidence.end);
    let label = format!("Rule {} matched in {place}{field}{path}, {at}: {}{again}", fired.rule, fired.action);
    View::new(Kind::Rule, label)
        .text("matched", &evidence.text)
        .with(Block::new("condition", evidence.pattern.as_str()).folded())
}

pub(super) fn held(held: &RuleHeld) -> View<'_> {
    let (rules, stream) = (held.rules.join(", "), &held.stream);
    let (bytes, took) = (of(held.bytes_max, "byte", "bytes"), took_ms(held.ms_max));
    let times = of(u64::from(held.holds), "time", "times");
    let label =
        format!("Output held back: {stream}, for {rules}, {times}, at most {bytes} and {took}; {}", held.outcome);
    View::new(Kind::Rule, label)
}

pub(super) fn released(released: &RuleHoldReleased) -> View<'_> {
    let (bytes, stream) = (of(released.bytes, "byte", "bytes"), &released.stream);
    View::new(Kind::Rule, format!("Held output released: {bytes} of {stream}, limit {}", released.bound))
}

pub(super) fn injection(injection: &TtsrInjection) -> View<'_> {
    let (rules, bytes) = (injection.rules.join(", "), of(injection.discarded_bytes, "byte", "bytes"));
    View::new(Kind::Rule, format!("Reminders of {rules} were sent; {bytes} of the answer were discarded"))
}
