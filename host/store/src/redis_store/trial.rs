//! A check that a server takes every command that a store sends.

use ::redis::{RedisError, Value};
use flow::SessionId;
use flow::ports::StateError;

use super::RedisStore;
use super::server::Node;
use super::wire::{ALL_STATES, Keys, name_key};

/// The commands that a store sends, alone or in scripts, in an order that leaves no key: `S` is the key of a session, `L` that of its lease,
/// `N` that of a name, `*` the pattern of all sessions.
const COMMANDS: [&[&str]; 20] = [
    &["SCAN", "0", "MATCH", "*", "COUNT", "1"],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "2", "S", "L"],
    &["SET", "L", "trial", "PX", "10000"],
    &["SET", "N", "trial", "NX", "GET", "PX", "10000"],
    &["GET", "L"],
    &["PTTL", "L"],
    &["HSET", "S", "trial", "1"],
    &["PEXPIRE", "S", "10000"],
    &["HGET", "S", "trial"],
    &["HMGET", "S", "trial"],
    &["HGETALL", "S"],
    &["HKEYS", "S"],
    &["HLEN", "S"],
    &["HINCRBY", "S", "trial", "1"],
    &["HDEL", "S", "trial"],
    &["EXISTS", "S"],
    &["DEL", "S"],
    &["DEL", "L"],
    &["DEL", "N"],
];

/// What a client of a Cluster sends in addition, to each node.
const OF_CLUSTER: [&[&str]; 3] = [&["CLUSTER", "SLOTS"], &["PING"], &["ASKING"]];

/// How many keys are tried to find one of each primary: enough for one that has a single slot.
const TRIES: u32 = 1 << 20;

/// The commands that the server does not permit.
#[derive(Debug, thiserror::Error)]
#[error("its access control list{node} does not permit {}", commands.join(", "))]
struct Denied {
    /// Which node of a Cluster it is.
    node: String,
    commands: Vec<String>,
}

impl RedisStore {
    /// Checks that each server takes every command that this store sends, with keys of its own.
    pub(super) async fn try_commands(&self) -> Result<(), StateError> {
        for node in self.server.nodes().await? {
            self.try_node(&node).await?;
        }
        Ok(())
    }

    async fn try_node(&self, node: &Node) -> Result<(), StateError> {
        let (keys, name) = self.trial_keys(node)?;
        let more: &[&[&str]] = if node.primary.is_some() { &OF_CLUSTER } else { &[] };
        let mut commands: Vec<String> = Vec::new();
        for command in COMMANDS.iter().chain(more) {
            let word = |word: &&'static str| match *word {
                "S" => keys.state.clone(),
                "L" => keys.lease.clone(),
                "N" => name.clone(),
                "*" => ALL_STATES.to_owned(),
                other => other.to_owned(),
            };
            let arguments: Vec<String> = command[1..].iter().map(word).collect();
            if let Err(error) = self.server.command_to::<Value>(node, command[0], &arguments).await {
                commands.push(denial(command, error)?);
            }
        }
        commands.sort_unstable();
        commands.dedup();
        let node = node.primary.as_ref().map(|primary| format!(" on {}", primary.address)).unwrap_or_default();
        if commands.is_empty() { Ok(()) } else { Err(self.server.unavailable(Denied { node, commands })) }
    }

    /// Returns keys that no session has, and the key of a name, all of which are on this server.
    fn trial_keys(&self, node: &Node) -> Result<(Keys, String), StateError> {
        let token = self.holder(&SessionId::new("trial"))?.token;
        let trial = format!("trial-{}", token.split(' ').next().unwrap_or_default());
        let is_there = |key: &str| node.primary.as_ref().is_none_or(|primary| primary.has(key));
        let ids = || (0..TRIES).map(|number| format!("{trial}-{number}"));
        let keys = ids().map(|id| Keys::of(&SessionId::new(id))).find(|keys| is_there(&keys.state));
        let name = ids().map(|id| name_key(&id)).find(|name| is_there(name));
        keys.zip(name).ok_or_else(|| self.server.unavailable(NoKey))
    }
}

/// A primary that has slots, and none of the keys that were tried.
#[derive(Debug, thiserror::Error)]
#[error("no key was found that one of its primaries has")]
struct NoKey;

/// Returns what an access control list does not permit.
///
/// # Errors
/// The error has another reason.
fn denial(command: &[&str], error: StateError) -> Result<String, StateError> {
    let StateError::Unavailable { cause, .. } = &error else { return Err(error) };
    let refused = cause.downcast_ref().filter(|error: &&RedisError| error.code() == Some("NOPERM"));
    let Some(refused) = refused else { return Err(error) };
    // The words differ between versions: "to run the 'get' command", "to access one of the keys", "to access a key".
    let is_key = !refused.detail().is_some_and(|detail| detail.contains("command"));
    Ok(match (is_key, command) {
        (true, _) => "keys that begin with `{tidegate`".to_owned(),
        (_, ["SCRIPT", "LOAD", ..]) => "`script|load`".to_owned(),
        (_, ["CLUSTER", "SLOTS"]) => "`cluster|slots`".to_owned(),
        (_, words) => format!("`{}`", words[0].to_lowercase()),
    })
}
