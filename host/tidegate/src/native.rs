//! Native extensions: callbacks of the program itself, next to those of plugins.
//!
//! A type that implements [`NativeExtension`] is given to a host or to a session as a [`Native`], with an id and the callbacks that it gets. It
//! works in the same chains as plugins: by priority, and where priorities are equal after all plugins, in the order in which native ones were
//! given. Its calls have the same events, records, metrics, circuit breakers and failure policies.
//!
//! ```
//! use tidegate::native::{CallError, Native, NativeCall, NativeExtension, TextAnswer, TextPlace};
//! use tidegate::plugin::{Callback, Registered, TextUnit};
//!
//! struct Redact;
//!
//! impl NativeExtension for Redact {
//!     fn on_plain_text(&self, _: &NativeCall, text: &str, _: &TextPlace) -> Result<TextAnswer, CallError> {
//!         Ok(if text.contains("hunter2") { TextAnswer::Replace(text.replace("hunter2", "***")) } else { TextAnswer::Pass })
//!     }
//! }
//!
//! # fn host(operator: tidegate::Operator) -> Result<(), Box<dyn std::error::Error>> {
//! // Fails closed: a line that it could not check is not shown.
//! let lines = Registered::from((Callback::PlainText(TextUnit::Line.into()), 90)).closed();
//! let redact = Native::new("redact".parse()?, Redact).on(lines);
//! let host = tidegate::Host::builder(operator).extension(redact);
//! # Ok(()) }
//! ```
//!
//! | of a plugin | of a native extension |
//! |---|---|
//! | its own time is limited, and the guest is stopped | the time from when its code starts is limited ([`Native::time_limit`]): after it the turn goes on without it, and the code runs on, on a thread of its own; of one extension at most 16 calls run so in a session |
//! | memory is limited | **not enforced**: it is code of the process |
//! | what it returns is limited | the same limit, `output_bytes` under `[limits]` |
//! | a trap costs the call | a panic costs the call; the panic hook of the process sees it. With `panic = "abort"` it ends the process, as an abort or a stack overflow does |
//! | what it wrote to `state` is rolled back with its attempt | **not enforced**: what it keeps in itself is its own affair |
//! | powers are granted | it is code of the process, and can do what that can |
//! | an operator enables, disables, orders, requires and configures it | the program does; `disable_plugin` does not know it |
//!
//! A failed call, and one that was stopped, follows the policy of its callback: the chain continues with the last good value, or nothing of what
//! was to be checked is shown ([`Registered::closed`](crate::plugin::Registered::closed)); the failure of one that is [`required`](Native::required) ends the turn.

pub use crate::plugins::native::{CallError, Native, NativeCall, NativeExtension};
pub use flow::ports::SessionInfo;
pub use flow::{
    AskedCall, CallAnswer, GivenResult, InputAnswer, ModelOutput, OutputAnswer, ResultAnswer, ResultStage, Tag,
    TagAnswer, TagPlace, TextAnswer, TextPlace,
};
