//! `find` and `grep`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use flow::PermissionMode;
use flow::ports::{ProgressLine, Tools as _};
use serde_json::json;
use tidegate_tools::ToolSettings;

use crate::common::{World, call, rule};

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
    let left_out = "[files that .gitignore leaves out were not searched; `include_ignored` adds them]";
    assert_eq!(find("out.rs").await, format!("[no file matches `out.rs`]\n{left_out}"));
    let none = world.fine("find", json!({"pattern": "config", "include_ignored": true})).await;
    assert_eq!(none, "[no file matches `config`]");
    let none = world.fine("find", json!({"pattern": "config", "path": "src"})).await;
    assert_eq!(none, "[no file matches `config`]", "nothing is left out there");
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
    assert_eq!(
        said,
        ".github/ci.yml:1:on: main\nREADME.md:1:main words\nsrc/main.rs:1:fn main() {\n[not searched, binary: data.bin]"
    );
    let said = world.fine("grep", json!({"pattern": "MAIN\\(", "ignore_case": true, "glob": "*.rs"})).await;
    assert_eq!(said, "src/deep/lib.rs:1:pub fn Main() {}\nsrc/main.rs:1:fn main() {");
    let said = world.fine("grep", json!({"pattern": "^\\s+let", "path": "src/main.rs"})).await;
    assert_eq!(said, "src/main.rs:2:    let x = 1;");
    let none = "[no line matches `nowhere`]";
    let said = world.fine("grep", json!({"pattern": "nowhere"})).await;
    let left_out = "[files that .gitignore leaves out were not searched; `include_ignored` adds them]";
    assert_eq!(said, format!("{none}\n{left_out}\n[not searched, binary: data.bin]"));
    let said = world.fine("grep", json!({"pattern": "nowhere", "include_ignored": true, "glob": "*.rs"})).await;
    assert_eq!(said, none);
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
    assert!(said.ends_with("x [… 9604 bytes omitted …]") && said.len() < 500, "{said}");
}

#[tokio::test]
async fn the_match_of_a_long_line_is_shown() {
    let world = World::new();
    let line = |before: usize, after: usize| format!("{}hit{}\n", "ü".repeat(before), "y".repeat(after));
    world.file("a.txt", line(5000, 5000));
    let said = world.fine("grep", json!({"pattern": "hit"})).await;
    let (before, after) = ("ü".repeat(50), "y".repeat(297));
    assert_eq!(said, format!("a.txt:1:[… 9900 bytes omitted …] {before}hit{after} [… 4703 bytes omitted …]"));
    world.file("a.txt", line(5000, 0));
    let said = world.fine("grep", json!({"pattern": "hit$"})).await;
    assert_eq!(said, format!("a.txt:1:[… 9900 bytes omitted …] {before}hit"));
    world.file("a.txt", line(120, 5000));
    let said = world.fine("grep", json!({"pattern": "hit"})).await;
    assert!(
        said.starts_with("a.txt:1:üü") && said.contains("hit") && said.ends_with("yy [… 4843 bytes omitted …]"),
        "{said}"
    );
}

#[tokio::test]
async fn files_of_other_encodings_are_searched_and_named() {
    let world = World::new();
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(order).collect()
    };
    let text = "one\r\ngrün hit\r\n";
    world
        .file("big.txt", utf16(text, u16::to_be_bytes))
        .file("little.txt", utf16(text, u16::to_le_bytes))
        .file("marked.txt", "\u{feff}hit first\n")
        .file("latin.txt", b"gr\xfcn hit\n")
        .file("utf32.txt", b"\xff\xfe\0\0h\0\0\0");
    let said = world.fine("grep", json!({"pattern": "^(grün )?hit"})).await;
    assert_eq!(
        said,
        "big.txt:2:grün hit\nlittle.txt:2:grün hit\nmarked.txt:1:hit first\n\
         [neither UTF-8 nor UTF-16, only ASCII was compared: latin.txt]\n[not searched, binary: utf32.txt]"
    );
    let said = world.fine("grep", json!({"pattern": "hit", "path": "latin.txt"})).await;
    assert_eq!(said, "latin.txt:1:gr\u{fffd}n hit\n[neither UTF-8 nor UTF-16, only ASCII was compared: latin.txt]");
    world.file("latin.txt", [b"\xfc".repeat(2000).as_slice(), b"hit", b"\xfc".repeat(2000).as_slice()].concat());
    let said = world.fine("grep", json!({"pattern": "hit", "path": "latin.txt"})).await;
    assert!(said.contains("\u{fffd}hit\u{fffd}"), "{said}");
}

/// What is passed over is told, by reason, with the first names.
#[cfg(unix)]
#[tokio::test]
async fn what_is_not_searched_is_told() {
    let world = World::new();
    for number in 0..5 {
        world.file(&format!("{number}.bin"), b"hit\0");
    }
    world.file("a.txt", "hit\n");
    std::fs::File::create(world.path("huge.txt")).unwrap().set_len((16 << 20) + 1).unwrap();
    std::os::unix::fs::symlink("a.txt", world.path("link.txt")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(world.path("pipe")).status().unwrap().success());
    let said = world.fine("grep", json!({"pattern": "hit"})).await;
    assert_eq!(
        said,
        "a.txt:1:hit\n[not searched, binary: 0.bin, 1.bin, 2.bin and 2 more]\n\
         [not searched, larger than 16777216 bytes: huge.txt]\n[not searched, links are not followed: link.txt]\n\
         [not searched, no regular files: pipe]"
    );
    // Only what the glob is about.
    assert_eq!(world.fine("grep", json!({"pattern": "hit", "glob": "a*"})).await, "a.txt:1:hit");
    assert_eq!(world.fine("find", json!({"pattern": "{link.txt,pipe}"})).await, "link.txt -> a.txt\npipe");
}

#[tokio::test]
async fn limits_of_a_search_are_told() {
    let world = World::new();
    world.file("a.txt", "hit\n".repeat(3000)).file("b.txt", format!("hit {}\n", "x".repeat(390)).repeat(1500));
    let said = world.fine("grep", json!({"pattern": "hit", "limit": 5000, "context": 30, "path": "a.txt"})).await;
    assert!(
        said.ends_with(
            "[stopped after 2000 matching lines, the most that are given; narrow the search]\n[`context` is at most 20 lines]"
        ),
        "{}",
        &said[said.len() - 200..]
    );
    let said = world.fine("grep", json!({"pattern": "hit", "limit": 1500, "path": "b.txt"})).await;
    assert!(said.contains("matching lines with 262144 bytes; narrow the search"), "{}", &said[said.len() - 200..]);
    let said = world.fails("grep", json!({"pattern": "hit", "limit": 0})).await;
    assert_eq!(said, "`limit` counts from 1; leave it out for 200 matching lines");
}

#[tokio::test]
async fn files_whose_reading_is_restricted_are_not_searched() {
    let permissions = vec![rule("read_file(secrets/**)", PermissionMode::Deny)];
    let world = World::with(ToolSettings { permissions, ..ToolSettings::default() });
    world.file("secrets/key.txt", "hit\n").file("a.txt", "hit\n");
    let said = world.fine("grep", json!({"pattern": "hit"})).await;
    assert_eq!(said, "a.txt:1:hit\n[not searched, `read_file` is restricted: secrets/key.txt]");
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_cannot_be_read_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let found = async |tools: &tidegate_tools::BuiltinTools| {
        let mut said = Vec::new();
        for (tool, arguments) in [("grep", json!({"pattern": "hit"})), ("find", json!({"pattern": "*.txt"}))] {
            said.push(tools.prepare(&call(tool, arguments)).run(&|_| {}).await.content);
        }
        // A line of an ignore file that cannot be used leaves nothing out.
        let bad = "[has lines that cannot be used, which leave nothing out: odd/.gitignore]";
        let grep = format!("a.txt:1:hit\nodd/c.txt:1:hit\n[not searched, cannot be read: closed, secret.txt]\n{bad}");
        let find = format!("a.txt\nodd/c.txt\nsecret.txt\n[not searched, cannot be read: closed]\n{bad}");
        assert_eq!(said, [grep, find]);
    };
    if let Some(tools) = crate::common::prepared() {
        return found(&tools).await;
    }
    world.file("a.txt", "hit\n").file("closed/b.txt", "hit\n").file("secret.txt", "hit\n");
    world.file("odd/c.txt", "hit\n").file("odd/.gitignore", "[z-a]\n*.tmp\n").file("odd/d.tmp", "hit\n");
    for name in ["closed", "secret.txt"] {
        std::fs::set_permissions(world.path(name), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    if crate::common::is_root() {
        std::fs::set_permissions(world.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        crate::common::again(
            "search::a_folder_that_cannot_be_read_is_told",
            &world.path(""),
            crate::common::nobody(),
            "",
        );
    } else {
        found(&world.tools).await;
    }
    std::fs::set_permissions(world.path("closed"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A number only where it is true: a search knows its files, and reports every tenth of many.
#[tokio::test]
async fn a_search_through_many_files_reports_how_much_is_done() {
    let world = World::new();
    let progress = async |files: usize| {
        (0..files).for_each(|number| {
            world.file(&format!("{number:03}.txt"), "words\n");
        });
        let lines = Mutex::new(Vec::new());
        let report = |line: ProgressLine<'_>| lines.lock().unwrap().push((line.message.to_owned(), line.percent));
        let found = world.tools.prepare(&call("grep", json!({"pattern": "no such"}))).run(&report).await;
        assert!(!found.is_error, "{}", found.content);
        lines.into_inner().unwrap()
    };
    assert_eq!(progress(99).await, []);
    let lines = progress(205).await;
    let percents: Vec<f64> = lines.iter().map(|(_, percent)| percent.unwrap()).collect();
    assert_eq!(percents, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]);
    assert_eq!(lines[0].0, "searched 21 of 205 files");
}
