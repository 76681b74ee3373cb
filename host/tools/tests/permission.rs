//! Who may run what: which entry decides, and in which words.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "arguments are written in place")]

use flow::Permission;
use flow::ports::Tools;
use flow::{PermissionMode, PermissionMode::*};
use serde_json::{Value, json};
use tidegate_tools::{BuiltinTools, GuardedPath, ToolSettings};

use crate::common::{World, rule};

fn world(entries: &[(&str, PermissionMode)]) -> World {
    let permissions = entries.iter().map(|(key, mode)| rule(key, *mode)).collect();
    World::with(ToolSettings { permissions, ..ToolSettings::default() })
}

/// `allow`, `ask` or `deny`.
fn word(permission: &Permission) -> &'static str {
    match permission {
        Permission::Allow => "allow",
        Permission::Ask { .. } => "ask",
        Permission::Deny { .. } => "deny",
    }
}

fn check(world: &World, tool: &str, arguments: Value, expected: &str) {
    let found = world.permission(tool, arguments.clone());
    assert_eq!(word(&found), expected, "{tool} {arguments}: {found:?}");
}

fn shell(world: &World, command: &str, expected: &str) {
    check(world, "shell", json!({ "command": command }), expected);
}

fn write(world: &World, path: &str, expected: &str) {
    check(world, "write_file", json!({"path": path, "content": ""}), expected);
}

#[test]
fn without_entries_reading_is_allowed_and_changing_asks() {
    let world = world(&[]);
    for (tool, arguments) in [
        ("read_file", json!({"path": "a"})),
        ("list_dir", json!({})),
        ("find", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "x"})),
    ] {
        check(&world, tool, arguments, "allow");
    }
    write(&world, "a", "ask");
    check(&world, "edit_file", json!({"path": "a", "old_text": "x", "new_text": "y"}), "ask");
    shell(&world, "true", "ask");
}

#[test]
fn the_entry_that_says_most_decides_and_order_does_not_matter() {
    let entries =
        [("*", Deny), ("shell", Ask), ("shell(git *)", Allow), ("shell(git push*)", Deny), ("shell(git p*)", Ask)];
    let mut backwards = entries;
    backwards.reverse();
    for world in [world(&entries), world(&backwards)] {
        shell(&world, "ls", "ask");
        shell(&world, "git status", "allow");
        shell(&world, "git pull", "ask");
        shell(&world, "git push origin main", "deny");
        check(&world, "read_file", json!({"path": "a"}), "deny");
    }
}

#[test]
fn an_allowed_command_carries_no_second_one() {
    let world = world(&[("shell(git status*)", Allow), ("shell(cargo test | head*)", Allow)]);
    shell(&world, "git status", "allow");
    shell(&world, "git status --short src/a.rs", "allow");
    shell(&world, "cargo test | head -5", "allow");
    for command in [
        "git status; rm -r .",
        "git status && curl x",
        "git status | sh",
        "git status $(rm x)",
        "git status `rm x`",
        "git status > ~/.profile",
        "git status\nrm x",
        "git status & rm x",
        "git status\rrm x",
        "git status \u{202e}x mr",
        "git status\u{200b}rm",
        "cargo test | head -5; rm x",
        "cargo test | head | sh",
    ] {
        shell(&world, command, "ask");
    }
}

#[test]
fn a_denied_command_is_found_in_a_longer_one() {
    let world = world(&[("shell", Allow), ("shell(git push*)", Deny)]);
    shell(&world, "git commit -m x", "allow");
    for command in ["git push", "true; git push", "cd a && git push -f", "x=$(git push)", "(git push)", "a\ngit push"] {
        shell(&world, command, "deny");
    }
}

#[test]
fn paths_are_held_against_globs_wherever_they_lead() {
    let world = world(&[("write_file(docs/**)", Allow), ("write_file(*.lock)", Deny), ("read_file(.env*)", Deny)]);
    world.file("docs/a.md", "").file("src/main.rs", "");
    write(&world, "docs/a.md", "allow");
    write(&world, "docs/new/b.md", "allow");
    write(&world, "./docs/../docs/a.md", "allow");
    write(&world, "docs/../src/main.rs", "ask");
    write(&world, "Cargo.lock", "deny");
    write(&world, "src/Cargo.lock", "ask");
    write(&world, &world.tools.workspace().join("docs/a.md").display().to_string(), "allow");
    check(&world, "read_file", json!({"path": "src/../.env.local"}), "deny");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../src", world.path("docs/link")).unwrap();
        std::os::unix::fs::symlink("../.env", world.path("docs/env")).unwrap();
        world.file(".env", "");
        write(&world, "docs/link/main.rs", "ask");
        check(&world, "read_file", json!({"path": "docs/env"}), "deny");
    }
}

#[test]
fn the_file_of_permissions_is_not_changed_by_a_general_permission() {
    let general = world(&[("*", Allow), ("write_file", Allow)]);
    write(&general, "tidegate.toml", "ask");
    write(&general, "docs/../tidegate.toml", "ask");
    write(&general, "docs/tidegate.toml", "ask");
    check(&general, "edit_file", json!({"path": "tidegate.toml", "old_text": "x", "new_text": "y"}), "ask");
    write(&world(&[("write_file(tidegate.toml)", Allow)]), "tidegate.toml", "allow");
    // So are the rules that watch the model.
    write(&general, ".tidegate/rules/new.md", "ask");
    write(&general, "docs/../.tidegate/rules/new.md", "ask");
    write(&general, ".tidegate-notes/a.md", "allow");
    write(&general, "docs/.tidegate/a.md", "ask");
    write(&world(&[("write_file(.tidegate/**)", Allow)]), ".tidegate/rules/new.md", "allow");
    write(&world(&[("write_file", Deny)]), "tidegate.toml", "deny");
}

/// An edit that finds nothing quotes what it found instead, but not from a file that must not be read.
#[tokio::test]
async fn an_edit_is_no_detour_to_a_file_that_must_not_be_read() {
    let world = world(&[("edit_file", Allow), ("edit_file(.env)", Allow), ("read_file(.env*)", Deny)]);
    world.file(".env", "PASSWORD=hunter2\n").file("a.txt", "PASSWORD=hunter2\n");
    let edit = |path: &str| json!({"path": path, "old_text": "PASSWORD=hunter", "new_text": "x", "replace_all": false});
    let near = |path: &str| json!({"path": path, "old_text": "PASSWORD=hunter3", "new_text": "x"});
    assert!(world.fails("edit_file", near("a.txt")).await.contains("hunter2"));
    assert_eq!(world.fails("edit_file", near(".env")).await, "`old_text` is not in `.env` (0 matches)");
    world.fine("edit_file", edit(".env")).await;
}

/// The list has its own tests in `guard`; this is how it joins a decision.
#[test]
fn what_other_programs_execute_asks_unless_it_is_named() {
    let general =
        world(&[("*", Allow), ("write_file", Allow), ("write_file(**)", Allow), ("edit_file(**/*.json)", Allow)]);
    for path in [".git/hooks/post-checkout", ".GIT/config", "a/../.envrc", "./Makefile", ".github/workflows/ci.yml"] {
        write(&general, path, "ask");
    }
    check(&general, "edit_file", json!({"path": ".vscode/tasks.json", "old_text": "x", "new_text": "y"}), "ask");
    check(&general, "read_file", json!({"path": ".git/config"}), "allow");
    write(&general, "src/main.rs", "allow");
    let hooks = ("write_file(.git/hooks/*)", Allow);
    write(&world(&[hooks, ("write_file(**)", Deny)]), ".git/hooks/pre-commit", "deny");
    write(&world(&[hooks, ("write_file(**)", Ask)]), ".git/hooks/pre-commit", "ask");
    let named = world(&[hooks, ("write_file(**/package.json)", Allow), ("write_file", Deny)]);
    write(&named, ".git/hooks/pre-commit", "allow");
    write(&named, "web/package.json", "allow");
    write(&named, ".git/config", "deny");
    write(&world(&[("write_file(.git/**)", Deny), ("*", Allow)]), ".git/config", "deny");
    let asked = general.permission("write_file", json!({"path": ".git/config", "content": ""}));
    let Permission::Ask { reason } = asked else { panic!("{asked:?}") };
    assert_eq!(
        reason,
        "`.git/config` is read by git, which runs hooks and the commands that its configuration names; only a permission that \
         names it allows it unasked, such as \"write_file(.git/config)\" = \"allow\""
    );
}

#[cfg(unix)]
#[test]
fn a_link_is_no_detour_to_what_is_guarded() {
    let general = world(&[("*", Allow), ("write_file(docs/**)", Allow)]);
    general.file(".git/config", "").file("docs/a.md", "").file("Makefile", "");
    std::os::unix::fs::symlink("../.git", general.path("docs/notes")).unwrap();
    std::os::unix::fs::symlink("../Makefile", general.path("docs/plan.md")).unwrap();
    std::os::unix::fs::symlink("docs", general.path(".vscode")).unwrap();
    write(&general, "docs/notes/config", "ask");
    write(&general, "docs/notes/hooks/new", "ask");
    write(&general, "docs/plan.md", "ask");
    // By its own name, too.
    write(&general, ".vscode/tasks.json", "ask");
    write(&general, "docs/a.md", "allow");
}

#[test]
fn what_the_embedder_trusts_is_guarded_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let guard = |path| GuardedPath { path: folder.path().join(path), reason: "holds rules".to_owned() };
    let guarded = ["team/rules", "plugins/x/plugin.toml", "../elsewhere", "."].map(guard).into();
    let permissions = vec![rule("*", Allow), rule("write_file(team/*.md)", Allow)];
    let settings = ToolSettings { permissions, guarded, ..ToolSettings::default() };
    let tools = BuiltinTools::new(folder.path(), settings).unwrap();
    for (path, expected) in [
        ("team/rules/a.md", "ask"),
        ("TEAM/Rules/new/b", "ask"),
        ("plugins/x/plugin.toml", "ask"),
        ("plugins/x/a.rs", "allow"),
        ("team/a.md", "allow"),
    ] {
        let call = crate::common::call("write_file", json!({"path": path, "content": ""}));
        assert_eq!(word(&tools.prepare(&call).permission()), expected, "{path}");
    }
}

#[test]
fn reasons_name_the_setting_and_what_can_be_done() {
    let world = world(&[("shell(rm *)", Deny), ("shell", Ask)]);
    let Permission::Deny { reason } = world.permission("shell", json!({"command": "rm x"})) else {
        panic!("not denied")
    };
    assert_eq!(
        reason,
        "`shell` is denied here by `\"shell(rm *)\" = \"deny\"` ([tools.permission] in tidegate.toml); the operator can set it \
         to \"ask\" or \"allow\""
    );
    let Permission::Ask { reason } = world.permission("shell", json!({"command": "ls"})) else { panic!("not asked") };
    assert_eq!(reason, "set by `\"shell\" = \"ask\"` ([tools.permission] in tidegate.toml)");
    let Permission::Ask { reason } = world.permission("write_file", json!({"path": "a", "content": ""})) else {
        panic!()
    };
    assert_eq!(reason, "`write_file` asks by default");
    let Permission::Deny { reason } = world.permission("rm", json!({})) else { panic!("not denied") };
    assert!(reason.starts_with("there is no tool `rm`; the tools are"), "{reason}");
}

/// Nobody is asked about a call that cannot run; and running it does nothing.
#[tokio::test]
async fn unusable_arguments_fail_without_a_question() {
    let world = world(&[]);
    let arguments = json!({"path": "a", "contents": "x"});
    check(&world, "write_file", arguments.clone(), "allow");
    assert!(world.fails("write_file", arguments).await.contains("unknown field `contents`"));
    assert!(!world.path("a").exists());
}

#[test]
fn entries_about_nothing_are_refused() {
    let world = World::new();
    let refused = |key: &str| {
        let settings = ToolSettings { permissions: vec![rule(key, Deny)], ..ToolSettings::default() };
        BuiltinTools::new(world.path("."), settings).unwrap_err().to_string()
    };
    assert!(
        refused("shel")
            .contains("the permission `shel` names no tool ([tools.permission] in tidegate.toml); the tools are")
    );
    assert!(refused("shell(a[)").contains("has an invalid pattern"));
    assert!(refused("*(secrets/**)").contains("a pattern belongs to one tool"), "it would deny nothing");
}
