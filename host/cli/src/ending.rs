//! The end of the program: what asks for it, and the guarantee that it comes, whatever the program is doing.
//!
//! The first signal, or the end of the program that reads standard output, asks for an end in order: turns are cancelled, and what they did is
//! saved. Whatever is not settled after [`GRACE`] is left, such as a store or a reader that does not answer. A second signal ends the program
//! at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::{say, screen};

/// How long an end in order takes at most. It is counted in steps: a busy machine, which is late for each of them, has more time.
const GRACE: (u32, Duration) = (20, Duration::from_millis(45));

/// Why the program is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// A signal, which Ctrl+C sends, too; or the terminal is gone.
    Signal,
    /// Nobody reads standard output any more.
    OutputGone,
    /// Standard output cannot be written, such as on a full disk.
    OutputFailed,
}

impl EndReason {
    /// The reason that an error of standard output is.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputGone,
            // A signal says so as well, earlier or later.
            _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Self::Signal,
            _ => Self::OutputFailed,
        }
    }

    /// How the program ends then.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Signal => Exit::Cancelled,
            // As for `head`, which has read enough.
            Self::OutputGone => Exit::Completed,
            Self::OutputFailed => Exit::Failed,
        }
    }
}

/// Whether and by what the program is asked to end. A clone is the same one.
#[derive(Clone, Debug)]
pub(crate) struct Ending(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    requested: CancellationToken,
    by: OnceLock<EndReason>,
    /// There is something that an end in order saves.
    has_work: AtomicBool,
}

impl Ending {
    /// Watches from now on. Until [`Ending::begin_work`] the program ends at once when it is asked to.
    pub(crate) fn watch() -> Self {
        let ending = Self(Arc::default());
        watch_signals(&ending);
        let own = ending.clone();
        if let Err(error) = screen::when_unread(move || own.request(EndReason::OutputGone)) {
            say::note(format_args!("warning: the end of what reads standard output is noticed late: {error}"));
        }
        ending
    }

    /// From now on there is work that an end in order settles.
    pub(crate) fn begin_work(&self) {
        self.0.has_work.store(true, Ordering::SeqCst);
        // It was asked before it could see that there is work.
        if let Some(reason) = self.by() {
            leave(reason.exit());
        }
    }

    /// Waits until the program is asked to end.
    pub(crate) async fn requested(&self) -> EndReason {
        self.0.requested.cancelled().await;
        self.by().unwrap_or(EndReason::Signal)
    }

    /// The reason for which the program was asked to end, if it was.
    pub(crate) fn by(&self) -> Option<EndReason> {
        self.0.by.get().copied()
    }

    /// Asks the program to end. Only the first time counts.
    pub(crate) fn request(&self, by: EndReason) {
        if self.0.by.set(by).is_err() {
            return;
        }
        if !self.0.has_work.load(Ordering::SeqCst) {
            leave(by.exit());
        }
        self.0.requested.cancel();
        // On a thread of its own: those of the runtime may be what does not answer.
        let late = move || {
            (0..GRACE.0).for_each(|_| thread::sleep(GRACE.1));
            say::note("warning: the program ends before everything is saved: something does not answer");
            leave(if by.exit() == Exit::Completed { Exit::Failed } else { by.exit() })
        };
        if let Err(error) = thread::Builder::new().name("ending".into()).spawn(late) {
            say::note(format_args!("warning: the end of the program can take longer: {error}"));
        }
    }
}

/// Ends the program now. The terminal is given back as it was.
pub(crate) fn leave(exit: Exit) -> ! {
    screen::live::give_back();
    screen::finish_line();
    std::process::exit(i32::from(exit.code()))
}

/// Follows the signals that ask for an end, but for those that whoever started the program has it ignore, as `nohup` does.
fn watch_signals(ending: &Ending) {
    let ignored = ignored_signals();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let is_ignored = u32::try_from(kind.as_raw_value() - 1).is_ok_and(|bit| ignored & (1_u64 << bit) != 0);
        if is_ignored {
            continue;
        }
        match signal(kind) {
            Ok(signals) => drop(tokio::spawn(follow(signals, ending.clone()))),
            Err(error) => {
                say::note(format_args!("warning: the signal {} is not handled: {error}", kind.as_raw_value()));
            }
        }
    }
}

async fn follow(mut signals: Signal, ending: Ending) {
    while signals.recv().await.is_some() {
        if ending.by().is_some() {
            leave(Exit::Cancelled);
        }
        ending.request(EndReason::Signal);
    }
}

/// The signals that were ignored when the program was started, a bit each, from signal 1. None where the system does not say.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
