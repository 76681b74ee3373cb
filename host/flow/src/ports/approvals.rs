//! Who decides whether a thread may exceed a limit.

use crate::{LimitDecision, LimitRequest};

use super::BoxFuture;

/// Gets decisions about limits.
pub trait Approvals: Send + Sync {
    /// Opens the request and waits for a decision. It is open when this returns, before the future is polled: its event follows, and an
    /// immediate answer to that counts. It is withdrawn when the future is dropped, because the turn was cancelled; the same request, under the
    /// same id, can be made again by a process that continues the thread.
    fn decide<'a>(&'a self, request: &'a LimitRequest) -> BoxFuture<'a, LimitAnswer>;
}

/// A decision, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitAnswer {
    /// What was decided.
    pub decision: LimitDecision,
    /// Who has decided, such as `the terminal`; empty where nobody has.
    pub by: String,
}
