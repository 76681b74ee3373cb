//! The payloads of records, one type for each that has fields of its own.
//!
//! Names of values (actions, classes, streams) are strings here: a reader meets those of later versions, too. The event catalogue lists
//! them. What is not known is absent, never `null`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::{Author, MessageRecord, PartRecord};

/// Gives each payload what all have.
macro_rules! payloads {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[non_exhaustive]
            pub struct $name {
                $($(#[$doc])* #[serde(skip_serializing_if = "Absent::is_absent")] pub $field: $type,)*
            }
        )+
    };
}

mod answer;
mod extension;
mod rule;
mod shown;
mod tool;

pub use self::answer::*;
pub use self::extension::*;
pub use self::rule::*;
pub use self::shown::*;
pub use self::tool::*;

/// Whether a value is left out of its record.
trait Absent {
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}
impl Absent for String {}
impl Absent for bool {}
impl Absent for u32 {}
impl Absent for u64 {}
impl Absent for f64 {}
impl Absent for Value {}
impl Absent for Tokens {}
impl Absent for Cost {}
impl Absent for Evidence {}
impl Absent for Preview {}
impl Absent for Author {}
impl<T> Absent for Vec<T> {}

payloads! {
    /// The payload of an event that has nothing to add to its type.
    Empty {}

    /// The payload of `thread_started`.
    ThreadStarted {
        /// What runs: the agent's name.
        directive: String,
        /// The session's id.
        session_id: String,
        /// The provider's name.
        provider: String,
        /// The model's name.
        model: String,
        /// `single`: one input; `conversation`: turns share a history; `channel`: several people or programs write to it.
        thread_mode: String,
        /// The workspace's folder, absolute; empty where there is none.
        workspace: String,
        /// What it was started with, by name: what an embedder has given it, the task of a child agent, or the start of its first input
        /// (`text`, with `bytes` where it is longer, and the number of `images`). Absent where it was started with nothing.
        inputs: Option<Map<String, Value>>,
    }

    /// The payload of `thread_resumed`.
    ThreadResumed {
        /// `input`, `approval` or `continue`; `model`: it was not interrupted, and another model answers from now on.
        resumed_by: String,
        /// Why the thread was suspended, where it was.
        previous_suspend_reason: Option<String>,
        /// The provider's name.
        provider: String,
        /// The model's name.
        model: String,
    }

    /// The payload of `thread_suspended`.
    ThreadSuspended {
        /// `limit`, `error`, `budget` or `approval`.
        suspend_reason: String,
        /// The cause in one sentence.
        message: String,
        /// What the thread took so far.
        cost: Cost,
    }

    /// The payload of `thread_completed`.
    ThreadCompleted {
        /// What the thread took.
        cost: Cost,
        /// Its tokens, by kind.
        tokens: Tokens,
    }

    /// What a thread took.
    Cost {
        /// Turns, however they ended.
        turns: u32,
        /// Tokens of prompts and answers, as far as providers report them.
        tokens: Option<u64>,
        /// US dollars; absent where the cost of any request is not known.
        spend: Option<f64>,
        /// Seconds since it started.
        duration_seconds: f64,
    }

    /// Tokens, as far as the provider reports them.
    Tokens {
        /// Of the prompt.
        input_tokens: Option<u64>,
        /// Of the answer.
        output_tokens: Option<u64>,
        /// Of the prompt, read from the provider's cache.
        cache_read_tokens: Option<u64>,
        /// Of the prompt, written to the provider's cache.
        cache_write_tokens: Option<u64>,
    }

    /// The payload of `thread_error`.
    ThreadError {
        /// The class of the error.
        category: String,
        /// The error in one sentence.
        error: String,
    }

    /// The payload of `thread_cancelled`.
    ThreadCancelled {
        /// Who or what stopped it.
        cancelled_by: String,
        /// Why, where whoever stopped it has said so.
        reason: Option<String>,
    }

    /// The payload of `turn_finish`.
    TurnFinish {
        /// `completed`, `rejected`, `stopped_by_rule`, `cancelled`, `failed`, `step_limit`, `no_progress` or `suspended`.
        status: String,
        /// Of `rejected`: the extension.
        extension_id: Option<String>,
        /// Of `rejected`: the reason, for the user. Of `suspended`: `limit`, `error`, `budget` or `approval`.
        reason: Option<String>,
        /// Of `stopped_by_rule`: the rule.
        rule: Option<String>,
        /// Of `failed`: the class of the error.
        category: Option<String>,
        /// Of `failed` and `suspended`: the cause in one sentence.
        error: Option<String>,
        /// Of `step_limit`: the limit.
        steps: Option<u32>,
    }

    /// The payload of `step_start`.
    StepStart {
        /// The number of the step in the thread, from 1.
        turn_number: u32,
    }

    /// The payload of `step_finish`.
    StepFinish {
        /// What it cost, in US dollars; absent where no price is known.
        cost: Option<f64>,
        /// Tokens of all attempts of the step.
        tokens: Tokens,
        /// `end_turn`, `tool_use`, `limit_exceeded`, `error` or `cancelled`.
        finish_reason: String,
        /// Why the accepted answer ended, in the model's own words.
        stop_reason: Option<String>,
        /// Tokens of the context that the last request and its answer have filled.
        context_tokens: Option<u64>,
        /// What counts for the limits of the thread so far.
        charged: Option<Charged>,
    }

    /// What counts for the limits of a thread so far: that of its children included, estimated where a provider did not count.
    Charged {
        /// Tokens of prompts and answers.
        tokens: u64,
        /// US dollars, as far as prices are known.
        spend: f64,
        /// Child threads that were started.
        spawns: u64,
    }

    /// The payload of `input_received`, `cognition_in` and `steering_message`.
    MessagePayload {
        /// The text, joined.
        text: String,
        /// `system`, `user`, `assistant` or `tool`.
        role: String,
        /// Not shown to the user.
        hidden: bool,
        /// Who wrote it; absent for the user.
        author: Option<Author>,
        /// The parts, where the message is not one part of text.
        parts: Option<Vec<PartRecord>>,
        /// Of `input_received` and `steering_message`: the id of the input, where it has one.
        id: Option<String>,
    }

    /// The payload of `input_queued`.
    InputQueued {
        /// The id of the input.
        id: String,
        /// How it is going to be delivered: `prompt`, `queue`, `steer` or `interrupt`.
        way: String,
        /// The text, joined.
        text: String,
        /// `user`, as a rule.
        role: String,
        /// Not shown to the user.
        hidden: bool,
        /// Who wrote it; absent for the user.
        author: Option<Author>,
        /// The parts, where the message is not one part of text.
        parts: Option<Vec<PartRecord>>,
    }

    /// The payload of `input_edited`.
    InputEdited {
        /// The id of the input.
        id: String,
        /// Its text from now on.
        text: String,
        /// `true` where its message is not shown to the user.
        hidden: Option<bool>,
    }

    /// The payload of `input_withdrawn`.
    InputWithdrawn {
        /// The id of the input.
        id: String,
        /// `removed` or `returned`.
        receipt: String,
    }

    /// The payload of `error_classified`.
    ErrorClassified {
        /// The provider's word, or the HTTP status, or `unknown`.
        error_code: String,
        /// The class of the error.
        category: String,
        /// Whether errors of the class are retried.
        retryable: bool,
        /// `message`, the error in one sentence; as far as they are known, `provider`, `status` (of HTTP), `kind` (where the request
        /// failed), `type` (the provider's), and `pattern`, the entry of `[errors]` that decided about the class.
        metadata: Value,
    }

    /// The payload of `limit_escalation_requested`.
    LimitEscalationRequested {
        /// `turns_exceeded`, `steps_exceeded`, `tokens_exceeded`, `spend_exceeded`, `spawns_exceeded`, `depth_exceeded` or
        /// `duration_exceeded`.
        limit_code: String,
        /// What is spent: a count, US dollars or seconds.
        current_value: f64,
        /// The limit so far.
        current_max: f64,
        /// The limit that an approval sets, unless it sets another one.
        proposed_max: f64,
        /// All of it in one sentence.
        message: String,
        /// The id of the request, to decide about it.
        approval_request_id: String,
    }

    /// The payload of `limit_escalation_resolved`.
    LimitEscalationResolved {
        /// The id of the request.
        approval_request_id: String,
        /// The code of the limit, as in the request.
        limit_code: String,
        /// `approved`, `denied` or `timed_out`.
        decision: String,
        /// Of an approval: the limit from now on.
        new_max: Option<f64>,
        /// Of a denial: why.
        reason: Option<String>,
        /// Who has decided; empty where nobody has.
        decided_by: String,
    }

    /// The payload of `retry_scheduled`.
    RetryScheduled {
        /// The number of this retry, from 1.
        retry: u32,
        /// The most retries there are.
        max_retries: u32,
        /// Milliseconds until the request is sent again.
        delay_ms: u64,
        /// Whether the provider asked for this delay.
        asked_by_provider: bool,
    }

    /// The payload of `retry_succeeded`.
    RetrySucceeded {
        /// The error that made it necessary.
        original_error: String,
        /// How many times it was tried again.
        retry_count: u32,
        /// Milliseconds waited in all.
        total_delay_ms: u64,
    }

    /// The payload of `custom_message`.
    CustomMessage {
        /// What for, such as `ttsr-injection`.
        custom_type: String,
        /// The text, as the model reads it.
        text: String,
        /// Not shown to the user.
        hidden: bool,
    }

    /// The payload of `history_replaced`.
    HistoryReplaced {
        /// All messages of the conversation from now on.
        messages: Vec<MessageRecord>,
    }

    /// The payload of `context_compaction_start`.
    ContextCompactionStart {
        /// `context`: the conversation fills the configured share of the model's context; `overflow`: the provider has refused a request
        /// because of its size.
        triggered_by: String,
        /// `shorten`: results and images are left out; `summary`: the model summarises; `drop`: the oldest messages are left out. Absent in
        /// records of earlier versions, which only summarise.
        method: Option<String>,
        /// The share that is filled, from 0.
        pressure_ratio: f64,
        /// Tokens of the next prompt.
        used_tokens: u64,
        /// Tokens that the model takes, prompt and answer together.
        context_tokens: Option<u64>,
    }

    /// The payload of `context_compaction_end`.
    ContextCompactionEnd {
        /// The summary, as the model wrote it; absent where there is none.
        summary: Option<String>,
        /// The turn of the first message that stays; 0 without a summary.
        prune_before_turn: u32,
        /// How many messages of the conversation stay, from the end.
        kept_messages: u64,
        /// What is left out of requests from now on, in the order in which it is left out. The records before have all of it.
        left_out: Option<Vec<LeftOut>>,
        /// Tokens of the next prompt as it is now.
        used_tokens: Option<u64>,
        /// Why there is no summary.
        error: Option<String>,
        /// Tokens of the request for the summary.
        tokens: Option<Tokens>,
        /// What it cost, in US dollars; absent where that is not known.
        cost: Option<f64>,
        /// What counts for the limits of the thread so far.
        charged: Option<Charged>,
    }

    /// A part of the conversation that requests do not have any more.
    LeftOut {
        /// `tool_result`: its middle; `image`; `messages`: whole messages.
        kind: String,
        /// The index of its message, or of the first one, in the conversation as it was then.
        message: u64,
        /// Of a result or an image: its index in the message.
        part: Option<u64>,
        /// Of messages: how many.
        count: Option<u64>,
        /// The bytes that are left out.
        bytes: u64,
        /// Of a result: the tool.
        tool: Option<String>,
        /// Of a result: the bytes of its start that remain.
        head_bytes: Option<u64>,
        /// Of a result: the bytes of its end that remain.
        tail_bytes: Option<u64>,
    }

    /// The payload of `child_thread_started`.
    ChildThreadStarted {
        /// The child's thread: the id of its session.
        child_thread_id: String,
        /// What runs there: the agent's name.
        child_directive: String,
        /// The thread that started it.
        parent_thread_id: String,
        /// The id of the tool call whose result ends the child.
        call_id: Option<String>,
    }

    /// The payload of `child_thread_failed`.
    ChildThreadFailed {
        /// The child's thread.
        child_thread_id: String,
        /// Why it did not complete its task.
        error: String,
    }

    /// The payload of `notice`, `state_lost`.
    Notice {
        /// The sentence for the person.
        message: String,
    }

    /// The payload of `schema_violation`.
    SchemaViolation {
        /// The type of the event whose payload is not valid.
        event_type: String,
        /// What is wrong with it.
        problems: Vec<SchemaProblem>,
    }

    /// What is wrong with a payload.
    SchemaProblem {
        /// Where: a JSON pointer.
        path: String,
        /// What is wrong there.
        message: String,
    }

    /// The payload of `journal_failed`.
    JournalFailed {
        /// Why, and the remedy.
        message: String,
        /// The number of the last event that is known to be on disk.
        recorded: Option<u64>,
    }
}
