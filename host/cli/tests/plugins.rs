//! `tidegate plugin`: what is listed and shown, what flags grant; `enable` and `disable` change one value of the operator's file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use crate::support::{Place, code, err, out};

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
    let doctor = out(&place.run(&["doctor"]));
    assert!(doctor.contains("warn plugin habits: disabled, although it is `required`"), "{doctor}");
    let again = place.run(&["plugin", "disable", "habits"]);
    assert_eq!((out(&again).as_str(), code(&again)), ("tidegate.toml: plugin habits is already disabled\n", 0));
    place.run(&["plugin", "enable", "habits"]);
    assert_eq!(listed(), 1);

    let unknown = place.run(&["plugin", "disable", "habit"]);
    assert_eq!(code(&unknown), 2);
    assert!(
        err(&unknown).contains("has the id `habit`: tidegate.toml has `habits`; there is no "),
        "{}",
        err(&unknown)
    );
    let nameless = place.run(&["plugin", "disable", "no id"]);
    assert_eq!(code(&nameless), 2);
    std::fs::remove_file(place.path("tidegate.toml")).unwrap();
    let missing = place.run(&["plugin", "disable", "habits"]);
    assert!(err(&missing).contains("there is no tidegate.toml"), "{}", err(&missing));
}

/// One row per case: the manifest, `None`: there is none; the entry's other lines; and a part of the reason.
#[test]
fn a_plugin_that_cannot_be_loaded_is_not_enabled() {
    let manifest = "id = \"habits\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Habits.\"\n";
    let with = |more: &str| Some(format!("{manifest}{more}"));
    let cases = [
        (None, "", "plugin.toml"),
        (Some("id = \"habits\"\nversion = \n".to_owned()), "", "plugin.toml:2"),
        (with("component = \"gone.wasm\"\n"), "", "gone.wasm"),
        (with("component = \"plugin.toml\"\n"), "", "habits"),
        (with("[tools]\navoided_tools = [\"grep\"]\n"), "settings.tone = \"dry\"\n", "tone"),
        (with("[tools]\navoided_tools = [\"grep\"]\n"), "grants = [\"state\"]\n", "state"),
    ];
    for (manifest, more, reason) in cases {
        let place = Place::new();
        if let Some(manifest) = &manifest {
            place.write("habits/plugin.toml", manifest);
        }
        let file = format!("[[plugin]]\npath = \"habits\"\nenabled = false\n{more}");
        place.write("tidegate.toml", &file);
        let refused = place.run(&["plugin", "enable", "habits"]);
        let said = err(&refused);
        assert_eq!((code(&refused), out(&refused).as_str()), (2, ""), "{manifest:?}: {said}");
        assert!(said.contains("plugin habits stays disabled, because it cannot be loaded: "), "{said}");
        assert!(said.contains(reason), "{reason}: {said}");
        assert_eq!(std::fs::read_to_string(place.path("tidegate.toml")).unwrap(), file, "the file is as it was");
        assert_eq!(code(&place.run(&["plugin", "disable", "habits"])), 0);
    }
}

#[test]
fn a_plugin_of_the_users_file_is_disabled_there() {
    let place = Place::new();
    let manifest = "id = \"habits\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Habits.\"\n\
                    [tools]\navoided_tools = [\"grep\"]\n";
    place.write("user/tidegate/habits/plugin.toml", manifest);
    place.write("user/tidegate/tidegate.toml", "[[plugin]]\npath = \"habits\"\n");
    place.write("tidegate.toml", "[turn]\nmax_steps = 9\n");
    let disabled = place.run(&["plugin", "disable", "habits"]);
    assert!(out(&disabled).ends_with("user/tidegate/tidegate.toml: plugin habits is disabled\n"), "{disabled:?}");
    assert!(err(&disabled).contains("if the plugin fails closed"), "{disabled:?}");
    let user = std::fs::read_to_string(place.path("user/tidegate/tidegate.toml")).unwrap();
    assert_eq!(user, "[[plugin]]\npath = \"habits\"\nenabled = false\n");
    assert_eq!(std::fs::read_to_string(place.path("tidegate.toml")).unwrap(), "[turn]\nmax_steps = 9\n");
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

#[test]
fn a_plugin_given_by_a_flag_is_loaded_with_what_it_is_granted() {
    let place = Place::new();
    place.write(
        "more/plugin.toml",
        "id = \"more\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A prompt.\"\n[capabilities]\nprompt = \"says more\"\n\
         [[prompt]]\nposition = \"system_suffix\"\ncontent = \"More.\"\n",
    );
    place.write(
        "limited/plugin.toml",
        "id = \"limited\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Limits.\"\n[build]\nkind = \"rust\"\n\
         [limits]\ncallback_ms = 500\nmemory_mib = 64\nstate_ttl_s = 60\nstate_mib = 2\n",
    );
    let limited = out(&place.run(&["plugin", "show", "limited"]));
    for part in [
        "component: limited/component.wasm is not built: `tidegate plugin build limited`",
        "limits: callback_ms = 500, memory_mib = 64, state_ttl_s = 60, state_mib = 2, where the operator's are not smaller",
    ] {
        assert!(limited.contains(part), "{limited}");
    }
    place.write("limited/component.wasm", "");
    let built = out(&place.run(&["plugin", "show", "limited"]));
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert!(built.contains(&format!("component: sha256 = \"{digest}\" under `[[plugin]]` pins it")), "{built}");
    let asks = place.run(&["plugin", "show", "more"]);
    assert_eq!(asks.status.code(), Some(0), "{}", err(&asks));
    for part in [
        "power prompt: says more",
        "the model reads:\n    system_suffix\n    │ More.",
        "[[plugin]]\npath = \"more\"\ngrants = [\"prompt\"]",
    ] {
        assert!(out(&asks).contains(part), "{part:?} is not in {}", out(&asks));
    }
    place.write(
        "broken/plugin.toml",
        "id = \"broken\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A rule.\"\n\
         [[rule]]\nname = \"r\"\ncondition = \"(\"\nbody = \"No.\"\n",
    );
    let broken = place.run(&["plugin", "show", "broken"]);
    assert_eq!(broken.status.code(), Some(1), "{}", out(&broken));
    assert!(err(&broken).contains("error[rule-") && err(&broken).contains("broken/plugin.toml:7"), "{}", err(&broken));
    let refused = place.run(&["plugin", "list", "--plugin", "more"]);
    assert_eq!(refused.status.code(), Some(2), "{}", out(&refused));
    assert!(err(&refused).contains("plugin `more`: requests the power `prompt`"), "{}", err(&refused));
    let granted = place.run(&["plugin", "list", "--plugin", "more", "--grant", "prompt"]);
    assert!(out(&granted).contains("powers: prompt"), "{}{}", out(&granted), err(&granted));
    let unasked = place.run(&["plugin", "list", "--plugin", "more", "--grant", "prompt,state"]);
    assert_eq!(unasked.status.code(), Some(2), "{}", out(&unasked));
    assert!(
        err(&unasked).contains("--grant state: no plugin given with --plugin requests `state`"),
        "{}",
        err(&unasked)
    );
}
