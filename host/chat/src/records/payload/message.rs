//! Messages and inputs.

use std::sync::Arc;

use flow::{
    AdditionId, CallId, EventKind, Image, InputId, InputWay, Message, Origin, Part, Role, ToolCall, ToolResult,
    Withdrawal,
};
use serde::Deserialize;
use serde_json::Value;

use super::{Read, fields, plugin, read};

pub(super) fn input_received(payload: Value) -> Read<EventKind> {
    let (id, message) = read::<Spoken>(payload)?.input()?;
    Ok(EventKind::InputReceived { id, message: Arc::new(message) })
}

pub(super) fn steering(payload: Value) -> Read<EventKind> {
    let (id, message) = read::<Spoken>(payload)?.input()?;
    Ok(EventKind::SteeringMessage { id, role: message.role, text: message.plain_text() })
}

pub(super) fn input_queued(payload: Value) -> Read<EventKind> {
    fields!(payload {
        id: String,
        way: String,
        text: String,
        #[serde(default = "user")]
        role: String,
        #[serde(default)]
        hidden: bool,
        author: Option<AuthorRecord>,
        parts: Option<Vec<PartRecord>>
    });
    let way = InputWay::from_word(&way).ok_or_else(|| format!("`{way}` is no way to deliver an input"))?;
    let message = Spoken { text, role, hidden, author, parts, id: None }.message()?;
    Ok(EventKind::InputQueued { id: InputId::new(id), way, message: Arc::new(message) })
}

pub(super) fn input_edited(payload: Value) -> Read<EventKind> {
    fields!(payload { id: String, text: String });
    Ok(EventKind::InputEdited { id: InputId::new(id), text })
}

pub(super) fn input_withdrawn(payload: Value) -> Read<EventKind> {
    fields!(payload { id: String, receipt: String });
    let receipt = Withdrawal::from_word(&receipt).ok_or_else(|| format!("`{receipt}` is no receipt"))?;
    Ok(EventKind::InputWithdrawn { id: InputId::new(id), receipt })
}

pub(super) fn custom(payload: Value) -> Read<EventKind> {
    fields!(payload { custom_type: String, text: String, hidden: bool });
    Ok(EventKind::CustomMessage { custom_type, text, hidden })
}

pub(super) fn history_replaced(payload: Value) -> Read<EventKind> {
    fields!(payload { messages: Vec<MessageRecord> });
    let messages = messages.into_iter().map(|message| message.message().map(Arc::new));
    Ok(EventKind::HistoryReplaced { messages: messages.collect::<Read<_>>()? })
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

fn user() -> String {
    Role::User.as_str().to_owned()
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
pub(super) enum AuthorRecord {
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
    pub(super) fn origin(self) -> Read<Origin> {
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
            Self::Thinking { text } => Part::Thinking { text, signature: None, redacted: false, shown: None },
            Self::ToolCall { call_id, tool, arguments } => {
                Part::ToolCall(ToolCall { id: CallId::new(call_id), name: tool, arguments })
            }
            Self::ToolResult { call_id, content, is_error } => {
                Part::ToolResult(ToolResult { call: CallId::new(call_id), content, is_error })
            }
        })
    }
}

fn role(word: &str) -> Read<Role> {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    roles.into_iter().find(|role| role.as_str() == word).ok_or_else(|| format!("`{word}` is no role"))
}
