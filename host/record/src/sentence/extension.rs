//! Sentences about extensions, and about event types that they declare.

use super::Sentence;
use crate::figures::of;
use crate::{
    CustomEvent, ExtensionBreaker, ExtensionCallback, ExtensionLog, ExtensionPrompt, ExtensionTool,
    ExtensionUnregistered, ExtensionWithheld, SchemaViolation,
};

impl ExtensionUnregistered {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("Extension {} is not used any more ({})", self.extension_id, self.action))
            .with(&self.reason)
    }
}

impl ExtensionPrompt {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let changed = if self.changed { ", changed" } else { "" };
        let texts: Vec<&str> = self.texts.iter().map(|one| one.text.as_str()).collect();
        let text = format!("Text of {} that the model reads{changed}", self.extension_id);
        Sentence::new(text).with(texts.join("\n\n"))
    }
}

impl ExtensionCallback {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let (callback, reason) = (&self.callback, self.reason.as_deref());
        called(&self.extension_id, &self.outcome, callback, self.cause.as_deref(), reason)
    }
}

impl ExtensionTool {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        called(&self.extension_id, &self.outcome, &self.tool, self.cause.as_deref(), self.reason.as_deref())
    }
}

fn called<'r>(id: &str, outcome: &str, what: &str, cause: Option<&str>, reason: Option<&'r str>) -> Sentence<'r> {
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    Sentence::new(format!("Extension {id}: {outcome} in {what}{cause}")).with(reason.unwrap_or_default())
}

impl ExtensionBreaker {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let text = format!("Circuit breaker of {} ({}): {}", self.extension_id, self.scope, self.state);
        Sentence::new(text).with(&self.reason)
    }
}

impl ExtensionWithheld {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let (id, bytes) = (&self.extension_id, of(self.bytes, "byte", "bytes"));
        Sentence::new(format!("Extension {id} did not check {bytes} in {}: withheld", self.callback)).with(&self.reason)
    }
}

impl ExtensionLog {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("Extension {} reports ({})", self.extension_id, self.level)).with(&self.message)
    }
}

impl CustomEvent {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let by = self.extension_id.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
        Sentence::new(format!("{}{by}", self.event_type)).with(self.payload.to_string())
    }
}

impl SchemaViolation {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("An event of the type `{}` was not valid and is not recorded", self.event_type))
    }
}
