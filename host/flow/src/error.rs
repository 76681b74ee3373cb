//! Failures of a model: what is known about one, from which a [`RetryTable`](crate::RetryTable) decides what happens next.

use std::fmt;

use crate::{ErrorClass, FailureKind, RetryHeader};

/// A request to a model failed, before or inside its stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ModelError {
    /// The class, where whoever reports the error knows it; no table changes it. `None`: a table decides by the facts.
    pub class: Option<ErrorClass>,
    /// What failed, where and what to do, in one line.
    pub message: String,
    /// The HTTP status, where one was given.
    pub status: Option<u16>,
    /// The provider's identifier of the error, such as `overloaded_error`: its code, or its type where it has no code.
    pub code: Option<String>,
    /// How long the provider asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// What else is known.
    pub facts: Box<ErrorFacts>,
}

/// What is known about a failed request in addition to its status and code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorFacts {
    /// The provider, such as `anthropic`.
    pub provider: Option<String>,
    /// Where the request failed.
    pub kind: Option<FailureKind>,
    /// The provider's type of the error, where it gave one.
    pub error_type: Option<String>,
    /// The provider's own message, where it gave one: [`ModelError::message`] contains it.
    pub said: Option<String>,
    /// The provider's own opinion on trying again.
    pub should_retry: Option<bool>,
    /// The waits that headers ask for, in milliseconds.
    pub waits: Vec<(RetryHeader, u64)>,
}

/// What an `error_classified` event reports in addition to class, code and message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorMetadata {
    /// The provider, such as `anthropic`.
    pub provider: Option<String>,
    /// The HTTP status, where one was given.
    pub status: Option<u16>,
    /// Where the request failed.
    pub kind: Option<FailureKind>,
    /// The provider's type of the error, where it gave one.
    pub error_type: Option<String>,
    /// The id of the pattern that decided about the class; `None`: no pattern matched, or the class was given with the error.
    pub pattern: Option<String>,
}

impl ModelError {
    /// An error whose class is known, with nothing but its message.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class: Some(class), ..Self::unclassified(message) }
    }

    /// An error of a kind: a table decides about its class.
    pub fn of_kind(kind: FailureKind, message: impl Into<String>) -> Self {
        let facts = Box::new(ErrorFacts { kind: Some(kind), ..ErrorFacts::default() });
        Self { facts, ..Self::unclassified(message) }
    }

    fn unclassified(message: impl Into<String>) -> Self {
        let (status, code, retry_after_ms) = (None, None, None);
        Self { class: None, message: message.into(), status, code, retry_after_ms, facts: Box::default() }
    }

    /// The text that patterns for messages match on: the message of the provider, or that of the host where the provider reported
    /// nothing, such as for a connection that broke. `None`: the provider gave no message.
    pub fn pattern_text(&self) -> Option<&str> {
        match self.facts.kind {
            Some(FailureKind::Http | FailureKind::Stream) => self.facts.said.as_deref(),
            _ => Some(self.facts.said.as_deref().unwrap_or(&self.message)),
        }
    }

    /// The wait that the first of these headers asks for that the response has. Whoever reports an error without headers asks itself.
    pub fn asked_wait_ms(&self, headers: &[RetryHeader]) -> Option<u64> {
        if self.facts.waits.is_empty() {
            return self.retry_after_ms;
        }
        headers.iter().find_map(|header| self.facts.waits.iter().find(|(of, _)| of == header).map(|(_, ms)| *ms))
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
