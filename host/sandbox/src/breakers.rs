//! The breakers that a call of a plugin passes: that of its session, and that of all sessions of the host.
//!
//! A plugin that fails in every session would otherwise fail three times in each. The breaker of all sessions counts sessions, not
//! calls: what one session lets a plugin fail on must not end its work in the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use flow::{BreakerScope, BreakerState, Called, SessionId};

use crate::breaker::{Admitted, Breaker, Report, WINDOW_MS};

/// Two breakers of a plugin. The model decides how its tools are called, and so how often they fail: that must not switch off the
/// callbacks of the plugin, which may guard against the model.
#[derive(Debug)]
pub(crate) struct Breakers {
    callbacks: Breaker,
    tools: Breaker,
}

/// The breakers of a plugin for all sessions of a host.
#[derive(Debug)]
pub struct HostBreakers {
    breakers: Breakers,
    /// When a session last counted as one in which the plugin fails, by its id, so that one that is opened again counts once.
    callbacks: Counted,
    tools: Counted,
}

type Counted = Mutex<BTreeMap<SessionId, u64>>;

/// The breakers of a plugin in one session, with those that it shares with the other sessions.
pub struct SessionBreakers {
    own: Breakers,
    shared: Arc<HostBreakers>,
    session: SessionId,
    report: Report,
}

/// A call that both breakers let through.
pub struct Admission<'a> {
    own: Admitted<'a>,
    shared: Admitted<'a>,
    session: &'a SessionId,
    counted: &'a Counted,
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

impl HostBreakers {
    /// Two breakers that are closed, and no session counts.
    pub fn new() -> Self {
        Self { breakers: Breakers::new(BreakerScope::Host), callbacks: Counted::default(), tools: Counted::default() }
    }

    /// The state of the breaker of the callbacks.
    pub fn of_callbacks(&self) -> BreakerState {
        self.breakers.callbacks.reported()
    }
}

impl Default for HostBreakers {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SessionBreakers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionBreakers").field("session", &self.session).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Admission<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("session", self.session).finish_non_exhaustive()
    }
}

impl SessionBreakers {
    /// Closed breakers of the session, which report to it, next to the `shared` ones.
    pub fn new(shared: Arc<HostBreakers>, session: SessionId, report: Report) -> Self {
        Self { own: Breakers::new(BreakerScope::Session), shared, session, report }
    }

    /// Lets a call through, or returns the reason why it is skipped: a call that one of the two breakers skips is the trial of neither.
    ///
    /// # Errors
    /// The call is skipped, for this reason.
    pub fn admit<'a>(&'a self, called: &'a Called, now: impl Fn() -> u64) -> Result<Admission<'a>, String> {
        let (own, shared) = (self.own.of(called), self.shared.breakers.of(called));
        own.check(&now)?;
        let shared = shared.admit(called, &now, &self.report)?;
        let own = own.admit(called, &now, &self.report)?;
        let counted = match called {
            Called::Callback(_) => &self.shared.callbacks,
            Called::Tool(_) => &self.shared.tools,
        };
        Ok(Admission { own, shared, session: &self.session, counted })
    }
}

impl Admission<'_> {
    /// The call failed at `now`.
    pub fn failed(self, now: u64) {
        let opened = self.own.failed(now);
        let counts = opened && is_first(self.counted, self.session, now);
        if counts || self.shared.is_trial() {
            self.shared.failed(now);
        }
    }

    /// The call failed at `now` because of the host, or of what this session has stored: other sessions may have no such problem.
    pub fn failed_here(self, now: u64) {
        self.own.failed(now);
    }

    /// The call succeeded.
    pub fn succeeded(self) {
        self.own.succeeded();
        self.shared.succeeded();
    }
}

/// Whether the session did not count within the window before; it does now.
fn is_first(counted: &Counted, session: &SessionId, now: u64) -> bool {
    let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
    counted.retain(|_, at| *at + WINDOW_MS > now);
    let first = !counted.contains_key(session);
    if first {
        counted.insert(session.clone(), now);
    }
    first
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::sync::{Arc, Mutex};

    use flow::{BreakerState, CallbackKind, Called, SessionId};

    use super::{HostBreakers, SessionBreakers};

    /// Breakers of so many sessions, and what they reported: scope and state.
    fn sessions(count: usize) -> (Vec<SessionBreakers>, Arc<Mutex<Vec<String>>>) {
        let (shared, reports) = (Arc::new(HostBreakers::new()), Arc::new(Mutex::new(Vec::new())));
        let session = |number: usize| {
            let reports = Arc::clone(&reports);
            let report = Box::new(move |change: crate::breaker::Change| {
                let (scope, state) = (change.scope.as_str(), change.state.as_str());
                reports.lock().unwrap().push(format!("{number} {scope} {state} {}", change.retry_after_ms));
            });
            SessionBreakers::new(Arc::clone(&shared), SessionId::new(format!("s{number}")), report)
        };
        ((0..count).map(session).collect(), reports)
    }

    fn admit(session: &SessionBreakers, at: u64) -> Result<super::Admission<'_>, String> {
        session.admit(&Called::Callback(CallbackKind::Tag), || at)
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
        assert_eq!(sessions[4].shared.of_callbacks(), BreakerState::Open);
        let trial = admit(&sessions[3], 1002).ok().unwrap();
        let why = "failed repeatedly in 3 sessions within 60 s; a trial call is under way";
        assert_eq!(skipped(&sessions[4], 1002).as_deref(), Some(why));
        assert_eq!(sessions[4].shared.of_callbacks(), BreakerState::HalfOpen);
        trial.failed(1002);
        assert_eq!(skipped(&sessions[4], 3001).map(|why| why.contains("in 0.0 s")), Some(true), "the back-off doubled");
        admit(&sessions[4], 3002).ok().unwrap().succeeded();
        assert_eq!(sessions[4].shared.of_callbacks(), BreakerState::Closed);
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
    fn a_session_that_is_opened_again_counts_once() {
        let shared = Arc::new(HostBreakers::new());
        let open = |id: &str| SessionBreakers::new(Arc::clone(&shared), SessionId::new(id), Box::new(|_| ()));
        for _ in 0..5 {
            let session = open("one");
            (0..3).for_each(|at| fail(&session, at));
        }
        assert_eq!(skipped(&open("other"), 10), None);
    }

    #[test]
    fn what_fails_because_of_a_session_opens_nothing_for_the_others() {
        let (sessions, _) = sessions(4);
        for session in &sessions[..3] {
            (0..3).for_each(|at| admit(session, at).ok().unwrap().failed_here(at));
            assert!(skipped(session, 10).is_some());
        }
        assert_eq!(skipped(&sessions[3], 10), None);
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
