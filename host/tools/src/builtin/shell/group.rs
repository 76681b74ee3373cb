//! A command in a process group of its own, which ends whole.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use super::output::Kept;
use super::watchdog::{GATED, Watchdog};

/// How long the pipe is read after the group is dead: only a process that left the group can still have it open.
const DRAIN: Duration = Duration::from_millis(200);
/// The least time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A running command. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Running {
    group: Group,
    output: Receiver,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

/// The group's id while its leader has not been reaped. As long as that is so, the system cannot give the id to others.
#[derive(Clone, Debug)]
struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        if let Some(leader) = *self.lock() {
            // It fails only where no process of the group is left, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Starts `sh -c command` in `folder` with exactly this environment.
pub(super) fn start(command: &str, folder: &Path, environment: Vec<(OsString, OsString)>) -> io::Result<Running> {
    let (reader, writer) = io::pipe()?;
    let output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let mut watchdog = Watchdog::start()?;
    let (gate, mut start) = io::pipe()?;
    let mut sh = Command::new("sh");
    sh.args(["-c", GATED, "sh", command]).current_dir(folder).env_clear().envs(environment).process_group(0);
    // One pipe for both, so that lines stay in the order they were written.
    sh.stdin(gate).stdout(writer.try_clone()?).stderr(writer);
    let child = sh.spawn()?;
    // Our ends of the pipe for writing go with the builder; else the pipe would never end.
    drop(sh);
    let leader = Pid::from_child(&child);
    let group = Group(Arc::new(Mutex::new(Some(leader))));
    let begun = watchdog.watch(leader).and_then(|()| start.write_all(b"\n"));
    drop(start);
    let (tell, ended) = oneshot::channel();
    let watched = group.clone();
    let watcher = std::thread::Builder::new().name("tidegate-shell".to_owned());
    let spawned = watcher.spawn(move || {
        // There is no receiver when the future was dropped; then the group is being killed, and no report is needed.
        let _ = tell.send(watch(child, leader, &watched, watchdog));
    });
    if let Err(error) = begun.and(spawned) {
        group.kill();
        return Err(error);
    }
    Ok(Running { group, output, ended })
}

/// Waits for the leader, kills what is left of its group, and only then reaps it: until then its id is ours.
fn watch(mut child: Child, leader: Pid, group: &Group, watchdog: Watchdog) -> io::Result<ExitStatus> {
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {
    }
    group.kill();
    watchdog.dismiss();
    let mut id = group.lock();
    let status = child.wait();
    *id = None;
    status
}

impl Running {
    /// Takes output until the leader has ended.
    pub(super) async fn follow(
        &mut self,
        kept: &mut Kept,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> io::Result<ExitStatus> {
        let mut buffer = vec![0; 16 << 10];
        let mut reported: Option<Instant> = None;
        let mut open = true;
        loop {
            tokio::select! {
                read = self.output.read(&mut buffer), if open => match read {
                    Ok(0) => open = false,
                    Ok(bytes) => {
                        kept.push(&buffer[..bytes]);
                        if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
                            reported = Some(Instant::now());
                            report(&buffer[..bytes], progress);
                        }
                    }
                    Err(error) => return Err(error),
                },
                ended = &mut self.ended => {
                    return ended.unwrap_or_else(|_| Err(io::Error::other("the thread that waits for it is gone")));
                }
            }
        }
    }

    /// Kills the group and takes what is still in the pipe.
    pub(super) async fn finish(mut self, kept: &mut Kept) {
        self.group.kill();
        let mut buffer = vec![0; 16 << 10];
        let drained = tokio::time::timeout(DRAIN, async {
            while let Ok(bytes @ 1..) = self.output.read(&mut buffer).await {
                kept.push(&buffer[..bytes]);
            }
        });
        // Too late means that a process outside of the group has the pipe open; its output is not ours.
        let _ = drained.await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// Reports the last received line.
fn report(bytes: &[u8], progress: &(dyn Fn(&str) + Send + Sync)) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        progress(line);
    }
}
