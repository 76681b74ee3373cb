//! The format of a session's file: its tables, and reading and writing them inside of a transaction.

use std::sync::Arc;

use flow::PluginId;
use flow::ports::{StateEntry, StateLifetime, StoredState};
use redb::{ReadTransaction, ReadableTable as _, Table, TableDefinition, WriteTransaction};

use crate::activity::Recorded;
use crate::backend::Swept;
use crate::changes::{KeyChange, PluginChanges};
use crate::lifetime::ExpiryCheck;
use crate::queue::Flight;

/// The version of everything below. A file of another version is refused.
pub(super) const FORMAT: u64 = 1;
/// Facts about the session: `format`, `active_ms`, and `shortest_ttl_ms` where an entry has a default time to live.
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// The id of the session, under `session`: the name of the file is made from it, but does not contain it.
const NAMES: TableDefinition<'_, &str, &str> = TableDefinition::new("names");
/// The version of each plugin's state.
const VERSIONS: TableDefinition<'_, &str, u32> = TableDefinition::new("versions");
/// Of each plugin and key the times. Apart from the values, so that a use of an entry does not write its value again.
const TIMES: TableDefinition<'_, Key<'_>, Times> = TableDefinition::new("times");
/// Of each plugin and key the value.
const VALUES: TableDefinition<'_, Key<'_>, &[u8]> = TableDefinition::new("values");

type Key<'a> = (&'a str, &'a str);
/// The lifetime (0 default, 1 own, 2 session), its milliseconds, the expiry ([`NEVER`] for none), the last use.
type Times = (u8, u64, u64, u64);
const NEVER: u64 = u64::MAX;

/// What can be wrong inside of a transaction.
#[derive(Debug)]
pub(super) enum Problem {
    Database(redb::Error),
    /// What is stored has another form than it must have.
    Content(String),
}

macro_rules! problem_from {
    ($($error:ident)*) => {
        $(impl From<redb::$error> for Problem {
            fn from(error: redb::$error) -> Self {
                Self::Database(error.into())
            }
        })*
    };
}
problem_from! { StorageError TableError TransactionError CommitError DatabaseError }

pub(super) type Step<T> = Result<T, Problem>;

/// Makes the tables of a fresh session.
pub(super) fn create(transaction: &WriteTransaction, session: &str) -> Step<()> {
    transaction.open_table(FACTS)?.insert("format", FORMAT)?;
    transaction.open_table(NAMES)?.insert("session", session)?;
    transaction.open_table(VERSIONS)?;
    transaction.open_table(TIMES)?;
    transaction.open_table(VALUES)?;
    Ok(())
}

/// The id of the session. Checks the format first: nothing else is read from a file of another one.
pub(super) fn session(transaction: &ReadTransaction) -> Step<String> {
    let format = match transaction.open_table(FACTS) {
        Ok(facts) => facts.get("format")?.map(|format| format.value()),
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        Err(error) => return Err(error.into()),
    };
    if format != Some(FORMAT) {
        let format = format.map_or("an unknown format".to_owned(), |format| format!("format {format}"));
        let remedy = "use the version that wrote it";
        return Err(Problem::Content(format!("it has {format}, and this version reads format {FORMAT}; {remedy}")));
    }
    let name = transaction.open_table(NAMES)?.get("session")?.map(|name| name.value().to_owned());
    name.ok_or_else(|| Problem::Content("it does not name its session".to_owned()))
}

pub(super) fn recorded(transaction: &ReadTransaction) -> Step<Recorded> {
    let facts = transaction.open_table(FACTS)?;
    let active_ms = facts.get("active_ms")?.map(|fact| fact.value());
    let active_ms =
        active_ms.ok_or_else(|| Problem::Content("it does not say when the session was active".to_owned()))?;
    let shortest_ttl_ms = facts.get("shortest_ttl_ms")?.map(|fact| fact.value());
    Ok(Recorded { active_ms, shortest_ttl_ms, has_state: true })
}

/// The plugins that keep something, or have a version, in order.
pub(super) fn plugins(transaction: &ReadTransaction) -> Step<Vec<PluginId>> {
    let mut names = Vec::new();
    for row in transaction.open_table(VERSIONS)?.iter()? {
        names.push(row?.0.value().to_owned());
    }
    for row in transaction.open_table(TIMES)?.iter()? {
        let (key, _) = row?;
        let (plugin, _) = key.value();
        if names.last().is_none_or(|last| last != plugin) {
            names.push(plugin.to_owned());
        }
    }
    names.sort_unstable();
    names.dedup();
    let invalid = |name: &str, error| Problem::Content(format!("the plugin id {name:?} is not valid: {error}"));
    names.into_iter().map(|name| name.parse().map_err(|error| invalid(&name, error))).collect()
}

/// Whether nothing is stored.
pub(super) fn is_empty(transaction: &ReadTransaction) -> Step<bool> {
    let no_versions = transaction.open_table(VERSIONS)?.first()?.is_none();
    Ok(no_versions && transaction.open_table(TIMES)?.first()?.is_none())
}

/// Everything of one plugin, expired entries included.
pub(super) fn load(transaction: &ReadTransaction, plugin: &PluginId) -> Step<StoredState> {
    let version = transaction.open_table(VERSIONS)?.get(plugin.as_str())?.map(|version| version.value());
    let (times, values) = (transaction.open_table(TIMES)?, transaction.open_table(VALUES)?);
    let mut entries = Vec::new();
    for row in times.range((plugin.as_str(), "")..(after(plugin).as_str(), ""))? {
        let (key, times) = row?;
        let value = values.get(key.value())?.map(|value| Arc::from(value.value()));
        let (_, key) = key.value();
        let entry = value.and_then(|value| entry(key, times.value(), value));
        let incomplete = || Problem::Content(format!("the key {key:?} of the plugin {plugin} is incomplete"));
        entries.push(entry.ok_or_else(incomplete)?);
    }
    Ok(StoredState { entries, version })
}

/// Writes a flight, and returns what its sweeps removed.
pub(super) fn write(transaction: &WriteTransaction, flight: &Flight) -> Step<Swept> {
    let mut tables = Tables {
        times: transaction.open_table(TIMES)?,
        values: transaction.open_table(VALUES)?,
        versions: transaction.open_table(VERSIONS)?,
    };
    for (plugin, changes) in &flight.plugins {
        tables.apply(plugin, changes)?;
    }
    let swept = tables.sweep(&flight.sweeps)?;
    record(transaction, flight.activity)?;
    // An id that is not valid is reported when it is read.
    Ok(swept.into_iter().filter_map(|(plugin, key)| Some((plugin.parse().ok()?, key))).collect())
}

pub(super) fn record(transaction: &WriteTransaction, recorded: Recorded) -> Step<()> {
    let mut facts = transaction.open_table(FACTS)?;
    facts.insert("active_ms", recorded.active_ms)?;
    if let Some(ttl_ms) = recorded.shortest_ttl_ms {
        facts.insert("shortest_ttl_ms", ttl_ms)?;
    }
    Ok(())
}

/// The tables of a write transaction.
struct Tables<'a> {
    times: Table<'a, Key<'static>, Times>,
    values: Table<'a, Key<'static>, &'static [u8]>,
    versions: Table<'a, &'static str, u32>,
}

impl Tables<'_> {
    fn apply(&mut self, plugin: &PluginId, changes: &PluginChanges) -> Step<()> {
        if changes.cleared {
            let end = after(plugin);
            self.times.retain_in((plugin.as_str(), "")..(end.as_str(), ""), |_, _| false)?;
            self.values.retain_in((plugin.as_str(), "")..(end.as_str(), ""), |_, _| false)?;
        }
        for (key, change) in &changes.keys {
            self.change((plugin.as_str(), key), change)?;
        }
        let version = self.versions.get(plugin.as_str())?.map(|version| version.value());
        match changes.version.apply(version) {
            now if now == version => {}
            Some(now) => drop(self.versions.insert(plugin.as_str(), now)?),
            None => drop(self.versions.remove(plugin.as_str())?),
        }
        Ok(())
    }

    fn change(&mut self, key: Key<'_>, change: &KeyChange) -> Step<()> {
        match change {
            KeyChange::Set(entry) => {
                self.values.insert(key, &*entry.value)?;
                self.times.insert(key, times(entry.lifetime, entry.expires_ms, entry.used_ms))?;
            }
            KeyChange::Touch { expires_ms, used_ms } => {
                let found = self.times.get(key)?.map(|times| times.value());
                if let Some((kind, ttl_ms, _, _)) = found {
                    self.times.insert(key, (kind, ttl_ms, stored_expiry(*expires_ms), *used_ms))?;
                }
            }
            KeyChange::Delete => {
                self.times.remove(key)?;
                self.values.remove(key)?;
            }
        }
        Ok(())
    }

    /// Removes what has expired, and returns it.
    fn sweep(&mut self, checks: &[ExpiryCheck]) -> Step<Vec<(String, String)>> {
        if checks.is_empty() {
            return Ok(Vec::new());
        }
        let mut swept = Vec::new();
        self.times.retain(|(plugin, key), times| {
            let is_expired = |lifetime| checks.iter().any(|check| check.had_expired(lifetime, expiry(times), times.3));
            let expired = lifetime(times).is_some_and(is_expired);
            if expired {
                swept.push((plugin.to_owned(), key.to_owned()));
            }
            !expired
        })?;
        for (plugin, key) in &swept {
            self.values.remove((plugin.as_str(), key.as_str()))?;
        }
        Ok(swept)
    }
}

/// The first name after all keys of a plugin: no plugin id contains this character.
fn after(plugin: &PluginId) -> String {
    format!("{plugin}\0")
}

fn times(lifetime: StateLifetime, expires_ms: Option<u64>, used_ms: u64) -> Times {
    let (kind, ttl_ms) = match lifetime {
        StateLifetime::Default { ttl_ms } => (0, ttl_ms),
        StateLifetime::Own { ttl_ms } => (1, ttl_ms),
        StateLifetime::Session => (2, 0),
    };
    (kind, ttl_ms, stored_expiry(expires_ms), used_ms)
}

/// The end of time is not "never": an entry of its own time has an end.
fn stored_expiry(expires_ms: Option<u64>) -> u64 {
    expires_ms.map_or(NEVER, |at| at.min(NEVER - 1))
}

fn lifetime((kind, ttl_ms, _, _): Times) -> Option<StateLifetime> {
    match kind {
        0 => Some(StateLifetime::Default { ttl_ms }),
        1 => Some(StateLifetime::Own { ttl_ms }),
        2 => Some(StateLifetime::Session),
        _ => None,
    }
}

fn expiry((_, _, expires_ms, _): Times) -> Option<u64> {
    (expires_ms != NEVER).then_some(expires_ms)
}

fn entry(key: &str, times: Times, value: Arc<[u8]>) -> Option<StateEntry> {
    let lifetime = lifetime(times)?;
    Some(StateEntry { key: key.to_owned(), value, lifetime, expires_ms: expiry(times), used_ms: times.3 })
}
