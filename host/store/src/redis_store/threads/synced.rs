//! What a server promises of the lines that it has acknowledged.

use std::sync::Arc;

use ::redis::Value;
use flow::SessionId;
use flow::ports::StateError;

use super::super::random_token;
use super::{Keys, Threads};

/// When a server has its log on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// It has none: `appendonly no`.
    Never,
    /// Before it acknowledges a write: `appendfsync always`.
    Always,
    /// Within a second: `appendfsync everysec`.
    EverySecond,
    /// When its operating system wants: `appendfsync no`.
    Sometime,
    /// It does not say.
    Unknown,
}

impl Threads {
    /// Writes a line of a thread of its own, reads it and removes it, so that a command that the server does not permit is found.
    pub(crate) fn try_commands(&self) -> Result<(), StateError> {
        let id = SessionId::new(format!("trial-{}", random_token()?));
        self.try_each(&id)?;
        let claim = self.claim(&id)?;
        let tried = claim
            .append(1, &[b"{}"])
            .and_then(|()| claim.replace(&[b"{}"]))
            .and_then(|()| self.set_access(&id, b"{}"))
            .and_then(|()| self.lines(&id, 1, 1))
            .and_then(|_| self.last(&id))
            .and_then(|_| self.all());
        let removed = claim.remove();
        tried.and(removed)
    }

    /// Sends what is only sent in scripts, whose errors do not name the command.
    fn try_each(&self, id: &SessionId) -> Result<(), StateError> {
        let (server, keys) = (Arc::clone(&self.server), Keys::of(id));
        self.wait(async move {
            let Keys { thread, records, repaired, .. } = &keys;
            for words in [
                &["XADD", records, "1-0", "line", "{}"][..],
                &["RENAME", records, repaired],
                &["HEXISTS", thread, "lines"],
                &["DEL", repaired],
            ] {
                server.command::<Value>(words[0], &words[1..]).await?;
            }
            Ok(())
        })
    }

    /// Asks the server when it syncs its log.
    pub(crate) fn synced(&self) -> Result<Synced, StateError> {
        let server = Arc::clone(&self.server);
        self.wait(async move {
            let nodes = server.nodes().await?;
            let Some(node) = nodes.first() else { return Ok(Synced::Unknown) };
            let get = async |name: &str| {
                let found: Result<Vec<String>, StateError> = server.command_to(node, "CONFIG", &["GET", name]).await;
                found.ok().and_then(|pair| pair.into_iter().nth(1)).unwrap_or_default()
            };
            let (log, policy) = (get("appendonly").await, get("appendfsync").await);
            Ok(match (log.as_str(), policy.as_str()) {
                ("no", _) => Synced::Never,
                ("yes", "always") => Synced::Always,
                ("yes", "everysec") => Synced::EverySecond,
                ("yes", "no") => Synced::Sometime,
                _ => Synced::Unknown,
            })
        })
    }
}
