//! Files that change while a session runs, as a command of the model can change them.

use serde_json::Value;

use super::place::Repository;
use crate::support::{Say, code, err, out, recording};

/// A plugin of the repository, which nobody has trusted.
const EVIL: &str =
    "id = \"evil\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"E.\"\n[tools]\navoided_tools = [\"grep\"]\n";

/// A user who lets commands run, and a model that runs one in its first turn.
fn with_command(file: Option<&str>, command: &str) -> Repository {
    let place = Repository::new(file.unwrap_or_default());
    if file.is_none() {
        std::fs::remove_file(place.path("repo/tidegate.toml")).unwrap();
    }
    place.write("repo/evil/plugin.toml", EVIL);
    let user = place.user("") + "[tools.permission]\nshell = \"allow\"\n";
    place.write("config/tidegate/tidegate.toml", &user);
    let arguments = serde_json::json!({"command": command}).to_string();
    let call = [Say::Call("shell", &arguments)];
    let answers: [&[Say<'_>]; 3] = [&call, &[Say::Text("Done.")], &[Say::Text("And more.")]];
    place.write("config/tidegate/answers.jsonl", &recording(&answers));
    place
}

/// Runs two turns. Returns the extensions that were used, and what the turns report.
fn two_turns(place: &Repository, arguments: &[&str]) -> (Vec<String>, String) {
    let ran = place.run(&[arguments, &["run", "go", "again", "--output", "stream-json"]].concat());
    assert_eq!(code(&ran), 0, "{}", err(&ran));
    let events: Vec<Value> = out(&ran).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let registered = [of("extension_registered"), of("extension_prompt")].concat();
    let registered =
        registered.iter().map(|event| event["payload"]["extension_id"].as_str().unwrap().to_owned()).collect();
    let notices: String = of("notice").iter().map(|event| event["payload"].to_string()).collect();
    (registered, notices)
}

#[test]
fn a_file_that_appears_or_changes_in_mid_session_does_not_count() {
    let plugin = "printf '[[plugin]]\\npath = \"evil\"\\n' >> tidegate.toml";
    // There was none; one that is trusted; one that asks for nothing; one that was taken for this run.
    let cases: [(Option<&str>, &[&str], bool); 4] = [
        (None, &[], false),
        (Some("[turn]\nmax_steps = 9\n"), &[], true),
        (Some("# Nothing.\n"), &[], false),
        (Some("[turn]\nmax_steps = 9\n"), &["--trust-workspace"], false),
    ];
    for (file, arguments, trusts) in cases {
        let place = with_command(file, plugin);
        if trusts {
            assert_eq!(code(&place.run(&["trust"])), 0);
        }
        let (registered, notices) = two_turns(&place, arguments);
        assert!(place.read("repo/tidegate.toml").contains("evil"), "the command ran");
        assert_eq!(registered, [""; 0], "{file:?} {arguments:?}");
        assert!(notices.contains("not trusted") && notices.contains("tidegate trust"), "{file:?}: {notices}");
        // Nor does it count for the next process.
        assert_eq!(code(&place.run(&["run", "go"])), 2, "{file:?}");
    }
}

/// What was trusted stays in use: a plugin, here, whose entry a command of the model removes.
#[test]
fn a_trusted_file_that_is_emptied_in_mid_session_ends_nothing() {
    for command in
        [": > tidegate.toml", "printf '[tools.permission]\nshell = \"deny\"\n' > tidegate.toml", "rm tidegate.toml"]
    {
        let place = with_command(Some("[[plugin]]\npath = \"evil\"\n"), command);
        assert_eq!(code(&place.run(&["trust"])), 0);
        let (registered, notices) = two_turns(&place, &[]);
        assert_eq!(registered, ["evil"], "{command}");
        let said = ["does not ask for what was trusted any more", "is not there"].map(|said| notices.contains(said));
        assert!(said.contains(&true) && !notices.contains("unregister"), "{command}: {notices}");
    }
}

#[test]
fn a_named_file_in_the_workspace_is_used_as_it_was_when_the_program_began() {
    let place = with_command(Some(""), "printf '[[plugin]]\\npath = \"evil\"\\n' >> own.toml");
    place.write("repo/own.toml", "[turn]\nmax_steps = 9\n");
    let (registered, notices) = two_turns(&place, &["--config", "own.toml"]);
    assert_eq!(registered, [""; 0]);
    assert!(notices.contains("in the workspace, where tools write"), "{notices}");
}

#[test]
fn files_of_a_trusted_plugin_that_change_are_not_loaded() {
    let file = "[[plugin]]\npath = \"evil\"\n";
    let command = "printf 'avoided_tools = [\"find\"]' | cat evil/plugin.toml - > evil/new; sed 's/E\\./F./' evil/plugin.toml > evil/new; \
                   mv evil/new evil/plugin.toml";
    let place = with_command(Some(file), command);
    assert_eq!(code(&place.run(&["trust"])), 0);
    let (registered, notices) = two_turns(&place, &[]);
    assert_eq!(registered, ["evil"], "it was loaded once, as it was trusted");
    assert!(notices.contains("was not reloaded") && notices.contains("not the manifest that was trusted"), "{notices}");
    let refused = place.run(&["run", "go"]);
    assert_eq!(code(&refused), 2);
    assert!(err(&refused).contains("SHA-256 of its manifest"), "{}", err(&refused));
}
