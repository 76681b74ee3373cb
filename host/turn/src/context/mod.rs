//! The context of the model: how much of it a request fills, what is reserved for the answer, and what is left out where both do not fit.
//!
//! Nobody but the provider can count tokens exactly. So a request is estimated by its bytes ([`estimate`]), and each count of the
//! provider says how far the estimate is off: the same content is counted with that ratio from then on.

mod estimate;
mod gauge;
mod leave_out;
mod reduce;

pub use self::estimate::estimated_tokens;
pub(crate) use self::estimate::{Estimate, of_frame, of_message};
pub(crate) use self::gauge::{Capacity, Count, Gauge, Refusal};
pub(crate) use self::leave_out::leave_out;
pub(crate) use self::reduce::{Conversation, Reduction};
