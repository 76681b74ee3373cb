//! Removes sessions that are too old: which setting applies to which of them, and what is said about it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Layer, LayerKind, OPERATOR_FILE, Operator, is_there};
use flow::SessionId;
use flow::ports::{StateError, SweptState};
use store::{Expiry, MAX_PAUSE_DAYS, TranscriptError, TranscriptStore, TranscriptSummary};

use crate::host::blocking;
use crate::{Host, HostError};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long sessions are kept, by the folder that they were started in.
struct Keeping {
    workspaces: Vec<PathBuf>,
    /// Sessions of `workspaces`.
    own: Option<Duration>,
    /// Sessions of folders without a file of their own, such as those that were deleted.
    others: Option<Duration>,
}

/// Which setting says how long a session is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Own,
    Others,
}

impl Keeping {
    fn of(operator: &Operator, users: Option<&Operator>, workspaces: &[PathBuf]) -> Self {
        // Another folder of transcripts has no sessions by the user's settings.
        let users = users.filter(|users| {
            let (users, own) = (&users.transcript, &operator.transcript);
            (&users.folder, users.backend) == (&own.folder, own.backend)
        });
        let others = users.and_then(|users| users.transcript.keep);
        Self { workspaces: workspaces.to_vec(), own: operator.transcript.keep, others }
    }

    /// The setting for a session, and how long that keeps it; `None`: it is kept.
    fn for_session(&self, session: &TranscriptSummary) -> Option<(Setting, Duration)> {
        if self.workspaces.iter().any(|workspace| session.is_of(workspace)) {
            return Some((Setting::Own, self.own?));
        }
        Some((Setting::Others, self.others?))
    }

    /// When a session was used last, and the setting by which it is too old.
    fn due(&self, session: &TranscriptSummary, now_ms: u64) -> Option<(u64, (Setting, Old))> {
        let (setting, keep) = self.for_session(session)?;
        let used_ms = session.latest_ms();
        let is_old = u128::from(now_ms.saturating_sub(used_ms)) > keep.as_millis();
        let is_due = is_old && session.owner.is_none() && (setting == Setting::Own || !has_own_file(session));
        is_due.then(|| (used_ms, (setting, Old { id: session.id.clone(), used_ms })))
    }

    fn days(&self, setting: Setting) -> u64 {
        let keep = if setting == Setting::Own { self.own } else { self.others };
        keep.unwrap_or_default().as_secs() / DAY.as_secs()
    }

    /// Says how many sessions were removed, older than what, and by which setting.
    fn removed(&self, setting: Setting, count: usize) -> Option<String> {
        let (sessions, days) = (sessions(count), counted(self.days(setting), "day", "days"));
        let of = match setting {
            Setting::Own => "of this workspace",
            Setting::Others => "of folders without a tidegate.toml of their own",
        };
        let how = "`keep_days` under `[transcript]`; 0 keeps all";
        (count > 0).then(|| format!("removed {sessions} {of} without a record for more than {days} ({how})"))
    }
}

/// Whether runs in the session's folder have settings of their own. What cannot be found out is not removed.
fn has_own_file(session: &TranscriptSummary) -> bool {
    let folder = session.workspace.as_deref().map(Path::new);
    folder.is_some_and(|folder| is_there(&folder.join(OPERATOR_FILE)).unwrap_or(true))
}

/// The settings without those of a workspace or of a file that somebody named; `None`: they cannot be used.
fn of_user(operator: &Operator) -> Option<Operator> {
    let is_users = |layer: &&Layer| layer.kind == LayerKind::User;
    let users: Vec<Layer> = operator.layers.iter().filter(is_users).cloned().collect();
    if users.len() == operator.layers.len() { Some(operator.clone()) } else { Operator::of_layers(&users).ok() }
}

/// A session that is too old.
struct Old {
    id: SessionId,
    /// When it was used last, by its transcript.
    used_ms: u64,
}

/// Transcripts that were removed because of their age.
#[derive(Default)]
struct Expired {
    sessions: Vec<Old>,
    /// What is to be reported, a sentence each.
    lines: Vec<String>,
}

/// Removes the transcripts that are too old. One that is open, or that a fork continues, stays.
///
/// # Errors
/// The folder cannot be read.
fn expire(store: &TranscriptStore, keeping: &Keeping, now_ms: u64) -> Result<Expired, TranscriptError> {
    let all = store.list()?.sessions;
    let continued: BTreeSet<&str> =
        all.iter().filter_map(|one| Some(one.header.parent.as_ref()?.thread_id.as_str())).collect();
    let removable = all.iter().filter(|one| !continued.contains(one.id.as_str()));
    let due = removable.filter_map(|one| keeping.due(one, now_ms)).collect();
    let (due, left) = match Expiry::decide(all.iter().map(TranscriptSummary::latest_ms), due, now_ms) {
        Expiry::Remove { sessions, left } => (sessions, left),
        Expiry::Distrust { due, pause_days } => {
            return Ok(Expired { lines: vec![distrusted(&sessions(due), pause_days)], ..Expired::default() });
        }
    };
    let (mut removed, mut expired) = (Vec::new(), Expired::default());
    for (setting, old) in due {
        match store.remove(&old.id) {
            Ok(()) => {
                removed.push(setting);
                expired.sessions.push(old);
            }
            Err(TranscriptError::Forked { .. }) => {}
            Err(error) => tracing::warn!(session = old.id.as_str(), "cannot be removed, although it is old: {error}"),
        }
    }
    let count = |setting| removed.iter().filter(|one| **one == setting).count();
    let by_setting = [Setting::Own, Setting::Others].map(|setting| keeping.removed(setting, count(setting)));
    expired.lines = by_setting.into_iter().flatten().collect();
    if let Some(last) = expired.lines.last_mut().filter(|_| left > 0) {
        last.push_str(&format!("; {left} more are left to later runs"));
    }
    Ok(expired)
}

fn distrusted(due: &str, pause_days: u64) -> String {
    format!(
        "{due} would be removed because of age, and nothing was: before the last 24 hours, the latest use was {pause_days} days ago \
         (more than {MAX_PAUSE_DAYS}), so the clock may be wrong. If it is right, they are removed from the second day of use on"
    )
}

/// What is to be reported of expired state that was deleted, or was not because the clock can be wrong.
pub fn swept_state(state: SweptState) -> Option<String> {
    let sessions =
        |count| format!("the state of plugins in {}", sessions(usize::try_from(count).unwrap_or(usize::MAX)));
    if let Some(days) = state.pause_days {
        return Some(distrusted(&sessions(state.left), days));
    }
    let left = if state.left > 0 { format!("; {} more are left to later runs", state.left) } else { String::new() };
    (state.removed > 0).then(|| {
        format!("removed {}, which had expired (`session_ttl_h` under `[state]`){left}", sessions(state.removed))
    })
}

fn sessions(count: usize) -> String {
    counted(count as u64, "session", "sessions")
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Host {
    /// Removes sessions that are too old: transcripts without a new record for as long as `keep_days` under `[transcript]` says, with the
    /// state that plugins have not used since, and the state of plugins in sessions without a turn for as long as `session_ttl_h` under `[state]` says. Returns what is to be reported, a
    /// sentence each. Nothing does that on its own: a front end calls it, as `tidegate run` does after its turns.
    ///
    /// The host's settings apply to sessions of `workspaces`. Those of other folders are kept as the user's own file says, or the default,
    /// where the folder has no `tidegate.toml`; else they are left to runs there. A session that is open, or that a fork continues,
    /// stays. One call removes 100 transcripts at most, and the state of 100 sessions; where the clock may be wrong, it removes nothing.
    ///
    /// # Errors
    /// The folder of transcripts or the store of the state cannot be read; the other one was looked at nevertheless.
    pub async fn remove_expired_sessions(&self, workspaces: &[PathBuf]) -> Result<Vec<String>, HostError> {
        let operator = self.live.shared().operator.clone();
        let users = of_user(&operator);
        let keeping = Keeping::of(&operator, users.as_ref(), workspaces);
        let (store, now_ms) = (self.transcripts.clone(), self.clock.now_ms());
        let expired = blocking(move || match store {
            Some(store) => expire(&store, &keeping, now_ms).map_err(HostError::from),
            None => Ok(Expired::default()),
        });
        let expired = expired.await;
        // The state of a session does not say which workspace it is of: a shorter lifetime of one workspace is not for all.
        let is_of_all = users.is_some_and(|users| operator.state.session_ttl >= users.state.session_ttl);
        let state = if is_of_all { self.state_admin().remove_expired().await? } else { SweptState::default() };
        let Expired { sessions, mut lines } = expired?;
        for old in sessions {
            if let Err(error) = self.clear_with_transcript(&old).await {
                let session = old.id.as_str();
                tracing::warn!(session, "the state of plugins cannot be removed with the transcript: {error}");
            }
        }
        lines.extend(swept_state(state));
        Ok(lines)
    }

    /// Removes the state of a session whose transcript was removed. State that was in use since, without a transcript, stays.
    async fn clear_with_transcript(&self, old: &Old) -> Result<(), StateError> {
        let admin = self.state_admin();
        let Some(shown) = admin.show(&old.id).await? else { return Ok(()) };
        if shown.summary.active_ms <= old.used_ms.saturating_add(DAY.as_millis() as u64) {
            admin.clear(&old.id, None).await?;
        }
        Ok(())
    }
}
