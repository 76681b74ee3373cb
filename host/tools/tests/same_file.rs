//! A file that is changed stays the same file: its names, its owner, its permissions and its attributes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use flow::ports::Tools;
use serde_json::{Value, json};

use crate::common::{World, again, anywhere, call, is_root, nobody, prepared};

fn edit(path: &str) -> Value {
    json!({"path": path, "old_text": "old", "new_text": "new"})
}

/// A line, 5,000 times: more than the limit on the size of files that one of the tests sets.
fn long(word: &str) -> String {
    format!("{word}\n").repeat(5000)
}

#[tokio::test]
async fn all_names_of_a_file_have_the_new_content() {
    let world = World::new();
    for (tool, arguments, expected) in [
        ("edit_file", edit("a.txt"), "`a.txt` is changed in 1 place; it is one file with 2 names (hard links)"),
        (
            "write_file",
            json!({"path": "a.txt", "content": "n"}),
            "replaced `a.txt` (1 line, 1 byte); it is one file with 2 names (hard links)",
        ),
        (
            "write_file",
            json!({"path": "a.txt", "content": "old and longer than before\n"}),
            "replaced `a.txt` (1 line, 27 bytes); it is one file with 2 names (hard links)",
        ),
    ] {
        world.file("a.txt", "old\n");
        let _ = fs::remove_file(world.path("b.txt"));
        fs::hard_link(world.path("a.txt"), world.path("b.txt")).unwrap();
        let preview = world.tools.prepare(&call(tool, arguments.clone())).preview().await;
        assert_eq!(preview.notes, ["changes the file `a.txt`", "it is one file with 2 names (hard links)"]);
        assert_eq!(world.fine(tool, arguments).await, expected);
        assert_eq!(world.read("a.txt"), world.read("b.txt"));
        assert_ne!(world.read("b.txt"), "old\n");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn attributes_and_permissions_are_kept() {
    let world = World::new();
    world.file("a.txt", "old\n");
    fs::set_permissions(world.path("a.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    let attributes = [("user.tag", "one"), ("user.empty", "")];
    for (name, value) in attributes {
        rustix::fs::setxattr(world.path("a.txt"), name, value.as_bytes(), rustix::fs::XattrFlags::empty()).unwrap();
    }
    let before = fs::metadata(world.path("a.txt")).unwrap();
    assert_eq!(world.fine("edit_file", edit("a.txt")).await, "`a.txt` is changed in 1 place");
    let after = fs::metadata(world.path("a.txt")).unwrap();
    assert_ne!(before.ino(), after.ino(), "a file with one name is moved into place as a whole");
    assert_eq!(after.mode() & 0o7777, 0o750);
    for (name, value) in attributes {
        let mut found = [0; 16];
        let length = rustix::fs::getxattr(world.path("a.txt"), name, &mut found).unwrap();
        assert_eq!(&found[..length], value.as_bytes(), "{name}");
    }
}

/// A superuser gives the new file to the owner of the old one. Others write into it where they may, and else change nothing and say why.
#[tokio::test]
async fn the_owner_is_kept() {
    const TEST: &str = "same_file::the_owner_is_kept";
    if let Some(tools) = prepared() {
        let said = |path: &'static str| {
            let tools = &tools;
            async move { tools.prepare(&call("edit_file", edit(path))).run(&|_| {}).await.content }
        };
        assert_eq!(said("open.txt").await, "`open.txt` is changed in 1 place");
        assert_eq!(
            said("shut/own.txt").await,
            "`shut/own.txt` is changed in 1 place",
            "its folder takes no other file"
        );
        let refused = said("closed.txt").await;
        assert!(
            refused.starts_with(
                "`closed.txt` cannot be written: Permission denied (os error 13). It is written in place, as"
            ) && refused.ends_with("would differ: its owner cannot be kept: Operation not permitted (os error 1)"),
            "{refused}"
        );
        return;
    }
    let world = World::new();
    if !is_root() {
        // Nobody else's file can be made; that of the test's own user stays that user's.
        world.file("a.txt", "old\n");
        world.fine("edit_file", edit("a.txt")).await;
        assert_eq!(fs::metadata(world.path("a.txt")).unwrap().uid(), fs::metadata(world.path(".")).unwrap().uid());
        return;
    }
    world.file("own.txt", "old\n").file("open.txt", "old\n").file("closed.txt", "old\n");
    for (name, mode) in [("own.txt", 0o640), ("open.txt", 0o666), ("closed.txt", 0o644)] {
        std::os::unix::fs::chown(world.path(name), Some(1234), Some(4321)).unwrap();
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    world.fine("edit_file", edit("own.txt")).await;
    world.file("shut/own.txt", "old\n");
    std::os::unix::fs::chown(world.path("shut/own.txt"), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(world.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(world.path("."), Some(65534), Some(65534)).unwrap();
    again(TEST, &world.path(""), nobody(), "");
    let found = ["own.txt", "open.txt", "closed.txt"].map(|name| {
        let about = fs::metadata(world.path(name)).unwrap();
        (about.uid(), about.gid(), about.mode() & 0o777, world.read(name))
    });
    let expected = [(0o640, "new\n"), (0o666, "new\n"), (0o644, "old\n")];
    assert_eq!(found, expected.map(|(mode, text)| (1234, 4321, mode, text.to_owned())));
    assert!(!anywhere(world.folder.path(), "tidegate-"));
    assert_eq!(world.read("shut/own.txt"), "new\n");
    assert_eq!(fs::read_dir(world.path(".")).unwrap().count(), 4, "a temporary file was left");
}

/// A limit on the size of files stands for a full disk.
#[tokio::test]
async fn a_file_that_cannot_be_written_whole_is_as_it_was() {
    const TEST: &str = "same_file::a_file_that_cannot_be_written_whole_is_as_it_was";
    if let Some(tools) = prepared() {
        for name in ["one.txt", "linked.txt"] {
            let write = json!({"path": name, "content": long("new, and longer")});
            let output = tools.prepare(&call("write_file", write)).run(&|_| {}).await;
            assert!(
                output.content.starts_with(&format!("`{name}` cannot be written: File too large")),
                "{}",
                output.content
            );
        }
        return;
    }
    let world = World::new();
    world.file("one.txt", long("old")).file("linked.txt", long("old"));
    fs::hard_link(world.path("linked.txt"), world.path("other.txt")).unwrap();
    // Blocks of 512 bytes; a write over the limit fails, and ends no process that ignores the signal.
    again(TEST, &world.path(""), Command::new("env"), "trap '' XFSZ; ulimit -f 60;");
    for name in ["one.txt", "linked.txt", "other.txt"] {
        assert_eq!(world.read(name), long("old"), "{name}");
    }
    assert_eq!(fs::read_dir(world.path(".")).unwrap().count(), 3, "a temporary file was left");
}

/// A limit on the size of files ends the process while it writes.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_left_of_a_file_is_not_for_others() {
    const TEST: &str = "same_file::what_is_left_of_a_file_is_not_for_others";
    if let Some(tools) = prepared() {
        let write = json!({"path": "one.txt", "content": long("new, and longer")});
        let output = tools.prepare(&call("write_file", write)).run(&|_| {}).await;
        panic!("not ended: {}", output.content);
    }
    let world = World::new();
    world.file("one.txt", long("old"));
    fs::set_permissions(world.path("one.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let command = format!("umask 022; ulimit -c 0; ulimit -f 60; exec \"$0\" --exact {TEST}");
    let mut process = Command::new("env");
    process.args(["--default-signal=XFSZ", "sh", "-c", &command]).arg(std::env::current_exe().unwrap());
    let output = process.env("TIDEGATE_TEST_AGAIN", world.path("")).output().unwrap();
    assert!(output.status.code().is_none(), "not ended by the signal: {output:?}");
    let left: Vec<_> = fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap()).collect();
    let left: Vec<_> = left.iter().filter(|entry| entry.file_name() != "one.txt").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let about = left[0].metadata().unwrap();
    assert!(about.len() > 0, "nothing was written");
    assert_eq!(about.mode() & 0o777, 0o600);
    assert_eq!(world.read("one.txt"), long("old"));
}
