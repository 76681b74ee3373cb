//! Failures of a model, in the classes that decide what happens next.

use std::fmt;

use crate::ErrorClass;

impl ErrorClass {
    /// Whether trying again can help at all.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Transient | Self::RateLimited)
    }
}

/// A request to a model failed, before or inside its stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ModelError {
    /// What kind of failure.
    pub class: ErrorClass,
    /// What failed, where and what to do, in one line.
    pub message: String,
    /// The HTTP status, where one was given.
    pub status: Option<u16>,
    /// The provider's own word for it, such as `overloaded_error`.
    pub code: Option<String>,
    /// How long the provider asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ModelError {
    /// An error with nothing but its class and message.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), status: None, code: None, retry_after_ms: None }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
