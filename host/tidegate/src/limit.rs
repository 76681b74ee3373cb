//! What a session may take at most, what it has spent, and decisions about more.
//!
//! [`SessionOptions::limits`](crate::SessionOptions::limits) sets [`Limits`]; a turn that reaches one emits a [`LimitRequest`] and waits until
//! [`Session::decide_limit`](crate::Session::decide_limit) decides about it.

pub use crate::session::approvals::LimitDecisionError;
pub use flow::{Limit, LimitDecision, LimitRequest, Limits, Spend};
pub use turn::{Budget, Spent};
