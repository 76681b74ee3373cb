//! Memory: of the machine, of the control groups that the process is in, and of its own limits.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::HostError;

/// Bytes that are kept for open sessions: turns, instances of plugins, what tools read.
const SPARE: u64 = 64 << 20;

/// What bounds the memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    /// Bytes that can still be had.
    left: u64,
    /// Of so many.
    limit: u64,
    /// Whose limit it is.
    of: &'static str,
}

/// # Errors
/// Too little memory is left for another session.
pub(super) fn admit() -> Result<(), HostError> {
    System { proc: "/proc".into(), groups: "/sys/fs/cgroup".into() }.bounds().into_iter().try_for_each(check)
}

fn check(Bound { left, limit, of }: Bound) -> Result<(), HostError> {
    // A small container still has some.
    if left < SPARE.min(limit / 8) { Err(HostError::NoMemory { left, limit, of }) } else { Ok(()) }
}

/// Where Linux says what there is. Elsewhere, and where a file cannot be read, nothing is known and everything is admitted.
struct System {
    proc: PathBuf,
    groups: PathBuf,
}

impl System {
    fn bounds(&self) -> Vec<Bound> {
        let mut bounds = Vec::from_iter(self.machine());
        bounds.extend(self.own());
        bounds.extend(self.control_groups());
        bounds
    }

    fn machine(&self) -> Option<Bound> {
        let info = fs::read_to_string(self.proc.join("meminfo")).ok()?;
        let bytes = |key: &str| Some(number_after(&info, key)? << 10);
        Some(Bound { left: bytes("MemAvailable:")?, limit: bytes("MemTotal:")?, of: "the machine" })
    }

    /// The limits of the process: of its address space, and of the part of it that is written.
    fn own(&self) -> Vec<Bound> {
        let status = fs::read_to_string(self.proc.join("self/status")).unwrap_or_default();
        let bound = |(resource, key, of)| {
            let (limit, used) = (getrlimit(resource).current?, number_after(&status, key)? << 10);
            Some(Bound { left: limit.saturating_sub(used), limit, of })
        };
        let own = [
            (Resource::As, "VmSize:", "the process (`ulimit -v`)"),
            (Resource::Data, "VmData:", "the process (`ulimit -d`)"),
        ];
        own.into_iter().filter_map(bound).collect()
    }

    /// The limits of the groups of the process, in version 2 or 1. Those of the groups around them count as well.
    fn control_groups(&self) -> Vec<Bound> {
        let own = fs::read_to_string(self.proc.join("self/cgroup")).unwrap_or_default();
        let mut bounds = Vec::new();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let (root, files) = match controllers {
                "" => (self.groups.clone(), ("memory.max", "memory.current", "inactive_file ")),
                "memory" => (
                    self.groups.join("memory"),
                    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),
                ),
                _ => continue,
            };
            let inside = Path::new(path.trim_start_matches('/'));
            bounds.extend(inside.ancestors().filter_map(|folder| group(&root.join(folder), files)));
        }
        bounds
    }
}

/// The limit of one control group; `None`: it has none.
fn group(folder: &Path, (limit, used, inactive): (&str, &str, &str)) -> Option<Bound> {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = (number(limit)?, number(used)?);
    // Pages of files that nobody uses are given up for others.
    let files =
        number_after(&fs::read_to_string(folder.join("memory.stat")).unwrap_or_default(), inactive).unwrap_or(0);
    Some(Bound { left: limit.saturating_sub(used.saturating_sub(files)), limit, of: "the control group" })
}

/// The number that follows `key` at the beginning of a line.
fn number_after(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::fs;

    use super::{Bound, System, check};

    const MIB: u64 = 1 << 20;

    /// A system whose files have these contents.
    fn bounds(files: &[(&str, &str)]) -> Vec<(u64, u64, &'static str)> {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let system = System { proc: folder.path().join("proc"), groups: folder.path().join("cgroup") };
        system.bounds().into_iter().map(|Bound { left, limit, of }| (left / MIB, limit / MIB, of)).collect()
    }

    #[test]
    fn the_machine_and_every_control_group_count() {
        assert_eq!(bounds(&[]), []);
        let meminfo = ("proc/meminfo", "MemTotal:       2097152 kB\nMemFree:  1 kB\nMemAvailable:   1048576 kB\n");
        assert_eq!(bounds(&[meminfo]), [(1024, 2048, "the machine")]);
        let two = [
            ("proc/self/cgroup", "0::/pod/work\n"),
            ("cgroup/pod/work/memory.max", "max\n"),
            ("cgroup/pod/work/memory.current", "1048576\n"),
            ("cgroup/pod/memory.max", "209715200\n"),
            ("cgroup/pod/memory.current", "157286400\n"),
            ("cgroup/pod/memory.stat", "anon 1\ninactive_file 10485760\nactive_file 4\n"),
        ];
        assert_eq!(bounds(&two), [(60, 200, "the control group")]);
        // In a namespace of its own the group is the root.
        let root = [
            ("proc/self/cgroup", "0::/\n"),
            ("cgroup/memory.max", "104857600\n"),
            ("cgroup/memory.current", "209715200\n"),
        ];
        assert_eq!(bounds(&root), [(0, 100, "the control group")]);
        let one = [
            ("proc/self/cgroup", "8:pids:/\n4:memory:/work\n0::/\n"),
            ("cgroup/memory/work/memory.limit_in_bytes", "104857600\n"),
            ("cgroup/memory/work/memory.usage_in_bytes", "41943040\n"),
            ("cgroup/memory/work/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\n"),
        ];
        assert_eq!(bounds(&one), [(70, 100, "the control group")]);
    }

    #[test]
    fn some_memory_is_kept_for_open_sessions() {
        for (left, limit, admitted) in
            [(64, 1024, true), (63, 1024, false), (8, 64, true), (7, 64, false), (0, u64::MAX / MIB, false)]
        {
            let checked = check(Bound { left: left * MIB, limit: limit * MIB, of: "the machine" });
            assert_eq!(checked.is_ok(), admitted, "{left} of {limit} MiB");
            let code = checked.err().and_then(|error| error.code()).map(|code| code.as_str());
            assert_eq!(code, (!admitted).then_some("host-memory"));
        }
    }
}
