//! A child agent at work: one turn in a session that is closed afterwards, and cancelled with the call that has started it.

use std::sync::Arc;

use config::agents::Agent;
use flow::ports::Progress;
use flow::{CallId, EventKind, Limit, Message, Origin, Role, SessionId, ThreadMode};
use serde_json::Value;

use super::answer::Answer;
use super::{CLOSING, Children};
use crate::{Session, Turn, new_session_id};

/// Who cancels a child whose call is dropped.
const PARENT: &str = "the session that started it";

impl Children {
    /// Why no agent can be started now; the sentence is for the model.
    pub(super) fn refusal(&self) -> Option<String> {
        self.is_too_deep().then(|| refused(Limit::Depth, 0))
    }

    /// Starts an agent, and waits until it has done its task.
    ///
    /// # Errors
    /// Why it has not, for the model.
    pub(super) async fn run(
        &self,
        agent: &Arc<Agent>,
        task: &str,
        call: &CallId,
        progress: Progress<'_>,
    ) -> Result<String, String> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        self.count().await?;
        let child = new_session_id();
        let spawned_by = self.started(&child, &agent.name, call).await;
        let mut running = Running { children: self, child: child.clone(), at_work: None, has_ended: false };
        let opened = match spawned_by.and_then(|spawned_by| self.options(agent, &child, spawned_by)) {
            Ok(options) => {
                let options = options.thread_mode(ThreadMode::Single).inputs([("task".to_owned(), Value::from(task))]);
                self.host.session(options).await.map_err(|error| error.in_one_line())
            }
            Err(error) => Err(error),
        };
        let session = opened.map_err(|error| {
            running.fail(&error);
            format!("The agent `{}` could not start: {error}", agent.name)
        })?;
        self.opened(&session);
        // The task is the text of a model: a reader of the transcript must not take it for the user's.
        let task = Message::text(Role::User, Origin::Model, task);
        let turn = session.prompt(task);
        let ended = running.work(session, turn, &agent.name, progress).await;
        ended.map_err(|(error, text)| {
            running.fail(&error);
            text
        })
    }
}

/// What the model reads where a limit forbids another agent.
pub(super) fn refused(limit: Limit, most: u64) -> String {
    let reached = match limit {
        Limit::Spawns => format!("the limit of {most} agents in a session is reached"),
        _ => "agents are not allowed to start agents at this depth".to_owned(),
    };
    format!("no agent was started: {reached}. Do the task yourself.")
}

/// A child that was started. Dropping it before its end cancels the child.
struct Running<'c> {
    children: &'c Children,
    child: SessionId,
    at_work: Option<(Session, Turn)>,
    has_ended: bool,
}

impl Running<'_> {
    /// Waits for the end of the turn, and for that of the session: its transcript is complete when its parent has the result.
    async fn work(
        &mut self,
        session: Session,
        turn: Turn,
        agent: &str,
        progress: Progress<'_>,
    ) -> Result<String, (String, String)> {
        let (session, turn) = self.at_work.insert((session, turn));
        let mut answer = Answer::default();
        while let Some(event) = turn.next().await {
            if let Some(doing) = answer.take(&event.kind) {
                progress(format!("{agent}: {doing}").as_str().into());
            }
        }
        let report = turn.ended().await;
        session.close();
        let closed = tokio::time::timeout(CLOSING, session.closed()).await;
        if closed.is_err() {
            tracing::warn!(session = session.id().as_str(), "the session of a child agent does not close");
        }
        self.has_ended = true;
        answer.end(agent, report.status)
    }

    /// Reports that the child did not complete its task.
    fn fail(&mut self, error: &str) {
        self.has_ended = true;
        self.children.emit(EventKind::ChildThreadFailed { child: self.child.clone(), error: error.to_owned() });
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.fail("it was cancelled with the session that started it");
        if let Some((session, _)) = &self.at_work {
            // Before its turn is dropped, which cancels it as well and says nothing of by whom.
            session.cancel_because(PARENT, "the call that started it was stopped");
            session.close();
        }
    }
}
