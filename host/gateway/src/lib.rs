//! Guards the answers of a model for a client that speaks the model's own wire format: what a proxy does with one exchange, without I/O and
//! without a clock.
//!
//! ```text
//! request ─► prepare (callbacks, Memory) ─► add ─► Exchange ─► upstream    other bytes only in strings that were changed or added
//! frames ─► the attempt core of `guard` ─► Queue ─► Stage (callbacks) ─► client     the same bytes, behind what is held back
//!              │ a rule stops the answer: what the client has, the reminder, and the request goes upstream once more
//!              └► Dialect: the next answer continues the same message
//! ```
//! A server owns the connections: it sends [`Exchange::request`], gives what comes back to [`Exchange::receive`], and sends on what that
//! returns; with extensions, [`Filtered`] does so. The code that decides about a match is that of turns and replays.
#![forbid(unsafe_code)]

mod additions;
mod answer_notes;
mod asked;
mod attempt;
mod body;
mod calls;
mod conversation;
mod dialect;
mod digest;
mod events;
mod exchange;
mod filtered;
mod frame;
mod json;
mod memory;
mod queue;
mod received;
mod request;
mod requests;
mod shown;
mod stage;
mod tools;
mod trail;
mod watching;

pub use additions::{Added, Given, Guide, add};
pub use asked::Asked;
pub use exchange::{Exchange, Fired, HeldLimits, MAX_ATTEMPTS, Next, Then, watches};
pub use filtered::Filtered;
pub use guard::Tally;
pub use memory::Memory;
pub use received::{Answer, Received};
pub use requests::{Prepared, prepare};
pub use shown::{Show, Shown};
pub use trail::Trail;
pub use watching::Watching;
pub use wire::{Wire, json as read_json};
