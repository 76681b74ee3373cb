//! Threads in Redis 7.0 or later: the lines of each transcript in a stream, for one writer at a time, which a lease and a fencing token
//! determine as they do for state.

mod claim;
mod synced;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::redis::Script;
use flow::SessionId;
use flow::ports::{Clock, StateError};

pub(crate) use claim::Claim;
pub(crate) use synced::Synced;

use super::server::Server;
use super::session::owner_in;
use super::{RedisOptions, random_token};
use crate::waiting::wait;

const START: &str = "{tidegate:";
const THREAD: &str = "}:thread";
const RECORDS: &str = "}:records";

/// The scripts, each with what is common to all in front of it.
struct Scripts {
    claim: Script,
    append: Script,
    renew: Script,
    release: Script,
    replace: Script,
    remove: Script,
}

static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| {
    let script = |own: &str| Script::new(&format!("{}\n{own}", include_str!("threads/common.lua")));
    Scripts {
        claim: script(include_str!("threads/claim.lua")),
        append: script(include_str!("threads/append.lua")),
        renew: script(include_str!("threads/renew.lua")),
        release: script(include_str!("threads/release.lua")),
        replace: script(include_str!("threads/replace.lua")),
        remove: script(include_str!("threads/remove.lua")),
    }
});

/// The keys of a thread. A Cluster keeps them in the slot of the session's state.
#[derive(Clone, Debug)]
struct Keys {
    thread: String,
    writer: String,
    records: String,
    /// The lines that are to replace those of `records`.
    repaired: String,
}

impl Keys {
    fn of(id: &SessionId) -> Self {
        let key = |end: &str| format!("{START}{id}{end}");
        Self { thread: key(THREAD), writer: key("}:writer"), records: key(RECORDS), repaired: key("}:repaired") }
    }
}

/// The threads of a server. Its functions block, as those of files do, whatever runtime their caller is in.
#[derive(Clone)]
pub(crate) struct Threads {
    server: Arc<Server>,
    clock: Arc<dyn Clock>,
    owner: String,
    lease: Duration,
    /// Where other hosts reach this one.
    address: Arc<OnceLock<String>>,
    /// How long a writer tries again where the server does not answer.
    patience: Duration,
}

/// The last line of a thread, and what is known of the thread without reading more.
#[derive(Debug, Default)]
pub(crate) struct Last {
    /// The number of the line, from 1, and the line.
    pub(crate) line: Option<(u64, Vec<u8>)>,
    /// The bytes of all lines.
    pub(crate) bytes: u64,
}

impl Threads {
    pub(crate) fn new(options: &RedisOptions, clock: Arc<dyn Clock>) -> Result<Self, StateError> {
        let owner = options.store.owner.clone();
        let (lease, patience) = (options.lease, options.timeout);
        Ok(Self { server: Arc::new(Server::new(options)?), clock, owner, lease, address: Arc::default(), patience })
    }

    /// The address of the server, without credentials.
    pub(crate) fn place(&self) -> &str {
        self.server.place()
    }

    /// Reserves a thread for writing.
    pub(crate) fn claim(&self, id: &SessionId) -> Result<Claim, StateError> {
        let token = format!("{} {}", random_token()?, self.owner);
        let (threads, id) = (self.clone(), id.clone());
        self.wait(async move { Claim::acquire(threads, &id, token).await })
    }

    /// Returns up to `count` lines from the one with this number on.
    pub(crate) fn lines(&self, id: &SessionId, from: u64, count: usize) -> Result<Vec<Vec<u8>>, StateError> {
        let (server, key) = (Arc::clone(&self.server), Keys::of(id).records);
        self.wait(async move {
            let (from, count) = (format!("{from}-0"), count.to_string());
            let words = [key.as_str(), &from, "+", "COUNT", &count];
            let entries: Vec<Entry> = server.command("XRANGE", &words).await?;
            entries.into_iter().map(|entry| Ok(line(&server, &key, entry)?.1)).collect()
        })
    }

    /// Returns the last line.
    pub(crate) fn last(&self, id: &SessionId) -> Result<Last, StateError> {
        let (server, keys) = (Arc::clone(&self.server), Keys::of(id));
        self.wait(async move {
            let words = [keys.records.as_str(), "+", "-", "COUNT", "1"];
            let entries: Vec<Entry> = server.command("XREVRANGE", &words).await?;
            let last = entries.into_iter().next().map(|entry| line(&server, &keys.records, entry)).transpose()?;
            let bytes: Option<u64> = server.command("HGET", &[keys.thread.as_str(), "bytes"]).await?;
            Ok(Last { line: last, bytes: bytes.unwrap_or(0) })
        })
    }

    /// Returns when the last line was written.
    pub(crate) fn written(&self, id: &SessionId) -> Result<Option<SystemTime>, StateError> {
        let written = self.field::<u64>(id, "written")?;
        Ok(written.map(|ms| UNIX_EPOCH + Duration::from_millis(ms)))
    }

    /// Notes where other hosts reach this one, for threads that are reserved from here on. The first address counts.
    pub(crate) fn announce(&self, address: &str) {
        self.address.get_or_init(|| address.to_owned());
    }

    /// Returns who has reserved a thread, and where its host is reached; `None`: nobody, or this host.
    pub(crate) fn elsewhere(&self, id: &SessionId) -> Result<Option<(String, Option<String>)>, StateError> {
        let (server, keys) = (Arc::clone(&self.server), Keys::of(id));
        let found = self.wait(async move {
            let words = [keys.thread.as_str(), "writer", "address"];
            let last: (Option<String>, Option<String>) = server.command("HMGET", &words).await?;
            let held: Option<String> = server.command("GET", &[keys.writer]).await?;
            Ok(held.filter(|held| last.0.as_ref() == Some(held)).map(|held| (held, last.1)))
        })?;
        let own = self.address.get().map_or("", String::as_str);
        let is_own = |token: &str, address: &Option<String>| {
            owner_in(token) == self.owner && address.as_deref().unwrap_or_default() == own
        };
        let other = found.filter(|(token, address)| !is_own(token, address));
        Ok(other.map(|(token, address)| (owner_in(&token), address.filter(|address| !address.is_empty()))))
    }

    /// Returns who has reserved a thread.
    pub(crate) fn owner(&self, id: &SessionId) -> Result<Option<String>, StateError> {
        let (server, key) = (Arc::clone(&self.server), Keys::of(id).writer);
        let token = self.wait(async move { server.command::<Option<String>>("GET", &[key]).await })?;
        Ok(token.map(|token| owner_in(&token)))
    }

    pub(crate) fn exists(&self, id: &SessionId) -> Result<bool, StateError> {
        self.has(Keys::of(id).thread)
    }

    /// Whether a thread has lines.
    pub(crate) fn has_lines(&self, id: &SessionId) -> Result<bool, StateError> {
        self.has(Keys::of(id).records)
    }

    fn has(&self, key: String) -> Result<bool, StateError> {
        let server = Arc::clone(&self.server);
        let found = self.wait(async move { server.command::<u64>("EXISTS", &[key]).await })?;
        Ok(found > 0)
    }

    /// Returns who is allowed to use a session, as it was written.
    pub(crate) fn access(&self, id: &SessionId) -> Result<Option<Vec<u8>>, StateError> {
        self.field(id, "access")
    }

    pub(crate) fn set_access(&self, id: &SessionId, content: &[u8]) -> Result<(), StateError> {
        let (server, key, content) = (Arc::clone(&self.server), Keys::of(id).thread, content.to_vec());
        let set = async move { server.command::<u64>("HSET", &[key.as_bytes(), b"access", &content]).await };
        self.wait(set).map(drop)
    }

    /// Returns the threads that have lines.
    pub(crate) fn recorded(&self) -> Result<Vec<SessionId>, StateError> {
        self.scan(RECORDS)
    }

    /// Returns all threads of which something is kept.
    pub(crate) fn all(&self) -> Result<Vec<SessionId>, StateError> {
        self.scan(THREAD)
    }

    fn scan(&self, end: &'static str) -> Result<Vec<SessionId>, StateError> {
        let server = Arc::clone(&self.server);
        self.wait(async move {
            let mut found = BTreeSet::new();
            for node in server.nodes().await? {
                server
                    .scan(&node, &format!("{START}*{end}"), |key| {
                        let id = key.strip_prefix(START).and_then(|rest| rest.strip_suffix(end));
                        found.extend(id.map(SessionId::new));
                    })
                    .await?;
            }
            Ok(found.into_iter().collect())
        })
    }

    fn field<T: ::redis::FromRedisValue + Send + 'static>(
        &self,
        id: &SessionId,
        field: &'static str,
    ) -> Result<Option<T>, StateError> {
        let (server, key) = (Arc::clone(&self.server), Keys::of(id).thread);
        self.wait(async move { server.command("HGET", &[key.as_str(), field]).await })
    }

    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StateError>> + Send + 'static,
    ) -> Result<T, StateError> {
        wait(work).unwrap_or_else(|error| Err(self.server.unavailable(error)))
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URL, which can contain a password.
        f.debug_struct("Threads").field("server", &self.server.place()).finish_non_exhaustive()
    }
}

/// An entry of a stream: its id, and its fields.
type Entry = (String, Vec<Vec<u8>>);

/// Returns the line of an entry, and its number.
fn line(server: &Server, key: &str, (id, fields): Entry) -> Result<(u64, Vec<u8>), StateError> {
    let number = id.split_once('-').and_then(|(number, _)| number.parse().ok());
    number
        .zip(fields.into_iter().nth(1))
        .ok_or_else(|| server.unreadable(format!("the entry {id} of {key} is no line")))
}
