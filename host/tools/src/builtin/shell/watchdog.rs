//! Kills a command's process group when this process dies without having been able to: by `kill -9`, or for lack of memory.
//!
//! The watchdog is a small `sh` in a process group of its own. It reads from a pipe that only this process keeps open
//! for writing; when the pipe ends without a word, this process is gone. The command waits until its watchdog knows
//! its group, so no moment is left in which it runs unwatched.

use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Reads the group's id, then waits. A second line dismisses it; the end of the pipe means that no process is left to
/// kill the group.
const SCRIPT: &str =
    r#"trap '' HUP INT TERM; read -r group || exit 0; read -r _ || kill -s KILL -- "-$group" 2>/dev/null"#;

/// Runs its first argument as a command once a line was read; if there is none, the command is never started.
pub(super) const GATED: &str = r#"read -r _ || exit 1; exec sh -c "$1" </dev/null"#;

/// A watchdog. Dropping it without [`Watchdog::dismiss`] is what it waits for.
#[derive(Debug)]
pub(super) struct Watchdog {
    process: Child,
    pipe: PipeWriter,
}

impl Watchdog {
    pub(super) fn start() -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        let mut sh = Command::new("sh");
        // Its own group: what is typed at the terminal, and the end of the command's group, do not concern it.
        sh.arg("-c").arg(SCRIPT).env_clear().process_group(0);
        let process = sh.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { process, pipe })
    }

    /// From now on the group's life ends with this process's.
    pub(super) fn watch(&mut self, group: Pid) -> io::Result<()> {
        writeln!(self.pipe, "{}", group.as_raw_nonzero())
    }

    /// The group has ended.
    pub(super) fn dismiss(mut self) {
        // A watchdog that is gone already needs no dismissal.
        let _gone = self.pipe.write_all(b"done\n");
        let _reaped = self.process.wait();
    }
}
