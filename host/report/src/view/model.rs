//! What a report says about requests to the model that failed, and about what the model reads.

use record::{
    Author, ContextCompactionEnd, ContextCompactionStart, CustomMessage, ErrorClassified, MessagePayload,
    RetryScheduled, RetrySucceeded,
};

use super::{Block, Kind, View};
use crate::figures::{of, took_ms};
use crate::report::Sent;

pub(super) fn error(error: &ErrorClassified) -> View<'_> {
    View::new(Kind::Failed, format!("The model failed: {} ({})", error.category, error.error_code))
        .text("", error.metadata["message"].as_str().unwrap_or_default())
}

pub(super) fn retry(retry: &RetryScheduled) -> View<'_> {
    let (number, most, delay) = (retry.retry, retry.max_retries, took_ms(retry.delay_ms));
    let asked = if retry.asked_by_provider { ", as the provider asked" } else { "" };
    View::new(Kind::Note, format!("Retry {number} of at most {most} after {delay}{asked}"))
}

pub(super) fn retried(retried: &RetrySucceeded) -> View<'_> {
    let (retries, waited) = (of(u64::from(retried.retry_count), "retry", "retries"), took_ms(retried.total_delay_ms));
    View::new(Kind::Note, format!("Succeeded after {retries} and {waited}"))
        .text("first error", &retried.original_error)
}

pub(super) fn message(message: &CustomMessage) -> View<'_> {
    let hidden = if message.hidden { "Hidden message" } else { "Message" };
    View::new(Kind::Host, format!("{hidden} to the model: {}", message.custom_type)).text("", &message.text)
}

pub(super) fn compaction_start(start: &ContextCompactionStart) -> View<'_> {
    let (percent, tokens) = ((start.pressure_ratio * 100.0).round(), of(start.used_tokens, "token", "tokens"));
    let why = if start.triggered_by == "overflow" {
        "The provider refused the request for its size"
    } else {
        "The context is filled"
    };
    let how = match start.method.as_deref() {
        Some("shorten") => "results and images are shortened",
        Some("drop") => "the oldest messages are left out",
        _ => "the conversation is summarised",
    };
    View::new(Kind::Host, format!("{why}, {how}: {percent} % of the context are used, {tokens}"))
}

pub(super) fn compaction_end(end: &ContextCompactionEnd) -> View<'_> {
    if let Some(left_out) = end.left_out_in_words() {
        return View::new(Kind::Host, format!("Left out for the model, to fit its context: {left_out}"));
    }
    let Some(summary) = &end.summary else {
        return View::new(Kind::Failed, "The conversation was not summarised")
            .text("", end.error.as_deref().unwrap_or_default());
    };
    let kept = of(end.kept_messages, "message", "messages");
    let label = format!("Messages before turn {} were summarised; {kept} remain", end.prune_before_turn);
    View::new(Kind::Host, label).with(Block::new("summary", summary.as_str()).folded())
}

/// A message that joined the conversation; an unchanged input has been shown.
pub(super) fn sent(sent: &Sent) -> Option<View<'_>> {
    let message = &sent.message;
    if sent.unchanged {
        return None;
    }
    let label = if message.role == "system" {
        "System prompt".to_owned()
    } else {
        format!("Sent to the model by {}", author(message))
    };
    let view = View::new(Kind::Host, label);
    let text = message.text.as_str();
    Some(view.with(if message.role == "system" { Block::new("text", text).folded() } else { Block::new("", text) }))
}

fn author(message: &MessagePayload) -> String {
    match &message.author {
        None | Some(Author::User) => "the user".to_owned(),
        Some(Author::Model) => "the model".to_owned(),
        Some(Author::Host) => "the host".to_owned(),
        Some(Author::Extension(id)) => format!("extension {id}"),
        Some(Author::Addition { extension_id, .. }) => format!("the manifest of {extension_id}"),
    }
}
