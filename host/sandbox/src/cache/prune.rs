//! Removes files of the cache that are not used any more: each build of a plugin leaves a compiled component in the folder.
//!
//! A file is used when it is loaded; its time of modification says when that was, to a day. Only files that a cache makes are removed: others
//! may use the folder's name by mistake. Another process whose file goes compiles again.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{KEY_FILE, PROBE};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Files that were not used for this long are removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// More bytes than this are not kept: the files that were used longest ago are removed first.
const MAX_BYTES: u64 = 1 << 30;

/// A file that a process is writing has at most this age.
const WRITING: Duration = DAY;

/// Notes that a file is in use. Once a day is enough, and costs a start nothing on all others.
pub(super) fn note_use(file: &File) {
    let now = SystemTime::now();
    let noted = file.metadata().and_then(|about| about.modified());
    if noted.is_ok_and(|noted| now.duration_since(noted).is_ok_and(|age| age > DAY)) {
        // Whoever owns the file may. Where it fails, the file is compiled again after some weeks.
        let _not_noted = file.set_modified(now);
    }
}

/// Removes from the folder what is unused, beyond the limit, or left by a process that was killed. `keep` was just written.
pub(super) fn prune(folder: &Path, keep: &Path) -> io::Result<()> {
    prune_to(folder, keep, MAX_BYTES)
}

fn prune_to(folder: &Path, keep: &Path, max_bytes: u64) -> io::Result<()> {
    let now = SystemTime::now();
    let mut kept: Vec<(Duration, u64, PathBuf)> = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let Some(most) = most_age(&path).filter(|_| path != keep) else { continue };
        // Another process may have removed it meanwhile.
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let age = age_of(&about, now);
        if !about.is_file() {
            continue;
        }
        if age > most {
            remove(&path);
        } else {
            kept.push((age, about.len(), path));
        }
    }
    kept.sort_unstable();
    let mut bytes = fs::metadata(keep).map_or(0, |about| about.len());
    for (_, size, path) in &kept {
        bytes = bytes.saturating_add(*size);
        if bytes > max_bytes {
            remove(path);
        }
    }
    Ok(())
}

/// The age up to which a file stays; `None`: it is none of the cache's.
fn most_age(path: &Path) -> Option<Duration> {
    let name = path.file_name()?.to_str()?;
    let is_code = |stem: &str| stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.rsplit_once('.')? {
        (stem, "bin" | "schema") if is_code(stem) => Some(UNUSED),
        (stem, "tmp") if is_own_name(stem, is_code) => Some(WRITING),
        _ => None,
    }
}

/// Whether `own_name` makes such names: of compiled code, of the key, or of the probe, with two numbers.
fn is_own_name(stem: &str, is_code: impl Fn(&str) -> bool) -> bool {
    let mut parts = stem.split('.');
    let first = parts.next().is_some_and(|first| is_code(first) || [KEY_FILE, PROBE].contains(&first));
    let numbers = parts.map(|part| part.parse::<u64>().is_ok()).collect::<Vec<_>>();
    first && numbers == [true, true]
}

/// A file of the future is as old as one of now.
fn age_of(about: &Metadata, now: SystemTime) -> Duration {
    about.modified().ok().and_then(|modified| now.duration_since(modified).ok()).unwrap_or_default()
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => tracing::debug!(file = %path.display(), "removed from the cache"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(file = %path.display(), %error, "a file of the cache cannot be removed"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn name(digit: char, end: &str) -> String {
        format!("{}.{end}", digit.to_string().repeat(64))
    }

    fn write(folder: &Path, name: &str, days: u32, size: usize) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, vec![0; size]).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - DAY * days).unwrap();
        path
    }

    fn left(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_is_unused_goes_and_what_is_not_the_caches_stays() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let keep = write(folder, &name('0', "bin"), 0, 10);
        for (name, days) in [
            (name('1', "bin"), 29),
            (name('2', "bin"), 31),
            (name('3', "schema"), 31),
            (name('4', "schema"), 1),
            ("key".to_owned(), 400),
            ("notes.bin".to_owned(), 400),
            (format!("{}.77.0.tmp", "5".repeat(64)), 2),
            ("key.77.1.tmp".to_owned(), 0),
            ("probe.77.2.tmp".to_owned(), 2),
            ("a.b.tmp".to_owned(), 2),
            ("notes.tmp".to_owned(), 400),
            ("report.2024.1.tmp".to_owned(), 400),
        ] {
            write(folder, &name, days, 10);
        }
        fs::create_dir(folder.join(name('6', "bin"))).unwrap();
        prune(folder, &keep).unwrap();
        let expected = [
            name('0', "bin"),
            name('1', "bin"),
            name('4', "schema"),
            name('6', "bin"),
            "a.b.tmp".to_owned(),
            "key".to_owned(),
            "key.77.1.tmp".to_owned(),
            "notes.bin".to_owned(),
            "notes.tmp".to_owned(),
            "report.2024.1.tmp".to_owned(),
        ];
        assert_eq!(left(folder), expected);
    }

    #[test]
    fn beyond_the_limit_the_oldest_goes_first_and_a_used_file_is_not_old() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let keep = write(folder, &name('0', "bin"), 0, 10);
        write(folder, &name('1', "bin"), 3, 10);
        let used = write(folder, &name('2', "bin"), 9, 10);
        write(folder, &name('3', "bin"), 5, 10);
        note_use(&File::open(&used).unwrap());
        prune_to(folder, &keep, 30).unwrap();
        assert_eq!(left(folder), [name('0', "bin"), name('1', "bin"), name('2', "bin")]);
        prune_to(folder, &keep, 5).unwrap();
        assert_eq!(left(folder), [name('0', "bin")], "what was just written stays");
    }
}
