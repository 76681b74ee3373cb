//! The rules of a host, which follow their files: checked when a turn begins, recompiled if they changed.
//!
//! Where nothing was touched, a look costs one question to the system for each folder and file, and the set stays the
//! same. A session goes by its set until its next turn, whatever happens on the disk.

pub(crate) mod fired;
pub(crate) mod rulebook;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::{ChangeKind, FileChange, FolderReport, RuleFiles, RuleFolder};
use flow::ports::BoxFuture;
use rules::RuleSet;
use tokio::sync::Mutex as Turnstile;
use turn::sources::{RuleSource, RuleUpdate};

use config::in_one_line;
use config::rule_sources::{BuiltRules, Sources};

use crate::host::looks::Looks;

/// How long a look may take: a folder on a network that does not answer must not keep a turn from beginning.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many reloads are remembered for sessions that had no turn since.
const MAX_NEWS: usize = 64;

/// The rules of a host.
pub(crate) struct LiveRules {
    sources: Sources,
    /// One check at a time.
    files: Arc<Turnstile<RuleFiles>>,
    looks: Looks,
    published: Mutex<Published>,
}

/// What the last look came to.
struct Published {
    built: Arc<BuiltRules>,
    folders: Vec<FolderReport>,
    /// Counts the looks that found something.
    edition: u64,
    /// What they found, oldest first, each with its edition.
    news: VecDeque<(u64, Vec<String>)>,
}

impl LiveRules {
    /// Reads all there is. Blocks on the disk. Where it follows rules of `before`, what these know of their files stays known, and
    /// what was touched since then is found by the next look.
    pub(crate) fn open(sources: Sources, folders: Vec<RuleFolder>, before: Option<&Self>) -> Arc<Self> {
        // A look that does not end has the files: then they are read again.
        let files = match before.and_then(|before| before.files.try_lock().ok()) {
            Some(known) => known.successor(folders, sources.demands()),
            None => {
                let mut files = RuleFiles::new(folders, sources.demands());
                files.look();
                files
            }
        };
        let (built, folders) = (Arc::new(sources.build(&files)), files.folders().collect());
        let published = Published { built, folders, edition: 0, news: VecDeque::new() };
        let (files, published) = (Arc::new(Turnstile::new(files)), Mutex::new(published));
        Arc::new(Self { sources, files, looks: Looks::default(), published })
    }

    /// The rules as of the last look.
    pub(crate) fn built(&self) -> Arc<BuiltRules> {
        Arc::clone(&self.published().built)
    }

    /// The folders as of the last look.
    pub(crate) fn folders(&self) -> Vec<FolderReport> {
        self.published().folders.clone()
    }

    /// The rules for one session.
    pub(crate) fn session(self: &Arc<Self>) -> Arc<SessionRules> {
        let (set, edition) = {
            let published = self.published();
            (Arc::clone(&published.built.set), published.edition)
        };
        Arc::new(SessionRules { live: Arc::clone(self), set: Mutex::new(set), seen: AtomicU64::new(edition) })
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the files, away from threads that serve others. What keeps it from looking comes back in words.
    pub(crate) async fn refresh(self: &Arc<Self>) -> Option<String> {
        let asked = self.looks.ask();
        let looking = async {
            let mut files = Arc::clone(&self.files).lock_owned().await;
            if self.looks.is_answered(asked) {
                return Ok(());
            }
            let live = Arc::clone(self);
            tokio::task::spawn_blocking(move || live.looks.run(|| live.look(&mut files))).await
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("cannot read the rule folders: {error}; the rules remain unchanged")),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                Some(format!("reading the rule folders took more than {seconds} s; the rules remain unchanged"))
            }
        }
    }

    fn look(&self, files: &mut RuleFiles) {
        let look = files.look();
        if look.is_quiet() {
            return;
        }
        let before = self.built();
        let built = if look.changes_rules() {
            self.sources.build(files)
        } else {
            let about_files = self.sources.about_files(files, &before.set);
            let unmet = self.sources.unmet(files, &before);
            BuiltRules { about_files, unmet, ..BuiltRules::clone(&before) }
        };
        let known = before.warnings();
        let new = built.warnings().into_iter().filter(|one| !known.contains(one)).collect();
        let new = config::by_kind(new).into_iter().map(|one| in_one_line(&one));
        let news: Vec<String> = summary(&look.changes).into_iter().chain(new).collect();
        let mut published = self.published();
        (published.built, published.folders) = (Arc::new(built), files.folders().collect());
        published.edition += 1;
        let edition = published.edition;
        published.news.push_back((edition, news));
        if published.news.len() > MAX_NEWS {
            published.news.pop_front();
        }
    }
}

/// The rules of one session.
pub(crate) struct SessionRules {
    live: Arc<LiveRules>,
    set: Mutex<Arc<RuleSet>>,
    /// The edition whose changes were reported to the session.
    seen: AtomicU64,
}

impl SessionRules {
    /// The set that the session goes by.
    pub(crate) fn set(&self) -> Arc<RuleSet> {
        Arc::clone(&self.set.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RuleSource for SessionRules {
    fn current<'a>(&'a self) -> BoxFuture<'a, Result<RuleUpdate, String>> {
        Box::pin(async move {
            let failed = self.live.refresh().await;
            let published = self.live.published();
            let seen = self.seen.swap(published.edition, Ordering::Relaxed);
            let news = published.news.iter().filter(|(edition, _)| *edition > seen);
            let notices = news.flat_map(|(_, news)| news.iter().cloned()).chain(failed).collect();
            let set = Arc::clone(&published.built.set);
            *self.set.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&set);
            refusal(&published.built.unmet).map_or(Ok(RuleUpdate { set, notices }), Err)
        })
    }
}

/// Why no turn begins with these rules; `None` where one may.
fn refusal(unmet: &[flow::Diagnostic]) -> Option<String> {
    let lines: Vec<String> = unmet.iter().map(in_one_line).collect();
    (!lines.is_empty()).then(|| format!("required stream rules are not in force: {}", lines.join("; ")))
}

/// What happened to files, in one line; `None` where nothing did.
fn summary(changes: &[FileChange]) -> Option<String> {
    let named = |what: &str, wanted: &dyn Fn(&FileChange) -> bool| {
        let files: Vec<&str> = changes.iter().filter(|one| wanted(one)).map(|one| one.file.as_str()).collect();
        let more = files.len().saturating_sub(8);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!files.is_empty())
            .then(|| format!("{} {what} ({}{tail})", files.len(), files[..files.len() - more].join(", ")))
    };
    let of = |kind| move |one: &FileChange| one.kind == kind && !one.refused;
    let parts = [
        named("added", &of(ChangeKind::Added)),
        named("edited", &of(ChangeKind::Edited)),
        named("removed", &of(ChangeKind::Removed)),
        named("refused, their last valid version remains active", &|one| one.refused && one.kept),
        named("refused", &|one| one.refused && !one.kept),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("rules reloaded: {}", parts.join("; ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use config::Operator;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn folders_that_do_not_answer_leave_the_rules_as_they_were_and_do_not_pile_up() {
        let sources = Sources::new(&Operator::default(), &[], "/work".as_ref(), Vec::new(), &[]);
        let live = LiveRules::open(sources, Vec::new(), None);
        let session = live.session();
        let before = session.current().await.unwrap();
        assert_eq!(before.notices, [""; 0]);
        // A look that never ends has it.
        let stuck = Arc::clone(&live.files).lock_owned().await;
        for _ in 0..2 {
            let update = session.current().await.unwrap();
            assert!(Arc::ptr_eq(&update.set, &before.set));
            assert_eq!(update.notices, ["reading the rule folders took more than 5 s; the rules remain unchanged"]);
        }
        drop(stuck);
        assert_eq!(session.current().await.unwrap().notices, [""; 0]);
    }

    #[test]
    fn many_files_are_told_in_one_line() {
        let change = |index: usize| FileChange {
            file: format!("r/{index}.md"),
            kind: ChangeKind::Added,
            refused: index == 0,
            kept: false,
        };
        let changes: Vec<FileChange> = (0..11).map(change).collect();
        let names: Vec<String> = (1..9).map(|index| format!("r/{index}.md")).collect();
        let wanted = format!("rules reloaded: 10 added ({} and 2 more); 1 refused (r/0.md)", names.join(", "));
        assert_eq!(summary(&changes).unwrap(), wanted);
        assert_eq!(summary(&[]), None);
    }
}
