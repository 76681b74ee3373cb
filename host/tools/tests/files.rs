//! Reading, writing, editing and listing files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use flow::PermissionMode;
use proptest::prelude::*;
use serde_json::json;
use tidegate_tools::ToolSettings;

use crate::common::{World, anywhere, call, rule};

#[tokio::test]
async fn a_file_is_read_exactly_as_it_is() {
    let world = World::new();
    for content in ["one\ntwo\n", "no end", "\r\nwindows\r\n", "ends in ümläut ", "\u{feff}mark\n"] {
        world.file("a.txt", content);
        assert_eq!(world.fine("read_file", json!({"path": "a.txt"})).await, content);
    }
    world.file("a.txt", "");
    assert_eq!(world.fine("read_file", json!({"path": "a.txt"})).await, "[`a.txt` is empty]");
}

#[tokio::test]
async fn parts_of_a_file_say_where_to_go_on() {
    let world = World::new();
    world.file("a.txt", (1..=10).map(|n| format!("line {n}\n")).collect::<String>());
    let part = world.fine("read_file", json!({"path": "a.txt", "offset": 3, "limit": 2})).await;
    assert_eq!(part, "line 3\nline 4\n[lines 3 to 4 of 10; continue with \"offset\": 5]");
    let rest = world.fine("read_file", json!({"path": "a.txt", "offset": 10})).await;
    assert_eq!(rest, "line 10\n");
    let said = world.fails("read_file", json!({"path": "a.txt", "offset": 11})).await;
    assert!(said.contains("has 10 lines"), "{said}");
    world.fails("read_file", json!({"path": "a.txt", "offset": 0})).await;
}

#[tokio::test]
async fn long_files_and_long_lines_are_cut_and_say_so() {
    let world = World::new();
    world.file("many.txt", "x\n".repeat(5000));
    let said = world.fine("read_file", json!({"path": "many.txt"})).await;
    assert!(
        said.ends_with("[lines 1 to 2000 of 5000; continue with \"offset\": 2001]"),
        "{}",
        &said[said.len() - 80..]
    );
    world.file("wide.txt", format!("{}\nafter\n", "ü".repeat(300_000)));
    let said = world.fine("read_file", json!({"path": "wide.txt"})).await;
    assert!(said.contains("[line 1 has 600001 bytes; the first 262144 are shown]"));
    assert!(said.ends_with("[lines 1 to 1 of 2; continue with \"offset\": 2]"));
    assert!(said.len() < 263_000, "{} bytes", said.len());
}

#[tokio::test]
async fn what_is_no_text_is_refused() {
    let world = World::new();
    world.file("a.bin", b"ab\0cd").file("latin.txt", b"gr\xfc\xdfe").file("d/x", "");
    assert_eq!(
        world.fails("read_file", json!({"path": "a.bin"})).await,
        "`a.bin` is binary (5 bytes); only text is read"
    );
    assert!(world.fails("read_file", json!({"path": "latin.txt"})).await.contains("is not UTF-8 text"));
    world.file("utf16.txt", b"\xff\xfea\0");
    let said = world.fails("read_file", json!({"path": "utf16.txt"})).await;
    assert!(said.contains("is UTF-16 text (4 bytes), and only UTF-8 is read and written"), "{said}");
    assert!(world.fails("read_file", json!({"path": "d"})).await.contains("is a folder"));
    assert!(world.fails("read_file", json!({"path": "none.txt"})).await.contains("there is no file `none.txt`"));
    let file = std::fs::File::create(world.path("huge")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(world.fails("read_file", json!({"path": "huge"})).await.contains("more than the 16777216 that are read"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_refused_instead_of_waited_for() {
    let world = World::new();
    let made = std::process::Command::new("mkfifo").arg(world.path("pipe")).status().unwrap();
    assert!(made.success());
    assert!(world.fails("read_file", json!({"path": "pipe"})).await.contains("not a regular file"));
    assert!(world.fails("write_file", json!({"path": "pipe", "content": ""})).await.contains("not a regular file"));
}

#[tokio::test]
async fn files_are_created_with_their_folders_and_replaced_whole() {
    let world = World::new();
    let output = world.call("write_file", json!({"path": "a/b/c.txt", "content": "one\n"})).await;
    assert_eq!(output.content, "created `a/b/c.txt` (1 line, 4 bytes)");
    assert!(output.diff.unwrap().contains("+one"));
    let output = world.call("write_file", json!({"path": "a/b/c.txt", "content": "two\n"})).await;
    assert_eq!(output.content, "replaced `a/b/c.txt` (1 line, 4 bytes)");
    assert_eq!(output.diff.unwrap(), "--- a/a/b/c.txt\n+++ b/a/b/c.txt\n@@ -1 +1 @@\n-one\n+two\n");
    assert_eq!(world.read("a/b/c.txt"), "two\n");
    let output = world.call("write_file", json!({"path": "a/b/c.txt", "content": "two\n"})).await;
    assert_eq!((output.diff, output.is_error), (None, false));
    assert!(world.fails("write_file", json!({"path": "a/b", "content": ""})).await.contains("is a folder"));
    assert!(world.fails("write_file", json!({"path": "new/", "content": ""})).await.contains("is a folder"));
    assert!(!anywhere(world.folder.path(), "tidegate-"), "a temporary file was left");
    assert_eq!(std::fs::read_dir(world.path("a/b")).unwrap().count(), 1, "a temporary file was left");
}

#[cfg(unix)]
#[tokio::test]
async fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.file("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(world.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    world.fine("write_file", json!({"path": "run.sh", "content": "#!/bin/sh\ntrue\n"})).await;
    assert_eq!(std::fs::metadata(world.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[tokio::test]
async fn an_edit_changes_one_place() {
    let world = World::new();
    world.file("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let output = world.call("edit_file", json!({"path": "a.rs", "old_text": "fn b()", "new_text": "fn d()"})).await;
    assert_eq!(output.content, "`a.rs` is changed in 1 place");
    let diff = output.diff.unwrap();
    assert!(diff.contains("-fn b() {}\n+fn d() {}\n"), "{diff}");
    assert_eq!(world.read("a.rs"), "fn a() {}\nfn d() {}\nfn c() {}\n");
}

#[tokio::test]
async fn an_ambiguous_edit_changes_nothing_and_names_the_places() {
    let world = World::new();
    let before = "x = 1\ny = 2\nx = 1\nx = 1\n";
    world.file("a.txt", before);
    let said = world.fails("edit_file", json!({"path": "a.txt", "old_text": "x = 1", "new_text": "z"})).await;
    assert!(said.contains("occurs 3 times in `a.txt`, at lines 1, 3, 4"), "{said}");
    assert_eq!(world.read("a.txt"), before);
    let all = json!({"path": "a.txt", "old_text": "x = 1", "new_text": "z", "replace_all": true});
    assert_eq!(world.fine("edit_file", all).await, "`a.txt` is changed in 3 places");
    assert_eq!(world.read("a.txt"), "z\ny = 2\nz\nz\n");
}

#[tokio::test]
async fn an_edit_that_fits_nothing_says_what_is_near() {
    let world = World::new();
    world.file("a.py", "def first():\n    return value + 1\n\ndef second():\n    return None\n");
    let edit = |old: &str| json!({"path": "a.py", "old_text": old, "new_text": "x"});
    let said = world.fails("edit_file", edit("def first():\n  return value + 1")).await;
    assert!(said.contains("(0 matches); line 1 differs from it only in white space"), "{said}");
    let said = world.fails("edit_file", edit("    return valeu + 1\n")).await;
    assert!(said.contains("the nearest is line 2: `return value + 1`"), "{said}");
    let said = world.fails("edit_file", edit("zzzzzzzzzzzzzzzz")).await;
    assert!(said.contains("no similar line is"), "{said}");
    assert!(world.fails("edit_file", edit("")).await.contains("`old_text` is empty"));
    assert!(world.fails("edit_file", edit("x")).await.contains("are the same"));
}

#[tokio::test]
async fn a_file_keeps_its_line_ends() {
    let world = World::new();
    for (old, new) in [("one\ntwo", "1\n2"), ("one\r\ntwo", "1\n2"), ("one\ntwo", "1\r\n2")] {
        world.file("a.txt", "one\r\ntwo\r\nthree\r\n");
        world.fine("edit_file", json!({"path": "a.txt", "old_text": old, "new_text": new})).await;
        assert_eq!(world.read("a.txt"), "1\r\n2\r\nthree\r\n", "{old:?} {new:?}");
    }
    // A file that is replaced as a whole has what was written, and that is said.
    let said = world.fine("write_file", json!({"path": "a.txt", "content": "one\n"})).await;
    assert_eq!(said, "replaced `a.txt` (1 line, 4 bytes); its line ends were CRLF and are plain line feeds now");
    world.file("b.txt", "\u{feff}one\r\n");
    let write = call("write_file", json!({"path": "b.txt", "content": "two\n"}));
    let notes = flow::ports::Tools::prepare(&world.tools, &write).preview().await.notes;
    assert_eq!(
        notes,
        [
            "changes the file `b.txt`",
            "its line ends were CRLF and are plain line feeds now",
            "its byte order mark is gone"
        ]
    );
    world.file("mixed.txt", "one\r\ntwo\nthree\n");
    world.fails("edit_file", json!({"path": "mixed.txt", "old_text": "one\ntwo", "new_text": "x"})).await;
}

#[tokio::test]
async fn arguments_are_held_to_their_schema() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let said = world.fails("read_file", json!({"file": "a.txt"})).await;
    assert!(said.contains("unknown field `file`"), "{said}");
    assert!(said.contains("`path` (string), "), "{said}");
    assert!(said.contains("`limit` (integer, optional)"), "{said}");
    assert!(world.fails("read_file", json!({"path": 3})).await.contains("invalid type"));
    assert!(world.fails("read_file", json!(["a.txt"])).await.contains("they are not a JSON object"));
    assert!(world.fails("nothing", json!({})).await.contains("there is no tool `nothing`; the tools are `read_file`"));
    let mut call = call("list_dir", json!({}));
    for (text, is_error) in [("", false), ("  ", false), ("{", true), ("nonsense", true)] {
        call.arguments = text.to_owned();
        let output = flow::ports::Tools::prepare(&world.tools, &call).run(&|_| {}).await;
        assert_eq!(output.is_error, is_error, "{text:?}: {}", output.content);
    }
}

#[test]
fn specs_are_plain_json_schemas() {
    let world = World::new();
    let specs = flow::ports::Tools::specs(&world.tools);
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["read_file", "write_file", "edit_file", "list_dir", "find", "grep", "shell", "plan"]);
    for spec in specs {
        let schema = &spec.parameters;
        assert_eq!(schema["type"], "object", "{schema}");
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        for (name, about) in schema["properties"].as_object().unwrap() {
            assert!(about["type"].is_string(), "{} {name}: {about}", spec.name);
            assert!(about["description"].is_string(), "{} {name}: {about}", spec.name);
            for strange in ["title", "format", "default", "$ref", "anyOf"] {
                assert!(about.get(strange).is_none(), "{} {name}: {about}", spec.name);
            }
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_listing_shows_what_is_what() {
    let world = World::new();
    world.file("b.txt", "four").file("a/x", "").file(".hidden", "");
    std::os::unix::fs::symlink("b.txt", world.path("link")).unwrap();
    assert_eq!(world.fine("list_dir", json!({})).await, ".hidden (0 bytes)\na/\nb.txt (4 bytes)\nlink -> b.txt");
    assert_eq!(world.fine("list_dir", json!({"path": "a"})).await, "x (0 bytes)");
    assert!(world.fails("list_dir", json!({"path": "b.txt"})).await.contains("is a file"));
    assert!(world.fails("list_dir", json!({"path": "none"})).await.contains("there is no folder"));
    std::fs::create_dir(world.path("empty")).unwrap();
    assert_eq!(world.fine("list_dir", json!({"path": "empty"})).await, "[`empty` is empty]");
    for number in 0..1002 {
        world.file(&format!("many/{number:04}"), "");
    }
    let said = world.fine("list_dir", json!({"path": "many"})).await;
    assert!(
        said.ends_with("0999 (0 bytes)\n[and 2 more; `find` with a pattern narrows it]"),
        "{}",
        &said[said.len() - 80..]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An edit does what replacing in the text does, and only when the text is there exactly once.
    #[test]
    fn edits_are_replacements(content in "[ab\n]{0,24}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}") {
        let world = World::new();
        world.file("f", &content);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let output = runtime.block_on(world.call("edit_file", json!({"path": "f", "old_text": old, "new_text": new})));
        let once = content.matches(&old).count() == 1 && old != new;
        prop_assert_eq!(output.is_error, !once, "{}", output.content);
        let expected = if once { content.replace(&old, &new) } else { content };
        prop_assert_eq!(world.read("f"), expected);
    }

    /// Reading in parts gives the whole, byte for byte.
    #[test]
    fn parts_joined_are_the_file(content in "[a\n]{1,60}", limit in 1_usize..5) {
        let world = World::new();
        world.file("f", &content);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut joined, mut offset) = (String::new(), 1);
        loop {
            let part = runtime.block_on(world.fine("read_file", json!({"path": "f", "offset": offset, "limit": limit})));
            match part.rfind("[lines ") {
                Some(at) => joined.push_str(&part[..at]),
                None => {
                    joined.push_str(&part);
                    break;
                }
            }
            offset += limit;
        }
        prop_assert_eq!(joined, content);
    }
}

/// A search for what is near ends somewhere, and says so.
#[tokio::test]
async fn an_edit_of_a_long_file_says_how_far_it_looked() {
    let world = World::new();
    world.file("a.txt", format!("{}needle here\n", "\n".repeat(20_000)));
    let said = world.fails("edit_file", json!({"path": "a.txt", "old_text": "needle there", "new_text": "x"})).await;
    assert!(said.contains("no similar line is among the first 20000; read the file first"), "{said}");
}

/// Names with line ends forge no lines of an answer, and can be read.
#[cfg(unix)]
#[tokio::test]
async fn a_name_with_a_line_end_forges_no_line() {
    let world = World::new();
    let name = "a\nREADME.md (9 bytes)\nz";
    world.file(name, "hit\n").file("back\\slash", "hit\n");
    std::os::unix::fs::symlink("to\nb", world.path("link")).unwrap();
    let shown = r#""a\nREADME.md (9 bytes)\nz""#;
    let listed = world.fine("list_dir", json!({})).await;
    assert_eq!(listed, format!("{shown} (4 bytes)\nback\\slash (4 bytes)\nlink -> \"to\\nb\""));
    let found = world.fine("find", json!({"pattern": "*"})).await;
    assert_eq!(found, format!("{shown}\nback\\slash\nlink -> \"to\\nb\""));
    let said = world.fine("grep", json!({"pattern": "hit"})).await;
    assert_eq!(said, format!("{shown}:1:hit\nback\\slash:1:hit\n[not searched, links are not followed: link]"));
    assert_eq!(world.fine("read_file", json!({"path": name})).await, "hit\n");
    assert_eq!(world.fine("read_file", json!({"path": "back\\slash"})).await, "hit\n");
    let output = world.call("edit_file", json!({"path": name, "old_text": "hit", "new_text": "x"})).await;
    assert_eq!(output.content, format!("`{shown}` is changed in 1 place"));
    assert!(output.diff.unwrap().starts_with(&format!("--- a/{shown}\n")), "a name is no part of a diff");
    let said = world.fails("edit_file", json!({"path": name, "old_text": "hit", "new_text": "x"})).await;
    assert!(said.starts_with(&format!("`old_text` is not in `{shown}` (0 matches)")), "{said}");
}

#[tokio::test]
async fn a_workspace_that_is_gone_is_named() {
    let world = World::new();
    let root = world.tools.workspace().to_owned();
    std::fs::remove_dir_all(&root).unwrap();
    for (tool, arguments) in [
        ("shell", json!({"command": "echo hi"})),
        ("read_file", json!({"path": "a"})),
        ("write_file", json!({"path": "a/b", "content": ""})),
        ("list_dir", json!({})),
        ("find", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "x"})),
    ] {
        let output = world.call(tool, arguments).await;
        assert!(output.is_error, "{tool}: {}", output.content);
        let expected =
            format!("the folder of the workspace, `{}`, cannot be used any more: No such file", root.display());
        assert!(output.content.starts_with(&expected), "{tool}: {}", output.content);
    }
    assert!(!root.exists());
    std::fs::write(&root, "").unwrap();
    let output = world.call("shell", json!({"command": "echo hi"})).await;
    assert!(output.content.contains("it is not a folder any more"), "{}", output.content);
}

#[tokio::test]
async fn an_edit_that_would_grow_a_file_beyond_reason_is_refused_before_it_is_made() {
    let world = World::new();
    world.file("a.txt", "a".repeat(100_000));
    let all = json!({"path": "a.txt", "old_text": "a", "new_text": "b".repeat(1_000), "replace_all": true});
    let said = world.fails("edit_file", all).await;
    assert!(said.contains("100000000 bytes after a change in 100000 places"), "{said}");
    assert_eq!(std::fs::metadata(world.path("a.txt")).unwrap().len(), 100_000, "nothing was written");
}

/// What was shown runs, or nothing does.
mod shown {
    use super::*;
    use flow::ports::Tools;

    #[tokio::test]
    async fn the_change_that_was_shown_is_the_change_that_is_made() {
        let world = World::new();
        let before: String = (0..30).map(|n| format!("line {n}\n")).collect();
        world.file("a.txt", &before);
        let edit = call("edit_file", json!({"path": "./a.txt", "old_text": "line 3\n", "new_text": "\u{202e}3\r\n"}));
        let mut prepared = world.tools.prepare(&edit);
        let preview = prepared.preview().await;
        let shown: Vec<(&str, &str)> =
            preview.arguments.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
        assert_eq!(shown, [("path", "./a.txt"), ("old_text", "line 3\n"), ("new_text", "\u{202e}3\r\n")]);
        // The file keeps its line ends.
        assert!(preview.diff.unwrap().contains("-line 3\n+\u{202e}3\n"));
        assert_eq!(preview.notes, ["changes the file `a.txt`"]);
        assert!(!prepared.run(&|_| {}).await.is_error);
        assert_eq!(world.read("a.txt"), before.replacen("line 3\n", "\u{202e}3\n", 1));
    }

    #[tokio::test]
    async fn a_call_that_changes_nothing_is_none_to_ask_about_unless_the_file_may_not_be_read() {
        let same = json!({"path": "a.txt", "content": "one\n"});
        for (tool, arguments, permissions, expected) in [
            ("write_file", same.clone(), vec![], true),
            ("write_file", json!({"path": "a.txt", "content": "one"}), vec![], false),
            ("write_file", json!({"path": "b.txt", "content": ""}), vec![], false),
            ("edit_file", json!({"path": "a.txt", "old_text": "two", "new_text": "three"}), vec![], false),
            ("shell", json!({"command": "true"}), vec![], false),
            ("write_file", same.clone(), vec![rule("read_file(a.*)", PermissionMode::Ask)], false),
            ("write_file", same, vec![rule("read_file", PermissionMode::Deny)], false),
        ] {
            let world = World::with(ToolSettings { permissions, ..ToolSettings::default() });
            world.file("a.txt", "one\n");
            let call = call(tool, arguments);
            let mut prepared = world.tools.prepare(&call);
            assert!(!prepared.changes_nothing(), "nothing was looked at yet: {call:?}");
            prepared.preview().await;
            assert_eq!(prepared.changes_nothing(), expected, "{call:?}");
            if expected {
                let output = prepared.run(&|_| {}).await;
                assert_eq!(output.content, "`a.txt` has this content already; nothing was written");
            }
        }
    }

    #[tokio::test]
    async fn a_long_diff_is_shown_whole() {
        let world = World::new();
        let after: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        world.file("a.txt", "one\n");
        let write = call("write_file", json!({"path": "a.txt", "content": after}));
        let preview = world.tools.prepare(&write).preview().await;
        assert!(preview.diff.unwrap().ends_with("+line 19999\n"));
        assert_eq!(preview.arguments[1].value, after);
    }

    #[tokio::test]
    async fn a_file_that_changes_after_the_question_is_left_alone() {
        type Meanwhile = fn(&World);
        let cases: [(&str, Meanwhile); 5] = [
            ("other content", |world| {
                world.file("a.txt", "other\n");
            }),
            ("gone", |world| std::fs::remove_file(world.path("a.txt")).unwrap()),
            ("a folder", |world| {
                std::fs::remove_file(world.path("a.txt")).unwrap();
                std::fs::create_dir(world.path("a.txt")).unwrap();
            }),
            ("no text any more", |world| {
                world.file("a.txt", [0xff, 0]);
            }),
            #[cfg(unix)]
            ("a link", |world| {
                world.file("b.txt", "one\n");
                std::fs::remove_file(world.path("a.txt")).unwrap();
                std::os::unix::fs::symlink("b.txt", world.path("a.txt")).unwrap();
            }),
        ];
        for (what, meanwhile) in cases {
            for (tool, more) in [
                ("write_file", json!({"path": "a.txt", "content": "two\n"})),
                ("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "two"})),
            ] {
                let world = World::new();
                world.file("a.txt", "one\n");
                let call = call(tool, more);
                let mut prepared = world.tools.prepare(&call);
                prepared.preview().await;
                meanwhile(&world);
                let output = prepared.run(&|_| {}).await;
                assert!(output.is_error, "{tool}, {what}: {}", output.content);
                let two = |name: &str| std::fs::read_to_string(world.path(name)).is_ok_and(|text| text.contains("two"));
                assert!(!two("a.txt") && !two("b.txt"), "{tool}, {what}");
            }
        }
    }

    /// A new file, and one that appears where none was.
    #[tokio::test]
    async fn a_file_that_appears_after_the_question_is_left_alone() {
        let world = World::new();
        let write = call("write_file", json!({"path": "new/a.txt", "content": "mine\n"}));
        let mut prepared = world.tools.prepare(&write);
        let preview = prepared.preview().await;
        assert_eq!((preview.diff, preview.notes), (None, vec!["creates the file `new/a.txt`".to_owned()]));
        world.file("new/a.txt", "theirs\n");
        let output = prepared.run(&|_| {}).await;
        assert!(output.content.contains("changed after this call was shown to the user"), "{}", output.content);
        assert_eq!(world.read("new/a.txt"), "theirs\n");
    }

    /// An edit that cannot be made when it is shown is not made later either: no diff of it was seen.
    #[tokio::test]
    async fn an_edit_that_was_shown_to_fail_fails() {
        let world = World::new();
        world.file("a.txt", "one\n");
        let edit = call("edit_file", json!({"path": "a.txt", "old_text": "two", "new_text": "three"}));
        let mut prepared = world.tools.prepare(&edit);
        let preview = prepared.preview().await;
        assert!(preview.notes[0].starts_with("the call will fail and change nothing: `old_text` is not in"));
        world.file("a.txt", "two\n");
        assert!(prepared.run(&|_| {}).await.is_error);
        assert_eq!(world.read("a.txt"), "two\n");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_is_named_with_the_file_it_leads_to() {
        let world = World::new();
        world.file("real.txt", "one\n");
        std::os::unix::fs::symlink("real.txt", world.path("innocent.txt")).unwrap();
        let write = call("write_file", json!({"path": "innocent.txt", "content": "two\n"}));
        let preview = world.tools.prepare(&write).preview().await;
        assert_eq!(
            preview.notes,
            ["changes the file `real.txt`", "the path `innocent.txt` leads to `real.txt`"].map(str::to_owned)
        );
    }
}
