//! Compiled components on disk: found again, never trusted blindly, never in the way.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tidegate_sandbox::{EngineCounts, EngineOptions, Sandbox};

use crate::support::{Guest, PASS, source};

fn start(dir: &Path) -> Sandbox {
    Sandbox::new(&EngineOptions { cache_dir: Some(dir.to_owned()), max_instances: 4, ..EngineOptions::default() })
        .unwrap()
}

fn counts(compiled: u64, loaded: u64) -> EngineCounts {
    EngineCounts { compiled, loaded, shared: 0 }
}

/// Starts, loads `component`, and returns the time and the work.
fn load(dir: &Path, component: &[u8]) -> EngineCounts {
    let sandbox = start(dir);
    assert_eq!(sandbox.report().cache, None);
    sandbox.load(source("guest", component.to_vec())).unwrap();
    sandbox.counts()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "bin"));
    files
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_second_start_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a/b");
    let (one, two) =
        (Guest::text(PASS).component(), Guest::text("(drop (i32.const 2)) (i32.const ANSWER)").component());
    assert_eq!(load(&dir, &one), counts(1, 0));
    assert_eq!(load(&dir, &one), counts(0, 1));
    assert_eq!(load(&dir, &two), counts(1, 0), "another component has a place of its own");
    assert_eq!(load(&dir, &one), counts(0, 1));
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("key")), 0o600);
    assert_eq!(files(&dir).len(), 2);
    assert!(files(&dir).iter().all(|file| mode(file) == 0o600));
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "nothing is left lying about: {left:?}");
}

/// Without it everything works, only slower, so that nothing else would show that it does not.
#[cfg(target_os = "linux")]
#[test]
fn code_of_the_cache_is_mapped_and_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let component = Guest::text(PASS).component();
    assert_eq!(load(&dir, &component), counts(1, 0));
    let sandbox = start(&dir);
    let plugin = sandbox.load(source("guest", component)).unwrap();
    assert_eq!(sandbox.counts(), counts(0, 1));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let code = maps.lines().filter(|line| line.contains("memfd:tidegate-component") && line.contains("r-xp"));
    assert!(code.count() > 0, "{maps}");
    drop(plugin);
}

/// A pipe can be read only once.
#[cfg(target_os = "linux")]
#[test]
fn a_component_can_come_from_a_pipe() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use tidegate_sandbox::{ComponentSource, PluginSource};

    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let component = Guest::text(PASS).component();
    for expected in [counts(1, 0), counts(0, 1)] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let content = component.clone();
        let writing = std::thread::spawn(move || writer.write_all(&content).unwrap());
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let sandbox = start(&dir);
        let id = "guest".parse().unwrap();
        sandbox.load(PluginSource::new(id, ComponentSource::File(path))).unwrap();
        writing.join().unwrap();
        assert_eq!(sandbox.counts(), expected);
    }
}

#[test]
fn whatever_was_altered_is_compiled_again_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let component = Guest::text(PASS).component();
    assert_eq!(load(&dir, &component), counts(1, 0));
    let file = files(&dir).remove(0);
    let whole = fs::read(&file).unwrap();
    let mut changes = Vec::new();
    for at in [0, 9, 40, 41, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        changes.push(changed);
    }
    changes.extend([Vec::new(), whole[..whole.len() / 2].to_vec(), [&whole[..], b"x"].concat()]);
    for changed in changes {
        fs::write(&file, changed).unwrap();
        assert_eq!(load(&dir, &component), counts(1, 0));
        assert_eq!(load(&dir, &component), counts(0, 1), "it was replaced");
    }
}

#[test]
fn a_file_does_not_pass_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let (one, two) =
        (Guest::text(PASS).component(), Guest::text("(drop (i32.const 2)) (i32.const ANSWER)").component());
    load(&dir, &one);
    let first = files(&dir).remove(0);
    load(&dir, &two);
    let second = files(&dir).into_iter().find(|file| *file != first).unwrap();
    fs::copy(&first, &second).unwrap();
    assert_eq!(load(&dir, &two), counts(1, 0));
}

#[test]
fn a_damaged_key_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    load(&dir, &Guest::text(PASS).component());
    fs::write(dir.join("key"), b"short").unwrap();
    let why = start(&dir).report().cache.clone().unwrap();
    assert_eq!(why, format!("{} is damaged; remove it", dir.join("key").display()));
}

#[test]
fn with_another_key_everything_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let component = Guest::text(PASS).component();
    load(&dir, &component);
    fs::remove_file(dir.join("key")).unwrap();
    assert_eq!(load(&dir, &component), counts(1, 0));
    assert_eq!(load(&dir, &component), counts(0, 1));
}

#[test]
fn a_folder_open_to_others_is_not_used_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let component = Guest::text(PASS).component();
    load(&dir, &component);
    for (path, open) in [(dir.clone(), 0o755), (dir.join("key"), 0o640)] {
        let closed = mode(&path);
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        let sandbox = start(&dir);
        let why = sandbox.report().cache.clone().unwrap();
        assert!(why.contains(&format!("is open to others (mode {open:o}); run `chmod go= ")), "{why}");
        sandbox.load(source("guest", component.clone())).unwrap();
        assert_eq!(sandbox.counts(), counts(1, 0), "it works without");
        fs::set_permissions(&path, fs::Permissions::from_mode(closed)).unwrap();
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    assert!(start(&link).report().cache.clone().unwrap().contains("is a symbolic link"));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(start(&file).report().cache.is_some());
}

#[test]
fn two_starts_at_once_share_a_key() {
    let component = Guest::text(PASS).component();
    // Where they meet is chance: often enough that each place is met.
    for _ in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("cache");
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    load(&dir, &component)
                });
            }
        });
        assert_eq!(load(&dir, &component), counts(0, 1));
    }
}
