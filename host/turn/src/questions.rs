//! The questions about tool calls that are open in a session, and where they are answered.
//!
//! A question is answered once: by the session's handler, by any front end, by the clock, or by the end of its turn. Whoever is first
//! decides, under one lock with the events about it, so every front end sees one decision.

mod ask;
mod edit;
mod schema;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flow::{Answer, Confirmation, EventKind, QuestionId};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::ask::{Asked, Asking};
pub use self::edit::EditError;
pub(crate) use self::edit::{Checks, Edit};
use crate::events::Hub;
use flow::ports::{EventSink, Question};
use guard::found;

/// Answered questions of which it is known who has answered them.
const REMEMBERED: usize = 256;

/// How long questions wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionSettings {
    /// How long a question waits for an answer; `None`: without a limit.
    pub timeout: Option<Duration>,
    /// Whether a call runs when its question has timed out. One that offers no [`Question::always`] does not.
    pub approve_on_timeout: bool,
}

/// The questions of a session. A clone is the same one.
#[derive(Clone)]
pub struct Questions(Arc<Shared>);

struct Shared {
    hub: Arc<Hub>,
    state: Mutex<State>,
    /// More questions are about to be asked.
    expects_more: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// Questions that were asked in the thread.
    asked: u64,
    /// The questions that wait for an answer, oldest first.
    open: Vec<Open>,
    /// The last that were answered, each with who has answered it.
    answered: VecDeque<(QuestionId, String)>,
    /// What a person has allowed for the rest of the session.
    always: BTreeSet<String>,
    /// The session is closed: what is open then stays open in the records.
    keeps_open: bool,
    /// Questions that the end of a turn has left open.
    kept: usize,
}

struct Open {
    question: Question,
    checks: Arc<Checks>,
    since: Instant,
    decided: oneshot::Sender<Decided>,
    /// Stops the handler and the clock.
    closed: CancellationToken,
}

/// What was decided about a question.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) confirmation: Confirmation,
    /// The edited call, where it was edited.
    pub(crate) edit: Option<Edit>,
    pub(crate) waited: Duration,
}

/// An answer to a question was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no such question, it is answered, or its turn has ended.
    #[error("the question `{id}` is not open{}", by.as_ref().map_or_else(String::new, |by| format!(": it was answered by {by}")))]
    NotOpen {
        /// The id that was given.
        id: QuestionId,
        /// Who has answered it, where somebody has; of old questions that is not known.
        by: Option<String>,
    },
    /// The edited arguments cannot be used. The question stays open.
    #[error("{error}; the question `{id}` is still open")]
    Edit {
        /// The question's id.
        id: QuestionId,
        /// What is wrong with the arguments.
        error: EditError,
    },
    /// Calls like this one are asked about each time. The question stays open.
    #[error("the question `{id}` cannot be answered for the rest of the session: approve or deny this call alone")]
    NoAlways {
        /// The question's id.
        id: QuestionId,
    },
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").field("open", &self.lock().open.len()).finish_non_exhaustive()
    }
}

impl Questions {
    /// Those of a session whose events `hub` takes.
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self(Arc::new(Shared { hub, state: Mutex::default(), expects_more: watch::Sender::new(false) }))
    }

    /// Announces further questions, or a request for a higher limit, such as those that another process has left open: [`Questions::settled`]
    /// waits for them.
    pub fn expect_more(&self) {
        self.0.expects_more.send_replace(true);
    }

    /// Announces that none of these follows.
    pub fn expect_no_more(&self) {
        self.0.expects_more.send_replace(false);
    }

    /// Waits until all that was announced is asked: the questions of one batch of calls are then open together, or answered.
    pub async fn settled(&self) {
        let mut expects_more = self.0.expects_more.subscribe();
        // The sender is there as long as this is.
        drop(expects_more.wait_for(|expects_more| !expects_more).await);
    }

    /// The questions that wait for an answer, oldest first.
    pub fn pending(&self) -> Vec<Question> {
        self.lock().open.iter().map(|open| open.question.clone()).collect()
    }

    /// What a person has allowed for the rest of the session, in the order of the strings.
    pub fn always(&self) -> Vec<String> {
        self.lock().always.iter().cloned().collect()
    }

    /// Answers a question. The first answer counts. `by`: who answers, for the record.
    ///
    /// # Errors
    /// The question is not open, or the answer cannot be taken: it stays open then.
    pub fn answer(&self, id: &QuestionId, answer: Answer, by: &str) -> Result<(), AnswerError> {
        let (confirmation, edit) = match answer {
            Answer::Approve => (Confirmation::Approved, None),
            Answer::Always => {
                let pattern = self.find(id, |open| open.question.always.clone())?;
                (
                    Confirmation::Always { pattern: pattern.ok_or_else(|| AnswerError::NoAlways { id: id.clone() })? },
                    None,
                )
            }
            Answer::Edit { arguments } => {
                // Without the lock: tools look at the disk.
                let (checks, call) = self.find(id, |open| (Arc::clone(&open.checks), open.question.call.clone()))?;
                let mut found = Vec::new();
                let edit = checks.edit(&call, arguments, &mut found).map_err(|error| {
                    found::emit(&*self.0.hub, &found);
                    AnswerError::Edit { id: id.clone(), error }
                })?;
                (Confirmation::Edited { arguments: edit.call.arguments.clone() }, Some(edit))
            }
            Answer::Deny { reason } => (Confirmation::Denied { reason: bounded(reason) }, None),
            Answer::Unavailable { reason } => (Confirmation::Unavailable { reason: bounded(reason) }, None),
        };
        if self.decide(id, confirmation, edit, by) { Ok(()) } else { Err(self.not_open(id)) }
    }

    fn find<T>(&self, id: &QuestionId, take: impl FnOnce(&Open) -> T) -> Result<T, AnswerError> {
        let found = self.lock().open.iter().find(|open| open.question.id == *id).map(take);
        found.ok_or_else(|| self.not_open(id))
    }

    fn not_open(&self, id: &QuestionId) -> AnswerError {
        let by = self.lock().answered.iter().rev().find(|(known, _)| known == id).map(|(_, by)| by.clone());
        AnswerError::NotOpen { id: id.clone(), by: by.filter(|by| !by.is_empty()) }
    }

    /// Decides about a question that is open. Returns whether it was.
    fn decide(&self, id: &QuestionId, confirmation: Confirmation, edit: Option<Edit>, by: &str) -> bool {
        let mut state = self.lock();
        let Some(index) = state.open.iter().position(|open| open.question.id == *id) else { return false };
        let open = state.open.remove(index);
        let covered = if let Confirmation::Always { pattern } = &confirmation { Some(pattern.clone()) } else { None };
        self.close(&mut state, open, confirmation, edit, by);
        let Some(pattern) = covered else { return true };
        let is_covered = |open: &mut Open| open.question.always.as_ref() == Some(&pattern);
        for open in state.open.extract_if(.., is_covered).collect::<Vec<_>>() {
            self.close(&mut state, open, Confirmation::Always { pattern: pattern.clone() }, None, by);
        }
        state.always.insert(pattern);
        true
    }

    /// The end of a question: everybody learns of it in the same order.
    fn close(&self, state: &mut State, open: Open, confirmation: Confirmation, edit: Option<Edit>, by: &str) {
        let Open { question, since, decided, closed, .. } = open;
        if state.answered.len() == REMEMBERED {
            state.answered.pop_front();
        }
        state.answered.push_back((question.id.clone(), by.to_owned()));
        self.0.hub.emit(EventKind::ToolConfirmationResolved {
            question: question.id,
            call: question.call.id,
            decision: confirmation.clone(),
            by: by.to_owned(),
        });
        closed.cancel();
        // The turn that waited for it can be gone.
        let _ = decided.send(Decided { confirmation, edit, waited: since.elapsed() });
    }

    /// Opens a question. `id`: that of a question of an earlier process, which is asked again.
    fn open(
        &self,
        id: Option<QuestionId>,
        mut question: Question,
        checks: Arc<Checks>,
    ) -> (Question, Asked, CancellationToken) {
        let mut state = self.lock();
        question.id = id.unwrap_or_else(|| {
            state.asked += 1;
            QuestionId::new(format!("question-{}", state.asked))
        });
        self.0.hub.emit(EventKind::ToolConfirmationRequested {
            question: question.id.clone(),
            call: question.call.id.clone(),
            tool: question.call.name.clone(),
            arguments: question.call.arguments.clone(),
            reason: question.reason.clone(),
            preview: question.preview.clone(),
            always: question.always.clone(),
            timeout_ms: question.timeout_ms,
        });
        let (decided, asked) = oneshot::channel();
        let closed = CancellationToken::new();
        let open = Open { question: question.clone(), checks, since: Instant::now(), decided, closed: closed.clone() };
        state.open.push(open);
        (question, Asked(asked), closed)
    }

    /// The session is going to be closed, and another process can continue it: what is open when its turn is cancelled, a request for a higher
    /// limit included, stays open in the records, and is asked again there. The turn ends as suspended then.
    pub fn keep_open(&self) {
        self.lock().keeps_open = true;
    }

    /// Whether what is open stays open, because the session is closed.
    pub(crate) fn keeps_open(&self) -> bool {
        self.lock().keeps_open
    }

    /// How many questions the end of the turn has left open.
    pub(crate) fn kept(&self) -> usize {
        self.lock().kept
    }

    /// The turn does not wait for answers any more.
    pub(crate) fn cancel_all(&self) {
        let mut state = self.lock();
        let open = std::mem::take(&mut state.open);
        if state.keeps_open {
            state.kept += open.len();
            open.iter().for_each(|open| open.closed.cancel());
            return;
        }
        for open in open {
            self.close(&mut state, open, Confirmation::Cancelled, None, "");
        }
    }

    /// Whether a person has allowed such calls for the rest of the session.
    pub(crate) fn covers(&self, always: Option<&String>) -> bool {
        always.is_some_and(|pattern| self.lock().always.contains(pattern))
    }

    /// Continues from what an earlier process has recorded.
    pub(crate) fn restore(&self, asked: u64, always: impl IntoIterator<Item = String>) {
        let mut state = self.lock();
        state.asked = asked;
        state.always.extend(always);
    }

    /// The data are valid after every statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason that the model reads: at most [`Confirmation::MAX_REASON`] characters of it.
fn bounded(mut reason: String) -> String {
    if let Some((end, _)) = reason.char_indices().nth(Confirmation::MAX_REASON) {
        reason.truncate(end);
        reason.push('…');
    }
    reason
}
