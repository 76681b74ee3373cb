//! The connection to the server, the scripts that run on it, and their replies.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client, ErrorKind, FromRedisValue, RedisError, Script, ScriptInvocation, ServerErrorKind, ToRedisArgs};
use flow::ports::StateError;
use futures_util::future::try_join_all;

use super::RedisOptions;
use super::cluster::{Primary, primaries, route_of};
use super::connection::Connection;
use super::options::Servers;
use super::refusal::explained;

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
    connection: Mutex<Option<Connection>>,
    /// The address, without credentials.
    place: String,
}

/// A server that is asked for all of its keys: the only one, or one of the primaries of a Cluster.
pub(super) struct Node {
    connection: Connection,
    /// `None` if there is only one server.
    pub(super) primary: Option<Primary>,
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
            Servers::Cluster(cluster) => cluster.place(),
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

    async fn connection(&self) -> Result<Connection, StateError> {
        if let Some(connection) = &*self.connected() {
            return Ok(connection.clone());
        }
        let made = match &self.servers {
            Servers::One(client) => self.managed(Client::clone(client))?,
            Servers::Sentinels(sentinels) => self.managed(sentinels.primary().await?)?,
            Servers::Cluster(cluster) => {
                Connection::Cluster(cluster.connect().await.map_err(|error| self.failed(error))?)
            }
        };
        Ok(self.connected().insert(made).clone())
    }

    fn managed(&self, client: Client) -> Result<Connection, StateError> {
        let made = ConnectionManager::new_lazy_with_config(client, self.config.clone());
        made.map(Connection::One).map_err(|error| self.failed(error))
    }

    fn connected(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the servers that together have all keys.
    pub(super) async fn nodes(&self) -> Result<Vec<Node>, StateError> {
        let connection = self.connection().await?;
        let Connection::Cluster(mut cluster) = connection else {
            return Ok(vec![Node { connection, primary: None }]);
        };
        let found = primaries(&mut cluster).await.map_err(|error| self.failed(error))?;
        let node = |primary: Primary| Node {
            connection: Connection::Node(cluster.clone(), primary.route()),
            primary: Some(primary),
        };
        Ok(found.into_iter().map(node).collect())
    }

    /// Runs a script on keys of one slot.
    pub(super) async fn run<const N: usize>(
        &self,
        script: &'static Script,
        keys: &[&str; N],
        arguments: impl FnOnce(&mut ScriptInvocation<'_>),
    ) -> Result<Reply, StateError> {
        let mut invocation = script.prepare_invoke();
        for key in keys {
            invocation.key(key);
        }
        arguments(&mut invocation);
        let parts: Result<Vec<Vec<u8>>, RedisError> = self.invoke(&invocation, keys[0]).await?;
        let mut parts = parts.map_err(|error| self.failed(error))?.into_iter();
        let kind = parts.next().map(|kind| String::from_utf8_lossy(&kind).into_owned()).unwrap_or_default();
        Ok(Reply { kind, rest: parts.collect() })
    }

    /// Runs a script on the primary of a key. It is loaded there alone, so that other nodes of a Cluster can be away; a node that is taking over
    /// the slot needs it, too.
    async fn invoke<T: FromRedisValue>(
        &self,
        invocation: &ScriptInvocation<'_>,
        key: &str,
    ) -> Result<Result<T, RedisError>, StateError> {
        let connection = self.connection().await?;
        let tried = invocation.invoke_async(&mut connection.clone().to(route_of(key))).await;
        let is_missing = |error: &RedisError| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript);
        let Connection::Cluster(mut cluster) = connection else { return Ok(tried) };
        if !tried.as_ref().is_err_and(is_missing) {
            return Ok(tried);
        }
        if let Err(error) = invocation.load_async(&mut cluster).await {
            return Ok(Err(error));
        }
        Ok(invocation.invoke_async(&mut cluster).await)
    }

    /// Sends a command to the server of its key.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        name: &str,
        arguments: &[impl ToRedisArgs],
    ) -> Result<T, StateError> {
        self.send(self.connection().await?, name, arguments).await
    }

    /// Sends a command to a server, which has its key if it has one.
    pub(super) async fn command_to<T: FromRedisValue>(
        &self,
        node: &Node,
        name: &str,
        arguments: &[impl ToRedisArgs],
    ) -> Result<T, StateError> {
        self.send(node.connection.clone(), name, arguments).await
    }

    /// Calls `take` with each key of a server that matches the pattern, with some more than once.
    pub(super) async fn scan(&self, node: &Node, pattern: &str, mut take: impl FnMut(&str)) -> Result<(), StateError> {
        let mut cursor = "0".to_owned();
        loop {
            let arguments = [cursor.as_str(), "MATCH", pattern, "COUNT", "1000"];
            let (next, keys): (String, Vec<String>) = self.command_to(node, "SCAN", &arguments).await?;
            keys.iter().for_each(|key| take(key));
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    async fn send<T: FromRedisValue>(
        &self,
        mut connection: Connection,
        name: &str,
        arguments: &[impl ToRedisArgs],
    ) -> Result<T, StateError> {
        let mut command = ::redis::cmd(name);
        command.arg(arguments);
        command.query_async(&mut connection).await.map_err(|error| self.failed(error))
    }

    /// Returns the values of keys. The commands are sent together, one for each key: a user who is permitted `GET` needs no `MGET`.
    pub(super) async fn get_all(&self, keys: &[String]) -> Result<Vec<Option<String>>, StateError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        if self.is_cluster() {
            // A pipeline is for the keys of one slot.
            return try_join_all(keys.iter().map(|key| self.command("GET", std::slice::from_ref(key)))).await;
        }
        let mut commands = ::redis::pipe();
        for key in keys {
            commands.cmd("GET").arg(key);
        }
        commands.query_async(&mut self.connection().await?).await.map_err(|error| self.failed(error))
    }

    /// Whether the client itself sends a command again, so that its last error does not show what the first try did.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
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
        let can_move = !matches!(self.servers, Servers::One(_));
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
