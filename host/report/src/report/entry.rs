//! What happened at a position of a session.

/// What happened at one position, in order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Log {
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// The callbacks that were called, in the order of their first call.
    pub callbacks: Vec<Callback>,
}

/// The calls of one callback of one extension, at one position or in the whole session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Callback {
    /// The id of the extension.
    pub extension: String,
    /// The callback's name.
    pub callback: String,
    /// Reports of any outcome, also of calls that were not made.
    pub calls: u64,
    /// Calls that changed something.
    pub changed: u64,
    /// Calls that failed.
    pub failed: u64,
    /// The time that all calls took, in microseconds.
    pub total_us: f64,
    /// The time that the longest call took, in microseconds.
    pub max_us: f64,
}

impl Callback {
    /// Adds the calls of the same callback at another position.
    pub(crate) fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.changed += more.changed;
        self.failed += more.failed;
        self.total_us += more.total_us;
        self.max_us = self.max_us.max(more.max_us);
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What it was, with its record.
    pub what: What,
}

/// What an entry is about, with the record that says it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum What {
    /// The user wrote something.
    Input(record::MessagePayload),
    /// A message arrived while the turn was running.
    Steering(record::MessagePayload),
    /// A message joined the conversation.
    Sent(Sent),
    /// A hidden message of the host to the model.
    Message(record::CustomMessage),
    /// The reasoning of the answer that follows.
    Reasoning(Reasoning),
    /// An answer, complete or not.
    Answer(Answer),
    /// A tool call that ran, waited or was refused.
    Tool(ToolCall),
    /// A rule matched.
    Rule(record::RuleFired),
    /// Output was held back because it could have belonged to a match.
    Held(record::RuleHeld),
    /// Held output was released because a limit was reached.
    HoldReleased(record::RuleHoldReleased),
    /// Reminders went to the model.
    Injection(record::TtsrInjection),
    /// Rules act again whose reminder is no longer in the context.
    Rearmed(record::TtsrRearmed),
    /// A request failed.
    Error(record::ErrorClassified),
    /// The request is sent again.
    Retry(record::RetryScheduled),
    /// A request succeeded after it was sent again.
    Retried(record::RetrySucceeded),
    /// A callback failed, was not permitted, or its result was ignored.
    CallbackProblem(record::ExtensionCallback),
    /// A tool of an extension failed or was not permitted.
    ToolProblem(record::ExtensionTool),
    /// Text was withheld because an extension did not check it.
    Withheld(record::ExtensionWithheld),
    /// A circuit breaker of an extension changed its state.
    Breaker(record::ExtensionBreaker),
    /// An extension has the model read these texts.
    Prompt(record::ExtensionPrompt),
    /// The older part of the conversation is to be summarised.
    CompactionStart(record::ContextCompactionStart),
    /// The older part of the conversation was summarised, or that failed.
    CompactionEnd(record::ContextCompactionEnd),
    /// The conversation was replaced by one of so many messages.
    HistoryReplaced(record::HistoryReplaced),
    /// A line of an extension's log.
    Log(record::ExtensionLog),
    /// A sentence for the user, of the kind that its record has: `notice`, `state_lost`, `thread_error` and others.
    Notice(String, String),
}

/// A message that joined the conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// The message as the model reads it.
    pub message: record::MessagePayload,
    /// It is an input of this turn that nothing changed.
    pub unchanged: bool,
}

/// The reasoning of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reasoning {
    /// The record of the reasoning, as it is.
    pub record: record::CognitionReasoning,
    /// The parts of its text on which rules matched, as byte ranges, in order and without overlaps.
    pub matches: Vec<std::ops::Range<usize>>,
}

/// An answer of the model, or of an extension in its place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The record of the answer, as it is.
    pub record: record::CognitionOut,
    /// The parts of its text on which rules matched, as byte ranges, in order and without overlaps.
    pub matches: Vec<std::ops::Range<usize>>,
}

/// A tool call, from the question to the result.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// Whether it ran.
    pub started: bool,
    /// The arguments as JSON; `None` where the call neither ran nor was asked about.
    pub arguments: Option<String>,
    /// Why a person was asked; `None`: nobody was.
    pub question: Option<String>,
    /// What was decided.
    pub decision: Option<record::ToolConfirmationResolved>,
    /// The lines of progress that are recorded.
    pub progress: Vec<String>,
    /// The result; `None`: the transcript has none.
    pub result: Option<record::ToolCallResult>,
}

impl Answer {
    /// Returns the text that the user has seen of it.
    pub fn shown(&self) -> &str {
        self.record.seen()
    }
}
