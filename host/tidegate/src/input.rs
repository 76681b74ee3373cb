//! What a front end sends to a session, and what became of it.
//!
//! ```no_run
//! # fn send(session: &tidegate::Session) -> Result<(), tidegate::input::NotWaiting> {
//! use tidegate::input::{Receipt, WhenBusy};
//!
//! let id = session.submit("Only in this file, please", WhenBusy::Steer);
//! if session.receipt(&id) == Some(Receipt::Queued) {
//!     session.edit(&id, "Only in src/main.rs, please")?;
//! }
//! # Ok(()) }
//! ```

pub use crate::session::{Input, NewInput, WhenBusy};
pub use flow::{InputId, InputWay, Receipt, Withdrawal};
pub use turn::{FlushMode, NotWaiting, WaitingInput};
