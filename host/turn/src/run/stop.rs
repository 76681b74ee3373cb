//! Why a turn ends before the model is done, and how that is reported.

use flow::{CallFailure, ErrorClass, FailureCause, ModelError, SuspendReason, TurnStatus};

use flow::ports::{JournalError, StateError};

/// Why a turn ends before the model is done.
pub(super) enum Stop {
    /// The session's state belongs to somebody else, or can no longer be kept.
    State(StateError),
    /// The transcript cannot be written.
    Journal(JournalError),
    /// A limit would be exceeded, and nobody permits it.
    Limit {
        reason: SuspendReason,
        message: String,
    },
    Model(ModelError),
    /// An extension that is required failed, or none could be called for want of an instance.
    Required(CallFailure),
    Rule(String),
}

impl From<CallFailure> for Stop {
    fn from(failure: CallFailure) -> Self {
        Self::Required(failure)
    }
}

impl Stop {
    /// How the turn ends.
    pub(super) fn into_status(self) -> TurnStatus {
        match self {
            Self::Rule(rule) => TurnStatus::StoppedByRule { rule },
            Self::Limit { reason, message } => TurnStatus::Suspended { reason, message },
            Self::Model(error) => {
                TurnStatus::Failed { class: error.class.unwrap_or(ErrorClass::Permanent), message: error.message }
            }
            Self::State(error) => TurnStatus::failed(error.to_string()),
            Self::Journal(error) => TurnStatus::failed(error.to_string()),
            Self::Required(CallFailure { plugin, called, cause: FailureCause::NoInstance, message, .. }) => {
                TurnStatus::failed(format!("{called} of `{plugin}` could not be called: {message}"))
            }
            Self::Required(failure) => TurnStatus::failed(format!("a required extension failed: {failure}")),
        }
    }
}
