//! Messages of a conversation as records have them.

use flow::{AdditionId, CallId, Image, Message, Origin, Part, PluginId, Role, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

/// A message, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageRecord {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Who wrote it.
    pub author: Author,
    /// Not shown to the user.
    #[serde(default)]
    pub hidden: bool,
    /// Its parts, in order.
    pub parts: Vec<PartRecord>,
}

/// Who wrote a message, which is not the same as the role it is sent under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The person who uses the session, or the program.
    User,
    /// The model, in an answer.
    #[default]
    Model,
    /// The host itself: reminders of stream rules, results of tools.
    Host,
    /// An extension, in a callback: its id.
    Extension(String),
    /// The manifest of an extension, which adds text to the prompt: its id.
    Addition {
        /// The extension that declares it.
        extension_id: String,
        /// Its index among the additions that the extension declares, from 0.
        index: usize,
    },
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PartRecord {
    /// Text of the author.
    Text {
        /// The text of this part.
        text: String,
    },
    /// An image of the user's input.
    Image {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// Its file in base64.
        data: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The text; may be empty where the provider hides it.
        text: String,
        /// Opaque data that the provider requires back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The provider gave the signature instead of words.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redacted: bool,
    },
    /// The model asks for a tool.
    ToolCall {
        /// Pairs it with its result.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The arguments, exactly as the model wrote them.
        arguments: String,
    },
    /// The answer to a call.
    ToolResult {
        /// The call that it answers.
        call_id: String,
        /// Blocks of text.
        content: Vec<String>,
        /// The call failed.
        is_error: bool,
    },
}

impl MessageRecord {
    /// The record of a message.
    pub fn of(message: &Message) -> Self {
        let parts = message.parts.iter().map(PartRecord::of).collect();
        let author = Author::of(&message.origin);
        Self { role: message.role.as_str().to_owned(), author, hidden: message.hidden, parts }
    }

    /// The message of a record. The error is the key that is wrong.
    ///
    /// # Errors
    /// A word of the record is not one of those that this version knows, or an image is none.
    pub fn message(&self) -> Result<Message, &'static str> {
        let (role, origin) = (role(&self.role)?, self.author.origin()?);
        let parts = self.parts.iter().map(PartRecord::part).collect::<Result<_, _>>()?;
        Ok(Message { role, origin, parts, hidden: self.hidden })
    }
}

impl Author {
    pub(super) fn of(origin: &Origin) -> Self {
        match origin {
            Origin::User => Self::User,
            Origin::Model => Self::Model,
            Origin::Host => Self::Host,
            Origin::Plugin(id) => Self::Extension(id.as_str().to_owned()),
            Origin::Addition(id) => Self::Addition { extension_id: id.plugin.as_str().to_owned(), index: id.index },
        }
    }

    /// The origin of a message. The error is the key that is wrong.
    ///
    /// # Errors
    /// An id of the record is not valid.
    pub fn origin(&self) -> Result<Origin, &'static str> {
        let plugin = |id: &String| id.parse::<PluginId>().map_err(|_| "author");
        Ok(match self {
            Self::User => Origin::User,
            Self::Model => Origin::Model,
            Self::Host => Origin::Host,
            Self::Extension(id) => Origin::Plugin(plugin(id)?),
            Self::Addition { extension_id, index } => {
                Origin::Addition(AdditionId { plugin: plugin(extension_id)?, index: *index })
            }
        })
    }
}

impl PartRecord {
    pub(super) fn of(part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::Text { text: text.clone() },
            Part::Image(image) => {
                Self::Image { media_type: image.media_type().to_owned(), data: image.base64().to_owned() }
            }
            // What the words were is nobody's but the provider's, and the signature is about them.
            Part::Thinking { redacted, shown: Some(shown), .. } => {
                Self::Thinking { text: shown.clone(), signature: None, redacted: *redacted }
            }
            Part::Thinking { text, signature, redacted, shown: None } => {
                Self::Thinking { text: text.clone(), signature: signature.clone(), redacted: *redacted }
            }
            Part::ToolCall(ToolCall { id, name, arguments }) => {
                Self::ToolCall { call_id: id.as_str().to_owned(), tool: name.clone(), arguments: arguments.clone() }
            }
            Part::ToolResult(ToolResult { call, content, is_error }) => {
                Self::ToolResult { call_id: call.as_str().to_owned(), content: content.clone(), is_error: *is_error }
            }
        }
    }

    /// The part of a record. The error is the key that is wrong.
    ///
    /// # Errors
    /// An image of the record is none.
    pub fn part(&self) -> Result<Part, &'static str> {
        Ok(match self.clone() {
            Self::Text { text } => Part::Text(text),
            Self::Image { media_type, data } => Part::Image(Image::new(&media_type, data).map_err(|_| "parts")?),
            Self::Thinking { text, signature, redacted } => Part::Thinking { text, signature, redacted, shown: None },
            Self::ToolCall { call_id, tool, arguments } => {
                Part::ToolCall(ToolCall { id: CallId::new(call_id), name: tool, arguments })
            }
            Self::ToolResult { call_id, content, is_error } => {
                Part::ToolResult(ToolResult { call: CallId::new(call_id), content, is_error })
            }
        })
    }
}

/// The role of a word. The error is the key that is wrong.
///
/// # Errors
/// No role is known by the word.
pub fn role(word: &str) -> Result<Role, &'static str> {
    [Role::System, Role::User, Role::Assistant, Role::Tool].into_iter().find(|role| role.as_str() == word).ok_or("role")
}
