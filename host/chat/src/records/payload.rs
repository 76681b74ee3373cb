//! The payloads of records, as far as the primitives use them.

use std::sync::Arc;

use flow::{
    AdditionId, Annotation, AnswerBlock, Argument, CallId, Charged, Confirmation, ErrorClass, EventKind, Image,
    InputId, InputWay, Message, Origin, Part, Partial, PluginId, Preview, QuestionId, Retained, Role, StepEnd,
    StopReason, StreamKind, SuspendReason, ToolCall, ToolResult, TurnStatus, Usage, Withdrawal,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

type Read<T> = Result<T, String>;

/// The event of a record; none where no primitive uses its type.
pub(super) fn kind(name: &str, payload: Value) -> Read<Option<EventKind>> {
    let kind = match name {
        "turn_start" => EventKind::TurnStart,
        "thread_resumed" => resumed(payload)?,
        "thread_completed" => {
            EventKind::ThreadCompleted { turns: 0, usage: Usage::default(), spend: None, duration_ms: 0 }
        }
        "thread_error" => {
            let Failure { category, error } = read(payload)?;
            EventKind::ThreadError { class: class(&category), message: error }
        }
        "thread_cancelled" => EventKind::ThreadCancelled { by: read::<Cancelled>(payload)?.cancelled_by },
        "turn_finish" => EventKind::TurnFinish { status: read::<Finish>(payload)?.status()? },
        "step_start" => EventKind::StepStart { number: read::<StepStart>(payload)?.turn_number },
        "step_finish" => step_finish(&read(payload)?),
        "input_received" => {
            let (id, message) = read::<Spoken>(payload)?.input()?;
            EventKind::InputReceived { id, message: Arc::new(message) }
        }
        "input_queued" => read::<Queued>(payload)?.kind()?,
        "input_edited" => {
            let Edited { id, text } = read(payload)?;
            EventKind::InputEdited { id: InputId::new(id), text }
        }
        "input_withdrawn" => {
            let Withdrawn { id, receipt } = read(payload)?;
            let receipt = Withdrawal::from_word(&receipt).ok_or_else(|| format!("`{receipt}` is no receipt"))?;
            EventKind::InputWithdrawn { id: InputId::new(id), receipt }
        }
        "steering_message" => {
            let (id, message) = read::<Spoken>(payload)?.input()?;
            EventKind::SteeringMessage { id, role: message.role, text: message.plain_text() }
        }
        "custom_message" => {
            let Custom { custom_type, text, hidden } = read(payload)?;
            EventKind::CustomMessage { custom_type, text, hidden }
        }
        "history_replaced" => {
            let messages = read::<History>(payload)?.messages.into_iter().map(MessageRecord::message);
            EventKind::HistoryReplaced { messages: messages.map(|one| one.map(Arc::new)).collect::<Read<_>>()? }
        }
        "cognition_out" => read::<Out>(payload)?.kind()?,
        "cognition_out_delta" => {
            let Delta { text, chunk_index } = read(payload)?;
            EventKind::CognitionOutDelta { text, index: chunk_index }
        }
        "cognition_reasoning_delta" => EventKind::CognitionReasoningDelta { text: read::<Delta>(payload)?.text },
        "tool_call_start" => {
            let Call { call_id, tool, input, .. } = read(payload)?;
            EventKind::ToolCallStart { call: CallId::new(call_id), tool, arguments: arguments(&input) }
        }
        "tool_call_progress" => {
            let Progress { call_id, progress, message } = read(payload)?;
            EventKind::ToolCallProgress { call: CallId::new(call_id), message, percent: progress }
        }
        "tool_call_result" => read::<Done>(payload)?.kind(),
        "tool_confirmation_requested" => {
            let Call { question_id, call_id, tool, input, reason, preview, always, timeout_ms } = read(payload)?;
            let question = question(question_id, &call_id);
            let (call, arguments, preview) = (CallId::new(call_id), arguments(&input), preview.preview());
            EventKind::ToolConfirmationRequested {
                question,
                call,
                tool,
                arguments,
                reason,
                preview,
                always,
                timeout_ms,
            }
        }
        "tool_confirmation_resolved" => {
            let resolved: Resolved = read(payload)?;
            let (question, call) =
                (question(resolved.question_id.clone(), &resolved.call_id), CallId::new(&*resolved.call_id));
            let by = resolved.decided_by.clone().unwrap_or_default();
            EventKind::ToolConfirmationResolved { question, call, decision: resolved.decision()?, by }
        }
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

fn read<T: DeserializeOwned>(payload: Value) -> Read<T> {
    T::deserialize(payload).map_err(|error| error.to_string())
}

/// Records of early versions name the call alone.
fn question(id: Option<String>, call: &str) -> QuestionId {
    QuestionId::new(id.unwrap_or_else(|| call.to_owned()))
}

/// Arguments that were no JSON object are in a record as `{"raw": …}`.
fn arguments(input: &Value) -> String {
    match input.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("raw")) {
        Some(Value::String(raw)) => raw.clone(),
        _ => input.to_string(),
    }
}

fn class(word: &str) -> ErrorClass {
    ErrorClass::from_word(word).unwrap_or(ErrorClass::Permanent)
}

fn role(word: &str) -> Read<Role> {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    roles.into_iter().find(|role| role.as_str() == word).ok_or_else(|| format!("`{word}` is no role"))
}

fn plugin(id: &str) -> Read<PluginId> {
    id.parse().map_err(|error| format!("`{id}`: {error}"))
}

fn resumed(payload: Value) -> Read<EventKind> {
    let Resume { resumed_by, provider, model } = read(payload)?;
    Ok(EventKind::ThreadResumed { by: resumed_by, suspended: None, provider, model })
}

fn step_finish(finish: &StepFinish) -> EventKind {
    let end = match finish.finish_reason.as_str() {
        "cancelled" => StepEnd::Cancelled,
        "error" => StepEnd::Failed,
        other => StepEnd::Answered(StopReason::Other(other.to_owned())),
    };
    EventKind::StepFinish {
        usage: Usage::default(),
        spend: None,
        charged: Charged::default(),
        end,
        context_tokens: None,
    }
}

#[derive(Deserialize)]
struct Resume {
    resumed_by: String,
    provider: String,
    model: String,
}

#[derive(Deserialize)]
struct Failure {
    category: String,
    error: String,
}

#[derive(Deserialize)]
struct Cancelled {
    cancelled_by: String,
}

#[derive(Deserialize)]
struct StepStart {
    turn_number: u32,
}

#[derive(Deserialize)]
struct StepFinish {
    finish_reason: String,
}

#[derive(Deserialize)]
struct Finish {
    status: String,
    extension_id: Option<String>,
    reason: Option<String>,
    rule: Option<String>,
    category: Option<String>,
    error: Option<String>,
    steps: Option<u32>,
}

impl Finish {
    fn status(self) -> Read<TurnStatus> {
        Ok(match self.status.as_str() {
            "completed" => TurnStatus::Completed,
            "cancelled" => TurnStatus::Cancelled,
            "rejected" => TurnStatus::Rejected {
                by: plugin(&self.extension_id.unwrap_or_default())?,
                reason: self.reason.unwrap_or_default(),
            },
            "stopped_by_rule" => TurnStatus::StoppedByRule { rule: self.rule.unwrap_or_default() },
            "step_limit" => TurnStatus::StepLimit { steps: self.steps.unwrap_or_default() },
            "failed" => TurnStatus::Failed {
                class: class(&self.category.unwrap_or_default()),
                message: self.error.unwrap_or_default(),
            },
            "suspended" => TurnStatus::Suspended {
                reason: SuspendReason::from_word(&self.reason.unwrap_or_default()).unwrap_or(SuspendReason::Limit),
                message: self.error.unwrap_or_default(),
            },
            // A status of a later version: the turn is over, and did not complete.
            other => TurnStatus::failed(format!("the turn ended as `{other}`")),
        })
    }
}

#[derive(Deserialize)]
struct Spoken {
    text: String,
    role: String,
    #[serde(default)]
    hidden: bool,
    author: Option<AuthorRecord>,
    parts: Option<Vec<PartRecord>>,
    id: Option<String>,
}

#[derive(Deserialize)]
struct Queued {
    id: String,
    way: String,
    text: String,
    #[serde(default = "user")]
    role: String,
    #[serde(default)]
    hidden: bool,
    author: Option<AuthorRecord>,
    parts: Option<Vec<PartRecord>>,
}

fn user() -> String {
    Role::User.as_str().to_owned()
}

impl Queued {
    fn kind(self) -> Read<EventKind> {
        let Self { id, way, text, role, hidden, author, parts } = self;
        let way = InputWay::from_word(&way).ok_or_else(|| format!("`{way}` is no way to deliver an input"))?;
        let (id, message) = Spoken { text, role, hidden, author, parts, id: Some(id) }.input()?;
        let id = id.ok_or("`id` is missing")?;
        Ok(EventKind::InputQueued { id, way, message: Arc::new(message) })
    }
}

#[derive(Deserialize)]
struct Edited {
    id: String,
    text: String,
}

#[derive(Deserialize)]
struct Withdrawn {
    id: String,
    receipt: String,
}

impl Spoken {
    fn input(mut self) -> Read<(Option<InputId>, Message)> {
        let id = self.id.take().map(InputId::new);
        Ok((id, self.message()?))
    }

    fn message(self) -> Read<Message> {
        let parts = self.parts.unwrap_or_else(|| vec![PartRecord::Text { text: self.text }]);
        let author = self.author.unwrap_or(AuthorRecord::User);
        MessageRecord { role: self.role, author, hidden: self.hidden, parts }.message()
    }
}

#[derive(Deserialize)]
struct History {
    messages: Vec<MessageRecord>,
}

#[derive(Deserialize)]
struct MessageRecord {
    role: String,
    author: AuthorRecord,
    #[serde(default)]
    hidden: bool,
    parts: Vec<PartRecord>,
}

impl MessageRecord {
    fn message(self) -> Read<Message> {
        let parts = self.parts.into_iter().map(PartRecord::part).collect::<Read<_>>()?;
        Ok(Message { role: role(&self.role)?, origin: self.author.origin()?, parts, hidden: self.hidden })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AuthorRecord {
    User,
    #[default]
    Model,
    Host,
    Extension(String),
    Addition {
        extension_id: String,
        index: usize,
    },
}

impl AuthorRecord {
    fn origin(self) -> Read<Origin> {
        Ok(match self {
            Self::User => Origin::User,
            Self::Model => Origin::Model,
            Self::Host => Origin::Host,
            Self::Extension(id) => Origin::Plugin(plugin(&id)?),
            Self::Addition { extension_id, index } => {
                Origin::Addition(AdditionId { plugin: plugin(&extension_id)?, index })
            }
        })
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PartRecord {
    Text { text: String },
    Image { media_type: String, data: String },
    Thinking { text: String },
    ToolCall { call_id: String, tool: String, arguments: String },
    ToolResult { call_id: String, content: Vec<String>, is_error: bool },
}

impl PartRecord {
    fn part(self) -> Read<Part> {
        Ok(match self {
            Self::Text { text } => Part::Text(text),
            Self::Image { media_type, data } => {
                Part::Image(Image::new(&media_type, data).map_err(|error| error.to_string())?)
            }
            Self::Thinking { text } => Part::Thinking { text, signature: None, redacted: false },
            Self::ToolCall { call_id, tool, arguments } => {
                Part::ToolCall(ToolCall { id: CallId::new(call_id), name: tool, arguments })
            }
            Self::ToolResult { call_id, content, is_error } => {
                Part::ToolResult(ToolResult { call: CallId::new(call_id), content, is_error })
            }
        })
    }
}

#[derive(Deserialize)]
struct Custom {
    custom_type: String,
    text: String,
    hidden: bool,
}

#[derive(Deserialize)]
struct Delta {
    text: String,
    #[serde(default)]
    chunk_index: u32,
}

#[derive(Deserialize)]
struct Out {
    text: String,
    #[serde(default)]
    author: AuthorRecord,
    shown: Option<String>,
    #[serde(default)]
    is_partial: bool,
    error: Option<String>,
    shown_bytes: Option<u64>,
    kept_bytes: Option<u64>,
    #[serde(default)]
    retained: String,
    retained_bytes: Option<u64>,
    #[serde(default)]
    blocks: Vec<BlockRecord>,
    #[serde(default)]
    annotations: Vec<NoteRecord>,
}

impl Out {
    fn kind(self) -> Read<EventKind> {
        let retained = match self.retained.as_str() {
            "answer" => Retained::Answer,
            "start" => Retained::Start { bytes: self.retained_bytes.ok_or("`retained_bytes` is missing")? },
            "marked" => Retained::Marked,
            _ => Retained::Nothing,
        };
        let partial = self.is_partial.then(|| {
            let shown = self.shown_bytes.unwrap_or(self.text.len() as u64);
            Partial::new(self.error.unwrap_or_default(), shown, self.kept_bytes.unwrap_or(0))
        });
        let note =
            |note: NoteRecord| Ok((plugin(&note.extension_id)?, Annotation { key: note.key, value: note.value }));
        Ok(EventKind::CognitionOut {
            text: self.text,
            model: None,
            author: self.author.origin()?,
            shown: self.shown,
            partial,
            retained,
            blocks: self.blocks.into_iter().map(BlockRecord::block).collect::<Read<_>>()?,
            annotations: self.annotations.into_iter().map(note).collect::<Read<_>>()?,
            rewrites: Vec::new(),
        })
    }
}

#[derive(Deserialize)]
struct BlockRecord {
    stream: String,
    bytes: Option<u64>,
    call_id: Option<String>,
    tool: Option<String>,
    arguments: Option<String>,
    complete: bool,
}

impl BlockRecord {
    fn block(self) -> Read<AnswerBlock> {
        let call = || {
            let id = self.call_id.as_deref().ok_or("`call_id` is missing")?;
            Ok::<_, &str>((CallId::new(id), self.tool.clone().ok_or("`tool` is missing")?))
        };
        let kind = StreamKind::read(&self.stream, call).ok_or_else(|| format!("`{}` is no stream", self.stream))??;
        let mut block = AnswerBlock::prose(kind, self.bytes.unwrap_or_default());
        (block.arguments, block.complete) = (self.arguments, self.complete);
        Ok(block)
    }
}

#[derive(Deserialize)]
struct NoteRecord {
    extension_id: String,
    key: String,
    value: Value,
}

#[derive(Deserialize)]
struct Call {
    question_id: Option<String>,
    call_id: String,
    tool: String,
    input: Value,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    preview: PreviewRecord,
    always: Option<String>,
    timeout_ms: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PreviewRecord {
    arguments: Vec<ArgumentRecord>,
    diff: Option<String>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct ArgumentRecord {
    name: String,
    value: String,
}

impl PreviewRecord {
    fn preview(self) -> Preview {
        let argument = |one: ArgumentRecord| Argument { name: one.name, value: one.value };
        let arguments = self.arguments.into_iter().map(argument).collect();
        Preview { arguments, diff: self.diff, notes: self.notes }
    }
}

#[derive(Deserialize)]
struct Progress {
    call_id: String,
    progress: Option<f64>,
    message: String,
}

#[derive(Deserialize)]
struct Resolved {
    question_id: Option<String>,
    call_id: String,
    approved: bool,
    decision: Option<String>,
    reason: Option<String>,
    pattern: Option<String>,
    arguments: Option<String>,
    decided_by: Option<String>,
}

impl Resolved {
    /// The decision. Records of early versions have no word for it.
    fn decision(self) -> Read<Confirmation> {
        let Self { approved, decision, reason, pattern, arguments, .. } = self;
        let reason = reason.unwrap_or_default();
        let word = decision.unwrap_or_else(|| if approved { "approved" } else { "denied" }.to_owned());
        Ok(match word.as_str() {
            "approved" => Confirmation::Approved,
            "always" => Confirmation::Always { pattern: pattern.ok_or("pattern")? },
            "edited" => Confirmation::Edited { arguments: arguments.ok_or("arguments")? },
            "denied" => Confirmation::Denied { reason },
            "unavailable" => Confirmation::Unavailable { reason },
            "timed_out" => Confirmation::TimedOut { approved },
            "cancelled" => Confirmation::Cancelled,
            other => return Err(format!("the decision `{other}` is not known")),
        })
    }
}

#[derive(Deserialize)]
struct Done {
    call_id: String,
    tool: String,
    output: String,
    error: Option<String>,
    diff: Option<String>,
    duration_ms: Option<u64>,
    waited_ms: Option<u64>,
}

impl Done {
    fn kind(self) -> EventKind {
        EventKind::ToolCallResult {
            call: CallId::new(self.call_id),
            tool: self.tool,
            output: self.output,
            reminder: None,
            diff: self.diff,
            is_error: self.error.is_some(),
            duration_ms: self.duration_ms,
            waited_ms: self.waited_ms,
        }
    }
}
