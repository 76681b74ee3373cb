//! The kinds of events.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{AnswerBlock, CallbackReport, HoldOutcome, Partial, Retained, StepEnd, TurnStatus};
use crate::{
    Action, Annotation, BreakerScope, BreakerState, CallId, CallbackKind, Called, Charged, CompactionCause,
    CompactionMethod, Confirmation, ErrorClass, ErrorMetadata, ExtensionPrompt, InputId, InputWay, KeptText, LeftOut,
    Limit, LimitDecision, LimitRequest, Message, Origin, PlanEntry, PluginId, Preview, QuestionId, Registered,
    RegistrationAction, Role, RuleMatch, RuleRecord, SessionId, Spend, StreamKind, SuspendReason, ThreadMode,
    ToolReport, Usage, Withdrawal,
};

/// Defines [`EventKind`] with the name of each kind, and [`EventView`], which has the same kinds with their fields borrowed.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $kind:ident
        $({ $($(#[$about:meta])* $field:ident: $type:ty,)+ })?
        $(($inner:ident: $only:ty))?
        = $name:literal,
    )+) => {
        /// What happened, with its payload. Kinds are added in minor versions.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum EventKind {
            $(
                $(#[$doc])*
                $kind $({ $($(#[$about])* $field: $type,)+ })? $(($only))?,
            )+
        }

        /// An [`EventKind`] for crates that must have an answer for every kind, such as the writer of records: a match on it
        /// needs no wildcard, so that a kind that is added does not compile until it has its arm. It is not part of the facade.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "the kinds and fields are those of `EventKind`")]
        pub enum EventView<'e> {
            $($kind $({ $($field: &'e $type,)+ })? $((&'e $only))?,)+
        }

        impl EventKind {
            /// The names of all kinds, as the thread-event specification and records have them.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Returns the name of the kind.
            pub fn name(&self) -> &'static str {
                match EventView::from(self) {
                    $(EventView::$kind { .. } => $name,)+
                }
            }
        }

        impl<'e> From<&'e EventKind> for EventView<'e> {
            fn from(kind: &'e EventKind) -> Self {
                match kind {
                    $(EventKind::$kind $({ $($field,)+ })? $(($inner))? => Self::$kind $({ $($field,)+ })? $(($inner))?,)+
                }
            }
        }
    };
}

impl EventKind {
    /// Returns the name of the type that a catalogue has for it: that of its kind, or the declared type of a custom event.
    pub fn type_name(&self) -> &str {
        if let Self::CustomEvent { event_type, .. } = self { event_type } else { self.name() }
    }
}

events! {
    /// `thread_started`: the first turn of the thread begins. Once in a thread.
    ThreadStarted {
        /// The thread's session.
        session: SessionId,
        /// The agent that answers.
        agent: String,
        /// The provider's name.
        provider: String,
        /// The model's name.
        model: String,
        /// The workspace's folder, absolute; empty where there is none.
        workspace: String,
        /// What the thread is for.
        mode: ThreadMode,
        /// What it was started with, by name: what an embedder has given it, the task of a child agent, or the start of its first input,
        /// which `input_received` has whole. Empty where it was started with nothing.
        inputs: Map<String, Value>,
    } = "thread_started",
    /// `thread_resumed`: the thread continues in another process, with another handle or with another model than before.
    ThreadResumed {
        /// What it continues with: `input`; without one, `approval` where a higher limit was approved, and `continue` otherwise. `model`: it was
        /// not interrupted, and another model answers from now on.
        by: String,
        /// Why it was suspended, if it was.
        suspended: Option<SuspendReason>,
        /// The provider's name.
        provider: String,
        /// The model's name.
        model: String,
    } = "thread_resumed",
    /// `thread_suspended`: nothing of the thread continues on its own, and it can be continued, also by another process.
    ThreadSuspended {
        /// Why it is suspended.
        reason: SuspendReason,
        /// The cause in one sentence.
        message: String,
        /// The number of turns that were run.
        turns: u32,
        /// Tokens of all attempts.
        usage: Usage,
        /// What they cost; `None` where it is not known of all of them.
        spend: Option<Spend>,
        /// Milliseconds since the thread started.
        duration_ms: u64,
    } = "thread_suspended",
    /// `thread_completed`: the session closed, and its last turn did not fail.
    ThreadCompleted {
        /// The number of turns that were run.
        turns: u32,
        /// Tokens of all attempts.
        usage: Usage,
        /// What they cost; `None` where it is not known of all of them.
        spend: Option<Spend>,
        /// Milliseconds since the thread started.
        duration_ms: u64,
    } = "thread_completed",
    /// `thread_error`: the session closed after a turn that failed.
    ThreadError {
        /// What kind of failure.
        class: ErrorClass,
        /// The error in one sentence.
        message: String,
    } = "thread_error",
    /// `thread_cancelled`: the session closed after a turn that was cancelled.
    ThreadCancelled {
        /// Who or what stopped it.
        by: String,
        /// Why, where whoever stopped it has said so.
        reason: Option<String>,
    } = "thread_cancelled",
    /// `turn_start`: a turn begins.
    TurnStart = "turn_start",
    /// `input_received`: a message of the turn's input, before extensions changed it.
    InputReceived {
        /// The id of the input; `None` where it was given without one.
        id: Option<InputId>,
        /// The message as it was given.
        message: Arc<Message>,
    } = "input_received",
    /// `input_queued`: an input waits, or waits to be delivered in another way than before. It waits until an `input_received`, a
    /// `steering_message` or an `input_withdrawn` with its id.
    InputQueued {
        /// The id of the input.
        id: InputId,
        /// How it is going to be delivered.
        way: InputWay,
        /// The message as it was given.
        message: Arc<Message>,
    } = "input_queued",
    /// `input_edited`: the text of an input that waits was replaced.
    InputEdited {
        /// The id of the input.
        id: InputId,
        /// Its text from now on. What is not text of the message stays.
        text: String,
        /// Its message is not shown to the user.
        hidden: bool,
    } = "input_edited",
    /// `input_withdrawn`: an input is not going to be delivered.
    InputWithdrawn {
        /// The id of the input.
        id: InputId,
        /// Whether it was removed, or given back.
        receipt: Withdrawal,
    } = "input_withdrawn",
    /// `turn_finish`: the turn is over, whatever its end.
    TurnFinish {
        /// How it ended.
        status: TurnStatus,
    } = "turn_finish",
    /// `step_start`: the first request of a step is about to be sent.
    StepStart {
        /// The number of the step in the thread, from 1. It never repeats.
        number: u32,
    } = "step_start",
    /// `step_finish`: the step is over, whatever its end.
    StepFinish {
        /// Tokens of all attempts of the step.
        usage: Usage,
        /// What they cost; `None` where no price is known, or the provider did not count.
        spend: Option<Spend>,
        /// What counts for the limits of the thread so far.
        charged: Charged,
        /// How it ended.
        end: StepEnd,
        /// Tokens of the context that the last request and its answer have filled; `None` where the provider did not count them.
        context_tokens: Option<u64>,
    } = "step_finish",
    /// `cognition_in`: the model reads this from the next request on: a message that joined the conversation, as it is sent, after
    /// extensions; or, with the role `system`, the system prompt, at first and whenever it has changed.
    CognitionIn {
        /// The message. Of a system prompt each part is one block.
        message: Arc<Message>,
    } = "cognition_in",
    /// `cognition_out`: the model's text, whole or as far as it was received. `keep` says whether this is the original, before
    /// extensions, or what the user has seen.
    CognitionOut {
        /// The text of the message or delta.
        text: String,
        /// Which text it is: it is also that of the conversation.
        keep: KeptText,
        /// The model's name.
        model: Option<String>,
        /// Who wrote it: the model, or the extension that replied in its place.
        author: Origin,
        /// What the user has seen of it, where that is neither the text nor its start.
        shown: Option<String>,
        /// Set where the answer did not come to its end.
        partial: Option<Partial>,
        /// What of it stays in the conversation.
        retained: Retained,
        /// What it consisted of, in order; empty for an answer that no model gave.
        blocks: Vec<AnswerBlock>,
        /// What extensions noted, by their id.
        annotations: Vec<(PluginId, Annotation)>,
        /// What extensions made of the text, in order: each one's id and its result.
        rewrites: Vec<(PluginId, String)>,
    } = "cognition_out",
    /// `cognition_out_delta`: text was shown, after the gate and the extensions. Joined, these are what the user saw.
    CognitionOutDelta {
        /// The text of the message or delta.
        text: String,
        /// Number of the delta within its attempt, 0 for the first, also after a kept prefix.
        index: u32,
        /// The answer is complete: no delta of it follows. Its text is empty where all of it had been shown before. An answer that breaks
        /// off has no such delta.
        is_final: bool,
    } = "cognition_out_delta",
    /// `cognition_reasoning`: the model's reasoning, whole or as far as it was received, for transcripts. `keep` says whether this is
    /// the original, before rules and extensions, or what the user has seen; front ends show [`EventKind::CognitionReasoningDelta`].
    CognitionReasoning {
        /// The text of the message or delta.
        text: String,
        /// Which text it is. Signed reasoning goes back to its provider as it was, whichever is kept.
        keep: KeptText,
        /// It did not come to its end.
        interrupted: bool,
        /// It stays in the conversation with its answer: without this event the conversation cannot be rebuilt.
        retained: bool,
    } = "cognition_reasoning",
    /// `cognition_reasoning_delta`: reasoning passed the gate.
    CognitionReasoningDelta {
        /// The text of the message or delta.
        text: String,
    } = "cognition_reasoning_delta",
    /// `tool_call_start`: a call runs now, with all permission that it needs.
    ToolCallStart {
        /// The call's id.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The arguments that it runs with: as the model wrote them, or as a person has edited them.
        arguments: String,
    } = "tool_call_start",
    /// `tool_call_progress`: a running tool reports what it is doing.
    ToolCallProgress {
        /// The call's id.
        call: CallId,
        /// A human-readable line.
        message: String,
        /// How much is done, from 0 to 100; `None` where the tool does not know.
        percent: Option<f64>,
    } = "tool_call_progress",
    /// `tool_call_result`: the call is over; its result goes to the model. A call that never ran has no `tool_call_start`.
    ToolCallResult {
        /// The call's id.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// What the tool gave, after extensions; it goes to the model.
        output: String,
        /// The text that precedes it in the result that the model gets: that a person has edited the arguments, and reminders of
        /// stream rules.
        reminder: Option<String>,
        /// A unified diff, human-readable.
        diff: Option<String>,
        /// It failed, or did not run; `output` contains the reason.
        is_error: bool,
        /// How long it ran; `None` where it did not.
        duration_ms: Option<u64>,
        /// How long it waited for a confirmation; `None` where nobody was asked.
        waited_ms: Option<u64>,
        /// What the tool gave, where extensions have changed it and the original is kept.
        original: Option<String>,
        /// What extensions noted about the result, by their id.
        annotations: Vec<(PluginId, Annotation)>,
    } = "tool_call_result",
    /// `tool_confirmation_requested`: a person is asked about a call.
    ToolConfirmationRequested {
        /// The question's id, unique in the thread. A question that is asked again after its process ended keeps it.
        question: QuestionId,
        /// The call's id.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The arguments that an approval runs: as the model wrote them, or as a person has edited them in an earlier question.
        arguments: String,
        /// Which setting asks.
        reason: String,
        /// What the person is shown of the call.
        preview: Preview,
        /// What [`Answer::Always`](crate::Answer::Always) would allow; `None`: each such call is asked about.
        always: Option<String>,
        /// Milliseconds until the question is answered by itself; `None`: it waits.
        timeout_ms: Option<u64>,
    } = "tool_confirmation_requested",
    /// `tool_confirmation_resolved`: the question about a call was answered.
    ToolConfirmationResolved {
        /// The question's id.
        question: QuestionId,
        /// The call's id.
        call: CallId,
        /// What was decided, with a reason for a denial.
        decision: Confirmation,
        /// Who has answered; empty where nobody has.
        by: String,
    } = "tool_confirmation_resolved",
    /// `plan_updated`: the model has shown what it is going to do, with its tool `plan`. The plan takes the place of the one before.
    PlanUpdated {
        /// Its entries, in order. Empty: there is no plan any more.
        entries: Vec<PlanEntry>,
    } = "plan_updated",
    /// `error_classified`: an error of the provider, and what it means for a retry.
    ErrorClassified {
        /// The class, which decides by which policy the request is sent again.
        class: ErrorClass,
        /// The provider's word, or the HTTP status, or `unknown`.
        code: String,
        /// The error in one sentence.
        message: String,
        /// Whether errors of the class are retried.
        retryable: bool,
        /// What else is known of the error.
        metadata: ErrorMetadata,
    } = "error_classified",
    /// `retry_scheduled`: the request is sent again after a delay.
    RetryScheduled {
        /// The number of this retry, from 1.
        retry: u32,
        /// The most retries there are.
        max_retries: u32,
        /// Milliseconds until the request is sent again.
        delay_ms: u64,
        /// Whether the provider asked for this delay.
        asked: bool,
    } = "retry_scheduled",
    /// `retry_succeeded`: a repeated request was answered.
    RetrySucceeded {
        /// The error that made it necessary.
        original_error: String,
        /// How many times it was tried again.
        retry_count: u32,
        /// Milliseconds waited in all.
        total_delay_ms: u64,
    } = "retry_succeeded",
    /// `limit_escalation_requested`: the thread would exceed a limit, and waits for a decision.
    LimitEscalationRequested(request: LimitRequest) = "limit_escalation_requested",
    /// `limit_escalation_resolved`: the decision about a limit.
    LimitEscalationResolved {
        /// The id of the request.
        request: String,
        /// Which limit it is about.
        limit: Limit,
        /// What was decided.
        decision: LimitDecision,
        /// Who has decided; empty where nobody has.
        by: String,
    } = "limit_escalation_resolved",
    /// `rule_fired`: a stream rule matched.
    RuleFired {
        /// The rule, its stream and the evidence.
        found: RuleMatch,
        /// What is done about it.
        action: Action,
        /// The first of this (stream, rule) in the turn; later ones do not notify extensions again.
        first: bool,
        /// The rule was used before and its repeat mode does not let it act now: the violation is only reported.
        again: bool,
    } = "rule_fired",
    /// `rule_hold_released`: bytes that were held back for conditions without a bounded length were released because a limit
    /// was reached, not because a match was ruled out.
    RuleHoldReleased {
        /// On which stream.
        stream: StreamKind,
        /// How many bytes.
        bytes: u64,
        /// Which bound: `hold_max_bytes` or `hold_max_ms`.
        bound: String,
    } = "rule_hold_released",
    /// `rule_held`: bytes were held back because they might have belonged to a match. One for each stream of an attempt in
    /// which bytes were held back over more than one delta, at the attempt's end.
    RuleHeld {
        /// On which stream.
        stream: StreamKind,
        /// The rules that made them wait, as far as was looked: when holding began, and whenever twice as much was held.
        /// Empty if the setting holds whole blocks back.
        rules: Vec<String>,
        /// How often holding began.
        holds: u32,
        /// The most bytes that were held at once.
        bytes_max: u64,
        /// The longest that a byte was held, in milliseconds.
        ms_max: u64,
        /// How it ended.
        outcome: HoldOutcome,
    } = "rule_held",
    /// `ttsr_injection`: reminders of these rules went to the model.
    TtsrInjection {
        /// Names of the rules, each once.
        rules: Vec<String>,
        /// Bytes of the answer that were discarded (0 for reminders that stop nothing).
        discarded_bytes: u64,
        /// What a resumed session needs to know, one for each of `rules`.
        records: Vec<RuleRecord>,
    } = "ttsr_injection",
    /// `ttsr_rearmed`: reminders of these rules left the conversation (by compaction); the rules may fire again.
    TtsrRearmed {
        /// Names of the rules, each once.
        rules: Vec<String>,
    } = "ttsr_rearmed",
    /// `rules_reloaded`: the rules were edited; from this turn on others count.
    RulesReloaded {
        /// Rules in use now, of every kind.
        active: usize,
        /// What was found while they were read: a file that cannot be read, a rule that was refused.
        notices: Vec<String>,
    } = "rules_reloaded",
    /// `steering_message`: a message that arrived while the turn ran reached the conversation.
    SteeringMessage {
        /// The id of the input; `None` where it was given without one.
        id: Option<InputId>,
        /// The role of its author.
        role: Role,
        /// The text before extensions changed it.
        text: String,
        /// Not shown to the user.
        hidden: bool,
    } = "steering_message",
    /// `custom_message`: the host put a message into the conversation, under the role `user`.
    CustomMessage {
        /// What for: `ttsr-injection` for a reminder, `answer-kept` or `answer-discarded` for what the model reads about the start of
        /// its answer.
        custom_type: String,
        /// The words, as the model sees them.
        text: String,
        /// Not shown to the user.
        hidden: bool,
    } = "custom_message",
    /// `history_replaced`: the conversation is this one from now on: one that the session was opened with, or that was put in the
    /// place of the former.
    HistoryReplaced {
        /// All messages, hidden ones included.
        messages: Vec<Arc<Message>>,
    } = "history_replaced",
    /// `context_compaction_start`: the conversation fills the context of the model, and is going to become smaller.
    ContextCompactionStart {
        /// Why it has to.
        cause: CompactionCause,
        /// How it is done.
        method: CompactionMethod,
        /// Tokens of the next prompt, as it would be.
        used_tokens: u64,
        /// The share of the context that they are.
        ratio: f64,
        /// Tokens that the model takes, prompt and answer together: as known, or as a refusal has shown.
        context_tokens: u64,
    } = "context_compaction_start",
    /// `context_compaction_end`: the conversation is smaller: the summary has taken the place of what it summarises, or parts are left
    /// out; or nothing has changed.
    ContextCompactionEnd {
        /// The summary, as the model wrote it.
        summary: Option<String>,
        /// The turn of the first message that stays.
        prune_before_turn: u32,
        /// How many messages stay, from the end.
        kept: u64,
        /// What is left out of requests from now on, in the order in which it is left out.
        left_out: Vec<LeftOut>,
        /// Tokens of the next prompt, as it is now.
        used_tokens: u64,
        /// Why there is no summary.
        error: Option<String>,
        /// Tokens of the request for the summary.
        usage: Usage,
        /// What they cost; `None` where no price is known, or the provider did not count.
        spend: Option<Spend>,
        /// What counts for the limits of the thread so far.
        charged: Charged,
    } = "context_compaction_end",
    /// `child_thread_started`: the tool `spawn_agent` opens a session for another agent, which works on a task of its own.
    ChildThreadStarted {
        /// The child's session, which has a transcript of its own.
        child: SessionId,
        /// The agent's name.
        agent: String,
        /// The session that this event is of.
        parent: SessionId,
        /// The call of `spawn_agent`, whose result ends the child.
        call: CallId,
    } = "child_thread_started",
    /// `child_thread_failed`: the child did not complete its task. The call of `spawn_agent` has the error as its result.
    ChildThreadFailed {
        /// The child's session.
        child: SessionId,
        /// Why, for the model and for people.
        error: String,
    } = "child_thread_failed",
    /// `extension_registered`: a plugin belongs to the session from now on, in this version.
    ExtensionRegistered {
        /// The extension's id.
        plugin: PluginId,
        /// The plugin's version.
        version: String,
        /// How it came to the session: `register`, `enable`, `reload`.
        action: RegistrationAction,
        /// What it registered, with the operator's priorities and policies.
        callbacks: Vec<Registered>,
    } = "extension_registered",
    /// `extension_unregistered`: a plugin no longer belongs to the session.
    ExtensionUnregistered {
        /// The extension's id.
        plugin: PluginId,
        /// `unregister`: what it kept in the session is deleted; `disable`: that is kept.
        action: RegistrationAction,
        /// Why it was removed.
        reason: String,
    } = "extension_unregistered",
    /// `extension_prompt`: the text that an extension has the model read is new in this workspace, or has changed. Comes before the
    /// first request with it.
    ExtensionPrompt(prompt: ExtensionPrompt) = "extension_prompt",
    /// `extension_callback`: a callback was called, or skipped.
    ExtensionCallback(report: CallbackReport) = "extension_callback",
    /// `extension_tool`: a call of a tool that an extension provides has ended, or was not made.
    ExtensionTool(report: ToolReport) = "extension_tool",
    /// `extension_breaker`: a circuit breaker of an extension changed its state by a call of this session: that of its callbacks,
    /// or that of its tools. While it is open, calls are skipped; the skipped calls have their reports and cause no such event.
    ExtensionBreaker {
        /// The extension's id.
        plugin: PluginId,
        /// The callback or tool whose call changed the state. Callbacks have one breaker, and tools another.
        called: Called,
        /// Whether it is the breaker of this session, or that of all sessions of the host.
        scope: BreakerScope,
        /// The state from now on.
        state: BreakerState,
        /// What changed it.
        reason: String,
        /// Milliseconds until a call is tried again; 0 unless it is open.
        retry_after_ms: u64,
    } = "extension_breaker",
    /// `extension_withheld`: an extension that fails closed did not check something, so it was not shown, or for
    /// `on_input_messages` not sent.
    ExtensionWithheld {
        /// Which extension was to check it.
        plugin: PluginId,
        /// In which callback.
        callback: CallbackKind,
        /// Bytes of text that were withheld.
        bytes: u64,
        /// Why it was not checked: the failure, why the call was skipped, or why the section could not be given to it.
        reason: String,
    } = "extension_withheld",
    /// `extension_state`: a committed change of an extension's state, an eviction, or the restoration of a value that a
    /// discarded attempt had changed.
    ExtensionState {
        /// The extension's id.
        plugin: PluginId,
        /// `set`, `delete`, `clear`, `evict`, `roll_back`.
        operation: String,
        /// The key; empty for `clear`.
        key: String,
        /// Bytes of the extension's state afterwards.
        size_bytes: u64,
    } = "extension_state",
    /// `state_lost`: the session is closed, and what extensions keep in it could not be saved.
    StateLost {
        /// Why, and what it means.
        message: String,
    } = "state_lost",
    /// `schema_violation`: the payload of an event contradicts the schema of its type, so this is recorded in its place.
    SchemaViolation {
        /// The type of the event.
        event_type: String,
        /// What is wrong, each with where: a JSON pointer.
        problems: Vec<(String, String)>,
    } = "schema_violation",
    /// `journal_failed`: the transcript cannot be written any more. What follows the last recorded event is not in it.
    JournalFailed {
        /// Why, and the remedy.
        message: String,
        /// The number of the last event that is known to be on disk; `None` where none is.
        recorded: Option<u64>,
    } = "journal_failed",
    /// `extension_log`: a line a plugin wrote.
    ExtensionLog {
        /// The extension's id.
        plugin: PluginId,
        /// `trace`, `debug`, `info`, `warn`, `error`.
        level: String,
        /// The line as the plugin wrote it.
        message: String,
    } = "extension_log",
    /// `custom_event`: an event of an extension, or of the program that embeds the host, whose type a file or a manifest declares. Its payload
    /// conforms to the schema of that type.
    CustomEvent {
        /// The declared type.
        event_type: String,
        /// The extension that emitted it; `None`: the program that embeds the host.
        plugin: Option<PluginId>,
        /// A JSON object.
        payload: Arc<Value>,
    } = "custom_event",
    /// `notice`: something a user should know that has no event of its own, such as a section too large to handle.
    Notice {
        /// The sentence for the person.
        message: String,
    } = "notice",
}
