//! What callbacks may answer. "No change" is always the cheap answer: nothing is copied back to the host.

use serde::Serialize;

use crate::{Message, Result};

/// Answer to `on_input_messages`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputAnswer {
    /// Keeps the value as it was given.
    Pass,
    /// These messages replace the input, in this order. An empty list drops the input: the turn ends, which is reported.
    Replace(Vec<Message>),
    /// These messages replace the input, or none: it stays as it is. Later extensions are skipped unless they fail closed; each skipped
    /// one is reported.
    Finish(Option<Vec<Message>>),
    /// The reply to the user; the model is not asked. Later extensions are skipped as after `Finish`.
    Reply(String),
    /// The turn ends; the reason is shown to the user.
    Reject(String),
}

impl InputAnswer {
    /// Replies to the user with this text instead of asking the model.
    pub fn reply(text: impl Into<String>) -> Self {
        Self::Reply(text.into())
    }

    /// Ends the turn for this reason, which the user sees.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject(reason.into())
    }
}

/// Answer to `on_plain_text`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextAnswer {
    /// Keeps the value as it was given.
    Pass,
    /// This instead of the unit. May be empty.
    Replace(String),
}

impl TextAnswer {
    /// This text instead of the unit.
    pub fn replace(text: impl Into<String>) -> Self {
        Self::Replace(text.into())
    }
}

/// Answer to `on_tag`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagAnswer {
    /// Keeps the tag and its content as they were given.
    Keep,
    /// This inside, the tag kept byte for byte. The next extension on this tag sees it.
    Content(String),
    /// This instead of the whole section, tag included. No further extension is asked.
    Replace(String),
}

impl TagAnswer {
    /// This inside, the tag kept.
    pub fn content(text: impl Into<String>) -> Self {
        Self::Content(text.into())
    }

    /// This instead of the whole section.
    pub fn replace(text: impl Into<String>) -> Self {
        Self::Replace(text.into())
    }
}

/// Answer to `on_llm_output`: what becomes of the text, and notes about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputAnswer {
    /// The text from here on; `None` = no change. The original stays in the transcript.
    pub replace: Option<String>,
    /// Notes, at most 32: a name of 1 to 128 bytes and JSON text of at most 64 KiB each. They are stored with the
    /// message under the extension's id and are visible to front ends.
    pub annotations: Vec<(String, String)>,
}

impl OutputAnswer {
    /// Returns an answer that keeps the output as it was given.
    pub fn pass() -> Self {
        Self::default()
    }

    /// This text instead. Only an extension that registers [`OutputMode::Rewrite`](crate::OutputMode) may do so.
    pub fn replace(text: impl Into<String>) -> Self {
        Self { replace: Some(text.into()), annotations: Vec::new() }
    }

    /// The same answer with one more note.
    ///
    /// # Errors
    /// `value` cannot be written as JSON, such as a map with keys that are not strings.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Serialize) -> Result<Self> {
        self.annotations.push((key.into(), serde_json::to_string(&value)?));
        Ok(self)
    }
}
