//! A runtime for callers that block, such as the threads that write transcripts.

use std::io;
use std::sync::{LazyLock, mpsc};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// The runtime of the process; it lives as long as that.
static RUNTIME: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).thread_name("redis").enable_all().build());

fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Runs a future to its end. The calling thread blocks, whatever runtime it belongs to.
///
/// # Errors
/// There is no runtime, or the future has panicked.
pub(crate) fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (send, receive) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody has stopped waiting.
        let _ = send.send(work.await);
    });
    receive.recv().map_err(|_| io::Error::other("the task has panicked"))
}

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a task.
///
/// # Errors
/// There is no runtime.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> io::Result<Task> {
    Ok(Task(runtime()?.spawn(work)))
}
