//! `tidegate plugin enable` and `plugin disable` change one value of the operator's file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use support::{Place, code, err, out};

#[test]
fn a_plugin_is_disabled_and_enabled_in_the_file() {
    let place = Place::new();
    let manifest = "id = \"habits\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Habits.\"\n\
                    [tools]\navoided_tools = [\"grep\"]\n";
    place.write("habits/plugin.toml", manifest);
    let file = "# Mine.\n[[plugin]]\npath = \"habits\" # Good ones.\nrequired = true\n";
    place.write("tidegate.toml", file);
    let read = || std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    let listed = || place.json(&["plugin", "list", "--json"])["plugins"].as_array().unwrap().len();
    assert_eq!(listed(), 1);

    let disabled = place.run(&["plugin", "disable", "habits"]);
    assert_eq!(out(&disabled), "tidegate.toml: plugin habits is disabled\n", "{}", err(&disabled));
    assert!(err(&disabled).contains("`required`: a running program uses it until"), "{}", err(&disabled));
    assert_eq!(read(), file.replace("ones.\n", "ones.\nenabled = false\n"));
    assert_eq!(listed(), 0);
    assert_eq!(out(&place.run(&["plugin", "list"])), "habits is disabled\n  from habits\n");
    place.write("gone.toml", "[[plugin]]\npath = \"gone\"\nenabled = false\n");
    let gone = place.json(&["plugin", "list", "--json", "--config", "gone.toml"]);
    assert_eq!(gone["disabled"][0]["id"], serde_json::Value::Null, "{gone}");
    let again = place.run(&["plugin", "disable", "habits"]);
    assert_eq!((out(&again).as_str(), code(&again)), ("tidegate.toml: plugin habits is already disabled\n", 0));
    place.run(&["plugin", "enable", "habits"]);
    assert_eq!(listed(), 1);

    let unknown = place.run(&["plugin", "disable", "habit"]);
    assert_eq!(code(&unknown), 2);
    assert!(err(&unknown).contains("has the id `habit`; it has `habits`"), "{}", err(&unknown));
    let nameless = place.run(&["plugin", "disable", "no id"]);
    assert_eq!(code(&nameless), 2);
    std::fs::remove_file(place.path("tidegate.toml")).unwrap();
    let missing = place.run(&["plugin", "disable", "habits"]);
    assert!(err(&missing).contains("cannot read tidegate.toml: No such file"), "{}", err(&missing));
}

#[test]
fn the_file_keeps_its_owner_group_and_permissions() {
    let place = Place::new();
    let manifest = "id = \"habits\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Habits.\"\n\
                    [tools]\navoided_tools = [\"grep\"]\n";
    place.write("habits/plugin.toml", manifest);
    place.write("tidegate.toml", "[[plugin]]\npath = \"habits\"\n");
    let file = place.path("tidegate.toml");
    // Only root can give it to somebody else; for all others it stays theirs.
    let given_away = chown(&file, Some(12_345), Some(12_346));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let shown = || {
        let of = std::fs::metadata(&file).unwrap();
        (of.uid(), of.gid(), of.mode() & 0o7777)
    };
    let before = shown();
    assert_eq!(given_away.is_ok(), before.0 == 12_345);
    let disabled = place.run(&["plugin", "disable", "habits"]);
    assert_eq!((code(&disabled), shown()), (0, before), "{}", err(&disabled));
    assert!(std::fs::read_to_string(&file).unwrap().contains("enabled = false"));
}
