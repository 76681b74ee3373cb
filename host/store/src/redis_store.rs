//! State and threads in Redis 7.0 or later, for sessions that several hosts share.

mod cluster;
mod connection;
mod options;
mod refusal;
mod sentinel;
mod server;
mod session;
pub(crate) mod threads;
mod tls;
mod trial;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{
    BoxFuture, Clock, SessionList, SessionState, ShownSession, StateAdmin, StateError, StateStore, StoredState,
    SweptState,
};
use flow::{PluginId, SessionId};

use crate::backend::Opened;
use crate::lifetime::ExpiryCheck;
use crate::memory::shown;
use crate::session::OpenSession;
pub use options::{InvalidRedis, RedisOptions, RedisSetting};
use server::{SCRIPTS, Server};
use session::{Holder, RedisSession, SHARED};
pub use tls::RedisTls;
use wire::{ALL_STATES, Keys, decode, name_key, session_of};

/// Keeps the state of each session in one hash, and its lease in a key next to it, in the same slot of a cluster.
///
/// Each write is one script, which checks the fencing token: a host that was taken over writes nothing. The server itself removes a
/// session whose time to live has passed. A write is durable when the server has it; whether it survives a crash of the server is
/// decided by the server's configuration (`appendonly`, replicas). Clocks of the hosts should agree to about a second: expiry is
/// computed from them.
#[derive(Clone)]
pub struct RedisStore {
    server: Arc<Server>,
    options: RedisOptions,
    clock: Arc<dyn Clock>,
}

/// Returns what no other open session has.
fn random_token() -> Result<String, StateError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| StateError::Unavailable {
        place: "random numbers of the system".to_owned(),
        cause: Arc::new(error),
    })?;
    Ok(format!("{:032x}", u128::from_ne_bytes(random)))
}

impl RedisStore {
    /// Uses this server. The connection is made when it is first needed, and again whenever it breaks.
    ///
    /// # Errors
    /// [`StateError::Unavailable`] with the error of [`RedisOptions::check`].
    pub fn new(options: RedisOptions, clock: Arc<dyn Clock>) -> Result<Self, StateError> {
        Ok(Self { server: Arc::new(Server::new(&options)?), options, clock })
    }

    pub(crate) fn holder(&self, session: &SessionId) -> Result<Holder, StateError> {
        Ok(Holder {
            server: Arc::clone(&self.server),
            session: session.clone(),
            keys: Keys::of(session),
            token: format!("{} {}", random_token()?, self.options.store.owner),
            lease: self.options.lease,
            session_ttl: self.options.store.session_ttl,
            clock: Arc::clone(&self.clock),
        })
    }

    fn opened(&self, session: &SessionId, opened: Opened<RedisSession>) -> Arc<dyn SessionState> {
        let (clock, ttl_ms) = (Arc::clone(&self.clock), self.options.store.session_ttl_ms());
        Arc::new(OpenSession::new(session.clone(), opened, clock, ttl_ms))
    }

    async fn read(&self, session: &SessionId) -> Result<Option<ShownSession>, StateError> {
        let keys = Keys::of(session);
        let fields: Vec<(Vec<u8>, Vec<u8>)> = self.server.command("HGETALL", &[&keys.state]).await?;
        let owner: Option<String> = self.server.command("GET", &[&keys.lease]).await?;
        let mut read = Fields::default();
        for (field, value) in fields {
            let field = String::from_utf8_lossy(&field).into_owned();
            if read.take(&field, &value).is_none() {
                return Err(self.server.unreadable(format!("the field {field} of {} is not valid", keys.state)));
            }
        }
        if read.states.is_empty() {
            return Ok(None);
        }
        let session_ttl_ms = self.options.store.session_ttl_ms();
        let check = ExpiryCheck { at_ms: self.clock.now_ms(), active_ms: read.active_ms, session_ttl_ms };
        let mut states: Vec<(PluginId, StoredState)> = read.states.into_iter().collect();
        for (_, state) in &mut states {
            state.entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
            check.retain(&mut state.entries);
        }
        let owner = owner.map(|token| session::owner_in(&token));
        Ok(shown(session, check, states).map(|mut shown| {
            shown.summary.owner = owner;
            shown
        }))
    }

    async fn list(&self) -> Result<SessionList, StateError> {
        let mut found = BTreeSet::new();
        for node in self.server.nodes().await? {
            self.server.scan(&node, ALL_STATES, |key| found.extend(session_of(key))).await?;
        }
        let mut list = SessionList::default();
        for session in found {
            match self.read(&session).await {
                Ok(shown) => list.sessions.extend(shown.map(|shown| shown.summary)),
                Err(error @ StateError::Unavailable { .. }) => return Err(error),
                Err(error) => list.problems.push(error),
            }
        }
        Ok(list)
    }

    async fn clear_session(&self, session: &SessionId, plugin: Option<&PluginId>) -> Result<bool, StateError> {
        let Some(plugin) = plugin else {
            let reply = self.holder(session)?.run(&SCRIPTS.clear, |_| {}).await?;
            return Ok(reply.text(0) != "0");
        };
        let exists: u64 = self.server.command("EXISTS", &[&Keys::of(session).state]).await?;
        if exists == 0 {
            return Ok(false);
        }
        let open = self.open(session).await?;
        let cleared = open.clear(plugin).await;
        open.close(Duration::ZERO).await.and(cleared).map(|()| true)
    }
}

/// The fields of a session's hash.
#[derive(Debug, Default)]
struct Fields {
    active_ms: u64,
    states: BTreeMap<PluginId, StoredState>,
}

impl Fields {
    /// Takes a field; `None` if it is not valid.
    fn take(&mut self, field: &str, value: &[u8]) -> Option<()> {
        let text = || std::str::from_utf8(value).ok();
        if let Some(plugin) = field.strip_prefix("!version/") {
            self.states.entry(plugin.parse().ok()?).or_default().version = Some(text()?.parse().ok()?);
        } else if field == "!active" {
            self.active_ms = text()?.parse().ok()?;
        } else if !field.starts_with('!') {
            let (plugin, key) = field.split_once('/')?;
            self.states.entry(plugin.parse().ok()?).or_default().entries.push(decode(key, value)?);
        }
        Some(())
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URL, which can contain a password.
        f.debug_struct("RedisStore").field("server", &self.server.place()).finish_non_exhaustive()
    }
}

impl StateStore for RedisStore {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async { Ok(self.opened(session, self.holder(session)?.open().await?)) })
    }

    fn share<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async {
            let holder = Holder { token: SHARED.to_owned(), ..self.holder(session)? };
            Ok(self.opened(session, holder.open().await?))
        })
    }

    fn named<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<String>>, StateError>> {
        Box::pin(async move {
            let keys: Vec<String> = names.iter().map(|name| name_key(name)).collect();
            self.server.get_all(&keys).await
        })
    }

    fn name<'a>(&'a self, name: &'a str, line: &'a str) -> BoxFuture<'a, Result<Option<String>, StateError>> {
        Box::pin(async move {
            let ttl = session::millis(self.options.store.session_ttl).max(1).to_string();
            let key = name_key(name);
            self.server.command("SET", &[key.as_str(), line, "NX", "GET", "PX", &ttl]).await
        })
    }
}

impl StateAdmin for RedisStore {
    fn sessions(&self) -> BoxFuture<'_, Result<SessionList, StateError>> {
        Box::pin(self.list())
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(self.try_commands())
    }

    fn show<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<ShownSession>, StateError>> {
        Box::pin(self.read(session))
    }

    fn clear<'a>(
        &'a self,
        session: &'a SessionId,
        plugin: Option<&'a PluginId>,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        Box::pin(self.clear_session(session, plugin))
    }

    fn remove_expired(&self) -> BoxFuture<'_, Result<SweptState, StateError>> {
        // The server does it.
        Box::pin(std::future::ready(Ok(SweptState::default())))
    }
}
