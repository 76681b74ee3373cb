//! What happens to one stream between a model and a reader, without a loop: the gate of stream rules, the callbacks of extensions, and
//! the segments that they get.
//!
//! ```text
//! messages ─► input ─► …          a loop asks the model
//! deltas ─► Relay ─► the attempt core (gate) ─► segments, reasoning ─► shown, as events
//!              │ over: `Stopped`, with what is kept of the answer (`Answer::kept`, `Beginning`)
//! answer ─► Completed (`on_llm_output`) ─► its text, its event
//! call ─► calls::check (`on_tool_call`)          result ─► results::done (`on_tool_result`)
//! ```
//! Who uses it is the loop: it reads the model's stream, decides when a request is repeated, owns the conversation, and has a clock. A
//! replay needs the [`attempt`] core alone.
#![forbid(unsafe_code)]

pub mod additions;
pub mod attempt;
mod beginning;
pub mod calls;
mod chain;
mod complete;
pub mod found;
pub mod input;
mod output;
mod reasoning;
mod relay;
pub mod results;
mod segments;
mod shown;

pub use beginning::{Beginning, Prefilled};
pub use chain::{Caller, Events, Tally, in_order};
pub use complete::Completed;
pub use relay::{Relay, RelayParts, Watcher};
pub use segments::Segments;
pub use tidegate_segments::{MAX_SECTION, opened_tags};
