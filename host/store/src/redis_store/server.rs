//! The connection to the server, the scripts that run on it, and their replies.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{
    Client, ConnectionAddr, ConnectionInfo, FromRedisValue, RedisError, Script, ScriptInvocation, ToRedisArgs,
};
use flow::Address;
use flow::ports::StateError;

use super::RedisOptions;
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
    client: Client,
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

/// The password of the URL would leave this machine where others can read it.
#[derive(Debug, thiserror::Error)]
#[error(
    "its password would be sent to another machine without encryption, so nothing was sent: use a server of this machine (a tunnel to \
     another one counts), a server without a password, or set `allow_plaintext_password = true` under [state]"
)]
struct PlaintextPassword;

/// Whether a password is sent to another machine, which is without encryption.
fn is_exposed(server: &ConnectionInfo) -> bool {
    let ConnectionAddr::Tcp(host, _) = server.addr() else { return false };
    // An IPv6 address is in brackets in a URL, and not in here.
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let is_exposed = Address::of_url(&format!("redis://{host}")).map_or(true, |address| address.is_exposed());
    server.redis_settings().password().is_some() && is_exposed
}

impl Server {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, StateError> {
        let client = Client::open(options.url.as_str());
        // The URL can contain a password: it is not shown.
        let client =
            client.map_err(|error| StateError::Unavailable { place: "redis".to_owned(), cause: Arc::new(error) })?;
        let place = format!("redis at {}", client.get_connection_info().addr());
        if is_exposed(client.get_connection_info()) && !options.allow_plaintext_password {
            return Err(StateError::Unavailable { place, cause: Arc::new(PlaintextPassword) });
        }
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(options.timeout))
            .set_response_timeout(Some(options.timeout))
            // A session tries again itself, as long as its caller has patience.
            .set_number_of_retries(0);
        Ok(Self { client, config, connection: Mutex::new(None), place })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn connection(&self) -> Result<ConnectionManager, StateError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        let made = ConnectionManager::new_lazy_with_config(self.client.clone(), self.config.clone());
        let made = made.map_err(|error| self.failed(error))?;
        Ok(connection.insert(made).clone())
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
        let parts: Result<Vec<Vec<u8>>, RedisError> = invocation.invoke_async(&mut self.connection()?).await;
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
        command.query_async(&mut self.connection()?).await.map_err(|error| self.failed(error))
    }

    /// Returns the values of keys, one command for each: those of a cluster are in different slots. They are sent together.
    pub(super) async fn get_all(&self, keys: &[String]) -> Result<Vec<Option<String>>, StateError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = ::redis::pipe();
        for key in keys {
            commands.cmd("GET").arg(key);
        }
        commands.query_async(&mut self.connection()?).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: RedisError) -> StateError {
        if error.code() == Some("WRONGTYPE") {
            return self.unreadable("a key of a session has another type; another program uses the name");
        }
        StateError::Unavailable { place: self.place.clone(), cause: Arc::new(error) }
    }

    pub(super) fn unreadable(&self, cause: impl Into<String>) -> StateError {
        StateError::Unreadable { place: self.place.clone(), cause: cause.into() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{RedisOptions, Server};

    #[test]
    fn a_password_is_not_sent_to_another_machine_unless_the_operator_says_so() {
        for (host, is_sent) in [
            ("127.0.0.1", true),
            ("LOCALHOST:6379", true),
            ("[::1]:6379", true),
            ("[::ffff:127.0.0.1]", true),
            ("cache.example", false),
            ("localhost.cache.example", false),
            ("10.0.0.7:6379", false),
            ("[::ffff:10.0.0.7]", false),
        ] {
            let server = |user: &str, allowed| {
                let options = RedisOptions::new(format!("redis://{user}{host}/0"));
                Server::new(&RedisOptions { allow_plaintext_password: allowed, ..options }).map(drop)
            };
            server("", false).unwrap_or_else(|error| panic!("{host}: there is nothing to keep: {error}"));
            server(":hunter2@", true).unwrap();
            match server("me:hunter2@", false) {
                Ok(()) => assert!(is_sent, "{host}"),
                Err(error) => {
                    assert!(!is_sent, "{host}: {error}");
                    let shown = format!("{error:?} {error}");
                    assert!(shown.contains("allow_plaintext_password") && !shown.contains("hunter2"), "{shown}");
                }
            }
        }
    }
}
