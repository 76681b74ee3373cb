//! What lists show of sessions.

use tidegate::SessionId;
use tidegate::gateway::is_conversation;
use tidegate::transcript::{LastRecord, SessionAccess, TranscriptSummary};

use super::bodies::{SessionState, Summary};
use super::open::Open;

/// Makes the summary of a session: of what is allowed, of its transcript, and of its handle if it is open.
pub(super) fn of(access: SessionAccess, recorded: Option<&TranscriptSummary>, open: Option<&Open>) -> Summary {
    let SessionAccess { thread_id, owner, users, agent, model, created_ms } = access;
    let gateway = is_conversation(&SessionId::new(&*thread_id));
    let state = match state(recorded, open) {
        // Nobody continues it here.
        SessionState::Interrupted if gateway => SessionState::Idle,
        state => state,
    };
    Summary {
        gateway,
        id: thread_id,
        title: recorded.and_then(|recorded| recorded.title.clone()),
        agent: open.map_or(agent, |open| open.session.agent().to_owned()),
        model: open.map(|open| open.session.model().1).or(model),
        owner,
        users,
        state,
        created_ms,
        updated_ms: recorded.and_then(|recorded| recorded.last.as_ref()).map_or(created_ms, |last| last.at_ms),
        turns: None,
    }
}

fn state(recorded: Option<&TranscriptSummary>, open: Option<&Open>) -> SessionState {
    let Some(open) = open else {
        let last = recorded.and_then(|recorded| recorded.last.as_ref());
        let after = last.map_or(SessionState::Idle, after);
        let is_elsewhere = recorded.is_some_and(|recorded| recorded.owner.is_some());
        return if is_elsewhere && after == SessionState::Interrupted { SessionState::Running } else { after };
    };
    let session = &open.session;
    if session.is_running() {
        let waits = !session.pending_questions().is_empty() || session.pending_limit().is_some();
        return if waits { SessionState::Waiting } else { SessionState::Running };
    }
    if session.interrupted().is_some() { SessionState::Interrupted } else { SessionState::Idle }
}

/// The state of a session that is not open, by its last record.
fn after(last: &LastRecord) -> SessionState {
    match &*last.kind {
        // It was closed while a person was asked, who is asked again.
        "thread_suspended" if last.suspended.as_deref() == Some("approval") => SessionState::Interrupted,
        "thread_suspended" => SessionState::Idle,
        "turn_finish" | "thread_completed" | "thread_cancelled" | "thread_error" => SessionState::Idle,
        // They come between turns, too.
        "input_queued" | "input_edited" | "input_withdrawn" | "history_replaced" | "notice" => SessionState::Idle,
        _ => SessionState::Interrupted,
    }
}
