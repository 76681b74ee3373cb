//! The summary of the older part of a conversation, which takes its place, as a hidden message.
//!
//! Where no summary can be made, the conversation stays as it is, and one is asked for again when there is noticeably more of it.

use std::future::poll_fn;
use std::sync::Arc;

use flow::{CompactionMethod, ErrorClass, EventKind, Message, Origin, Part, Prompt, Role, Spend, TurnStatus, Usage};

use super::asking::{self, Received};
use super::{Need, Stop, Turn};
use crate::context::Estimate;
use crate::inputs::Claim;
use crate::retry::{self, Retry};
use crate::run::checkpoint;
use crate::run::halt::{self, INTERRUPTED};
use flow::ports::EventSink;

/// Messages that stay where the current turn alone fills the context.
const KEPT_IN_TURN: usize = 6;

/// What precedes a summary in the message that the model reads.
const HEAD: &str = "This is a summary of the conversation so far; its messages are no longer available.";

/// Why there is no summary where it took longer than a request or the thread may.
const NO_TIME: &str = "it did not come to its end in time";

/// How often a request for a summary is made smaller because the provider has refused its size.
const MAX_SMALLER: u32 = 3;

/// The summary of a turn. It lives in the turn and not in its future, so that one that is cancelled is recorded and counted.
#[derive(Default)]
pub(crate) struct Summary {
    progress: Progress,
    /// The turn of the first message that stays.
    prune_before_turn: u32,
    /// How many messages stay.
    kept: u64,
    /// Tokens of its prompt, estimated.
    prompt: u64,
    /// The tokens of its requests that are over, and what they cost as far as that is known.
    usage: Usage,
    spend: Spend,
    is_billed: bool,
    is_unpriced: bool,
    /// The request under way.
    received: Received,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// None is being made.
    #[default]
    Possible,
    /// It is being made.
    Open,
    /// The user interrupted it: the next request is one for an answer, however often the user interrupts before it.
    Postponed,
}

/// How the requests for a summary end.
enum End {
    Made(String),
    /// Why there is none, in one sentence.
    Failed(String),
    /// The user stopped it, for these inputs.
    Interrupted(Claim),
}

impl Summary {
    /// The model has the conversation, and answers: a summary that was postponed can be asked for after that.
    pub(in crate::run) fn answer_begins(&mut self) {
        if self.progress == Progress::Postponed {
            self.progress = Progress::Possible;
        }
    }

    /// Whether one can be asked for.
    pub(super) fn is_possible(&self) -> bool {
        self.progress == Progress::Possible
    }

    /// What its requests have cost; `None` where that is not known of all of them.
    fn spend(&self) -> Option<Spend> {
        (self.is_billed && !self.is_unpriced).then_some(self.spend)
    }
}

impl Turn<'_> {
    /// Has the model summarise the older part of the conversation, if there is one. Where the user interrupts that, the inputs are in
    /// `halted`.
    ///
    /// # Errors
    /// The transcript cannot be written, or a limit would be exceeded.
    pub(super) async fn summarise_older(&mut self, need: Need) -> Result<(), Stop> {
        let used = self.session.next_prompt();
        if self.session.thread.summary_failed.is_some_and(|failed| used < failed + failed / 20) {
            return Ok(());
        }
        let messages = self.session.handles.history.messages();
        let Some(cut) = self.cut(&messages, need) else { return Ok(()) };
        let (old, left) = messages.split_at(cut);
        let most = asking::summary_tokens(need.capacity.context);
        let prompt = self.summary_prompt(old, need, most);
        self.permit(self.summary_size(&prompt)).await?;
        if self.halted.is_some() {
            return Ok(());
        }
        checkpoint(self.cancel).await;
        self.summary = Summary {
            progress: Progress::Open,
            prune_before_turn: self.session.handles.history.turn_of(cut),
            kept: left.len() as u64,
            prompt: self.summary_size(&prompt),
            ..Summary::default()
        };
        self.emit_start(CompactionMethod::Summary, need, used);
        self.barrier().await?;
        let summary = self.summarise(prompt, old, need).await?;
        let failed = match summary {
            End::Made(summary) if self.is_shorter(&summary, old) => {
                self.replace_start(summary, left);
                None
            }
            End::Made(_) => Some("it is not shorter than what it summarises".to_owned()),
            End::Failed(error) => Some(error),
            End::Interrupted(claim) => {
                self.halted = Some(claim);
                self.end_summary(Progress::Postponed, Err(INTERRUPTED.to_owned()));
                return Ok(());
            }
        };
        self.session.thread.summary_failed = failed.is_some().then_some(used);
        if let Some(error) = failed {
            self.end_summary(Progress::Possible, Err(error));
        }
        Ok(())
    }

    /// The first message that stays: that of one of the last turns, or else one of this turn: the first with which the conversation becomes
    /// as small as needed, or the last. `None`: nothing precedes it.
    fn cut(&self, messages: &[Arc<Message>], need: Need) -> Option<usize> {
        let keep_turns = self.session.parts.settings.compaction.map_or(1, |settings| settings.keep_turns.max(1));
        let from = |turns: u32| {
            let start = self.session.handles.history.start_of((self.place.turn + 1).saturating_sub(turns));
            start.filter(|start| *start > 1)
        };
        let current = self.session.handles.history.start_of(self.place.turn).unwrap_or(0);
        // A result stays with its call.
        let in_turn = |kept: usize| {
            let last = messages.len().checked_sub(kept)?;
            (2..=last).rev().find(|at| messages[*at].role != Role::Tool).filter(|at| *at > current)
        };
        let mut cuts: Vec<usize> =
            [from(keep_turns), from(1), in_turn(KEPT_IN_TURN), in_turn(2)].into_iter().flatten().collect();
        cuts.sort_unstable();
        // With the summary, what stays must not be as much as before at once.
        let most = need.aim + need.capacity.trigger.saturating_sub(need.aim) / 2;
        let first =
            cuts.iter().find(|cut| self.session.thread.gauge.tokens(self.session.estimate(&messages[**cut..])) <= most);
        first.or(cuts.last()).copied()
    }

    /// The request for a summary, so small that it fits.
    fn summary_prompt(&self, old: &[Arc<Message>], need: Need, most: u32) -> Prompt {
        let capacity = need.capacity.context.saturating_sub(u64::from(most) + need.capacity.context / 16);
        asking::prompt(old, most, &|prompt| self.summary_size(prompt) <= capacity)
    }

    /// Tokens of a request for a summary.
    fn summary_size(&self, prompt: &Prompt) -> u64 {
        let system = prompt.system.iter().map(|block| Estimate::text(&block.text));
        let texts = prompt.messages.iter().map(|message| Estimate::text(&message.plain_text()));
        self.session.thread.gauge.scaled(system.chain(texts).sum())
    }

    fn is_shorter(&self, summary: &str, old: &[Arc<Message>]) -> bool {
        let of = |message: &Message| crate::context::of_message(&*self.session.parts.model, message);
        of(&summary_message(summary)) < old.iter().map(|message| of(message)).sum()
    }

    /// The summary takes the place of the start of the conversation.
    fn replace_start(&mut self, summary: String, left: &[Arc<Message>]) {
        let mut messages = vec![Arc::new(summary_message(&summary))];
        messages.extend_from_slice(left);
        let used_tokens = self.session.thread.gauge.tokens(self.session.estimate(&messages));
        self.end_summary_with(Progress::Possible, Ok(summary), used_tokens);
        self.session.set_history(messages);
        self.session.thread.context = None;
    }

    /// Asks the model for a summary. A request that fails is repeated as that of an answer is; nobody sees a summary, so that it is repeated
    /// also where it broke off. One that is too large is made smaller. Each request is within the limits.
    ///
    /// # Errors
    /// A limit would be exceeded.
    async fn summarise(&mut self, mut prompt: Prompt, old: &[Arc<Message>], need: Need) -> Result<End, Stop> {
        let mut retry = Retry::new(&self.session.parts.settings.retries);
        let (mut smaller, mut deadline) = (0, self.deadline());
        loop {
            let asked = tokio::select! {
                biased;
                claim = self.session.handles.inputs.interrupting() => Err(claim),
                () = poll_fn(|cx| deadline.poll(cx)) => return Ok(End::Failed(NO_TIME.to_owned())),
                answer = asking::ask(&*self.session.parts.model, &prompt, &mut self.summary.received, self.cancel) => Ok(answer),
            };
            self.count_summary();
            let mut error = match asked {
                Err(claim) => return Ok(End::Interrupted(claim)),
                Ok(Ok(answer)) => {
                    retry.succeeded(&self.session.handles.hub);
                    return Ok(answer.summary().map_or_else(End::Failed, End::Made));
                }
                Ok(Err(error)) => error,
            };
            retry.classify(&mut error, &self.session.handles.hub);
            if error.class == Some(ErrorClass::ContextOverflow) && smaller < MAX_SMALLER {
                smaller += 1;
                let most = self.summary.prompt / 2;
                prompt = asking::prompt(old, asking::summary_tokens(need.capacity.context), &|prompt| {
                    self.summary_size(prompt) <= most
                });
                self.summary.prompt = self.summary_size(&prompt);
                continue;
            }
            let clock = Arc::clone(&self.session.parts.clock);
            let random = retry::random(&self.session.parts.id, clock.now_ms());
            let delay = match retry.decide(error, true, &self.session.handles.hub, random) {
                Ok(delay) => delay,
                Err(error) => return Ok(End::Failed(error.message)),
            };
            tokio::select! {
                biased;
                claim = self.session.handles.inputs.interrupting() => return Ok(End::Interrupted(claim)),
                () = clock.sleep(delay) => {}
            }
            self.permit(self.summary.prompt).await?;
            if let Some(claim) = self.halted.take() {
                return Ok(End::Interrupted(claim));
            }
        }
    }

    /// Counts the request for a summary that is over.
    fn count_summary(&mut self) {
        let received = std::mem::take(&mut self.summary.received);
        if !received.is_billed() {
            return;
        }
        let Received { usage, bytes, .. } = received;
        self.report.usage.add(usage);
        let spend = self.session.spend(usage, Some(self.summary.prompt), bytes);
        let summary = &mut self.summary;
        summary.usage.add(usage);
        summary.spend = summary.spend.plus(spend.unwrap_or_default());
        summary.is_billed = true;
        summary.is_unpriced |= spend.is_none();
    }

    /// Reports the end of the summary that is being made, of which nothing came.
    fn end_summary(&mut self, progress: Progress, summary: Result<String, String>) {
        self.end_summary_with(progress, summary, self.session.next_prompt());
    }

    /// Reports the end of the summary that is being made: its text, or why there is none.
    fn end_summary_with(&mut self, progress: Progress, summary: Result<String, String>, used_tokens: u64) {
        self.summary.progress = progress;
        let (summary, error) = match summary {
            Ok(summary) => (Some(summary), None),
            Err(error) => (None, Some(error)),
        };
        self.session.handles.hub.emit(EventKind::ContextCompactionEnd {
            summary,
            prune_before_turn: self.summary.prune_before_turn,
            kept: self.summary.kept,
            left_out: Vec::new(),
            used_tokens,
            error,
            usage: self.summary.usage,
            spend: self.summary.spend(),
            charged: self.session.handles.budget.charged(),
        });
    }

    /// Settles a summary that is being made at the end of its turn. The next turn asks for one again.
    pub(in crate::run) fn settle_summary(&mut self, status: &TurnStatus) {
        if self.summary.progress == Progress::Open {
            self.count_summary();
            self.end_summary(Progress::Possible, Err(halt::cause(status).to_owned()));
        }
    }
}

/// The message that replaces what was summarised.
pub(crate) fn summary_message(summary: &str) -> Message {
    let message = Message::text(Role::User, Origin::Host, format!("{HEAD}\n\n{}", summary.trim()));
    Message { hidden: true, ..message }
}

/// Whether a message is a summary.
pub(crate) fn is_summary(message: &Message) -> bool {
    let is_head = |part: &Part| matches!(part, Part::Text(text) if text.starts_with(HEAD));
    message.hidden && message.origin == Origin::Host && message.parts.first().is_some_and(is_head)
}
