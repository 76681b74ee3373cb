//! Rule files through a whole host: where they are found, and what an edit between two turns does.

use serde_json::json;

use super::support::{Place, Step, Talk, fired, notices, say};

fn watch(condition: &str) -> String {
    format!("+++\ncondition = '{condition}'\nscope = \"text\"\n+++\nDo not say it.\n")
}

#[tokio::test]
async fn an_edited_rule_counts_from_the_next_turn_and_a_deleted_one_stops() {
    let place = Place::new();
    place.rule("word.md", &watch("alpha"));
    let host = place
        .host(&[say("an alpha here"), say("fine"), say("alpha is free, beta not"), say("fine"), say("alpha and beta")])
        .await;
    let mut talk = Talk::new(&place, &host, "one").await;
    let (text, events) = talk.turn().await;
    assert_eq!((text.as_str(), fired(&events)), ("fine", vec!["word"]));
    assert_eq!(notices(&events), [""; 0]);

    place.rule("word.md", &watch("beta"));
    let (text, events) = talk.turn().await;
    assert_eq!((text.as_str(), fired(&events)), ("fine", vec!["word"]));
    assert_eq!(notices(&events), ["rules reloaded: 1 edited (.tidegate/rules/word.md)"]);

    place.remove_rule("word.md");
    let (text, events) = talk.turn().await;
    assert_eq!((text.as_str(), fired(&events)), ("alpha and beta", vec![]));
    assert_eq!(notices(&events), ["rules reloaded: 1 removed (.tidegate/rules/word.md)"]);
}

#[tokio::test]
async fn a_rule_that_an_edit_broke_stays_in_force_and_it_is_said_once_with_its_line() {
    let place = Place::new();
    place.rule("word.md", &watch("alpha"));
    let host = place.host(&[say("hello"), say("an alpha"), say("fine"), say("an alpha")]).await;
    let mut talk = Talk::new(&place, &host, "one").await;
    talk.turn().await;
    place.rule("word.md", &watch("al(pha"));
    let (text, events) = talk.turn().await;
    assert_eq!((text.as_str(), fired(&events)), ("fine", vec!["word"]));
    let said = notices(&events);
    let first = "rules reloaded: 1 refused, their last valid version remains active (.tidegate/rules/word.md)";
    assert_eq!(said[0], first);
    assert!(said[1].contains(".tidegate/rules/word.md:2)") && said[1].contains("`al(pha` is not valid"), "{said:?}");
    // Nothing has changed: nothing is reported. The rule fired once and is used up.
    let (text, events) = talk.turn().await;
    assert_eq!((text.as_str(), notices(&events)), ("an alpha", vec![]));
}

#[tokio::test]
async fn each_session_is_told_of_a_reload_once_and_a_new_one_begins_with_it() {
    let place = Place::new();
    let host = place.host(&[say("a"), say("b"), say("c"), say("d"), say("e")]).await;
    let (mut one, mut two) = (Talk::new(&place, &host, "one").await, Talk::new(&place, &host, "two").await);
    assert_eq!(notices(&one.turn().await.1), [""; 0]);
    place.rule("new.md", &watch("never"));
    let said = ["rules reloaded: 1 added (.tidegate/rules/new.md)"];
    assert_eq!(notices(&one.turn().await.1), said);
    assert_eq!(notices(&two.turn().await.1), said);
    assert_eq!(notices(&one.turn().await.1), [""; 0]);
    assert_eq!(notices(&Talk::new(&place, &host, "three").await.turn().await.1), [""; 0]);
}

#[tokio::test]
async fn the_rulebook_is_listed_read_on_demand_and_follows_its_files() {
    let place = Place::new();
    let host = place
        .host(&[
            Step { absent: vec!["read_rule", "rulebook"], ..say("hello") },
            Step {
                contains: vec!["- `deploying`: How to deploy.", "read_rule", "Plain words."],
                call: Some(("read_rule", json!({"name": "deploying"}))),
                ..Step::default()
            },
            Step { contains: vec!["From the branch release."], ..say("done") },
            Step { absent: vec!["- `deploying`", "Reads a rule"], ..say("gone") },
        ])
        .await;
    let mut talk = Talk::new(&place, &host, "one").await;
    assert_eq!(talk.turn().await.0, "hello");
    place.rule("deploying.md", "---\ndescription: How to deploy.\n---\nFrom the branch release.\n");
    place.rule("house.md", "---\nalwaysApply: true\n---\nPlain words.\n");
    assert_eq!(talk.turn().await.0, "done");
    place.remove_rule("deploying.md");
    assert_eq!(talk.turn().await.0, "gone");
}

#[tokio::test]
async fn sources_have_their_order_and_every_shadowed_rule_is_named() {
    let place = Place::new();
    for file in ["workspace/.tidegate/rules/all.md", "team/all.md", "user/all.md", "team/two.md", "user/two.md"] {
        place.write(file, &watch(file));
    }
    place.rule("git-force-push.md", &watch("mine"));
    let loaded = place.builder("[rules]\nfolders = [\"team\"]\n").load(place.path("workspace")).await.unwrap();
    let condition = |name: &str| loaded.rules().rule(name).unwrap().conditions[0].as_str().to_owned();
    assert_eq!(condition("all"), "team/all.md");
    assert_eq!(condition("two"), "team/two.md");
    assert_ne!(condition("git-force-push"), "mine");
    let user = place.path("user");
    let said: Vec<String> = loaded.warnings().iter().map(tidegate::diagnostic::Diagnostic::headline).collect();
    for (name, used, unused) in [
        ("all", "project, team/all.md", format!("project, .tidegate/rules/all.md; user, {}/all.md", user.display())),
        ("two", "project, team/two.md", format!("user, {}/two.md", user.display())),
        (
            "git-force-push",
            "built-in, rules/builtin/git-force-push.md",
            "project, .tidegate/rules/git-force-push.md".to_owned(),
        ),
    ] {
        let wanted = format!("rule `{name}` ({used}): it is used instead of: {unused}");
        assert_eq!(said.iter().filter(|one| **one == wanted).count(), 1, "{wanted}\n-- in\n{said:#?}");
    }

    let off = "[rules]\nproject_rules = false\nuser_rules = false\nbuiltin_rules = false\n";
    let loaded = place.builder(off).load(place.path("workspace")).await.unwrap();
    assert!(loaded.rules().rule("all").is_none() && loaded.rules().rule("two").is_none());
}

#[tokio::test]
async fn the_doctor_tells_all_that_is_wrong_and_each_rule_once() {
    let place = Place::new();
    place.rule("good.md", &watch("x"));
    place.rule("bad.md", &watch("(x"));
    place.rule("blind.md", "+++\ncondition = 'x'\nscope = \"text\"\nglobs = \"*.rs\"\n+++\nNever.\n");
    place.write("user/good.md", &watch("y"));
    place.write("workspace/.cursor/rules/theirs.mdc", "---\ncondition: z\n---\nDo not.\n");
    let manifest = "version = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A plugin.\"\n";
    place
        .write("without/plugin.toml", &format!("id = \"without\"\n{manifest}[component]\npath = \"not-there.wasm\"\n"));
    place.write("wrong/plugin.toml", &format!("id = \"wrong\"\nversoin = 1\n{manifest}"));
    let rule = "[[rule]]\nname = \"from-plugin\"\ncondition = 'p'\nbody = \"Do not.\"\n";
    place.write("right/plugin.toml", &format!("id = \"right\"\n{manifest}{rule}"));
    let plugins = ["without", "wrong", "right"].map(|name| format!("[[plugin]]\npath = \"{name}\"\n")).concat();
    let checks =
        place.builder(&format!("[rules]\nbuiltin_rules = false\n{plugins}")).doctor(place.path("workspace")).await;
    let line = |one: &tidegate::diagnostic::Check| format!("{:?} {}: {}", one.health, one.what, one.detail);
    let lines: Vec<String> = checks.iter().map(line).collect();
    let all = lines.join("\n").replace(&format!("{}/", place.path("").display()).replace("//", "/"), "");
    for wanted in [
        "Bad provider: no provider is chosen",
        "Bad plugin without: plugin `without` has no component",
        "unknown key `versoin` (wrong/plugin.toml:2)",
        "Good plugin right: 0.1.0: no callbacks; 1 rule, 0 prompts",
        "Good rule folder .tidegate/rules: 1 of 3 rule files refused",
        "Good rule folder .cursor/rules: 1 rule file is not read: the folder belongs to another host; to read it, add `folders",
        "condition `(x` is not valid",
        "Bad rule blind: can never fire: it can never fire on text: `globs` asks for a file",
        "Warning rule good: watches text; it is used instead of: project, .tidegate/rules/good.md",
        "Good rule from-plugin: watches text, tool",
        "Good built-in rules: switched off: the setting `builtin_rules` is false",
        "Good rule engine: ",
    ] {
        assert!(all.contains(wanted), "{wanted}\n-- is not in\n{all}");
    }
    let mut rules: Vec<&str> =
        checks.iter().map(|one| one.what.as_str()).filter(|what| what.starts_with("rule ")).collect();
    let count = rules.len();
    rules.sort_unstable();
    rules.dedup();
    assert_eq!(rules.len(), count, "{all}");
}
