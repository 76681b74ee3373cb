//! The right to write a thread: acquired, renewed, and released.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::redis::{RedisError, Script, ScriptInvocation};
use flow::SessionId;
use flow::ports::StateError;

use super::super::server::Reply;
use super::super::session::{millis, owner_in};
use super::{Keys, SCRIPTS, Threads};
use crate::waiting::{self, Task, wait};

/// How many lines, or bytes of lines, are sent at once: a script stops the server for as long as it runs.
const LINES: usize = 512;
const BYTES: usize = 1 << 20;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Is called once when the thread is lost to another writer.
pub(crate) type Lost = Box<dyn FnOnce(StateError) + Send>;

/// A thread that is reserved for this writer. Dropping it releases the thread.
pub(crate) struct Claim {
    writer: Arc<Writer>,
    lost: Arc<Mutex<Option<Lost>>>,
    /// Renews the lease three times in its term.
    _renewal: Task,
}

/// What every script of a writer gets.
struct Writer {
    threads: Threads,
    id: SessionId,
    keys: Keys,
    token: String,
}

impl Claim {
    pub(super) async fn acquire(threads: Threads, id: &SessionId, token: String) -> Result<Self, StateError> {
        let writer = Arc::new(Writer { threads, id: id.clone(), keys: Keys::of(id), token });
        let address = writer.threads.address.get().cloned().unwrap_or_default();
        let arguments = |invocation: &mut ScriptInvocation<'_>| {
            invocation.arg(address);
        };
        writer.run(&SCRIPTS.claim, arguments).await?;
        let lost = Arc::default();
        let renewal = waiting::spawn(renew(Arc::clone(&writer), Arc::clone(&lost)));
        let renewal = renewal.map_err(|error| writer.threads.server.unavailable(error))?;
        Ok(Self { writer, lost, _renewal: renewal })
    }

    /// Calls this when another writer has taken over the thread.
    pub(crate) fn on_lost(&self, lost: Lost) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(lost);
    }

    /// Adds lines, the first of which has this number. Where the server does not answer, they are sent again for a while: they are there once.
    pub(crate) fn append(&self, first: u64, lines: &[&[u8]]) -> Result<(), StateError> {
        let mut number = first;
        for batch in batches(lines) {
            let (writer, count) = (Arc::clone(&self.writer), batch.len() as u64);
            let batch: Vec<Vec<u8>> = batch.iter().map(|line| line.to_vec()).collect();
            self.wait(async move { writer.append(number, &batch).await })?;
            number += count;
        }
        Ok(())
    }

    /// Replaces all lines. A crash meanwhile leaves them as they were.
    pub(crate) fn replace(&self, lines: &[&[u8]]) -> Result<(), StateError> {
        let writer = Arc::clone(&self.writer);
        let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
        self.wait(async move { writer.replace(&lines).await })
    }

    /// Removes the thread.
    pub(crate) fn remove(&self) -> Result<(), StateError> {
        let writer = Arc::clone(&self.writer);
        self.wait(async move { writer.run(&SCRIPTS.remove, |_| {}).await.map(drop) })
    }

    fn wait(&self, work: impl Future<Output = Result<(), StateError>> + Send + 'static) -> Result<(), StateError> {
        self.writer.threads.wait(work)
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("thread", &self.writer.id).finish_non_exhaustive()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let writer = Arc::clone(&self.writer);
        // Waited for: the process may end.
        let released = wait(async move { writer.run(&SCRIPTS.release, |_| {}).await });
        if let Ok(Err(error)) = released {
            tracing::debug!(session = %self.writer.id, %error, "a thread is not released; its lease ends by itself");
        }
    }
}

impl Writer {
    async fn run(
        &self,
        script: &'static Script,
        more: impl FnOnce(&mut ScriptInvocation<'_>),
    ) -> Result<Reply, StateError> {
        let Threads { server, clock, lease, .. } = &self.threads;
        let Keys { thread, writer, records, repaired } = &self.keys;
        let arguments = |invocation: &mut ScriptInvocation<'_>| {
            invocation.arg(&self.token).arg(millis(*lease).max(1)).arg(clock.now_ms());
            more(invocation);
        };
        let reply = server.run(script, &[thread, writer, records, repaired], arguments).await?;
        let session = || self.id.clone();
        match reply.kind.as_str() {
            "leased" => Err(StateError::Leased { session: session(), by: owner_in(&reply.text(0)), until_ms: None }),
            "fenced" => Err(StateError::Fenced { session: session(), by: owner_in(&reply.text(0)) }),
            "lost" => Err(StateError::Lost { session: session(), place: server.place().to_owned() }),
            _ => Ok(reply),
        }
    }

    async fn append(&self, first: u64, lines: &[Vec<u8>]) -> Result<(), StateError> {
        let until = Instant::now() + self.threads.patience;
        loop {
            let sent = self.run(&SCRIPTS.append, |invocation| {
                invocation.arg(first);
                for line in lines {
                    invocation.arg(line);
                }
            });
            match sent.await {
                Err(error) if is_passing(&error) && Instant::now() < until => tokio::time::sleep(PAUSE).await,
                sent => return sent.map(drop),
            }
        }
    }

    async fn replace(&self, lines: &[Vec<u8>]) -> Result<(), StateError> {
        let (server, key) = (&self.threads.server, self.keys.repaired.as_bytes());
        server.command::<u64>("DEL", &[key]).await?;
        for (line, number) in lines.iter().zip(1_u64..) {
            let id = format!("{number}-0");
            server.command::<String>("XADD", &[key, id.as_bytes(), b"line", line]).await?;
        }
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        self.run(&SCRIPTS.replace, |invocation| {
            invocation.arg(lines.len()).arg(bytes);
        })
        .await
        .map(drop)
    }
}

/// Renews the lease until another writer has the thread. The server counts real time, whatever the host's clock does.
async fn renew(writer: Arc<Writer>, lost: Arc<Mutex<Option<Lost>>>) {
    loop {
        tokio::time::sleep(writer.threads.lease / 3).await;
        match writer.run(&SCRIPTS.renew, |_| {}).await {
            Ok(_) => {}
            Err(error @ (StateError::Fenced { .. } | StateError::Lost { .. })) => {
                tracing::warn!(session = %writer.id, %error, "the session cannot be recorded any more");
                let lost = lost.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(lost) = lost {
                    lost(error);
                }
                return;
            }
            Err(error) => tracing::debug!(session = %writer.id, %error, "the lease cannot be renewed now"),
        }
    }
}

/// Whether the same can succeed a little later: the server has not answered, or does not serve now.
fn is_passing(error: &StateError) -> bool {
    let StateError::Unavailable { cause, .. } = error else { return false };
    let Some(error) = cause.downcast_ref::<RedisError>() else { return false };
    match error.code() {
        Some(code) => ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"].contains(&code),
        None => true,
    }
}

/// Splits lines into what is sent at once.
fn batches<'a, 'b>(mut lines: &'a [&'b [u8]]) -> impl Iterator<Item = &'a [&'b [u8]]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let mut is_within = |line: &&[u8]| {
            bytes += line.len();
            bytes <= BYTES
        };
        let count = lines.iter().take(LINES).take_while(|line| is_within(line)).count().max(1);
        let (batch, rest) = lines.split_at_checked(count)?;
        lines = rest;
        Some(batch)
    })
}
