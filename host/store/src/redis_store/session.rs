//! An open session in Redis: its lease, which a task renews, and what is read and written under it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ::redis::{RedisError, Script, ScriptInvocation};
use flow::ports::{BoxFuture, Clock, Replaced, StateEntry, StateError, StoredState};
use flow::{PluginId, SessionId};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::refusal::Refusal;
use super::server::{Reply, SCRIPTS, Server};
use super::wire::{Keys, decode, encode, expires};
use crate::activity::Recorded;
use crate::backend::{Backend, Opened, Swept, WriteError};
use crate::changes::{KeyChange, PluginChanges, VersionChange};
use crate::queue::Flight;

/// What every script of a session gets.
pub(crate) struct Holder {
    pub(super) server: Arc<Server>,
    pub(super) session: SessionId,
    pub(super) keys: Keys,
    /// The fencing token: random characters, then the owner's name. No other open session has the same.
    pub(super) token: String,
    pub(super) lease: Duration,
    pub(super) session_ttl: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

/// The token of all hosts that share a session. `common.lua` checks its first word.
pub(super) const SHARED: &str = "shared among instances of the gateway";

/// The longest time that a server is asked to keep a key: 100 years. More is out of its range.
const LONGEST_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).min(LONGEST_MS)
}

/// The owner's name in a fencing token.
pub(super) fn owner_in(token: &str) -> String {
    match token.split_once(' ') {
        Some((_, owner)) => owner.to_owned(),
        None => "a process that has ended".to_owned(),
    }
}

impl Holder {
    pub(super) async fn run(
        &self,
        script: &'static Script,
        more: impl FnOnce(&mut ScriptInvocation<'_>),
    ) -> Result<Reply, StateError> {
        let (lease_ms, ttl_ms) = (millis(self.lease).max(1), millis(self.session_ttl));
        // An open session is never forgotten by the server, however long it is idle.
        let keep_ms = ttl_ms.max(lease_ms.saturating_mul(3));
        let now_ms = self.clock.now_ms();
        let arguments = |invocation: &mut ScriptInvocation<'_>| {
            invocation.arg(&self.token).arg(lease_ms).arg(keep_ms).arg(ttl_ms).arg(now_ms);
            more(invocation);
        };
        let reply = self.server.run(script, &[&self.keys.state, &self.keys.lease], arguments).await?;
        let session = || self.session.clone();
        match reply.kind.as_str() {
            "leased" => {
                let left_ms = reply.number(1).unwrap_or(0);
                let until_ms = Some(now_ms.saturating_add(left_ms));
                Err(StateError::Leased { session: session(), by: owner_in(&reply.text(0)), until_ms })
            }
            "fenced" => Err(StateError::Fenced { session: session(), by: owner_in(&reply.text(0)) }),
            "lost" => Err(StateError::Lost { session: session(), place: self.server.place().to_owned() }),
            "format" => {
                let (key, format) = (&self.keys.state, reply.text(0));
                let cause = format!(
                    "the key {key} has the format {format}, and this version reads format 1; use the version that wrote it"
                );
                Err(self.server.unreadable(cause))
            }
            _ => Ok(reply),
        }
    }

    /// Acquires the lease, and renews it from then on.
    pub(crate) async fn open(self) -> Result<Opened<RedisSession>, StateError> {
        let reply = self.run(&SCRIPTS.open, |_| {}).await?;
        let recorded = Recorded {
            active_ms: reply.number(0).unwrap_or(0),
            shortest_ttl_ms: reply.number(1),
            has_state: reply.text(2) == "1",
        };
        let holder = Arc::new(self);
        // A shared session has no lease that could end.
        let renewal = (holder.token != SHARED).then(|| tokio::spawn(renew(Arc::clone(&holder))));
        let writes = Writes { seen: AtomicU64::new(reply.number(3).unwrap_or(0)), outdated: AtomicBool::new(false) };
        Ok(Opened { backend: RedisSession { holder, renewal, writes }, recorded })
    }
}

/// Renews the lease three times in its term, until somebody else has it. The server counts real time, whatever the host's clock does.
async fn renew(holder: Arc<Holder>) {
    loop {
        tokio::time::sleep(holder.lease / 3).await;
        match holder.run(&SCRIPTS.renew, |_| {}).await {
            Ok(reply) if reply.kind == "refused" => {
                tracing::warn!(session = %holder.session, "the lease of the session's state is lost");
                return;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(session = %holder.session, %error, "the lease cannot be renewed now"),
        }
    }
}

pub(crate) struct RedisSession {
    holder: Arc<Holder>,
    /// `None` if the session is shared.
    renewal: Option<JoinHandle<()>>,
    writes: Writes,
}

/// The writes of a shared session: the number of the last known one, and whether another host wrote before it.
struct Writes {
    seen: AtomicU64,
    outdated: AtomicBool,
}

impl Writes {
    /// Notes that a write of this host got this number.
    fn wrote(&self, number: Option<u64>) {
        let Some(number) = number else { return };
        let before = self.seen.swap(number, Ordering::Relaxed);
        self.outdated.fetch_or(number != before.wrapping_add(1), Ordering::Relaxed);
    }
}

impl RedisSession {
    fn is_shared(&self) -> bool {
        self.renewal.is_none()
    }
}

async fn release(holder: &Holder) {
    if let Err(error) = holder.run(&SCRIPTS.release, |_| {}).await {
        tracing::debug!(session = %holder.session, %error, "the lease is not released; it ends by itself");
    }
}

impl Drop for RedisSession {
    fn drop(&mut self) {
        let Some(renewal) = &self.renewal else { return };
        renewal.abort();
        if let Ok(runtime) = Handle::try_current() {
            let holder = Arc::clone(&self.holder);
            drop(runtime.spawn(async move { release(&holder).await }));
        }
    }
}

impl Backend for RedisSession {
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        Box::pin(async move {
            let name = |invocation: &mut ScriptInvocation<'_>| {
                invocation.arg(plugin.as_str());
            };
            let reply = self.holder.run(&SCRIPTS.load, name).await?;
            let mut entries = Vec::new();
            let (pairs, _) = reply.rest.get(1..).unwrap_or_default().as_chunks::<2>();
            for [key, value] in pairs {
                let entry = std::str::from_utf8(key).ok().and_then(|key| decode(key, value));
                entries.push(entry.ok_or_else(|| {
                    let (state, key) = (&self.holder.keys.state, String::from_utf8_lossy(key));
                    self.holder.server.unreadable(format!("the field {plugin}/{key} of {state} has no valid header"))
                })?);
            }
            entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
            Ok(StoredState { entries, version: reply.number(0).and_then(|version| u32::try_from(version).ok()) })
        })
    }

    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        Box::pin(async {
            let (server, key) = (&self.holder.server, &self.holder.keys.state);
            let fields: Vec<Vec<u8>> = server.command("HKEYS", &[key]).await?;
            let mut found = BTreeSet::new();
            for field in fields {
                let field = String::from_utf8_lossy(&field);
                let plugin = match field.strip_prefix('!') {
                    Some(fact) => fact.strip_prefix("version/"),
                    None => field.split_once('/').map(|(plugin, _)| plugin),
                };
                let Some(plugin) = plugin else { continue };
                let invalid = |_| server.unreadable(format!("the field {field} of {key} is not valid"));
                found.insert(plugin.parse().map_err(invalid)?);
            }
            Ok(found.into_iter().collect())
        })
    }

    fn write(&self, flight: Arc<Flight>) -> BoxFuture<'_, Result<Swept, WriteError>> {
        Box::pin(async move {
            let reply = self.holder.run(&SCRIPTS.write, |invocation| put_flight(invocation, &flight)).await;
            let is_once = !self.holder.server.is_cluster();
            let reply = reply.map_err(|error| WriteError { is_definite: is_once && is_answer(&error), error })?;
            if self.is_shared() {
                self.writes.wrote(reply.number(0));
            }
            let fields = (0..reply.rest.len()).map(|index| reply.text(index));
            Ok(fields
                .filter_map(|field| {
                    let (plugin, key) = field.split_once('/')?;
                    Some((plugin.parse().ok()?, key.to_owned()))
                })
                .collect())
        })
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(renewal) = &self.renewal {
                renewal.abort();
                release(&self.holder).await;
            }
        })
    }

    fn replace_note<'a>(
        &'a self,
        seen: Option<&'a [u8]>,
        note: &'a StateEntry,
    ) -> Option<BoxFuture<'a, Result<Replaced, StateError>>> {
        let replace = async move {
            let reply = self.holder.run(&SCRIPTS.note, |invocation| {
                invocation.arg(format!("{}/{}", PluginId::host(), note.key)).arg(u8::from(seen.is_some()));
                invocation.arg(seen.unwrap_or_default()).arg(encode(note));
            });
            let reply = reply.await?;
            if reply.kind == "other" {
                let other = (reply.text(0) == "1").then(|| reply.rest.into_iter().nth(1)).flatten();
                return Ok(Replaced::Other(other.map(Arc::from)));
            }
            self.writes.wrote(reply.number(0));
            Ok(Replaced::Done)
        };
        self.is_shared().then(|| -> BoxFuture<'a, _> { Box::pin(replace) })
    }

    fn is_outdated(&self) -> BoxFuture<'_, Result<bool, StateError>> {
        Box::pin(async {
            if !self.is_shared() {
                return Ok(false);
            }
            let (server, key) = (&self.holder.server, &self.holder.keys.state);
            let number: Option<u64> = server.command("HGET", &[key, "!number"]).await?;
            let seen = self.writes.seen.load(Ordering::Relaxed);
            // No host deletes a session that is open, or decreases its number of writes.
            match number.filter(|number| *number >= seen) {
                Some(number) => Ok(number != seen || self.writes.outdated.load(Ordering::Relaxed)),
                None => {
                    Err(StateError::Lost { session: self.holder.session.clone(), place: server.place().to_owned() })
                }
            }
        })
    }
}

/// Whether the server itself has refused: a script that it refuses has written nothing. A broken connection or a time-out does not
/// show what the server does.
fn is_answer(error: &StateError) -> bool {
    match error {
        StateError::Unavailable { cause, .. } => {
            let code = cause.downcast_ref().and_then(|error: &RedisError| error.code());
            code.is_some() || cause.downcast_ref::<Refusal>().is_some()
        }
        _ => true,
    }
}

/// The operations of `write.lua`.
fn put_flight(invocation: &mut ScriptInvocation<'_>, flight: &Flight) {
    let Recorded { active_ms, shortest_ttl_ms, has_state: _ } = flight.activity;
    let shortest = shortest_ttl_ms.map(|ttl| ttl.to_string()).unwrap_or_default();
    invocation.arg(flight.number).arg(active_ms).arg(shortest).arg(u8::from(flight.adds()));
    for (plugin, changes) in &flight.plugins {
        put_changes(invocation, plugin, changes);
    }
    for check in &flight.sweeps {
        invocation.arg("w").arg(check.at_ms).arg(check.active_ms);
    }
}

fn put_changes(invocation: &mut ScriptInvocation<'_>, plugin: &PluginId, changes: &PluginChanges) {
    if changes.cleared {
        invocation.arg("c").arg(plugin.as_str());
    }
    let version = match changes.version {
        VersionChange::Keep => None,
        VersionChange::Set(version) => Some(version.to_string()),
        VersionChange::Remove => Some(String::new()),
    };
    if let Some(version) = version {
        invocation.arg("v").arg(plugin.as_str()).arg(version);
    }
    for (key, change) in &changes.keys {
        let field = format!("{plugin}/{key}");
        match change {
            KeyChange::Set(entry) => invocation.arg("s").arg(field).arg(encode(entry)),
            KeyChange::Touch { expires_ms, used_ms } => {
                invocation.arg("t").arg(field).arg(expires(*expires_ms)).arg(*used_ms)
            }
            KeyChange::Delete => invocation.arg("d").arg(field),
        };
    }
}
