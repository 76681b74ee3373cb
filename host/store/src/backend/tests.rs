//! What a queue relies on in a backend where flights can arrive late, on the real ones.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{StateChange, StateEntry, StateLifetime};
use flow::{PluginId, SessionId};
use system::SystemClock;

use super::Backend;
use crate::activity::Recorded;
use crate::changes::PluginChanges;
use crate::disk::DiskSession;
use crate::queue::Flight;

fn flight(number: u64, value: u8) -> Arc<Flight> {
    let mut changes = PluginChanges::default();
    let entry = StateEntry::written("key", [value], StateLifetime::Session, 0);
    changes.push(vec![StateChange::Set(entry)].into(), |_| true);
    let activity = Recorded { active_ms: 0, shortest_ttl_ms: None, has_state: true };
    Arc::new(Flight { number, plugins: BTreeMap::from([(plugin(), changes)]), sweeps: Vec::new(), activity })
}

fn plugin() -> PluginId {
    "p".parse().unwrap()
}

async fn value(backend: &impl Backend) -> u8 {
    backend.load(&plugin()).await.unwrap().entries[0].value[0]
}

/// A flight that was given up arrives after its successor; the same flight arrives twice; one arrives after the release.
async fn late_flights_are_ignored(backend: &impl Backend) {
    backend.write(flight(1, 10)).await.unwrap();
    backend.write(flight(3, 30)).await.unwrap();
    backend.write(flight(2, 20)).await.unwrap();
    assert_eq!(value(backend).await, 30);
    backend.write(flight(3, 31)).await.unwrap();
    assert_eq!(value(backend).await, 30);
    backend.write(flight(4, 40)).await.unwrap();
    assert_eq!(value(backend).await, 40);
    backend.release().await;
    backend.write(flight(5, 50)).await.unwrap_err();
}

fn on_disk(folder: &Path) -> DiskSession {
    let session = SessionId::new("a");
    DiskSession::open(&folder.join("a.state"), &session, "the test", 0, u64::MAX).unwrap().backend
}

#[tokio::test]
async fn the_disk_ignores_late_flights() {
    let folder = tempfile::tempdir().unwrap();
    late_flights_are_ignored(&on_disk(folder.path())).await;
    assert_eq!(value(&on_disk(folder.path())).await, 40);
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_ignores_late_flights() {
    let server = tidegate_servers::RedisServer::start().unwrap();
    let mut options = crate::RedisOptions::new(server.url());
    options.store.session_ttl = Duration::from_secs(u64::MAX / 1_000);
    let store = crate::RedisStore::new(options, Arc::new(SystemClock)).unwrap();
    let open = async || store.holder(&SessionId::new("a")).unwrap().open().await.unwrap().backend;
    late_flights_are_ignored(&open().await).await;
    assert_eq!(value(&open().await).await, 40);
}
