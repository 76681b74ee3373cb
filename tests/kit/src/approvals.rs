//! Decisions about limits, as a test gives them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{Approvals, BoxFuture, LimitAnswer};
use flow::{LimitDecision, LimitRequest};

/// Decides as it was given, in order, and then nothing any more. Each decision takes ten minutes.
pub struct Decisions {
    given: Mutex<VecDeque<LimitDecision>>,
    asked: Mutex<Vec<LimitRequest>>,
}

impl Decisions {
    pub fn new(given: impl IntoIterator<Item = LimitDecision>) -> Arc<Self> {
        Arc::new(Self { given: Mutex::new(given.into_iter().collect()), asked: Mutex::default() })
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<LimitRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Approvals for Decisions {
    fn decide<'a>(&'a self, request: &'a LimitRequest) -> BoxFuture<'a, LimitAnswer> {
        self.asked.lock().unwrap().push(request.clone());
        let decision = self.given.lock().unwrap().pop_front();
        Box::pin(async move {
            let Some(decision) = decision else { std::future::pending().await };
            tokio::time::sleep(Duration::from_secs(600)).await;
            let by = if decision == LimitDecision::TimedOut { "" } else { "the test" };
            LimitAnswer { decision, by: by.into() }
        })
    }
}
