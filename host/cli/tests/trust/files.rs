//! Links, other paths and other workspaces, and a store of decisions that cannot be used.

use std::fs;
use std::os::unix::fs::symlink;

use super::place::Repository;
use crate::support::{code, err};

const ASKS: &str = "[turn]\nmax_steps = 9\n";

/// A repository whose file its user trusts, and a model of the user's own.
fn trusted() -> Repository {
    let place = Repository::new(ASKS);
    place.write("config/tidegate/tidegate.toml", &place.user(""));
    place.answer(&["Done."]);
    assert_eq!(code(&place.run(&["trust"])), 0);
    let ran = place.run(&["run", "hi"]);
    assert_eq!(code(&ran), 0, "{}", err(&ran));
    place
}

fn is_refused(place: &Repository, folder: &str, arguments: &[&str]) -> bool {
    let ran = place.run_in(folder, &[arguments, &["run", "hi"]].concat());
    assert!(matches!(code(&ran), 0 | 2), "{}", err(&ran));
    assert_eq!(code(&ran) == 2, err(&ran).contains("config-untrusted"), "{}", err(&ran));
    code(&ran) == 2
}

#[test]
fn trust_is_of_one_folder_however_its_path_is_written() {
    let place = trusted();
    symlink("repo", place.path("link")).unwrap();
    for (folder, workspace) in [("link", "."), (".", "repo"), (".", "link/../link"), ("repo", "../link")] {
        assert!(!is_refused(&place, folder, &["--workspace", workspace]), "{folder} {workspace}");
    }
    // Folders in it and next to it, also with the same file, are others: a worktree, a copy, one that was moved.
    for folder in ["repo/deeper", "copy"] {
        place.write(&format!("{folder}/tidegate.toml"), ASKS);
        assert!(is_refused(&place, folder, &[]), "{folder}");
        assert!(is_refused(&place, ".", &["--workspace", folder]), "{folder}");
    }
    fs::rename(place.path("repo"), place.path("moved")).unwrap();
    assert!(is_refused(&place, "moved", &[]));
    // The folder above being trusted says nothing about those in it.
    place.write("outer/tidegate.toml", ASKS);
    place.write("outer/inner/tidegate.toml", ASKS);
    assert_eq!(code(&place.run_in("outer", &["trust"])), 0);
    assert!(!is_refused(&place, "outer", &[]));
    assert!(is_refused(&place, "outer/inner", &[]));
}

#[test]
fn a_file_that_is_named_or_taken_needs_no_trust_and_gives_none() {
    let place = Repository::new(ASKS);
    place.write("config/tidegate/tidegate.toml", &place.user(""));
    place.answer(&["Done."]);
    assert!(is_refused(&place, "repo", &[]));
    assert!(!is_refused(&place, "repo", &["--config", "tidegate.toml"]));
    assert!(!is_refused(&place, "repo", &["--trust-workspace"]));
    assert!(is_refused(&place, "repo", &[]), "nothing of it is kept");
}

#[test]
fn what_cannot_be_read_is_not_absent() {
    let place = trusted();
    fs::remove_file(place.path("repo/tidegate.toml")).unwrap();
    for (target, expected) in [("gone.toml", "No such file"), ("../config/tidegate/tidegate.toml", "leads out of")] {
        symlink(target, place.path("repo/tidegate.toml")).unwrap();
        for arguments in [&["run", "hi"][..], &["doctor"], &["plugin", "list"], &["acp"]] {
            // An editor opens its sessions later.
            let ran = place.run(arguments);
            let is_late = arguments == ["acp"];
            assert_eq!(code(&ran), if is_late { 0 } else { 2 }, "{arguments:?} {}", err(&ran));
            assert!(is_late || err(&ran).contains(expected), "{arguments:?} {}", err(&ran));
        }
        fs::remove_file(place.path("repo/tidegate.toml")).unwrap();
    }
    // A link that another file is put behind.
    place.write("repo/a.toml", ASKS);
    place.write("repo/b.toml", "[turn]\nmax_steps = 10\n");
    symlink("a.toml", place.path("repo/tidegate.toml")).unwrap();
    assert!(!is_refused(&place, "repo", &[]));
    fs::rename(place.path("repo/b.toml"), place.path("repo/a.toml")).unwrap();
    assert!(is_refused(&place, "repo", &[]));
}

#[test]
fn a_store_that_cannot_be_used_trusts_nothing() {
    let place = trusted();
    let store = place.path("state/tidegate/trust");
    let record = fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains(&place.path("repo").canonicalize().unwrap().display().to_string()), "{text}");
    // Damaged, a folder, a link to a copy of it.
    fs::write(&record, &text[..text.len() / 2]).unwrap();
    assert!(is_refused(&place, "repo", &[]));
    assert!(err(&place.run(&["run", "hi"])).contains("what was decided before is not known"));
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    assert!(is_refused(&place, "repo", &[]));
    fs::remove_dir(&record).unwrap();
    place.write("repo/record.json", &text);
    symlink(place.path("repo/record.json"), &record).unwrap();
    assert!(is_refused(&place, "repo", &[]));
    assert_eq!(code(&place.run(&["trust", "--list"])), 1);
    // A decision replaces whatever is there, and not what a link leads to.
    assert_eq!(code(&place.run(&["trust"])), 0);
    assert!(!is_refused(&place, "repo", &[]));
    assert_eq!(place.read("repo/record.json"), text);
    // No folder of the state can be made.
    fs::remove_dir_all(place.path("state")).unwrap();
    place.write("state", "");
    let ran = place.run(&["trust"]);
    assert_eq!(code(&ran), 2, "{}", err(&ran));
}

#[test]
fn a_repository_does_not_bring_its_own_trust() {
    let place = trusted();
    let store = fs::read_dir(place.path("state/tidegate/trust")).unwrap().next().unwrap().unwrap().path();
    let copy = place.path("repo/state/tidegate/trust");
    fs::create_dir_all(&copy).unwrap();
    fs::copy(&store, copy.join(store.file_name().unwrap())).unwrap();
    for state in [place.path("repo/state"), place.path("link/state")] {
        let _again = symlink("repo", place.path("link")).is_err();
        let ran = place.command(&["run", "hi"]).env("XDG_STATE_HOME", state).output().unwrap();
        assert!(err(&ran).contains("which is inside of this workspace"), "{}", err(&ran));
        assert_eq!(code(&ran), 2);
    }
}

#[test]
fn programs_that_decide_at_once_do_not_disturb_each_other() {
    let place = Repository::new(ASKS);
    place.write("config/tidegate/tidegate.toml", &place.user(""));
    place.answer(&["Done."]);
    let deciding: Vec<_> = (0..6).map(|_| place.command(&["trust"]).spawn().unwrap()).collect();
    for one in deciding {
        let ended = one.wait_with_output().unwrap();
        assert_eq!(code(&ended), 0, "{}", err(&ended));
    }
    assert!(!is_refused(&place, "repo", &[]));
    assert_eq!(fs::read_dir(place.path("state/tidegate/trust")).unwrap().count(), 1);
}
