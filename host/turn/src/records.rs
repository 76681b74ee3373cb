//! Records of injected rules without a store: in memory, and read from a transcript.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flow::{RuleRecord, SessionId};

use flow::ports::{BoxFuture, KeptRules, RuleRecords};

/// Keeps records as long as the program runs.
#[derive(Debug, Default)]
pub struct MemoryRecords(Mutex<HashMap<SessionId, KeptRules>>);

impl MemoryRecords {
    /// Records that were kept elsewhere, for one session.
    pub fn of(session: SessionId, kept: KeptRules) -> Self {
        Self(Mutex::new(HashMap::from([(session, kept)])))
    }

    /// What is kept of a session.
    pub fn get(&self, session: &SessionId) -> KeptRules {
        self.lock().get(session).cloned().unwrap_or_default()
    }

    /// Forgets a session.
    pub fn forget(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    fn change(&self, session: &SessionId, change: impl FnOnce(&mut KeptRules)) -> Result<(), String> {
        change(self.lock().entry(session.clone()).or_default());
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, KeptRules>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuleRecords for MemoryRecords {
    fn keep(&self, session: &SessionId, record: &RuleRecord) -> Result<(), String> {
        self.change(session, |kept| kept.records.push(record.clone()))
    }

    fn rearmed(&self, session: &SessionId, rule: &str) -> Result<(), String> {
        self.change(session, |kept| kept.records.retain(|record| record.rule != rule))
    }

    fn completed(&self, session: &SessionId, turns: u64) -> Result<(), String> {
        self.change(session, |kept| kept.completed_turns = turns)
    }

    fn load<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<KeptRules, String>> {
        Box::pin(std::future::ready(Ok(self.get(session))))
    }
}
