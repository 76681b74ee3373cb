//! What a report says about extensions: their texts, and what they did not do.

use record::{ExtensionBreaker, ExtensionCallback, ExtensionPrompt, ExtensionTool, ExtensionWithheld};

use super::{Block, Kind, View};
use crate::figures::of;

pub(super) fn callback(report: &ExtensionCallback) -> View<'_> {
    let (id, callback, outcome) = (&report.extension_id, &report.callback, &report.outcome);
    let cause = report.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let view = View::new(Kind::Failed, format!("Extension {id}: {outcome} in {callback}{cause}"));
    view.text("", report.reason.as_deref().unwrap_or_default())
}

pub(super) fn tool(report: &ExtensionTool) -> View<'_> {
    let (id, outcome) = (&report.extension_id, &report.outcome);
    View::new(Kind::Failed, format!("Extension {id}: {outcome} in {}", report.tool))
        .text("", report.reason.as_deref().unwrap_or_default())
}

pub(super) fn withheld(withheld: &ExtensionWithheld) -> View<'_> {
    let (id, bytes) = (&withheld.extension_id, of(withheld.bytes, "byte", "bytes"));
    View::new(Kind::Failed, format!("Extension {id} did not check {bytes} in {}: withheld", withheld.callback))
        .text("", &withheld.reason)
}

pub(super) fn breaker(breaker: &ExtensionBreaker) -> View<'_> {
    let (id, state, scope) = (&breaker.extension_id, &breaker.state, &breaker.scope);
    View::new(Kind::Note, format!("Circuit breaker of {id} ({scope}): {state}")).text("", &breaker.reason)
}

pub(super) fn prompt(prompt: &ExtensionPrompt) -> View<'_> {
    let changed = if prompt.changed { ", changed" } else { "" };
    let view = View::new(Kind::Host, format!("Text of {} that the model reads{changed}", prompt.extension_id));
    prompt.texts.iter().fold(view, |view, one| view.with(Block::new("text", one.text.as_str()).folded()))
}
