//! The threads for code that blocks and that cannot be stopped.
//!
//! They do not belong to the runtime: code that does not return takes no worker from other tasks there, and the end of the program does not
//! wait for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

/// The maximum number of concurrent calls of an extension in one session, including calls whose result is ignored.
pub(super) const MOST: usize = 16;

/// The reason why there is no result.
pub(super) enum NoReturn {
    /// The call took longer than its time limit, and continues to run.
    Late,
    /// The call has not begun: [`MOST`] earlier ones are running.
    Busy,
    /// The panic message of the call.
    Panic(Box<dyn Any + Send>),
    /// No thread could be started for it.
    NoThread(std::io::Error),
}

/// The threads of one extension in one session.
pub(super) struct Threads(Arc<Semaphore>);

impl Default for Threads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Threads {
    /// Runs `work` on a thread of its own, which ends with it. The time limit begins when `work` begins, which waits for at most as long.
    pub(super) async fn run<A: Send + 'static>(
        &self,
        time: Duration,
        work: impl FnOnce() -> A + Send + 'static,
    ) -> Result<A, NoReturn> {
        let free = tokio::time::timeout(time, Arc::clone(&self.0).acquire_owned()).await;
        // The semaphore is never closed.
        let permit = free.map_err(|_| NoReturn::Busy)?.map_err(|_| NoReturn::Busy)?;
        let runtime = Handle::current();
        let (begun, begins) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let body = move || {
            let _place = permit;
            let _inside = runtime.enter();
            // The receiver may have been dropped.
            let _ = begun.send(());
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        };
        thread::Builder::new().name("extension".to_owned()).spawn(body).map_err(NoReturn::NoThread)?;
        // The thread sends both, unless it is killed with its process.
        let _ = begins.await;
        match tokio::time::timeout(time, ended).await {
            Ok(Ok(answer)) => answer.map_err(NoReturn::Panic),
            Ok(Err(_)) | Err(_) => Err(NoReturn::Late),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const TIME: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn so_many_run_at_once_and_those_that_nobody_waits_for_count() {
        let threads = Threads::default();
        let mut stuck = Vec::new();
        for _ in 0..MOST {
            let (release, wait) = channel::<()>();
            let ended = threads.run(TIME, move || wait.recv().is_err()).await;
            assert!(matches!(ended, Err(NoReturn::Late)));
            stuck.push(release);
        }
        assert!(matches!(threads.run(TIME, || ()).await, Err(NoReturn::Busy)));
        // One call ends, and another one can begin.
        drop(stuck.pop());
        let patient = Duration::from_secs(60);
        assert!(threads.run(patient, || 7).await.is_ok_and(|answer| answer == 7));
    }

    #[tokio::test]
    async fn a_panic_ends_its_call_alone_and_the_runtime_can_be_used() {
        let threads = Threads::default();
        let patient = Duration::from_secs(60);
        let Err(NoReturn::Panic(panic)) = threads.run(patient, || panic!("no")).await else { panic!("it did not") };
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"no"));
        let name =
            threads.run(patient, || (Handle::try_current().is_ok(), thread::current().name().map(str::to_owned)));
        assert_eq!(name.await.ok().unwrap(), (true, Some("extension".to_owned())));
    }
}
