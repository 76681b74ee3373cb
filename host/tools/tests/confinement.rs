//! Nothing outside of the workspace is read, written or listed, whatever the path or the links.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{SECRET, World, anywhere};

/// Every tool that takes a path, with arguments for it.
fn every_tool(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "written"})),
        ("edit_file", json!({"path": path, "old_text": "words", "new_text": "written"})),
        ("list_dir", json!({"path": path})),
        ("find", json!({"path": path, "pattern": "*"})),
        ("grep", json!({"path": path, "pattern": "."})),
    ]
}

/// No tool reaches the file outside through this path, and each says so.
async fn is_fenced(world: &World, path: &str) {
    for (tool, arguments) in every_tool(path) {
        let said = world.fails(tool, arguments).await;
        assert!(!said.contains(SECRET), "{tool} {path}: {said}");
        assert!(said.contains("outside of the workspace") || said.contains("leads nowhere"), "{tool} {path}: {said}");
    }
    assert_eq!(fs::read_to_string(world.outside()).unwrap(), SECRET, "{path}");
}

#[tokio::test]
async fn paths_that_go_up_are_refused() {
    let world = World::new();
    world.file("d/x.txt", "");
    for path in ["../outside.txt", "d/../../outside.txt", "..", "./../outside.txt", "d/../../inside/../outside.txt"] {
        is_fenced(&world, path).await;
    }
    is_fenced(&world, &world.outside().display().to_string()).await;
    is_fenced(&world, "/etc/passwd").await;
    is_fenced(&world, "/").await;
}

#[tokio::test]
async fn a_folder_with_the_same_beginning_is_another_folder() {
    let world = World::new();
    let other = world.folder.path().join("inside-not");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.txt"), SECRET).unwrap();
    is_fenced(&world, "../inside-not/a.txt").await;
    is_fenced(&world, &other.join("a.txt").display().to_string()).await;
}

#[tokio::test]
async fn a_link_to_a_file_outside_is_refused() {
    let world = World::new();
    symlink(world.outside(), world.path("absolute")).unwrap();
    symlink("../outside.txt", world.path("relative")).unwrap();
    symlink("relative", world.path("chain")).unwrap();
    for path in ["absolute", "relative", "chain"] {
        is_fenced(&world, path).await;
    }
}

#[tokio::test]
async fn a_link_to_a_folder_outside_is_refused_also_for_what_is_not_there_yet() {
    let world = World::new();
    symlink(world.folder.path(), world.path("up")).unwrap();
    symlink("..", world.path("dots")).unwrap();
    for path in ["up", "up/outside.txt", "up/new.txt", "up/new/new.txt", "dots/outside.txt", "dots/new.txt"] {
        is_fenced(&world, path).await;
    }
    assert!(!world.folder.path().join("new.txt").exists() && !world.folder.path().join("new").exists());
}

#[tokio::test]
async fn a_link_that_leads_nowhere_is_refused() {
    let world = World::new();
    let target = world.folder.path().join("not-there.txt");
    symlink(&target, world.path("dangling")).unwrap();
    symlink("nowhere", world.path("also")).unwrap();
    symlink("loop", world.path("loop")).unwrap();
    for path in ["dangling", "also"] {
        is_fenced(&world, path).await;
    }
    for (tool, arguments) in every_tool("loop") {
        assert!(world.fails(tool, arguments).await.contains("cannot be resolved"));
    }
    assert!(!target.exists(), "a file was created through a link");
    assert!(!world.path("nowhere").exists());
}

#[tokio::test]
async fn going_up_from_what_is_not_there_is_refused() {
    let world = World::new();
    let said = world.fails("write_file", json!({"path": "none/../../outside.txt", "content": "x"})).await;
    assert!(said.contains("goes up (`..`) from a folder that does not exist"), "{said}");
    assert_eq!(fs::read_to_string(world.outside()).unwrap(), SECRET);
}

#[tokio::test]
async fn strange_paths_are_refused() {
    let world = World::new();
    world.file("a.txt", "");
    for path in ["", "a\0b", "a.txt/b"] {
        for (tool, arguments) in every_tool(path) {
            world.fails(tool, arguments).await;
        }
    }
}

#[tokio::test]
async fn links_that_stay_inside_work() {
    let world = World::new();
    world.file("real/a.txt", "here\n");
    symlink("real", world.path("folder")).unwrap();
    symlink(world.path("real/a.txt"), world.path("file")).unwrap();
    assert_eq!(world.fine("read_file", json!({"path": "folder/a.txt"})).await, "here\n");
    assert_eq!(world.fine("read_file", json!({"path": "real/../file"})).await, "here\n");
    world.fine("write_file", json!({"path": "file", "content": "there\n"})).await;
    assert!(world.path("file").is_symlink(), "the link was replaced by a file");
    assert_eq!(world.read("real/a.txt"), "there\n");
    // The absolute path of a file inside is its path.
    let absolute = world.tools.workspace().join("real/a.txt").display().to_string();
    assert_eq!(world.fine("read_file", json!({"path": absolute})).await, "there\n");
}

#[tokio::test]
async fn searches_do_not_follow_links() {
    let world = World::new();
    world.file("a.txt", "words inside\n");
    symlink(world.folder.path(), world.path("up")).unwrap();
    symlink(world.outside(), world.path("file")).unwrap();
    let said = world.fine("grep", json!({"pattern": "words"})).await;
    assert_eq!(said, "a.txt:1:words inside\n[not searched, links are not followed: file, up]");
    let (up, file) = (world.folder.path().display(), world.outside());
    let said = world.fine("find", json!({"pattern": "*"})).await;
    assert_eq!(said, format!("a.txt\nfile -> {}\nup -> {up}", file.display()));
}

#[test]
fn a_workspace_that_is_a_link_is_the_folder_it_leads_to() {
    let world = World::new();
    let link = world.folder.path().join("link");
    symlink(world.path("."), &link).unwrap();
    let tools = tidegate_tools::BuiltinTools::new(&link, tidegate_tools::ToolSettings::default()).unwrap();
    assert_eq!(tools.workspace(), world.tools.workspace());
    let missing = tidegate_tools::BuiltinTools::new(world.path("none"), tidegate_tools::ToolSettings::default());
    assert!(missing.unwrap_err().to_string().contains("name a folder that exists"));
    let file = tidegate_tools::BuiltinTools::new(world.outside(), tidegate_tools::ToolSettings::default());
    assert!(file.unwrap_err().to_string().contains("it is not a folder"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Random walks through folders, links in and out, `..` and names that do not exist: the file outside is never
    /// shown and nothing is ever written outside.
    #[test]
    fn no_walk_leaves_the_workspace(steps in prop::collection::vec(0_usize..8, 1..7)) {
        const NAMES: [&str; 8] = ["..", ".", "d", "up", "in", "none", "outside.txt", "dangling"];
        let world = World::new();
        world.file("d/e.txt", "");
        symlink("../..", world.path("d/up")).unwrap();
        symlink("..", world.path("up")).unwrap();
        symlink("d", world.path("in")).unwrap();
        symlink("../new.txt", world.path("dangling")).unwrap();
        let path = steps.iter().map(|step| NAMES[*step]).collect::<Vec<_>>().join("/");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (tool, arguments) in every_tool(&path) {
            let output = runtime.block_on(world.call(tool, arguments));
            prop_assert!(!output.content.contains(SECRET), "{} {}: {}", tool, path, output.content);
        }
        prop_assert_eq!(fs::read_to_string(world.outside()).unwrap(), SECRET);
        let beside: Vec<_> = fs::read_dir(world.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        prop_assert_eq!(beside.len(), 2, "{} left {:?}", path, beside);
        prop_assert!(!anywhere(&world.path("."), SECRET));
    }
}
