//! The state that all connections of a gateway share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidegate::metrics::Metrics;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::reload::Reload;
use super::site::Open;
use super::{Conversations, Report};
use crate::inbound::Tls;

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: SocketAddr,
    pub(super) report: Arc<Report>,
    pub(super) metrics: Metrics,
    pub(super) reload: Reload,
    /// The certificate, if there is one.
    pub(super) tls: Option<Arc<Tls>>,
    /// Tracks connections and answers under way.
    pub(super) tasks: TaskTracker,
    /// Whether requests are refused because the gateway closes.
    pub(super) closing: CancellationToken,
    site: Mutex<Arc<Open>>,
    held: AtomicU64,
    connections: AtomicU64,
    /// The time of the last [`Shared::count_conversations`].
    counted: Mutex<Instant>,
}

/// The interval in which conversations are counted after requests: it takes longer the more there are.
const COUNTING: Duration = Duration::from_secs(1);

impl Shared {
    pub(super) fn new(address: SocketAddr, site: Open, metrics: Metrics, tls: Option<Arc<Tls>>) -> Self {
        Self {
            address,
            report: Arc::default(),
            metrics,
            reload: Reload::default(),
            tls,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            site: Mutex::new(Arc::new(site)),
            held: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            counted: Mutex::new(Instant::now()),
        }
    }

    /// Returns the served configuration.
    pub(super) fn site(&self) -> Arc<Open> {
        Arc::clone(&self.site.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the served configuration, after checking whether it has changed.
    pub(super) async fn current(self: &Arc<Self>) -> Arc<Open> {
        if let Some(checking) = self.check()
            && let Err(error) = checking.await
        {
            tracing::error!("checking the settings was aborted: {error}");
        }
        self.site()
    }

    /// Begins to check whether the configuration has changed, unless it was checked just now.
    pub(super) fn check(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let own = Arc::clone(self);
        // A task: the future of a request is dropped when its client disconnects, and a source reports a change once.
        let look = async move {
            let _turn = own.reload.turn.lock().await;
            if own.reload.is_due() {
                let asked = own.reload.asked();
                own.look().await;
                own.reload.has_looked(asked);
            }
        };
        self.reload.is_due().then(|| self.tasks.spawn(look))
    }

    async fn look(&self) {
        let Some(found) = self.reload.look().await else { return };
        let before = self.site();
        let opened = found.and_then(|site| Open::new(site, Some(&before)).map_err(|error| error.to_string()));
        match opened {
            Ok(site) => {
                *self.site.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(site);
                self.metrics.gateway_reload("done");
                self.reload.ended(None);
                tracing::info!("the gateway has read its settings again");
            }
            Err(cause) => {
                self.metrics.gateway_reload("failed");
                tracing::error!("the gateway keeps its settings, because the changed ones cannot be used: {cause}");
                self.reload.ended(Some(cause));
            }
        }
    }

    /// Returns the reason why the last reload failed.
    pub(super) fn reload_failure(&self) -> Option<String> {
        self.reload.failure()
    }

    /// Counts a connection that begins (1) or ends (-1).
    pub(super) fn connected(&self, change: i64) {
        let before = self.connections.fetch_add(change as u64, Ordering::Relaxed);
        self.metrics.gateway_connections(before.wrapping_add(change as u64));
    }

    /// Returns the number of open connections.
    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Counts conversations, unless they were counted within the last second.
    pub(super) fn count_conversations_later(&self) {
        let now = Instant::now();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(*counted) >= COUNTING {
            *counted = now;
            drop(counted);
            self.count_conversations();
        }
    }

    /// Counts conversations, once for those that routes share.
    pub(super) fn count_conversations(&self) {
        let site = self.site();
        let all = site.routes.iter().map(|upstream| &upstream.route.conversations).enumerate();
        let is_first = |at: usize, own: &Arc<Conversations>| {
            site.routes.iter().position(|upstream| Arc::ptr_eq(&upstream.route.conversations, own)) == Some(at)
        };
        let (mut open, mut unstored) = (0, 0);
        for (_, own) in all.filter(|(at, own)| is_first(*at, own)) {
            let counts = own.count(&self.metrics);
            (open, unstored) = (open + counts.open, unstored + counts.unstored);
        }
        self.metrics.gateway_conversations(open);
        self.metrics.gateway_unstored(unstored);
    }

    /// Returns whether the store of some conversations did not answer when it was used last.
    pub(super) fn is_store_away(&self) -> bool {
        self.site().routes.iter().any(|upstream| upstream.route.conversations.is_store_away())
    }

    /// Updates the number of held bytes after a change of one answer.
    pub(super) fn hold(&self, before: u64, now: u64) {
        if before != now {
            let change = now.wrapping_sub(before);
            let all = self.held.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
            self.metrics.gateway_held(all);
        }
    }
}
