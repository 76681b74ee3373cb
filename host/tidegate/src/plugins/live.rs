//! The plugins of a host, which follow their files, the operator's file, and what the embedder registers.
//!
//! A changed plugin is checked, compiled and registered while sessions continue with the previous version; each session changes to the
//! new one when its next turn starts. If a new version cannot be loaded, the previous one stays in use and the error is reported.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as Turnstile;

use crate::HostError;
use crate::host::blocking;
use crate::host::loaded::Shared;
use crate::host::looks::Looks;
use crate::plugins::desired::{Desired, ReadOperator};

/// How long the start of a turn waits for plugins that are being loaded. Those that take longer count from a later turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many reports of problems are kept for sessions that had no turn since.
const MAX_NEWS: usize = 64;

/// The plugins of a host.
pub(crate) struct LivePlugins {
    /// One change at a time.
    desired: Arc<Turnstile<Desired>>,
    looks: Looks,
    published: Mutex<Published>,
}

/// What sessions go by when their next turn starts.
struct Published {
    shared: Arc<Shared>,
    /// Counts the looks that found a problem.
    edition: u64,
    /// What they found, oldest first, each with its edition.
    news: VecDeque<(u64, Vec<String>)>,
    /// The problems as of the last look, for sessions that open now.
    standing: Vec<String>,
}

impl LivePlugins {
    /// `follow` reads the operator's settings again where their file was edited.
    pub(crate) fn new(shared: Shared, follow: Option<ReadOperator>) -> Arc<Self> {
        let desired = Desired::new(&shared, follow);
        shared.watch_breakers(None);
        let published = Published { shared: Arc::new(shared), edition: 0, news: VecDeque::new(), standing: Vec::new() };
        Arc::new(Self {
            desired: Arc::new(Turnstile::new(desired)),
            looks: Looks::default(),
            published: Mutex::new(published),
        })
    }

    /// The plugins as of the last look.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.published().shared)
    }

    /// The plugins as of the last look, the edition of the problems, and those found since edition `seen`.
    pub(crate) fn since(&self, seen: u64) -> (Arc<Shared>, u64, Vec<String>) {
        let published = self.published();
        let news = published.news.iter().filter(|(edition, _)| *edition > seen).flat_map(|(_, news)| news.clone());
        (Arc::clone(&published.shared), published.edition, news.collect())
    }

    pub(crate) fn edition(&self) -> u64 {
        self.published().edition
    }

    /// The edition of the problems, and those that there are now.
    pub(crate) fn standing(&self) -> (u64, Vec<String>) {
        let published = self.published();
        (published.edition, published.standing.clone())
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the files, and loads the plugins that have changed. If no file was touched, this costs one system call for each file.
    /// Returns the reason if it cannot look, or takes too long.
    pub(crate) async fn refresh(self: &Arc<Self>) -> Option<String> {
        let asked = self.looks.ask();
        let looking = async {
            let mut desired = Arc::clone(&self.desired).lock_owned().await;
            if self.looks.is_answered(asked) {
                return Ok(());
            }
            let live = Arc::clone(self);
            tokio::task::spawn_blocking(move || live.looks.run(|| live.look(&mut desired))).await
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("cannot look for changes of plugins: {error}; they remain unchanged")),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                Some(format!("loading changed plugins takes more than {seconds} s; this turn runs with those before"))
            }
        }
    }

    /// Applies a change that the embedder asks for. Nothing is changed where it fails.
    ///
    /// # Errors
    /// Those of `edit`, or a plugin cannot be loaded.
    pub(crate) async fn change(
        self: &Arc<Self>,
        edit: impl FnOnce(&mut Desired, &Shared) -> Result<(), HostError> + Send + 'static,
    ) -> Result<Arc<Shared>, HostError> {
        let mut desired = Arc::clone(&self.desired).lock_owned().await;
        let live = Arc::clone(self);
        blocking(move || {
            let (mut next, before) = (desired.clone(), live.shared());
            edit(&mut next, &before)?;
            let mut problems = Vec::new();
            let shared = next.load(&before, &mut problems)?;
            *desired = next;
            live.publish(shared, problems, &desired);
            Ok(live.shared())
        })
        .await
    }

    fn look(&self, desired: &mut Desired) {
        let mut problems = Vec::new();
        let shared = desired.look(&self.shared(), &mut problems);
        self.publish(shared, problems, desired);
    }

    fn publish(&self, shared: Option<Shared>, problems: Vec<String>, desired: &Desired) {
        let mut published = self.published();
        if let Some(shared) = shared {
            shared.watch_breakers(Some(&published.shared));
            published.shared = Arc::new(shared);
        }
        let of_plugins = published.shared.host_plugins.iter().filter_map(|host_plugin| host_plugin.loaded.problem());
        published.standing = of_plugins.chain(desired.problem.clone()).collect();
        if problems.is_empty() {
            return;
        }
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        published.edition += 1;
        let edition = published.edition;
        published.news.push_back((edition, problems));
        if published.news.len() > MAX_NEWS {
            published.news.pop_front();
        }
    }
}
