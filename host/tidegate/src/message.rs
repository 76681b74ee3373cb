//! The conversation: the parts of a [`Message`](crate::Message), images among them.
//!
//! ```
//! use tidegate::Message;
//! use tidegate::message::Role;
//!
//! let message = Message::user("Rename the function");
//! assert_eq!((message.role, message.plain_text().as_str()), (Role::User, "Rename the function"));
//! ```

pub use crate::session::TurnRunning;
pub use flow::{Image, ImageError, MAX_IMAGE_BYTES, Origin, Part, Role};
