//! The breakers that a call of a plugin passes: that of its session, and that of all sessions of the host.
//!
//! A plugin that fails in every session would otherwise fail three times in each. The breaker of all sessions counts sessions, not
//! calls: what one session lets a plugin fail on must not end its work in the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flow::{BreakerScope, Called};

use crate::breaker::{Admitted, Breaker, Report, WINDOW_MS};

/// Two breakers of a plugin. The model decides how its tools are called, and so how often they fail: that must not switch off the
/// callbacks of the plugin, which may guard against the model.
#[derive(Debug)]
pub(crate) struct Breakers {
    callbacks: Breaker,
    tools: Breaker,
}

/// The breakers of a plugin in one session, with those that it shares with the other sessions.
pub(crate) struct SessionBreakers {
    own: Breakers,
    shared: Arc<Breakers>,
    report: Report,
    /// By kind of call: when the session last counted as one that failed, plus one; 0 where it did not.
    counted: [AtomicU64; 2],
}

/// A call that both breakers let through.
pub(crate) struct Admission<'a> {
    own: Admitted<'a>,
    shared: Admitted<'a>,
    counted: &'a AtomicU64,
}

impl Breakers {
    /// Two breakers that are closed.
    pub(crate) fn new(scope: BreakerScope) -> Self {
        Self { callbacks: Breaker::new(scope), tools: Breaker::new(scope) }
    }

    fn of(&self, called: &Called) -> &Breaker {
        match called {
            Called::Callback(_) => &self.callbacks,
            Called::Tool(_) => &self.tools,
        }
    }
}

impl SessionBreakers {
    /// Closed breakers of the session, which report to it, beside the `shared` ones.
    pub(crate) fn new(shared: Arc<Breakers>, report: Report) -> Self {
        Self { own: Breakers::new(BreakerScope::Session), shared, report, counted: Default::default() }
    }

    /// As [`Breaker::admit`], for both breakers: a call that one of them skips is the trial of neither.
    pub(crate) fn admit(&self, called: &Called, now: impl Fn() -> u64) -> Result<Admission<'_>, String> {
        let (own, shared) = (self.own.of(called), self.shared.of(called));
        own.check(&now)?;
        let shared = shared.admit(called, &now, &self.report)?;
        let own = own.admit(called, &now, &self.report)?;
        let counted = match called {
            Called::Callback(_) => &self.counted[0],
            Called::Tool(_) => &self.counted[1],
        };
        Ok(Admission { own, shared, counted })
    }
}

impl Admission<'_> {
    /// The call failed at `now`.
    pub(crate) fn failed(self, now: u64) {
        let opened = self.own.failed(now);
        let counted = self.counted.load(Ordering::Relaxed);
        let counts = opened && (counted == 0 || counted + WINDOW_MS <= now + 1);
        if counts {
            self.counted.store(now + 1, Ordering::Relaxed);
        }
        if counts || self.shared.is_trial() {
            self.shared.failed(now);
        }
    }

    /// The call succeeded.
    pub(crate) fn succeeded(self) {
        self.own.succeeded();
        self.shared.succeeded();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::sync::{Arc, Mutex};

    use flow::{BreakerScope, CallbackKind, Called};

    use super::{Breakers, SessionBreakers};

    /// Breakers of so many sessions, and what they reported: scope and state.
    fn sessions(count: usize) -> (Vec<SessionBreakers>, Arc<Mutex<Vec<String>>>) {
        let (shared, reports) = (Arc::new(Breakers::new(BreakerScope::Host)), Arc::new(Mutex::new(Vec::new())));
        let session = |number: usize| {
            let reports = Arc::clone(&reports);
            let report = Box::new(move |change: crate::breaker::Change| {
                let (scope, state) = (change.scope.as_str(), change.state.as_str());
                reports.lock().unwrap().push(format!("{number} {scope} {state} {}", change.retry_after_ms));
            });
            SessionBreakers::new(Arc::clone(&shared), report)
        };
        ((0..count).map(session).collect(), reports)
    }

    fn admit(session: &SessionBreakers, at: u64) -> Result<super::Admission<'_>, String> {
        session.admit(&CallbackKind::Tag.into(), || at)
    }

    fn fail(session: &SessionBreakers, at: u64) {
        admit(session, at).ok().unwrap().failed(at);
    }

    fn skipped(session: &SessionBreakers, at: u64) -> Option<String> {
        admit(session, at).err()
    }

    #[test]
    fn three_sessions_open_it_for_all_and_one_trial_of_any_closes_it() {
        let (sessions, reports) = sessions(5);
        for session in &sessions[..3] {
            assert_eq!(skipped(&sessions[4], 0), None);
            (0..3).for_each(|at| fail(session, at));
        }
        let why = "failed repeatedly in 3 sessions within 60 s; tried again in 0.9 s";
        assert_eq!(skipped(&sessions[4], 100).as_deref(), Some(why));
        let tool = Called::Tool("t".into());
        assert!(sessions[4].admit(&tool, || 100).is_ok(), "tools have breakers of their own");
        let trial = admit(&sessions[3], 1002).ok().unwrap();
        let why = "failed repeatedly in 3 sessions within 60 s; a trial call is under way";
        assert_eq!(skipped(&sessions[4], 1002).as_deref(), Some(why));
        trial.failed(1002);
        assert_eq!(skipped(&sessions[4], 3001).map(|why| why.contains("in 0.0 s")), Some(true), "the back-off doubled");
        admit(&sessions[4], 3002).ok().unwrap().succeeded();
        assert_eq!(skipped(&sessions[3], 3002), None, "one failure of its own opens nothing");
        let host: Vec<String> = reports.lock().unwrap().iter().filter(|line| line.contains("host")).cloned().collect();
        let expected =
            ["2 host open 1000", "3 host half_open 0", "3 host open 2000", "4 host half_open 0", "4 host closed 0"];
        assert_eq!(host, expected);
    }

    #[test]
    fn one_session_never_opens_it_for_the_others() {
        let (sessions, _) = sessions(2);
        let mut at = 0;
        for _ in 0..10 {
            (0..3).for_each(|_| fail(&sessions[0], at));
            at += 1000;
            admit(&sessions[0], at).ok().unwrap().succeeded();
            assert_eq!(skipped(&sessions[1], at), None);
        }
    }

    #[test]
    fn a_call_that_one_of_them_skips_is_the_trial_of_neither() {
        let (sessions, reports) = sessions(4);
        for session in &sessions[..3] {
            (0..3).for_each(|at| fail(session, at));
        }
        // A failed trial doubles the back-off of all, and that of its own session.
        fail(&sessions[0], 1002);
        let before = reports.lock().unwrap().len();
        assert!(skipped(&sessions[1], 2000).is_some(), "its own back-off is over, that of all is not");
        assert_eq!(reports.lock().unwrap().len(), before, "what is skipped changes nothing");
    }
}
