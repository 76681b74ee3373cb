//! `find` and `grep`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{World, rule};
use flow::PermissionMode;
use serde_json::json;
use tidegate_tools::ToolSettings;

fn project() -> World {
    let world = World::new();
    world
        .file("src/main.rs", "fn main() {\n    let x = 1;\n    println!(\"{x}\");\n}\n")
        .file("src/deep/lib.rs", "pub fn Main() {}\n")
        .file("README.md", "main words\n")
        .file(".github/ci.yml", "on: main\n")
        .file(".git/config", "main\n")
        .file("target/out.rs", "main\n")
        .file(".gitignore", "target/\n")
        .file("data.bin", b"main\0");
    world
}

#[tokio::test]
async fn files_are_found_by_name_and_by_path() {
    let world = project();
    let find = async |pattern: &str| world.fine("find", json!({"pattern": pattern})).await;
    assert_eq!(find("*.rs").await, "src/deep/lib.rs\nsrc/main.rs");
    assert_eq!(find("src/*.rs").await, "src/main.rs");
    assert_eq!(find("./src/**/*.rs").await, "src/deep/lib.rs\nsrc/main.rs");
    assert_eq!(find("*.{md,yml}").await, ".github/ci.yml\nREADME.md");
    assert_eq!(find("config").await, "[no file matches `config`]");
    let below = world.fine("find", json!({"pattern": "deep/*", "path": "src"})).await;
    assert_eq!(below, "src/deep/lib.rs");
    let all = world.fine("find", json!({"pattern": "*.rs", "include_ignored": true})).await;
    assert_eq!(all, "src/deep/lib.rs\nsrc/main.rs\ntarget/out.rs");
    assert!(world.fails("find", json!({"pattern": "a[", "path": "."})).await.contains("is not a glob"));
}

#[tokio::test]
async fn many_files_are_counted_instead_of_shown() {
    let world = World::new();
    for number in 0..510 {
        world.file(&format!("{number:04}.txt"), "");
    }
    let said = world.fine("find", json!({"pattern": "*.txt"})).await;
    assert!(said.ends_with("0499.txt\n[10 more; narrow the pattern or the path]"), "{}", &said[said.len() - 80..]);
}

#[tokio::test]
async fn lines_are_found_with_their_numbers() {
    let world = project();
    let said = world.fine("grep", json!({"pattern": "main"})).await;
    assert_eq!(said, ".github/ci.yml:1:on: main\nREADME.md:1:main words\nsrc/main.rs:1:fn main() {");
    let said = world.fine("grep", json!({"pattern": "MAIN\\(", "ignore_case": true, "glob": "*.rs"})).await;
    assert_eq!(said, "src/deep/lib.rs:1:pub fn Main() {}\nsrc/main.rs:1:fn main() {");
    let said = world.fine("grep", json!({"pattern": "^\\s+let", "path": "src/main.rs"})).await;
    assert_eq!(said, "src/main.rs:2:    let x = 1;");
    assert_eq!(world.fine("grep", json!({"pattern": "nowhere"})).await, "[no line matches `nowhere`]");
    let said = world.fails("grep", json!({"pattern": "(?=x)"})).await;
    assert!(said.contains("look-around"), "{said}");
    assert!(
        world.fails("grep", json!({"pattern": "\\w{1000}{1000}"})).await.contains("not a valid regular expression")
    );
}

#[tokio::test]
async fn context_shows_each_line_once() {
    let world = World::new();
    world.file("a.txt", "1\nhit 2\n3\nhit 4\n5\n6\n7\n8\nhit 9\n");
    let said = world.fine("grep", json!({"pattern": "hit", "context": 1})).await;
    assert_eq!(said, "a.txt-1-1\na.txt:2:hit 2\na.txt-3-3\na.txt:4:hit 4\na.txt-5-5\n--\na.txt-8-8\na.txt:9:hit 9");
}

#[tokio::test]
async fn context_of_a_match_that_is_not_given_is_not_shown() {
    let world = World::new();
    world.file("a.txt", "hit 1\n2\n3\n4\nhit 5\n").file("b.txt", "1\nhit 2");
    let grep = async |limit: usize| world.fine("grep", json!({"pattern": "hit", "context": 1, "limit": limit})).await;
    let all = "a.txt:1:hit 1\na.txt-2-2\n--\na.txt-4-4\na.txt:5:hit 5\n--\nb.txt-1-1\nb.txt:2:hit 2";
    assert_eq!(grep(3).await, all);
    let stopped = "[stopped after 1 matching lines; narrow the search or raise `limit`]";
    assert_eq!(grep(1).await, format!("a.txt:1:hit 1\na.txt-2-2\n{stopped}"));
}

#[tokio::test]
async fn lines_end_with_a_line_feed_and_an_optional_carriage_return() {
    let world = World::new();
    world.file("a.txt", "one\r\none two\ntwo\r\n\r\n\u{feff}one");
    assert_eq!(world.fine("grep", json!({"pattern": "^one$"})).await, "a.txt:1:one");
    assert_eq!(world.fine("grep", json!({"pattern": "two$"})).await, "a.txt:2:one two\na.txt:3:two");
    assert_eq!(world.fine("grep", json!({"pattern": "^$"})).await, "a.txt:4:");
    assert!(world.fails("grep", json!({"pattern": "one\\ntwo"})).await.contains("is not a valid regular expression"));
}

#[tokio::test]
async fn long_results_and_lines_are_cut_and_say_so() {
    let world = World::new();
    world.file("a.txt", "hit\n".repeat(50)).file("b.txt", format!("hit {}\n", "x".repeat(10_000)));
    let said = world.fine("grep", json!({"pattern": "hit", "limit": 3})).await;
    assert_eq!(said.lines().count(), 4, "{said}");
    assert!(said.ends_with("[stopped after 3 matching lines; narrow the search or raise `limit`]"), "{said}");
    let said = world.fine("grep", json!({"pattern": "hit", "path": "b.txt"})).await;
    assert!(said.ends_with("x [… 10004 bytes]") && said.len() < 500, "{said}");
}

#[tokio::test]
async fn files_whose_reading_is_restricted_are_not_searched() {
    let permissions = vec![rule("read_file(secrets/**)", PermissionMode::Deny)];
    let world = World::with(ToolSettings { permissions, ..ToolSettings::default() });
    world.file("secrets/key.txt", "hit\n").file("a.txt", "hit\n");
    let said = world.fine("grep", json!({"pattern": "hit"})).await;
    assert_eq!(said, "a.txt:1:hit\n[1 files were skipped because `read_file` is restricted for them]");
}
