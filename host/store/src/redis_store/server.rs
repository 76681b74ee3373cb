//! The connection to the server, the scripts that run on it, and their replies.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client, FromRedisValue, RedisError, Script, ScriptInvocation, ToRedisArgs};
use flow::ports::StateError;

use super::RedisOptions;
use super::options::Servers;
use super::refusal::explained;
use super::wire::Keys;

/// The scripts, each with what is common to all in front of it.
pub(super) struct Scripts {
    pub(super) open: Script,
    pub(super) load: Script,
    pub(super) write: Script,
    pub(super) note: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    pub(super) clear: Script,
}

pub(super) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| {
    let script = |own: &str| Script::new(&format!("{}\n{own}", include_str!("common.lua")));
    Scripts {
        open: script(include_str!("open.lua")),
        load: script(include_str!("load.lua")),
        write: script(include_str!("write.lua")),
        note: script(include_str!("note.lua")),
        renew: script(include_str!("renew.lua")),
        release: script(include_str!("release.lua")),
        clear: script(include_str!("clear.lua")),
    }
});

/// A server, connected when it is first needed. All sessions of a store share the connection.
pub(super) struct Server {
    servers: Servers,
    config: ConnectionManagerConfig,
    connection: Mutex<Option<ConnectionManager>>,
    /// The address, without credentials.
    place: String,
}

/// A reply of a script: its kind, and what follows.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) kind: String,
    pub(super) rest: Vec<Vec<u8>>,
}

impl Reply {
    /// A part of the reply as text; empty where it has none.
    pub(super) fn text(&self, index: usize) -> String {
        self.rest.get(index).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    pub(super) fn number(&self, index: usize) -> Option<u64> {
        self.text(index).parse().ok()
    }
}

impl Server {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, StateError> {
        let servers = options
            .servers()
            .map_err(|error| StateError::Unavailable { place: "redis".to_owned(), cause: Arc::new(error) })?;
        let place = match &servers {
            Servers::One(client) => format!("redis at {}", client.get_connection_info().addr()),
            Servers::Sentinels(sentinels) => sentinels.place(),
        };
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(options.timeout))
            .set_response_timeout(Some(options.timeout))
            // A session tries again itself, as long as its caller has patience.
            .set_number_of_retries(0);
        Ok(Self { servers, config, connection: Mutex::new(None), place })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    async fn connection(&self) -> Result<ConnectionManager, StateError> {
        if let Some(connection) = &*self.connected() {
            return Ok(connection.clone());
        }
        let client = match &self.servers {
            Servers::One(client) => Client::clone(client),
            Servers::Sentinels(sentinels) => sentinels.primary().await?,
        };
        let made = ConnectionManager::new_lazy_with_config(client, self.config.clone());
        let made = made.map_err(|error| self.failed(error))?;
        Ok(self.connected().insert(made).clone())
    }

    fn connected(&self) -> MutexGuard<'_, Option<ConnectionManager>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a script on the keys of a session.
    pub(super) async fn run(
        &self,
        script: &'static Script,
        keys: &Keys,
        arguments: impl FnOnce(&mut ScriptInvocation<'_>),
    ) -> Result<Reply, StateError> {
        let mut invocation = script.prepare_invoke();
        invocation.key(&keys.state).key(&keys.lease);
        arguments(&mut invocation);
        let parts: Result<Vec<Vec<u8>>, RedisError> = invocation.invoke_async(&mut self.connection().await?).await;
        let mut parts = parts.map_err(|error| self.failed(error))?.into_iter();
        let kind = parts.next().map(|kind| String::from_utf8_lossy(&kind).into_owned()).unwrap_or_default();
        Ok(Reply { kind, rest: parts.collect() })
    }

    /// Sends a command.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        name: &str,
        arguments: &[impl ToRedisArgs],
    ) -> Result<T, StateError> {
        let mut command = ::redis::cmd(name);
        command.arg(arguments);
        command.query_async(&mut self.connection().await?).await.map_err(|error| self.failed(error))
    }

    /// Returns the values of keys. The commands are sent together, one for each key: a user who is permitted `GET` needs no `MGET`.
    pub(super) async fn get_all(&self, keys: &[String]) -> Result<Vec<Option<String>>, StateError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = ::redis::pipe();
        for key in keys {
            commands.cmd("GET").arg(key);
        }
        commands.query_async(&mut self.connection().await?).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: RedisError) -> StateError {
        if self.needs_connection(&error) {
            *self.connected() = None;
        }
        if error.code() == Some("WRONGTYPE") {
            return self.unreadable("a key of a session has another type; another program uses the name");
        }
        StateError::Unavailable { place: self.place.clone(), cause: explained(error) }
    }

    /// Returns whether the next command needs a new connection: to the new primary, where this server has become a replica. A connection that could not be made would fail the next command too, even if
    /// the server is back. On one that timed out, commands still arrive in order, unless another server is the primary now.
    fn needs_connection(&self, error: &RedisError) -> bool {
        let can_move = matches!(self.servers, Servers::Sentinels(_));
        match error.code() {
            Some(code) => can_move && matches!(code, "READONLY" | "MASTERDOWN"),
            None => can_move || !error.is_timeout(),
        }
    }

    pub(super) fn unavailable(&self, cause: impl std::error::Error + Send + Sync + 'static) -> StateError {
        StateError::Unavailable { place: self.place.clone(), cause: Arc::new(cause) }
    }

    pub(super) fn unreadable(&self, cause: impl Into<String>) -> StateError {
        StateError::Unreadable { place: self.place.clone(), cause: cause.into() }
    }
}
