//! Names of things: sessions, plugins, tool calls, questions.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Names one session: all turns that share a history. Chosen by who opens it; any non-empty text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Wraps `id` as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names one tool call, as the model gave it (or as the decoder minted it where the wire has none).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(Arc<str>);

impl CallId {
    /// Wraps `id` as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a question about a tool call: `question-1` for the first of a session. For the session's parent, a question of a child has
/// the child's session before it: `<session>/question-1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(Arc<str>);

impl QuestionId {
    /// Wraps `id` as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id of a question of this session, as the session's parent has it.
    ///
    /// ```
    /// use tidegate_flow::{QuestionId, SessionId};
    /// let own = QuestionId::new("question-1");
    /// assert_eq!(own.of_child(&SessionId::new("7f")).as_str(), "7f/question-1");
    /// ```
    #[must_use]
    pub fn of_child(&self, child: &SessionId) -> Self {
        Self::new(format!("{child}/{self}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a plugin: 1 to 64 ASCII letters, digits and hyphens, unique among the loaded.
///
/// ```
/// use tidegate_flow::{InvalidPluginId, PluginId};
/// assert_eq!("redact-secrets".parse::<PluginId>().unwrap().as_str(), "redact-secrets");
/// assert_eq!("a.b".parse::<PluginId>(), Err(InvalidPluginId::Character { found: '.', at: 1 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginId(Arc<str>);

/// Why a text is not a [`PluginId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPluginId {
    /// No character at all.
    #[error("a plugin id must have at least one character")]
    Empty,
    /// More than [`PluginId::MAX_LEN`] characters.
    #[error("a plugin id has at most 64 characters, this one has {len}")]
    TooLong {
        /// Its length in characters.
        len: usize,
    },
    /// A character other than a letter, digit or hyphen.
    #[error("a plugin id is made of letters, digits and hyphens; found {found:?} as character {}", .at + 1)]
    Character {
        /// The first character that is not allowed.
        found: char,
        /// Its place, counted in characters from 0.
        at: usize,
    },
}

impl PluginId {
    /// The greatest length of an id, in characters (all of them ASCII).
    pub const MAX_LEN: usize = 64;

    /// The id under which the host keeps notes of its own next to the state of plugins. No plugin can have it.
    pub fn host() -> Self {
        Self("tidegate".into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginId {
    type Err = InvalidPluginId;

    fn from_str(text: &str) -> Result<Self, InvalidPluginId> {
        if text.is_empty() {
            return Err(InvalidPluginId::Empty);
        }
        if let Some((at, found)) = text.chars().enumerate().find(|(_, c)| !(c.is_ascii_alphanumeric() || *c == '-')) {
            return Err(InvalidPluginId::Character { found, at });
        }
        if text.len() > Self::MAX_LEN {
            return Err(InvalidPluginId::TooLong { len: text.len() });
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
