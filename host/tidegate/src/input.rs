//! What a front end sends to a session, and what became of it.
//!
//! ```no_run
//! # fn send(session: &tidegate::Session) -> Result<(), tidegate::input::InputEditError> {
//! use tidegate::input::{Receipt, WhenBusy};
//!
//! let sent = session.send("Only in this file, please", WhenBusy::Steer);
//! let inbox = session.inbox();
//! if inbox.receipt(&sent.id) == Some(Receipt::Queued) {
//!     inbox.edit(&sent.id, "Only in src/main.rs, please")?;
//! }
//! # Ok(()) }
//! ```

pub use crate::session::{Inbox, Input, NewInput, Sent, WhenBusy};
pub use flow::{InputId, InputWay, Receipt, Withdrawal};
pub use turn::{FlushMode, InputEditError, NotWaiting, RECEIPTS_KEPT, WaitingInput};
