//! The thread of a session: what its turns amount to, also over several processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::{ErrorClass, EventKind, Limit, Message, Part, Spend, SuspendReason, TurnStatus, Usage};
use serde_json::{Map, Value};

use crate::context::Gauge;
use crate::rebuild::Resumed;
use flow::ports::KeptRules;

/// Bytes of the first input that `thread_started` has; `input_received` has all of it.
const INPUT_BYTES: usize = 4 << 10;

/// What is counted over all turns.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// When its first turn began; `None` before it.
    pub(super) started_ms: Option<u64>,
    /// Turns that have begun.
    pub(super) turns: u32,
    /// Steps of all turns.
    pub(crate) steps: u32,
    /// Tokens of all attempts.
    pub(crate) usage: Usage,
    /// What they cost, as far as it is known.
    spend: Spend,
    /// Of some of them, the cost is not known.
    is_unpriced: bool,
    /// Why it is suspended.
    pub(super) suspended: Option<SuspendReason>,
    /// How many times a higher limit was asked for.
    pub(crate) limit_requests: u64,
    /// The request for a higher limit that nobody has decided about.
    pub(crate) open_request: Option<(String, Limit)>,
    /// How the last turn of this process ended.
    last: Option<TurnStatus>,
    /// Tokens of the context that the last request and its answer have filled; `None` where nobody has counted them.
    pub(crate) context: Option<u64>,
    /// How counts of tokens differ from estimates.
    pub(crate) gauge: Gauge,
    /// Tokens of the last request that was accepted.
    pub(crate) accepted: Option<u64>,
    /// It was reported that the server cuts off what it is sent.
    pub(crate) is_cut_reported: bool,
    /// How much of the context was filled when nothing made the conversation small enough.
    pub(crate) compaction_failed: Option<u64>,
    /// How much of it was filled when a summary failed.
    pub(crate) summary_failed: Option<u64>,
    /// The blocks of the system prompt as they were last reported.
    pub(super) system: Vec<String>,
    /// The rule records of an earlier process, until they are taken up.
    pub(super) rules: Option<KeptRules>,
    /// Another process had it before, which is not reported yet.
    is_resumed: bool,
    /// Another model answers from the next turn on, which is not reported yet.
    pub(super) has_new_model: bool,
    /// Who cancels the turn that runs, where that is known.
    pub(super) canceller: Canceller,
    /// Who has cancelled the last turn, and why, if it was cancelled.
    cancelled: Cancelled,
    /// The end of the last turn has waited for the store of the state in vain.
    pub(crate) is_unsaved: bool,
}

/// Who cancels turns of a session, for the end of its thread. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<Mutex<Option<Cancelled>>>);

/// Who cancels a turn, and why.
#[derive(Clone, Debug, Default)]
struct Cancelled {
    by: String,
    reason: Option<String>,
}

impl Canceller {
    /// The turn that is cancelled next is cancelled by this, for this reason if one is known.
    pub fn set(&self, who: &str, reason: Option<&str>) {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned);
        *self.lock() = Some(Cancelled { by: who.to_owned(), reason });
    }

    /// The same, unless it is known already by whom.
    pub fn set_unless_known(&self, who: &str, reason: &str) {
        self.lock().get_or_insert_with(|| Cancelled { by: who.to_owned(), reason: Some(reason.to_owned()) });
    }

    fn take(&self) -> Option<Cancelled> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Cancelled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of the first input, as `thread_started` has it.
pub(super) fn first_input(messages: &[Message]) -> Map<String, Value> {
    // The user is shown it.
    let messages = || messages.iter().filter(|message| !message.hidden);
    let text = messages().map(Message::plain_text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let images = messages().flat_map(|message| &message.parts).filter(|part| matches!(part, Part::Image(_))).count();
    let start = text.get(..text.floor_char_boundary(INPUT_BYTES)).unwrap_or(&text);
    let bytes = (start.len() < text.len()).then(|| ("bytes".to_owned(), Value::from(text.len())));
    let images = (images > 0).then(|| ("images".to_owned(), Value::from(images)));
    [("text".to_owned(), Value::from(start))].into_iter().chain(bytes).chain(images).collect()
}

/// What a turn begins.
pub(super) enum Begin {
    /// It is the first turn of the thread.
    Started,
    /// It is the first turn of a thread that another process had before.
    Resumed,
    /// It is one of several in this process.
    Running,
}

impl Thread {
    /// A thread that continues. `canceller`: that of its handles.
    pub(super) fn resumed(from: Resumed, canceller: Canceller) -> Self {
        Self {
            started_ms: from.started_ms,
            turns: from.turns,
            steps: from.steps,
            usage: from.usage,
            spend: from.spend.unwrap_or_default(),
            is_unpriced: from.spend.is_none(),
            suspended: from.suspended,
            limit_requests: from.limit_requests,
            open_request: from.open_request,
            canceller,
            cancelled: Cancelled::default(),
            is_unsaved: false,
            last: None,
            context: from.context_tokens,
            gauge: Gauge::default(),
            accepted: from.context_tokens,
            is_cut_reported: false,
            has_new_model: false,
            compaction_failed: None,
            summary_failed: None,
            system: from.system,
            rules: Some(from.rules),
            is_resumed: from.started_ms.is_some(),
        }
    }

    /// A turn begins.
    pub(super) fn begin(&mut self, now_ms: u64) -> Begin {
        if std::mem::take(&mut self.is_resumed) {
            return Begin::Resumed;
        }
        if self.started_ms.is_some() {
            return Begin::Running;
        }
        self.started_ms = Some(now_ms);
        Begin::Started
    }

    /// A turn has ended.
    pub(crate) fn ended(&mut self, status: &TurnStatus) {
        let by = self.canceller.take();
        if *status == TurnStatus::Cancelled {
            self.cancelled = by.unwrap_or_else(|| Cancelled { by: "the caller".to_owned(), reason: None });
        }
        self.last = Some(status.clone());
    }

    /// Whether its last turn was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.last == Some(TurnStatus::Cancelled)
    }

    /// How the last turn of this process ended.
    pub(super) fn last_status(&self) -> Option<&TurnStatus> {
        self.last.as_ref()
    }

    /// A request was paid for; `None`: its cost is not known.
    pub(super) fn spent(&mut self, spend: Option<Spend>) {
        self.spend = self.spend.plus(spend.unwrap_or_default());
        self.is_unpriced |= spend.is_none();
    }

    /// What it has cost; `None` where that is not known of all of it.
    pub(super) fn known_spend(&self) -> Option<Spend> {
        (!self.is_unpriced).then_some(self.spend)
    }

    /// The event of its end in this process; `None` where no turn ran, or its end was reported before. It says how the last turn ended.
    pub(super) fn end(&mut self, now_ms: u64) -> Option<EventKind> {
        Some(match self.last.as_ref()? {
            TurnStatus::Suspended { .. } => return None,
            // Another attempt can succeed later.
            TurnStatus::Failed {
                class: ErrorClass::Transient | ErrorClass::RateLimited | ErrorClass::Quota,
                message,
            } => {
                let message = message.clone();
                self.suspend(SuspendReason::Error, message, now_ms)
            }
            TurnStatus::Failed { class, message } => EventKind::ThreadError { class: *class, message: message.clone() },
            TurnStatus::StepLimit { steps } => EventKind::ThreadError {
                class: ErrorClass::LimitHit,
                message: format!("the turn reached its maximum of {steps} steps"),
            },
            TurnStatus::NoProgress { message } => {
                EventKind::ThreadError { class: ErrorClass::LimitHit, message: message.clone() }
            }
            TurnStatus::Cancelled => {
                let Cancelled { by, reason } = self.cancelled.clone();
                EventKind::ThreadCancelled { by, reason }
            }
            TurnStatus::Completed | TurnStatus::Rejected { .. } | TurnStatus::StoppedByRule { .. } => {
                let duration_ms = now_ms.saturating_sub(self.started_ms.unwrap_or(now_ms));
                EventKind::ThreadCompleted {
                    turns: self.turns,
                    usage: self.usage,
                    spend: self.known_spend(),
                    duration_ms,
                }
            }
        })
    }
}
