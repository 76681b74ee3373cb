//! Asks the questions of one batch of calls: the handler, the clock and other front ends race for each answer.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use flow::{Answer, Confirmation, QuestionId};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::{AnswerError, Checks, Decided, QuestionSettings, Questions};
use flow::ports::{Clock, Confirm, Journal, Question};

/// How many times a handler is asked about one call: it could repeat an answer that is refused for ever.
const ATTEMPTS: u32 = 5;

/// The questions of one batch. Dropping it answers those that are open: their turn waits no more.
pub(crate) struct Asking {
    questions: Questions,
    confirm: Arc<dyn Confirm>,
    clock: Arc<dyn Clock>,
    settings: QuestionSettings,
    checks: Arc<Checks>,
    /// Where questions are recorded; `None`: nowhere.
    journal: Option<Arc<dyn Journal>>,
    tasks: JoinSet<()>,
    /// Ready when the handler was called for the last question, or is not going to be.
    last_called: Option<oneshot::Receiver<()>>,
}

/// The handler is called for one question after the other, in their order, whichever task runs first; their answers come in any order.
struct Order {
    before: Option<oneshot::Receiver<()>>,
    /// Dropped or used when the next question may be put.
    called: Option<oneshot::Sender<()>>,
}

/// A question that was asked.
pub(crate) struct Asked(pub(super) oneshot::Receiver<Decided>);

impl Asked {
    /// Waits for the answer.
    pub(crate) async fn decided(self) -> Decided {
        let cancelled = Decided { confirmation: Confirmation::Cancelled, edit: None, waited: Duration::ZERO };
        self.0.await.unwrap_or(cancelled)
    }
}

impl Asking {
    pub(crate) fn new(
        (questions, settings): (Questions, QuestionSettings),
        confirm: Arc<dyn Confirm>,
        clock: Arc<dyn Clock>,
        checks: Arc<Checks>,
        journal: Option<Arc<dyn Journal>>,
    ) -> Self {
        Self { questions, confirm, clock, settings, checks, journal, tasks: JoinSet::new(), last_called: None }
    }

    /// What a person has allowed already.
    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Asks a question, whose id and time-out are set here. `id`: that of a question of an earlier process.
    pub(crate) fn ask(&mut self, id: Option<QuestionId>, mut question: Question) -> Asked {
        let QuestionSettings { timeout, approve_on_timeout } = self.settings;
        question.timeout_ms = timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        // What is asked about each time is a person's to approve.
        let approved = approve_on_timeout && question.always.is_some();
        let (question, asked, closed) = self.questions.open(id, question, Arc::clone(&self.checks));
        let clock = timeout.map(|time| self.clock.sleep(time));
        let (questions, confirm) = (self.questions.clone(), Arc::clone(&self.confirm));
        let (id, journal) = (question.id.clone(), self.journal.clone());
        let (called, after) = oneshot::channel();
        let order = Order { before: self.last_called.replace(after), called: Some(called) };
        let task = async move {
            let timed_out = async {
                match clock {
                    Some(sleep) => sleep.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = closed.cancelled() => {}
                () = timed_out => {
                    questions.decide(&id, Confirmation::TimedOut { approved }, None, "");
                }
                () = ask_handler(&questions, &*confirm, question, journal.as_deref(), order) => closed.cancelled().await,
            }
        };
        self.tasks.spawn(task.in_current_span());
        // Those that have ended need not be kept.
        while self.tasks.try_join_next().is_some() {}
        asked
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.questions.cancel_all();
    }
}

/// Asks the handler until it has given an answer that is taken. It is asked about what is on the disk: its question survives the process.
async fn ask_handler(
    questions: &Questions,
    confirm: &dyn Confirm,
    mut question: Question,
    journal: Option<&dyn Journal>,
    mut order: Order,
) {
    let id = question.id.clone();
    if let Some(journal) = journal
        && let Err(error) = journal.durable().await
    {
        // The turn ends for the same error when the call has this result.
        let reason = format!("not run: nobody was asked, because the question is not recorded: {error}");
        let _ = questions.answer(&id, Answer::Unavailable { reason }, "");
        return;
    }
    if let Some(before) = order.before.take() {
        let _dropped = before.await.is_err();
    }
    for _ in 0..ATTEMPTS {
        let (answer, by) = match caught(async { confirm.confirm(&question).await }, || order.called = None).await {
            Ok(answer) => (answer, confirm.name()),
            Err(panic) => {
                let reason =
                    format!("not run: nobody could be asked, because the confirmation handler panicked: {panic}");
                tracing::error!("{reason}");
                (Answer::Unavailable { reason }, "")
            }
        };
        match questions.answer(&id, answer, by) {
            Ok(()) | Err(AnswerError::NotOpen { .. }) => return,
            Err(refused) => question.refused = Some(refused.to_string()),
        }
    }
    let reason = question.refused.unwrap_or_default();
    let reason = format!("not run: the answers of the confirmation handler were refused {ATTEMPTS} times: {reason}");
    // It can have been answered meanwhile.
    let _ = questions.answer(&id, Answer::Unavailable { reason }, confirm.name());
}

/// The result of a future, or the message of its panic. `polled` is called after each poll.
async fn caught<T>(future: impl Future<Output = T>, mut polled: impl FnMut()) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        let poll = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        polled();
        match poll {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(message(&*panic))),
        }
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
