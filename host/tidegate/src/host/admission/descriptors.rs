//! File descriptors: no session has one of its own, but its turns and its state need some.

use crate::HostError;

/// Descriptors that are kept for open sessions: connections to providers, commands of tools, files of state.
const SPARE: u64 = 96;

/// # Errors
/// Too few descriptors are left for another session.
pub(super) fn admit() -> Result<(), HostError> {
    let Some((open, limit)) = now() else { return Ok(()) };
    check(open, limit)
}

fn check(open: u64, limit: u64) -> Result<(), HostError> {
    // A process with a low limit still has some.
    let spare = SPARE.min(limit / 4);
    if open.saturating_add(spare) > limit { Err(HostError::NoDescriptors { open, limit }) } else { Ok(()) }
}

/// How many descriptors are open, and the most that can be; `None` where the system does not say so.
fn now() -> Option<(u64, u64)> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    match std::fs::read_dir("/dev/fd") {
        // One of them is that of the folder.
        Ok(entries) => Some((entries.count().saturating_sub(1) as u64, limit)),
        Err(error) => {
            let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
            (code == Some(rustix::io::Errno::MFILE)).then_some((limit, limit))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn some_descriptors_are_kept_for_open_sessions() {
        let cases = [
            (0, 1024, true),
            (928, 1024, true),
            (929, 1024, false),
            (1024, 1024, false),
            (60, 80, true),
            (61, 80, false),
        ];
        for (open, limit, admitted) in cases {
            assert_eq!(check(open, limit).is_ok(), admitted, "{open} of {limit}");
        }
        let code = check(2, 1).err().and_then(|error| error.code()).map(|code| code.as_str());
        assert_eq!(code, Some("host-descriptors"));
    }
}
