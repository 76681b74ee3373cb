//! Decisions about limits: from front ends, from another process through a file in the session's folder, or from the clock.

use std::convert::Infallible;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::ports::{Approvals, BoxFuture, Clock, LimitAnswer};
use flow::{Limit, LimitDecision, LimitRequest};
use serde::Deserialize;
use tokio::sync::oneshot;

/// How often a session that waits for a decision looks for one of another process.
const POLL: Duration = Duration::from_millis(200);

/// Bytes of a file that decides.
const MAX_FILE: u64 = 64 << 10;

/// Who has decided where a file does not say it.
const FILE: &str = "a file";

/// Where decisions about the limits of a session arrive.
pub(crate) struct Desk {
    clock: Arc<dyn Clock>,
    timeout: Duration,
    files: Option<DecisionFiles>,
    open: Mutex<Option<Open>>,
    /// The request that was made last: what was decided about it counts where it is made again.
    last: Mutex<Option<String>>,
    /// A decision that was taken as the wait for it ended, for an interrupt or a cancel, and the id of its request: it counts where that is
    /// made again.
    kept: Mutex<Option<(String, LimitAnswer)>>,
}

/// A request that nobody has decided about.
struct Open {
    request: LimitRequest,
    answer: oneshot::Sender<LimitAnswer>,
}

/// The files that decide: creating one of them is enough.
#[derive(Clone, Debug)]
pub(crate) struct DecisionFiles {
    pub(crate) approve: PathBuf,
    pub(crate) deny: PathBuf,
    /// The request of an earlier process about which they may have decided already, also without naming it.
    pub(crate) resumed: Option<String>,
}

/// What a file can say; an empty file says nothing of it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionFile {
    /// The id of the request that is meant; without it, the one that is open.
    request: Option<String>,
    /// The new limit.
    max: Option<f64>,
    /// Why it is denied.
    reason: Option<String>,
    /// Who decides, for the record.
    by: Option<String>,
}

/// A decision about a limit was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitDecisionError {
    /// There is no such request, it is decided, or a message that interrupts is being delivered, after which it is made again.
    #[error(
        "no request `{id}` is open: it was decided, it has timed out, its turn has ended, or it is made again after an interrupt"
    )]
    NotOpen {
        /// The id that was given.
        id: String,
    },
    /// The new limit is not above the present one.
    #[error("{max} does not raise the limit of {current}")]
    NotRaised {
        /// The limit that was given.
        max: f64,
        /// The present limit.
        current: f64,
    },
}

impl DecisionFiles {
    /// Removes decisions from before a request, but for those that name it: they were about an earlier one.
    fn forget_others(&self, request: &str) {
        for file in [&self.approve, &self.deny] {
            let about = file.symlink_metadata().ok();
            let given = about.and_then(|about| read(file, &about));
            let given = given.and_then(|text| toml::from_str::<DecisionFile>(&text).ok());
            if given.and_then(|given| given.request).as_deref() != Some(request) {
                taken(file);
            }
        }
    }
}

impl Desk {
    pub(crate) fn new(clock: Arc<dyn Clock>, timeout: Duration, files: Option<DecisionFiles>) -> Self {
        Self { clock, timeout, files, open: Mutex::default(), last: Mutex::default(), kept: Mutex::default() }
    }

    /// Milliseconds since 1970, by the clock of the session.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The request that nobody has decided about.
    pub(crate) fn pending(&self) -> Option<LimitRequest> {
        self.open().as_ref().map(|open| open.request.clone())
    }

    /// Whether another process has left an approval.
    pub(crate) fn has_approval(&self) -> bool {
        self.files.as_ref().is_some_and(|files| files.approve.is_file())
    }

    /// Decides about a request. The first decision counts.
    pub(crate) fn answer(&self, id: &str, decision: LimitDecision, by: &str) -> Result<(), LimitDecisionError> {
        let not_open = || LimitDecisionError::NotOpen { id: id.to_owned() };
        let mut open = self.open();
        let request = open.as_ref().filter(|open| open.request.id == id).map(|open| &open.request);
        check(request.ok_or_else(not_open)?, &decision)?;
        let Open { answer, .. } = open.take().ok_or_else(not_open)?;
        answer.send(LimitAnswer { decision, by: by.to_owned() }).map_err(|_| not_open())
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Option<(String, LimitAnswer)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the decision that was kept for the request, if it is one: the limit can be another by now.
    fn take_kept(&self, request: &LimitRequest) -> Option<LimitAnswer> {
        let (id, answer) = self.kept().take_if(|(id, _)| *id == request.id)?;
        if let Err(error) = check(request, &answer.decision) {
            tracing::error!(request = id, "a decision about a limit is left out: {error}");
            return None;
        }
        Some(answer)
    }

    /// Takes decisions of files until it is dropped.
    async fn watch(&self, request: &LimitRequest) -> Infallible {
        let Some(files) = &self.files else { return std::future::pending().await };
        let mut was_empty = [false; 2];
        loop {
            // A denial counts more, also one that somebody is still writing: the approval waits for it.
            let both = [(&files.deny, false), (&files.approve, true)];
            for ((file, approves), was_empty) in both.into_iter().zip(&mut was_empty) {
                let is_empty = file.symlink_metadata().is_ok_and(|about| about.is_file() && about.len() == 0);
                if is_empty && !std::mem::replace(was_empty, true) {
                    break;
                }
                if let Some(text) = taken(file) {
                    self.decide_by_file(file, &text, approves, request);
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// A file that cannot be used decides nothing.
    fn decide_by_file(&self, file: &Path, text: &str, approves: bool, request: &LimitRequest) {
        let given: DecisionFile = match toml::from_str(text) {
            Ok(given) => given,
            Err(error) => {
                tracing::error!(file = %file.display(), "a decision about a limit cannot be read and is left out: {error}");
                return;
            }
        };
        let id = given.request.as_deref().unwrap_or(&request.id);
        let decision = if approves {
            LimitDecision::Approved { max: given.max.unwrap_or(request.proposed) }
        } else {
            LimitDecision::Denied { reason: given.reason.unwrap_or_default() }
        };
        if let Err(error) = self.answer(id, decision, given.by.as_deref().unwrap_or(FILE)) {
            tracing::error!(file = %file.display(), "a decision about a limit is left out: {error}");
        }
    }
}

impl Approvals for Desk {
    fn decide<'a>(&'a self, request: &'a LimitRequest) -> BoxFuture<'a, LimitAnswer> {
        let (answer, answered) = oneshot::channel();
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(request.id.clone());
        if let Some(files) = &self.files
            && ![&before, &files.resumed].contains(&&Some(request.id.clone()))
        {
            files.forget_others(&request.id);
        }
        if let Some(answer) = self.take_kept(request) {
            return Box::pin(std::future::ready(answer));
        }
        *self.open() = Some(Open { request: request.clone(), answer });
        let mut waiting = Waiting { desk: self, id: &request.id, answered };
        Box::pin(async move {
            let decided = tokio::select! {
                biased;
                answer = &mut waiting.answered => answer.ok(),
                never = self.watch(request) => match never {},
                () = self.clock.sleep(self.timeout) => waiting.withdraw(),
            };
            decided.unwrap_or_else(|| LimitAnswer { decision: LimitDecision::TimedOut, by: String::new() })
        })
    }
}

/// A wait for a decision. When it is dropped the request is withdrawn, and a decision that it has not returned is kept: whoever has decided
/// was told that the decision counts, and the file of another process is removed.
struct Waiting<'a> {
    desk: &'a Desk,
    id: &'a str,
    answered: oneshot::Receiver<LimitAnswer>,
}

impl Waiting<'_> {
    /// Withdraws the request, and returns the decision that was taken before.
    fn withdraw(&mut self) -> Option<LimitAnswer> {
        // Decisions are sent under this lock: none follows.
        *self.desk.open() = None;
        self.answered.try_recv().ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(answer) = self.withdraw() {
            tracing::info!(request = self.id, "a decision about a limit is kept until its request is made again");
            *self.desk.kept() = Some((self.id.to_owned(), answer));
        }
    }
}

/// What a limit can be raised to: things are counted in whole numbers.
fn whole(limit: Limit, max: f64) -> f64 {
    match limit {
        Limit::Spend | Limit::Duration => max,
        Limit::Turns | Limit::Steps | Limit::Tokens | Limit::Spawns | Limit::Depth => max.floor(),
    }
}

fn check(request: &LimitRequest, decision: &LimitDecision) -> Result<(), LimitDecisionError> {
    match decision {
        LimitDecision::Approved { max } if !max.is_finite() || whole(request.limit, *max) <= request.max => {
            Err(LimitDecisionError::NotRaised { max: *max, current: request.max })
        }
        LimitDecision::Approved { .. } | LimitDecision::Denied { .. } | LimitDecision::TimedOut => Ok(()),
    }
}

/// The text of a short regular file; `None` for anything else, because opening it could wait for ever.
fn read(file: &Path, about: &Metadata) -> Option<String> {
    let is_short = about.is_file() && about.len() <= MAX_FILE;
    is_short.then(|| std::fs::read_to_string(file).ok()).flatten()
}

/// The content of a file, which is removed; `None`: there is none, or it cannot be used.
fn taken(file: &Path) -> Option<String> {
    let about = match file.symlink_metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::error!(file = %file.display(), "a decision about a limit cannot be read: {error}");
            return None;
        }
    };
    let text = read(file, &about);
    let removed = if about.is_dir() { std::fs::remove_dir(file) } else { std::fs::remove_file(file) };
    if let Err(error) = removed {
        tracing::error!(file = %file.display(), "a decision about a limit cannot be removed, and decides nothing: {error}");
        return None;
    }
    if text.is_none() {
        tracing::error!(file = %file.display(), "what is not a short text file decides nothing about a limit, and is removed");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::task::Poll;

    use system::SystemClock;

    use super::*;

    fn request(number: u64) -> LimitRequest {
        LimitRequest::new(number, Limit::Steps, 3.0, 3.0, 6.0)
    }

    fn desk(folder: &Path, resumed: Option<&str>) -> Desk {
        let files = DecisionFiles {
            approve: folder.join("approve"),
            deny: folder.join("deny"),
            resumed: resumed.map(str::to_owned),
        };
        Desk::new(Arc::new(SystemClock), Duration::from_secs(30), Some(files))
    }

    async fn decided(text: &str, file: &str) -> LimitAnswer {
        let folder = tempfile::tempdir().unwrap();
        let desk = desk(folder.path(), None);
        let request = request(1);
        let write = async {
            while desk.pending().is_none() {
                tokio::task::yield_now().await;
            }
            std::fs::write(folder.path().join(file), text).unwrap();
        };
        let (answer, ()) = tokio::join!(desk.decide(&request), write);
        assert!(!folder.path().join(file).exists());
        answer
    }

    #[tokio::test]
    async fn a_file_decides() {
        let approved = |max: f64, by: &str| LimitAnswer { decision: LimitDecision::Approved { max }, by: by.into() };
        assert_eq!(decided("", "approve").await, approved(6.0, "a file"));
        assert_eq!(decided("max = 5.0\nby = \"Ada\"", "approve").await, approved(5.0, "Ada"));
        let denied = LimitDecision::Denied { reason: "no".into() };
        assert_eq!(decided("reason = \"no\"", "deny").await.decision, denied);
    }

    /// What cannot be understood, or is about another request, must not raise a limit.
    #[tokio::test(start_paused = true)]
    async fn a_file_that_cannot_be_used_decides_nothing() {
        for text in ["max = ", "maximum = 9", "max = 2", "max = nan", "request = \"limit-7\"", "max = inf"] {
            let desk_folder = tempfile::tempdir().unwrap();
            let desk = desk(desk_folder.path(), Some("limit-1"));
            std::fs::write(desk_folder.path().join("approve"), text).unwrap();
            assert_eq!(desk.decide(&request(1)).await.decision, LimitDecision::TimedOut, "{text}");
        }
    }

    /// Both are created at once, as by two people: neither order of looking at them may turn the denial into an approval.
    #[tokio::test(start_paused = true)]
    async fn a_denial_counts_more_than_an_approval() {
        for [deny, approve] in [["", ""], ["", "max = 9"], ["reason = \"\"", ""], ["reason = \"\"", "max = 9"]] {
            let folder = tempfile::tempdir().unwrap();
            let desk = desk(folder.path(), Some("limit-1"));
            std::fs::write(folder.path().join("deny"), deny).unwrap();
            std::fs::write(folder.path().join("approve"), approve).unwrap();
            let denied = LimitDecision::Denied { reason: String::new() };
            assert_eq!(desk.decide(&request(1)).await.decision, denied, "{deny:?} {approve:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_from_before_the_request_counts_only_for_a_resumed_one() {
        for (resumed, expected) in
            [(Some("limit-1"), LimitDecision::Approved { max: 6.0 }), (None, LimitDecision::TimedOut)]
        {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("approve"), "").unwrap();
            assert_eq!(desk(folder.path(), resumed).decide(&request(1)).await.decision, expected);
        }
    }

    /// An interrupt has withdrawn the request, and it is made again: what another process has decided in between counts.
    #[tokio::test(start_paused = true)]
    async fn a_file_from_between_two_requests_of_one_id_counts() {
        for (before, expected) in [(1, LimitDecision::Approved { max: 6.0 }), (2, LimitDecision::TimedOut)] {
            let folder = tempfile::tempdir().unwrap();
            let (desk, request) = (desk(folder.path(), None), request(1));
            let earlier = LimitRequest::new(before, Limit::Steps, 3.0, 3.0, 6.0);
            let withdrawn = tokio::time::timeout(POLL * 2, desk.decide(&earlier)).await;
            assert!(withdrawn.is_err());
            std::fs::write(folder.path().join("approve"), "").unwrap();
            assert_eq!(desk.decide(&request).await.decision, expected);
        }
    }

    /// An interrupt can end the wait when the decision is taken already: nobody takes it a second time.
    #[tokio::test(start_paused = true)]
    async fn a_decision_that_was_taken_as_the_wait_ended_counts_for_the_next_request_of_its_id() {
        let approved = LimitDecision::Approved { max: 4.0 };
        for by_file in [true, false] {
            for (id, limit, expected) in [
                (1, 3.0, approved.clone()),
                (2, 3.0, LimitDecision::TimedOut),
                // It does not raise the limit any more.
                (1, 5.0, LimitDecision::TimedOut),
            ] {
                let folder = tempfile::tempdir().unwrap();
                let (desk, request, file) = (desk(folder.path(), None), request(1), folder.path().join("approve"));
                let mut decide = desk.decide(&request);
                assert!(poll(&mut decide).await.is_pending());
                if by_file {
                    std::fs::write(&file, "max = 4").unwrap();
                    tokio::time::advance(POLL).await;
                    assert!(poll(&mut decide).await.is_pending());
                    assert!(!file.exists());
                } else {
                    desk.answer("limit-1", approved.clone(), "a").unwrap();
                }
                drop(decide);
                assert_eq!(desk.pending(), None);
                let again = LimitRequest::new(id, Limit::Steps, limit, limit, 9.0);
                assert_eq!(desk.decide(&again).await.decision, expected, "{by_file} {id} {limit}");
                assert_eq!(desk.decide(&again).await.decision, LimitDecision::TimedOut, "it counts once");
            }
        }
    }

    async fn poll(decide: &mut BoxFuture<'_, LimitAnswer>) -> Poll<LimitAnswer> {
        std::future::poll_fn(|cx| Poll::Ready(decide.as_mut().poll(cx))).await
    }

    /// It was taken in time, even though nobody has looked at it before the end of the time.
    #[tokio::test(start_paused = true)]
    async fn a_decision_that_is_taken_as_the_time_ends_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (desk, request) = (desk(folder.path(), None), request(1));
        let mut decide = desk.decide(&request);
        assert!(poll(&mut decide).await.is_pending());
        std::fs::write(folder.path().join("approve"), "max = 4").unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(decide.await.decision, LimitDecision::Approved { max: 4.0 });
    }

    /// Front ends and other processes can answer as soon as they receive the event of a request, which is before the turn waits.
    #[tokio::test(start_paused = true)]
    async fn a_decision_from_before_the_wait_counts() {
        for by_file in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let (desk, request) = (desk(folder.path(), None), request(1));
            let decided = desk.decide(&request);
            if by_file {
                std::fs::write(folder.path().join("approve"), "max = 4").unwrap();
            } else {
                desk.answer("limit-1", LimitDecision::Approved { max: 4.0 }, "a").unwrap();
            }
            assert_eq!(decided.await.decision, LimitDecision::Approved { max: 4.0 }, "{by_file}");
        }
    }

    #[tokio::test]
    async fn the_first_decision_counts() {
        let folder = tempfile::tempdir().unwrap();
        let desk = desk(folder.path(), None);
        let request = request(1);
        let answer = async {
            while desk.pending().is_none() {
                tokio::task::yield_now().await;
            }
            let too_low = LimitDecision::Approved { max: 3.0 };
            assert!(matches!(desk.answer("limit-1", too_low, "a"), Err(LimitDecisionError::NotRaised { .. })));
            assert!(matches!(
                desk.answer("limit-2", LimitDecision::TimedOut, "a"),
                Err(LimitDecisionError::NotOpen { .. })
            ));
            desk.answer("limit-1", LimitDecision::Approved { max: 4.0 }, "a").unwrap();
            let late = desk.answer("limit-1", LimitDecision::Denied { reason: String::new() }, "b");
            assert_eq!(late, Err(LimitDecisionError::NotOpen { id: "limit-1".into() }));
        };
        let (decided, ()) = tokio::join!(desk.decide(&request), answer);
        assert_eq!(decided, LimitAnswer { decision: LimitDecision::Approved { max: 4.0 }, by: "a".into() });
        assert_eq!(desk.pending(), None);
    }
}
