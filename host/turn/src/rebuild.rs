//! Rebuilds a session from its transcript: the conversation as the model would be sent it, and what is counted over all turns.
//!
//! The conversation is rebuilt by the same steps that made it: a message joins it with its record, an answer together with the results
//! of its calls. Tests compare both after every turn.

mod inputs;
mod open_calls;
mod spent;

use std::collections::BTreeSet;
use std::sync::Arc;

use flow::ports::KeptRules;
use flow::{AnswerBlock, InputId, Limit, Message, Origin, Receipt, Role, Spend, StreamKind, SuspendReason, Usage};

use record::{
    Body, CognitionOut, ContextCompactionEnd, HistoryReplaced, MessagePayload, MessageRecord, PartRecord, Record,
    Tokens, keep_rules, role,
};

use self::inputs::Delivering;
pub use self::open_calls::OpenCalls;
use self::open_calls::{Calling, Questions};
use self::spent::Spending;
use crate::budget::Spent;
use crate::context::leave_out;
use crate::history::{paired, settled};
use crate::inputs::WaitingInput;
use crate::run::compact::summary_message;
use guard::attempt::{Answer, Cut};

/// What follows an answer that the end of its process interrupted.
const PROCESS_ENDED: &str = "the process ended";

/// What a session continues from.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Resumed {
    /// The conversation, hidden messages included.
    pub history: Vec<Arc<Message>>,
    /// The turn in which each message joined it; 0 for a summary.
    pub history_turns: Vec<u32>,
    /// Its last message is an answer that did not come to its end.
    pub ends_partial: bool,
    /// Tokens of the context that it fills, if they were counted.
    pub context_tokens: Option<u64>,
    /// The number of the next event.
    pub next_event: u64,
    /// Turns that began, however they ended.
    pub turns: u32,
    /// Steps of all turns.
    pub steps: u32,
    /// Tokens of all attempts.
    pub usage: Usage,
    /// What they cost; `None` where it is not known of all of them.
    pub spend: Option<Spend>,
    /// What counts for the limits of the thread.
    pub spent: Spent,
    /// The limits that were raised, in order.
    pub raised: Vec<(Limit, f64)>,
    /// How many times a higher limit was asked for.
    pub limit_requests: u64,
    /// The request for a higher limit that nobody has decided about: its id, and which limit.
    pub open_request: Option<(String, Limit)>,
    /// The limit about which the last turn waited for a decision when its process ended or its session was closed, and its value then.
    /// Continuing the thread asks again, before anything else, unless the limit is higher by now.
    pub undecided: Option<(Limit, f64)>,
    /// Why the thread is suspended; `None`: it is not.
    pub suspended: Option<SuspendReason>,
    /// When the thread started, in milliseconds since 1970-01-01 UTC; `None`: no turn has begun.
    pub started_ms: Option<u64>,
    /// The records of stream rules.
    pub rules: KeptRules,
    /// Questions about tool calls that were asked.
    pub questions: u64,
    /// What a person has allowed for the rest of the session.
    pub always: BTreeSet<String>,
    /// The calls that the end of the process interrupted; their answer is not in the conversation yet.
    pub open_calls: Option<OpenCalls>,
    /// The blocks of the system prompt as they were last sent.
    pub system: Vec<String>,
    /// The inputs that wait, oldest first. A prompt is a queued input: its caller was in the other process.
    pub waiting: Vec<WaitingInput>,
    /// Those of them that were reported as delivered, and wait again.
    pub waiting_again: Vec<InputId>,
    /// What became of the other inputs, oldest first.
    pub receipts: Vec<(InputId, Receipt)>,
    /// The greatest number of an id of an input that the session has made.
    pub made_inputs: u64,
    /// The last turn has no end: its process ended before.
    pub is_interrupted: bool,
    /// What of the records could not be used, a line each.
    pub problems: Vec<String>,
}

/// Why a conversation cannot be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} of the type `{kind}`: {problem}")]
pub struct RebuildError {
    /// The number of the record.
    pub seq: u64,
    /// The type of the record.
    pub kind: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Takes the records of a thread, in order.
#[derive(Clone, Debug, Default)]
pub struct Rebuild {
    resumed: Resumed,
    /// The answer whose calls run.
    calling: Option<Calling>,
    /// The reasoning of the answer that follows, and whether it stays with it.
    thinking: (String, bool),
    /// What was shown of an answer that has no record yet.
    streamed: String,
    /// The last answer that did not come to its end.
    partial: Option<Arc<Message>>,
    /// The kept start of the answer is a message already.
    start_is_message: bool,
    /// The last turn has left open calls to the next: it was suspended before a person has answered, or nothing has become of them in it.
    leaves_calls: bool,
    /// Calls were open when the turn began, and nothing has become of them since.
    untouched: bool,
    /// The turn of the record at hand.
    turn: u32,
    spending: Spending,
    questions: Questions,
    delivering: Delivering,
}

impl Rebuild {
    /// Takes the next record.
    ///
    /// # Errors
    /// A record that the conversation needs cannot be used.
    pub fn take(&mut self, record: &Record) -> Result<(), RebuildError> {
        let wrong = |problem| RebuildError { seq: record.seq, kind: record.body.name().to_owned(), problem };
        self.resumed.next_event = record.event.unwrap_or(record.seq) + 1;
        self.turn = record.turn;
        self.spending.take(record);
        self.questions.take(record);
        if let Some(calling) = &mut self.calling {
            calling.take(record);
        }
        keep_rules(record, &mut self.resumed.rules, &mut self.resumed.problems);
        if matches!(record.body, Body::InputReceived(_) | Body::SteeringMessage(_)) {
            self.settle();
        }
        inputs::take(record, &mut self.resumed, &mut self.delivering).map_err(wrong)?;
        match &record.body {
            Body::ThreadStarted(_) => self.resumed.started_ms = Some(record.ts),
            Body::TurnStart(_) => {
                // Calls that the end of a process interrupted get their results in this turn.
                self.untouched = self.has_open_calls();
                if !self.untouched {
                    self.end_answer();
                }
                self.start_is_message = false;
                (self.resumed.turns, self.resumed.is_interrupted) = (record.turn, true);
                self.leaves_calls = false;
            }
            Body::ToolConfirmationRequested(_) | Body::ToolCallStart(_) | Body::ToolCallResult(_) => {
                self.untouched = false;
            }
            Body::StepStart(start) => {
                self.settle();
                self.resumed.steps = start.turn_number;
            }
            Body::CognitionIn(message) => self.message(message).map_err(wrong)?,
            Body::CustomMessage(custom) => {
                let message = Message::text(Role::User, Origin::Host, custom.text.clone());
                self.push(Message { hidden: custom.hidden, ..message });
            }
            Body::HistoryReplaced(replaced) => self.replace(replaced).map_err(wrong)?,
            Body::ContextCompactionEnd(end) => self.make_smaller(end).map_err(wrong)?,
            Body::CognitionReasoning(reasoning) => self.thinking = (reasoning.text.clone(), reasoning.retained),
            Body::CognitionOutDelta(delta) => self.streamed.push_str(&delta.text),
            Body::CognitionOut(out) => self.answer(out).map_err(wrong)?,
            Body::StepFinish(finish) => {
                // Of calls without a result the end of the turn says what becomes of them.
                if !self.calling.as_ref().is_some_and(Calling::is_open) {
                    self.settle();
                }
                self.start_is_message = false;
                self.resumed.context_tokens = finish.context_tokens;
                self.resumed.usage.add(usage(&finish.tokens));
            }
            Body::TurnFinish(finish) => {
                let is_approval = finish.reason.as_deref() == Some(SuspendReason::Approval.as_str());
                self.leaves_calls = self.untouched || finish.status == "suspended" && is_approval;
                self.resumed.is_interrupted = false;
                if !self.has_open_calls() {
                    self.settle();
                }
                self.streamed.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn replace(&mut self, replaced: &HistoryReplaced) -> Result<(), &'static str> {
        self.settle();
        let messages = replaced.messages.iter().map(MessageRecord::message).collect::<Result<Vec<_>, _>>()?;
        self.resumed.history.clear();
        self.resumed.history_turns.clear();
        self.streamed.clear();
        messages.into_iter().for_each(|message| self.add(message));
        Ok(())
    }

    fn make_smaller(&mut self, end: &ContextCompactionEnd) -> Result<(), &'static str> {
        self.settle();
        if let Some(summary) = &end.summary {
            let kept = usize::try_from(end.kept_messages).map_err(|_| "kept_messages")?;
            let from = self.resumed.history.len().checked_sub(kept).ok_or("kept_messages")?;
            self.resumed.history.splice(..from, [Arc::new(summary_message(summary))]);
            self.resumed.history_turns.splice(..from, [0]);
            self.resumed.context_tokens = None;
        }
        if let Some(left_out) = &end.left_out {
            let parts = left_out.iter().map(record::LeftOut::left_out).collect::<Result<Vec<_>, _>>()?;
            let (history, turns) = (&self.resumed.history, &self.resumed.history_turns);
            let mut kept: Vec<(Arc<Message>, u32)> = history.iter().cloned().zip(turns.iter().copied()).collect();
            leave_out(&mut kept, &parts, &0)?;
            (self.resumed.history, self.resumed.history_turns) = kept.into_iter().unzip();
            self.resumed.context_tokens = None;
        }
        if let Some(tokens) = &end.tokens {
            self.resumed.usage.add(usage(tokens));
        }
        Ok(())
    }

    /// The records so far are those of the thread that this one was forked from: what waited there still waits there, and what a person has
    /// allowed there for the rest of the session is asked about here.
    pub fn fork(&mut self) {
        self.resumed.waiting.clear();
        self.resumed.waiting_again.clear();
        self.questions.forget_always();
    }

    /// Whether a record can be used, on its own.
    ///
    /// # Errors
    /// As [`Rebuild::take`].
    pub fn check(record: &Record) -> Result<(), RebuildError> {
        // How many messages stay depends on the records before.
        if matches!(record.body, Body::ContextCompactionEnd(_)) {
            return Ok(());
        }
        Self::default().take(record)
    }

    /// The records end here. Of an answer that has no record, because its process ended before, what was shown stays in the
    /// conversation, marked as interrupted. Where calls have no result for that reason, they and their answer are
    /// [`Resumed::open_calls`].
    pub fn finish(mut self) -> Resumed {
        self.delivering.undo(&mut self.resumed);
        if self.has_open_calls() {
            self.resumed.open_calls = self.calling.take().map(Calling::into_open);
        }
        self.end_answer();
        std::mem::take(&mut self.questions).finish(&mut self.resumed);
        self.leave_out_unpaired();
        let last = self.resumed.history.last().zip(self.partial.as_ref());
        self.resumed.ends_partial = last.is_some_and(|(last, partial)| Arc::ptr_eq(last, partial));
        self.spending.finish(&mut self.resumed);
        self.resumed
    }

    /// Records that a repair has removed, or a history that an embedder has put in place, can leave calls and results apart.
    fn leave_out_unpaired(&mut self) {
        let Resumed { history, history_turns, problems, .. } = &mut self.resumed;
        let (kept, left_out) = paired(history);
        if kept.len() == history.len() && left_out == 0 {
            return;
        }
        *history_turns = kept.iter().map(|(at, _)| history_turns.get(*at).copied().unwrap_or(0)).collect();
        *history = kept.into_iter().map(|(_, message)| message).collect();
        problems.push(format!(
            "{left_out} calls without a result, or results without a call, are left out of the conversation: providers refuse them"
        ));
    }

    fn has_open_calls(&self) -> bool {
        (self.resumed.is_interrupted || self.leaves_calls) && self.calling.as_ref().is_some_and(Calling::is_open)
    }

    fn end_answer(&mut self) {
        self.settle();
        self.start_is_message = false;
        let streamed = std::mem::take(&mut self.streamed);
        if self.resumed.is_interrupted
            && let Some(message) =
                Answer::marked_message(&Cut { reasoning: "", text: &streamed, error: PROCESS_ENDED, completion: None })
        {
            self.add_partial(message);
        }
    }

    fn message(&mut self, payload: &MessagePayload) -> Result<(), &'static str> {
        let role = role(&payload.role)?;
        let parts = payload.parts.iter().flatten();
        if role == Role::System {
            let texts: Vec<String> = parts
                .filter_map(|part| if let PartRecord::Text { text } = part { Some(text.clone()) } else { None })
                .collect();
            self.resumed.system = if payload.parts.is_none() { vec![payload.text.clone()] } else { texts };
            return Ok(());
        }
        let origin = payload.author.as_ref().map_or(Ok(Origin::User), record::Author::origin)?;
        let mut message = Message::text(role, origin, payload.text.clone());
        message.hidden = payload.hidden;
        if payload.parts.is_some() {
            message.parts = parts.map(PartRecord::part).collect::<Result<_, _>>()?;
        }
        if role == Role::Assistant {
            self.streamed.clear();
            self.start_is_message = true;
        }
        self.push(message);
        Ok(())
    }

    fn answer(&mut self, out: &CognitionOut) -> Result<(), &'static str> {
        self.settle();
        let (thinking, keeps_reasoning) = std::mem::take(&mut self.thinking);
        let rewritten = out.rewrites.as_ref().and_then(|all| all.last()).map(|last| last.text.as_str());
        let text = rewritten.unwrap_or(&out.text);
        let origin = out.author.origin()?;
        self.streamed.clear();
        let kept = match out.retained.as_str() {
            "answer" => {
                let answer = match &origin {
                    Origin::Model => {
                        let blocks = out.blocks.as_deref().unwrap_or_default();
                        let whole = match listed(blocks) {
                            Err("bytes") => None,
                            blocks => Answer::rebuilt(out.text.clone(), &thinking, blocks?),
                        };
                        let answer = whole.map_or_else(|| self.without_reasoning(out), Ok)?;
                        answer.message(text)
                    }
                    _ => Some(Message::text(Role::Assistant, origin, text)),
                };
                self.calling = answer.map(|answer| Calling::new(answer, out.blocks.as_deref().unwrap_or_default()));
                None
            }
            "start" => {
                self.start_is_message = true;
                let bytes = out.retained_bytes.and_then(|bytes| usize::try_from(bytes).ok());
                Answer::partial_message(
                    bytes.and_then(|bytes| out.text.get(..bytes)).ok_or("retained_bytes")?.to_owned(),
                )
            }
            "marked" => {
                let reasoning = if keeps_reasoning { thinking.as_str() } else { "" };
                let (error, completion) = (out.error.as_deref().ok_or("error")?, out.completion_percentage);
                let message = Answer::marked_message(&Cut { reasoning, text: &out.text, error, completion });
                message.into_iter().for_each(|message| self.add_partial(message));
                None
            }
            // What is kept on the screen of an answer continues with the next attempt.
            "nothing" => {
                let kept = out.kept_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
                if !self.start_is_message {
                    self.streamed.push_str(out.seen().get(..kept).unwrap_or_default());
                }
                None
            }
            _ => return Err("retained"),
        };
        kept.into_iter().for_each(|message| self.add(message));
        Ok(())
    }

    /// The record with the reasoning of an answer is missing, as after a repair: the answer remains without it.
    fn without_reasoning(&mut self, out: &CognitionOut) -> Result<Answer, &'static str> {
        let blocks = out.blocks.iter().flatten().filter(|block| block.stream != "thinking");
        let blocks: Vec<_> = blocks.cloned().collect();
        let problem = "the reasoning of an answer is not recorded; the answer is continued without it".to_owned();
        self.resumed.problems.push(problem);
        Answer::rebuilt(out.text.clone(), "", listed(&blocks)?).ok_or("bytes")
    }

    fn push(&mut self, message: Message) {
        self.settle();
        self.add(message);
    }

    fn add(&mut self, message: impl Into<Arc<Message>>) {
        self.resumed.history.push(message.into());
        self.resumed.history_turns.push(self.turn);
    }

    fn add_partial(&mut self, message: Arc<Message>) {
        self.partial = Some(Arc::clone(&message));
        self.add(message);
    }

    /// The answer and the results of its calls join the conversation.
    fn settle(&mut self) {
        if let Some(calling) = self.calling.take() {
            let (answer, results) = calling.into_parts();
            settled(answer, results).into_iter().for_each(|message| self.add(message));
        }
    }
}

/// The blocks of an accepted answer. Without these fields none can be rebuilt.
fn listed(blocks: &[record::Block]) -> Result<Vec<AnswerBlock>, &'static str> {
    let listed = |recorded: &record::Block| {
        let block = recorded.block()?;
        match &block.kind {
            _ if recorded.prefix_bytes.is_some() => drop(recorded.bytes.ok_or("bytes")?),
            StreamKind::Text => {}
            StreamKind::Thinking => {
                recorded.bytes.ok_or("bytes")?;
                recorded.text_before.ok_or("text_before")?;
            }
            StreamKind::Tool { .. } => drop(recorded.arguments.as_ref().ok_or("arguments")?),
        }
        Ok(block)
    };
    blocks.iter().map(listed).collect()
}

fn usage(tokens: &Tokens) -> Usage {
    Usage {
        input: tokens.input_tokens,
        output: tokens.output_tokens,
        cache_read: tokens.cache_read_tokens,
        cache_write: tokens.cache_write_tokens,
    }
}
