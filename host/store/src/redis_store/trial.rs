//! A check that a server takes every command that a store sends.

use ::redis::{RedisError, Value};
use flow::SessionId;
use flow::ports::StateError;

use super::RedisStore;
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

/// The commands that the server does not permit.
#[derive(Debug, thiserror::Error)]
#[error("its access control list does not permit {}", .0.join(", "))]
struct Denied(Vec<String>);

impl RedisStore {
    /// Checks that the server takes every command that this store sends, with keys of its own.
    pub(super) async fn try_commands(&self) -> Result<(), StateError> {
        let token = self.holder(&SessionId::new("trial"))?.token;
        let session = SessionId::new(format!("trial-{}", token.split(' ').next().unwrap_or_default()));
        let (keys, name) = (Keys::of(&session), name_key(session.as_str()));
        let mut denied: Vec<String> = Vec::new();
        for command in COMMANDS {
            let word = |word: &&'static str| match *word {
                "S" => keys.state.clone(),
                "L" => keys.lease.clone(),
                "N" => name.clone(),
                "*" => ALL_STATES.to_owned(),
                other => other.to_owned(),
            };
            let arguments: Vec<String> = command[1..].iter().map(word).collect();
            if let Err(error) = self.server.command::<Value>(command[0], &arguments).await {
                denied.push(denial(command, error)?);
            }
        }
        denied.sort_unstable();
        denied.dedup();
        if denied.is_empty() { Ok(()) } else { Err(self.server.unavailable(Denied(denied))) }
    }
}

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
        (_, words) => format!("`{}`", words[0].to_lowercase()),
    })
}
