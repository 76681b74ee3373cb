//! The agent loop: *input → prompt → model stream → output → tools*. What happens to one stream is in [`guard`]; here are the stages
//! around it, and the loop. What the loop needs from outside are the ports of [`flow::ports`] and [`sources`].
//!
//! ```text
//! input ─► prompt ─► model ─► stream (gate) ─► segments ─► shown
//!                      ▲          │ a rule stops it              output ─► tools ─┐
//!                      └──────────┴── reminder, next attempt          ▲           │
//!                      └──────────────────────────────────────────────┴───────────┘ next step
//! ```
//! An **attempt** is one request to the model; a **step** is one answer that was accepted; a **turn** is everything from
//! one user input to idle. No stage calls back upstream: a stage returns what it found, and only the loop in
//! `run` (`Turn::attempts`) stops, goes back and starts again. No byte of a match is shown before the verdict on it, as far as the
//! limits of holding allow; text before it can become void.
#![forbid(unsafe_code)]

mod prompt;

mod stream;

mod tools;

#[doc(hidden)]
pub mod bench;
mod budget;
mod context;
mod events;
mod history;
mod inputs;
mod metrics;
mod notices;
mod questions;
pub mod rebuild;
mod records;
mod retry;
mod run;
mod session;
pub mod sources;
mod spans;
mod view;

pub use budget::{Budget, Spent};
pub use context::estimated_tokens;
pub use events::{Feed, Hub, Subscription, channel};
pub use history::History;
pub use inputs::{Claim, FlushMode, InputEditError, Inputs, NotWaiting, RECEIPTS_KEPT, Ticket, WaitingInput};
pub use metrics::RuleMetrics;
pub use notices::{TriggerSubscription, Triggers};
pub use questions::{AnswerError, EditError, QuestionSettings, Questions};
pub use records::MemoryRecords;
pub use session::{Canceller, Compaction, Handles, InjectedRules, Session, SessionParts, SessionSettings, TurnReport};
/// Stops a turn from outside, at any point. Cancelling drops everything that the turn has under way: the model's stream (the
/// provider sees the connection close), a callback in a guest, a running tool with all that it started. Accepted messages
/// remain in the history.
pub use tokio_util::sync::CancellationToken;
pub use view::View;
