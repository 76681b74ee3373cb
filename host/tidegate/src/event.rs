//! What happens in a session: the values inside of an [`EventKind`](crate::EventKind), and front ends that reconnect.
//!
//! ```
//! use tidegate::{Event, EventKind};
//!
//! /// What a status line shows after an event; `None`: what it showed before.
//! fn status(event: &Event) -> Option<String> {
//!     match &event.kind {
//!         EventKind::ToolCallStart { tool, .. } => Some(format!("running {tool}")),
//!         EventKind::RetryScheduled { retry, max_retries, .. } => Some(format!("retry {retry} of {max_retries}")),
//!         EventKind::TurnFinish { .. } => Some(String::new()),
//!         // Kinds are added.
//!         _ => None,
//!     }
//! }
//! ```
//!
//! A front end that has lost its connection asks for the events after the last one that it has:
//!
//! ```no_run
//! # fn reconnect(session: &tidegate::Session, next_seq: u64) -> Result<(), tidegate::event::NoBacklog> {
//! let missed = session.subscribe_from(next_seq)?;
//! if let Some(snapshot) = missed.snapshot {
//!     println!("{} events are not kept any more: start from the snapshot", snapshot.omitted);
//! }
//! let events = missed.events; // what was missed, and then everything that happens
//! # Ok(()) }
//! ```

pub use crate::front_end::followed::FollowedSession;
pub use crate::front_end::recent::{Backlog, NoBacklog, Reconnection, Snapshot};
pub use crate::session::interrupted::Interrupted;
pub use crate::session::shown::ShownSubscription;
pub use config::EventDecl;
pub use flow::ports::EmitError;
pub use flow::{
    Annotation, AnswerBlock, BreakerScope, BreakerState, CallFailure, CallbackOutcome, CallbackReport, CompactionCause,
    CompactionMethod, DecidedBy, FailureCause, FailureKind, HoldOutcome, KeptText, Partial, PlanEntry, PlanStatus,
    Position, RegistrationAction, Retained, RunPosition, StepEnd, StreamKind, SuspendReason, ThreadMode,
};
