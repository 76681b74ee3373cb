//! An open session: its handle, its readers, and what repeated writes have the same answer by.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate::Session;

use super::problem::Problem;
use super::sent::SentMessages;

/// How many ids of commands and answers are remembered.
const REMEMBERED: usize = 256;

/// How long a session stays open that nobody reads and that does nothing.
const IDLE: Duration = Duration::from_secs(600);

/// A session that is open in this process.
pub(super) struct Open {
    pub(super) session: Session,
    /// Distinguishes the numbers of its events from those of another time when it was open.
    pub(super) generation: String,
    /// Whether another host can take it over.
    is_shared: bool,
    readers: AtomicUsize,
    state: Mutex<State>,
    sent: Mutex<SentMessages>,
}

struct State {
    used: Instant,
    /// Keys of what was done, with what was given.
    done: VecDeque<(String, String)>,
    /// The turns and steps of questions that were answered, and of limits about which somebody has decided.
    answered: VecDeque<(String, (u32, u32))>,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("session", &self.session).finish_non_exhaustive()
    }
}

/// A reader of the events of a session, which keeps it open.
#[derive(Debug)]
pub(super) struct Reader(Arc<Open>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.touch();
        self.0.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether something was done before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// It was not, and counts as done from now on.
    New,
    /// It was, with the same content.
    Same,
    /// The id was used for something else.
    Other,
}

impl Open {
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(session: Session, is_shared: bool) -> Result<Self, Problem> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(Problem::internal)?;
        let generation = format!("{:016x}", u64::from_be_bytes(bytes));
        let state = State { used: Instant::now(), done: VecDeque::new(), answered: VecDeque::new() };
        let (state, sent) = (Mutex::new(state), Mutex::default());
        Ok(Self { session, generation, is_shared, readers: AtomicUsize::new(0), state, sent })
    }

    /// Whether events that follow can be of no account: another host continues the session, or will, without those that are not recorded.
    pub(super) fn is_lost(&self) -> bool {
        self.is_shared && self.session.is_unrecorded()
    }

    /// Counts a reader of its events until the result is dropped.
    pub(super) fn read(self: &Arc<Self>) -> Reader {
        self.readers.fetch_add(1, Ordering::SeqCst);
        Reader(Arc::clone(self))
    }

    /// Marks it as used now.
    pub(super) fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// Returns whether it can be closed: nobody has used it for a while, and nothing in it goes on.
    pub(super) fn is_idle(&self) -> bool {
        let is_unread = self.readers.load(Ordering::SeqCst) == 0;
        is_unread && self.lock().used.elapsed() > IDLE && !self.session.is_running()
    }

    /// Notes that something with this key is done with this content, and returns whether it was done before.
    pub(super) fn note(&self, key: &str, content: &str) -> Before {
        let mut state = self.lock();
        if let Some((_, known)) = state.done.iter().find(|(known, _)| known == key) {
            return if known == content { Before::Same } else { Before::Other };
        }
        if state.done.len() >= REMEMBERED {
            state.done.pop_front();
        }
        state.done.push_back((key.to_owned(), content.to_owned()));
        Before::New
    }

    /// Returns whether something with this key was done with this content.
    pub(super) fn is_done(&self, key: &str, content: &str) -> bool {
        self.lock().done.iter().any(|(known, of)| known == key && of == content)
    }

    /// Notes the turn and the step of a question or a limit about which somebody has decided.
    pub(super) fn note_place(&self, question: &str, place: (u32, u32)) {
        let mut state = self.lock();
        if state.answered.len() >= REMEMBERED {
            state.answered.pop_front();
        }
        state.answered.push_back((question.to_owned(), place));
    }

    /// Returns the turn and the step of a question or a limit about which somebody has decided.
    pub(super) fn place_of(&self, question: &str) -> Option<(u32, u32)> {
        self.lock().answered.iter().find(|(known, _)| known == question).map(|(_, place)| *place)
    }

    /// The messages that were handed over. Who hands some over has the lock until the session has them.
    pub(super) fn sent(&self) -> MutexGuard<'_, SentMessages> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it, because the server ends: what a person is asked stays open, and is asked again when the session is opened. Everything else
    /// that runs is cancelled.
    pub(super) async fn leave(&self) {
        if self.session.pending_questions().is_empty() && self.session.pending_limit().is_none() {
            self.session.cancel_because("the server", "the server ends");
        }
        self.session.close();
        self.session.closed().await;
    }

    /// The data are valid after every statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
