//! Keeps keys out of what the commands of a model can read of this process. They run as the same user, and `/proc/PID/environ`, or `ps e`,
//! shows them the environment that a process was started with.
//!
//! - On Linux the process is not dumpable: others of the same user can neither read its environment and memory nor attach to it, and it
//!   leaves no core dump. The superuser can.
//! - Before anything else, the program starts itself again without the variables that look like secrets, which it passes on through a
//!   socket. So nobody finds them in the environment, on other systems either.

#[cfg(unix)]
mod handover;

use crate::args::Command;

/// Protects the keys of this process, as far as the system can. Does not return where the program is started again.
pub(crate) fn protect(command: &Command) {
    #[cfg(target_os = "linux")]
    not_dumpable();
    #[cfg(unix)]
    if runs_commands(command) {
        handover::hand_over();
    }
}

/// Whether a command runs what a model decides.
fn runs_commands(command: &Command) -> bool {
    matches!(command, Command::Run(_) | Command::Chat(_) | Command::Acp(_))
}

#[cfg(target_os = "linux")]
fn not_dumpable() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Only a system without this call refuses it.
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        crate::screen::note(format_args!("warning: other processes of this user can read this one: {error}"));
    }
}
