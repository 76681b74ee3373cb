//! Whether a turn waits for a person: what its lines ask is what its session waits for.

use std::time::{Duration, Instant};

use tidegate::Session;

use crate::conventions::Open;

/// The polling interval: for a moment, an answer and its line differ.
const AGAIN: Duration = Duration::from_millis(10);

/// How long they can differ. After it, the stream ends at what its lines ask, which a client can answer or ask for again.
const LONGEST: Duration = Duration::from_secs(10);

/// Waits until the session waits for what was asked, and for nothing else: no further question is about to be asked, and none of these was
/// answered. `since`: when the lines have asked.
pub(super) async fn until_waiting(session: &Session, asked: &[Open], since: Instant) {
    loop {
        session.questions_settled().await;
        if waits_for(session, asked) {
            return;
        }
        if since.elapsed() > LONGEST {
            let ids: Vec<&str> = asked.iter().map(Open::id).collect();
            let (id, ids) = (session.id().as_str(), ids.join(", "));
            tracing::warn!("the lines of session {id} ask {ids}, and it does not wait for that: the stream ends there");
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn waits_for(session: &Session, asked: &[Open]) -> bool {
    let limit = session.pending_limit();
    let is_open = |open: &Open| match open {
        Open::Question(_) => true,
        Open::Limit(asked) => limit.as_ref().is_some_and(|limit| limit.id == asked.approval_request_id),
    };
    let known = |id: &str| asked.iter().any(|open| matches!(open, Open::Question(_)) && open.id() == id);
    let open = questions(session);
    let count = asked.iter().filter(|open| matches!(open, Open::Question(_))).count();
    asked.iter().all(is_open) && open.len() == count && open.iter().all(|id| known(id))
}

/// Returns the ids of the questions of a session, without those of its child agents.
pub(super) fn questions(session: &Session) -> Vec<String> {
    let own = session.pending_questions().into_iter().filter(|question| question.session == *session.id());
    own.map(|question| question.id.as_str().to_owned()).collect()
}
