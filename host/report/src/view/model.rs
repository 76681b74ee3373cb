//! What a report says about requests to the model that failed, and about what the model reads.

use record::{Author, ContextCompactionEnd, MessagePayload, RetrySucceeded};

use super::{Block, Kind, View};
use crate::report::Sent;

pub(super) fn retried(retried: &RetrySucceeded) -> View<'_> {
    View::new(Kind::Note, retried.sentence().text).text("first error", &retried.original_error)
}

pub(super) fn compaction_end(end: &ContextCompactionEnd) -> View<'_> {
    let has_failed = end.summary.is_none() && end.left_out_in_words().is_none();
    let view = View::said(if has_failed { Kind::Failed } else { Kind::Host }, end.sentence());
    match &end.summary {
        Some(summary) => view.with(Block::new("summary", summary.as_str()).folded()),
        None => view,
    }
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
