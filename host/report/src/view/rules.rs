//! What a report says about the matches of rules.

use record::RuleFired;

use super::{Block, Kind, View};

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
