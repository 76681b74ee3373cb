//! The sessions of a workspace, to choose one from.

use std::path::Path;

use tidegate::SessionId;
use tidegate::transcript::{TranscriptStore, TranscriptSummary};

use super::notes;
use crate::exit::Failure;
use crate::say::count;
use crate::state::{now_ms, span};

/// A session that can be continued.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) id: String,
    /// The start of its first input.
    pub(crate) title: String,
    /// When it was used last, and what is special about it.
    pub(crate) about: String,
}

/// The sessions of a workspace, the one that was used last first. `but`: one that is left out.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn of(store: &TranscriptStore, workspace: &Path, but: Option<&SessionId>) -> Result<Vec<Choice>, Failure> {
    let list = store.list()?;
    let mut sessions: Vec<&TranscriptSummary> =
        list.sessions.iter().filter(|one| one.is_of(workspace) && Some(&one.id) != but).collect();
    sessions.sort_by_key(|one| std::cmp::Reverse(last_ms(one)));
    let now = now_ms();
    Ok(sessions.into_iter().map(|one| choice(one, now)).collect())
}

fn last_ms(one: &TranscriptSummary) -> u64 {
    one.last.as_ref().map_or(one.header.created_ms, |last| last.at_ms)
}

fn choice(one: &TranscriptSummary, now: u64) -> Choice {
    let mut about =
        vec![format!("{} ago", span(now.saturating_sub(last_ms(one)))), count(one.records, "record", "records")];
    about.extend(notes(one));
    Choice {
        id: one.id.as_str().to_owned(),
        title: one.title.clone().unwrap_or_else(|| "-".to_owned()),
        about: about.join(", "),
    }
}
