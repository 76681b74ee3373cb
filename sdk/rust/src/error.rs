//! The error type of callbacks.

use std::fmt;

/// What a callback returns: its answer, or why there is none.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A callback could not do its work. The host skips the call, undoes its writes to state and shows the message to the
/// operator; at most 4 KiB of it are kept.
///
/// Every [`std::error::Error`] turns into it with `?`; for words of your own use [`Error::new`] or [`bail!`](crate::bail).
/// For that reason this type is not itself a `std::error::Error`.
pub struct Error {
    message: String,
    rejects: bool,
}

impl Error {
    /// An error with this message: one line for the operator, saying what went wrong and what to do.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), rejects: false }
    }

    /// An error in what the model wrote. From [`ToolProvider::call`](crate::ToolProvider::call) the model gets it as the result of
    /// its call, and it is not reported as a failure; it should say what to write instead. Elsewhere it is like any other.
    pub fn rejected(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), rejects: true }
    }

    /// Whether the model is to blame.
    pub(crate) fn rejects(&self) -> bool {
        self.rejects
    }

    /// The same error, with what was being done before it: `doing: error`.
    #[must_use]
    pub fn while_doing(self, doing: impl fmt::Display) -> Self {
        Self { message: format!("{doing}: {}", self.message), ..self }
    }

    /// The message, to keep.
    pub fn into_message(self) -> String {
        self.message
    }

    /// Returns the message that the operator sees.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl<E: std::error::Error> From<E> for Error {
    /// The error's message, followed by those of its causes.
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let text = inner.to_string();
            if !message.ends_with(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = inner.source();
        }
        Self { message, rejects: false }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?})", self.message)
    }
}

/// Returns from the callback with an [`Error`]: `bail!("no note named {name}")`.
#[macro_export]
macro_rules! bail {
    ($($message:tt)+) => {
        return ::core::result::Result::Err($crate::Error::new(::core::format_args!($($message)+)))
    };
}
