//! The payloads of records, one type for each that has fields of its own.
//!
//! Names of values (actions, classes, streams) are strings here: a reader meets those of later versions, too. The event catalogue lists
//! them. What is not known is absent, never `null`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
        /// `conversation`: turns share a history.
        thread_mode: String,
        /// The workspace's folder, absolute; empty where there is none.
        workspace: String,
    }

    /// The payload of `thread_resumed`.
    ThreadResumed {
        /// `input`, `approval` or `continue`.
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
    }

    /// The payload of `turn_finish`.
    TurnFinish {
        /// `completed`, `rejected`, `stopped_by_rule`, `cancelled`, `failed`, `step_limit` or `suspended`.
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
    }

    /// The payload of `input_withdrawn`.
    InputWithdrawn {
        /// The id of the input.
        id: String,
        /// `removed` or `returned`.
        receipt: String,
    }

    /// The payload of `cognition_out`.
    CognitionOut {
        /// The text as the model wrote it, as far as it was received.
        text: String,
        /// The model's name.
        model: Option<String>,
        /// Who wrote it: the model, or an extension in its place.
        #[serde(default)]
        author: Author,
        /// What the user has seen of it, where that is neither the text nor its start.
        shown: Option<String>,
        /// It did not come to its end.
        #[serde(default)]
        is_partial: bool,
        /// Its text was cut off.
        #[serde(default)]
        truncated: bool,
        /// Of a partial answer: the cause.
        error: Option<String>,
        /// Of a partial answer: the bytes that had been shown.
        shown_bytes: Option<u64>,
        /// Of a partial answer: the shown bytes that remain for the next attempt, which continues them.
        kept_bytes: Option<u64>,
        /// What stays in the conversation: `nothing`, `answer`, `start` or `marked`; empty in records of other programs.
        #[serde(default)]
        retained: String,
        /// Of `start`: the number of bytes of the text.
        retained_bytes: Option<u64>,
        /// How the text, the reasoning before this record and the calls follow each other.
        blocks: Option<Vec<Block>>,
        /// What extensions noted.
        annotations: Option<Vec<Note>>,
        /// What extensions made of the text, in order; the last is the text of the answer in the conversation.
        rewrites: Option<Vec<Rewrite>>,
    }

    /// A block of an answer.
    Block {
        /// `text`, `thinking` or `tool`.
        stream: String,
        /// Of text and thinking: its length. The text blocks joined are the answer's text, the thinking blocks its reasoning.
        bytes: Option<u64>,
        /// Of thinking: the bytes of the answer's text that come before it.
        text_before: Option<u64>,
        /// Of thinking: opaque data that the provider requires back.
        signature: Option<String>,
        /// Of thinking: the provider gave the signature instead of words.
        redacted: Option<bool>,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
        /// Of a tool call: the JSON of the arguments, as far as it was received.
        arguments: Option<String>,
        /// Whether the block is complete.
        complete: bool,
        /// The number of its bytes, from the start, that an earlier attempt wrote.
        prefix_bytes: Option<u64>,
    }

    /// What an extension noted about an answer.
    Note {
        /// The id of the extension.
        extension_id: String,
        /// The key of the note.
        key: String,
        /// The value of the note.
        value: Value,
    }

    /// What an extension made of the text of an answer.
    Rewrite {
        /// The id of the extension.
        extension_id: String,
        /// The new text.
        text: String,
    }

    /// The payload of `cognition_out_delta`.
    CognitionOutDelta {
        /// The text that was shown.
        text: String,
        /// Its number within the attempt, from 0.
        chunk_index: u32,
    }

    /// The payload of `cognition_reasoning`.
    CognitionReasoning {
        /// The reasoning of the answer that follows, its blocks joined.
        text: String,
        /// It did not come to its end.
        #[serde(default)]
        is_partial: bool,
        /// The stream was interrupted before it came to its end.
        #[serde(default)]
        was_interrupted: bool,
        /// It stays in the conversation with its answer.
        #[serde(default)]
        retained: bool,
    }

    /// The payload of `cognition_reasoning_delta`.
    CognitionReasoningDelta {
        /// The text that was shown.
        text: String,
    }

    /// The payload of `tool_call_start`.
    ToolCallStart {
        /// The tool's name.
        tool: String,
        /// Pairs it with its result.
        call_id: String,
        /// The arguments; `{"raw": "…"}` where the model wrote no JSON object.
        input: Value,
    }

    /// The payload of `tool_call_progress`.
    ToolCallProgress {
        /// The id of the call.
        call_id: String,
        /// From 0 to 100; absent where the tool does not know.
        progress: Option<f64>,
        /// A human-readable line.
        message: String,
    }

    /// The payload of `tool_call_result`.
    ToolCallResult {
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// What the tool gave.
        output: String,
        /// The output, where the call failed or did not run.
        error: Option<String>,
        /// What precedes the output in what the model reads: that a person has edited the arguments, and reminders of stream rules.
        reminder: Option<String>,
        /// A unified diff, for people.
        diff: Option<String>,
        /// How long it ran; absent where it did not.
        duration_ms: Option<u64>,
        /// How long it waited for a confirmation; absent where nobody was asked.
        waited_ms: Option<u64>,
    }

    /// The payload of `tool_confirmation_requested`.
    ToolConfirmationRequested {
        /// The id of the question; absent in records of early versions.
        question_id: Option<String>,
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The arguments, as in `tool_call_start`.
        input: Value,
        /// Which setting asks.
        reason: String,
        /// What the person is shown of the call.
        preview: Preview,
        /// What the answer `always` would allow; absent where each such call is asked about.
        always: Option<String>,
        /// Milliseconds until the question is answered by itself; absent where it waits.
        timeout_ms: Option<u64>,
    }

    /// What a person is shown of a call: exact strings, to be escaped by the front end.
    Preview {
        /// The decoded arguments.
        arguments: Vec<Argument>,
        /// The change to a file as a unified diff.
        diff: Option<String>,
        /// Facts that neither the arguments nor the diff show.
        notes: Vec<String>,
    }

    /// One decoded argument.
    Argument {
        /// The key of the argument.
        name: String,
        /// A string as it is, anything else as JSON.
        value: String,
    }

    /// The payload of `tool_confirmation_resolved`.
    ToolConfirmationResolved {
        /// The id of the question; absent in records of early versions.
        question_id: Option<String>,
        /// The id of the call.
        call_id: String,
        /// Whether the call may run.
        approved: bool,
        /// `approved`, `always`, `edited`, `denied`, `unavailable`, `timed_out` or `cancelled`; absent in records of early versions.
        decision: Option<String>,
        /// Of a denial: the reason, which the model reads.
        reason: Option<String>,
        /// Of `always`: what is not asked about from now on in the session.
        pattern: Option<String>,
        /// Of `edited`: the arguments that run, exactly as they were written.
        arguments: Option<String>,
        /// Who has answered; absent where nobody has.
        decided_by: Option<String>,
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
        /// failed), `type` (the provider's), and `pattern`, the entry of `errors.toml` that decided about the class.
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

    /// The payload of `rule_fired`.
    RuleFired {
        /// The name of the rule.
        rule: String,
        /// `text`, `thinking` or `tool`.
        stream: String,
        /// What is done about it.
        action: String,
        /// The first of this stream and rule in the turn.
        first: bool,
        /// Only reported: its repeat mode does not let it act.
        again: bool,
        /// What was found.
        evidence: Evidence,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
    }

    /// What a rule found.
    Evidence {
        /// The condition that matched; empty where `unread` is set.
        pattern: String,
        /// The matched text, at most 200 bytes of it.
        text: String,
        /// First byte of the match in its stream.
        start: u64,
        /// The byte after its last.
        end: u64,
        /// The line that it begins on, from 1.
        line: u32,
        /// For tools: the argument.
        field: Option<String>,
        /// For tools: the file the call is about.
        path: Option<String>,
        /// The rule guards this call and could not read its arguments.
        unread: Option<bool>,
    }

    /// The payload of `rule_hold_released`.
    RuleHoldReleased {
        /// On which stream.
        stream: String,
        /// How many bytes.
        bytes: u64,
        /// `hold_max_bytes` or `hold_max_ms`.
        bound: String,
    }

    /// The payload of `rule_held`.
    RuleHeld {
        /// On which stream.
        stream: String,
        /// The rules that made them wait.
        rules: Vec<String>,
        /// How often holding began.
        holds: u32,
        /// The most bytes that were held at once.
        bytes_max: u64,
        /// The longest that a byte was held, in milliseconds.
        ms_max: u64,
        /// How the last hold ended.
        outcome: String,
    }

    /// The payload of `ttsr_injection`.
    TtsrInjection {
        /// Names of the rules, each once.
        rules: Vec<String>,
        /// Bytes of the answer that were discarded.
        discarded_bytes: u64,
        /// What a resumed session needs to know, one for each rule.
        records: Vec<Injected>,
    }

    /// A reminder that went to the model.
    Injected {
        /// The name of the rule.
        rule: String,
        /// 16 hexadecimal digits for what the rule matched on then.
        hash: String,
        /// Turns of the thread that had been completed then.
        turn: u64,
        /// On which stream it fired.
        stream: String,
        /// What was done.
        action: String,
        /// Tokens of the answer that were discarded for this rule.
        tokens_discarded: u64,
        /// The provider did not count them.
        tokens_estimated: bool,
        /// What was found.
        evidence: Evidence,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
    }

    /// The payload of `ttsr_rearmed`.
    TtsrRearmed {
        /// Names of the rules, each once.
        rules: Vec<String>,
    }

    /// The payload of `rules_reloaded`.
    RulesReloaded {
        /// Rules in use now.
        active: u64,
        /// What was found while they were read.
        notices: Vec<String>,
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
        /// `context`: the conversation fills the configured share of the model's context.
        triggered_by: String,
        /// The share that is filled, from 0.
        pressure_ratio: f64,
        /// Tokens of the last request and its answer.
        used_tokens: u64,
    }

    /// The payload of `context_compaction_end`.
    ContextCompactionEnd {
        /// The summary, as the model wrote it; absent where nothing has changed.
        summary: Option<String>,
        /// The turn of the first message that stays.
        prune_before_turn: u32,
        /// How many messages of the conversation stay, from the end.
        kept_messages: u64,
        /// Why there is no summary.
        error: Option<String>,
        /// Tokens of the request for the summary.
        tokens: Option<Tokens>,
        /// What it cost, in US dollars; absent where that is not known.
        cost: Option<f64>,
        /// What counts for the limits of the thread so far.
        charged: Option<Charged>,
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

    /// The payload of `extension_registered`.
    ExtensionRegistered {
        /// The id of the extension.
        extension_id: String,
        /// The version of the extension.
        version: String,
        /// `register`, `enable` or `reload`.
        action: String,
        /// What it registered.
        callbacks: Vec<RegisteredCallback>,
    }

    /// A callback that an extension registered.
    RegisteredCallback {
        /// The callback's name.
        callback: String,
        /// From 0 to 100, higher first.
        priority: u32,
        /// What follows a failure.
        on_failure: String,
    }

    /// The payload of `extension_unregistered`.
    ExtensionUnregistered {
        /// The id of the extension.
        extension_id: String,
        /// `unregister` or `disable`.
        action: String,
        /// Why it was removed.
        reason: String,
    }

    /// The payload of `extension_prompt`.
    ExtensionPrompt {
        /// The id of the extension.
        extension_id: String,
        /// Another text of it was shown in the workspace before.
        changed: bool,
        /// Names the texts.
        digest: String,
        /// What the model reads of it.
        texts: Vec<PromptText>,
    }

    /// A text that an extension has the model read.
    PromptText {
        /// Where it goes.
        place: String,
        /// The text as the model reads it.
        text: String,
    }

    /// The payload of `extension_callback`.
    ExtensionCallback {
        /// The id of the extension.
        extension_id: String,
        /// The callback's name.
        callback: String,
        /// How many calls of the turn these are, where there are several.
        calls: Option<u32>,
        /// How long it took, in microseconds; of several calls together.
        duration_us: f64,
        /// `passed`, `changed`, `skipped`, `not_permitted`, `error` or `ignored`.
        outcome: String,
        /// Why it was skipped, failed or was ignored.
        reason: Option<String>,
        /// Of a failure: its kind.
        cause: Option<String>,
        /// Of a trap: the functions, innermost first.
        frames: Option<Vec<String>>,
        /// How many values of its state the extension has read.
        state_reads: Option<u64>,
    }

    /// The payload of `extension_tool`.
    ExtensionTool {
        /// The id of the extension.
        extension_id: String,
        /// The tool's name.
        tool: String,
        /// The id of the call.
        call_id: String,
        /// How long it took, in microseconds.
        duration_us: f64,
        /// `done`, `rejected`, `not_permitted`, `error` or `stopped`.
        outcome: String,
        /// Why it was rejected, not made or failed.
        reason: Option<String>,
        /// Of a failure: its kind.
        cause: Option<String>,
        /// Of a trap: the functions, innermost first.
        frames: Option<Vec<String>>,
        /// How many values of its state the extension has read.
        state_reads: Option<u64>,
    }

    /// The payload of `extension_breaker`.
    ExtensionBreaker {
        /// The id of the extension.
        extension_id: String,
        /// The callback whose call changed the state.
        callback: Option<String>,
        /// The tool whose call changed the state.
        tool: Option<String>,
        /// `session` or `host`.
        scope: String,
        /// `open`, `half_open` or `closed`.
        state: String,
        /// What changed it.
        reason: String,
        /// Milliseconds until a call is tried again; 0 unless it is open.
        retry_after_ms: u64,
    }

    /// The payload of `extension_withheld`.
    ExtensionWithheld {
        /// The id of the extension.
        extension_id: String,
        /// In which callback.
        callback: String,
        /// Bytes of text that were withheld.
        bytes: u64,
        /// Why it was not checked.
        reason: String,
    }

    /// The payload of `extension_state`.
    ExtensionState {
        /// The id of the extension.
        extension_id: String,
        /// `set`, `delete`, `clear`, `evict` or `roll_back`.
        operation: String,
        /// The key; empty for `clear`.
        key: String,
        /// Bytes of the extension's state afterwards.
        size_bytes: u64,
    }

    /// The payload of `extension_log`.
    ExtensionLog {
        /// The id of the extension.
        extension_id: String,
        /// `trace`, `debug`, `info`, `warn` or `error`.
        level: String,
        /// The line as the plugin wrote it.
        message: String,
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

impl CognitionOut {
    /// What the user has seen of the answer, as far as it goes.
    pub fn seen(&self) -> &str {
        match (&self.shown, self.shown_bytes) {
            (Some(shown), _) => shown,
            (None, Some(bytes)) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.text.len());
                &self.text[..self.text.floor_char_boundary(bytes)]
            }
            (None, None) => &self.text,
        }
    }
}
