//! Every way to do without what the policy requires.

use std::fs;
use std::sync::Arc;

use tidegate::model::Model;
use tidegate::{HostError, Operator, PluginId, SessionOptions};

use super::Machine;
use crate::sessions::support::Scripted;

const POLICY: &str = "[[plugin]]\npath = \"guard\"\n[rules]\nrequired_folders = [\"rules\"]\n";

const RULE: &str = "+++\ncondition = 'forbidden'\nscope = 'text'\n+++\nDo not say it.\n";

/// Plugins of rules alone: the policy's, and one of somebody else with its id.
fn machine() -> Machine {
    let machine = Machine::new(POLICY);
    let manifest = |pattern: &str| {
        format!(
            "id = \"guard\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"G.\"\n[[rule]]\nname = \"of-guard\"\n\
             condition = '{pattern}'\nscope = 'text'\nbody = \"Do not.\"\n"
        )
    };
    machine.write("etc/guard/plugin.toml", &manifest("forbidden"));
    machine.write("other/plugin.toml", &manifest("never"));
    machine.write("etc/rules/one.md", RULE);
    let of_plugin = "id = \"mine\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"M.\"\n";
    let of_name =
        |name| format!("[[rule]]\nname = \"{name}\"\ncondition = 'never'\nscope = 'text'\nbody = \"Do not.\"\n");
    machine.write("mine-too/plugin.toml", &format!("{of_plugin}{}{}", of_name("one"), of_name("of-guard")));
    // Rules with the same names that never fire: of the project, of the user, and of folders that the operator names.
    for folder in ["work/.tidegate/rules", "mine", "user/rules"] {
        for name in ["one", "of-guard"] {
            machine.write(&format!("{folder}/{name}.md"), &RULE.replace("forbidden", "never"));
        }
    }
    machine
}

/// The rules that a session has and that interrupt it, or why there is none.
async fn rules(machine: &Machine, settings: &str) -> Result<Vec<String>, HostError> {
    let host = machine.builder(settings).user_rules(Some(machine.path("user/rules"))).open().await?;
    // A session that names no plugin has those that are required all the same.
    let options = SessionOptions::new(machine.path("work")).model(Scripted::new([]) as Arc<dyn Model>).plugins([]);
    host.session(options).await?;
    let loaded = host.loaded(machine.path("work")).await?;
    let known = ["of-guard", "one"];
    let folder = machine.path("").display().to_string();
    let of = |name: &&str| {
        let source = loaded.rules().rule(name)?.source.to_string();
        Some(format!("{name}: {}", source.replace(&folder, "")))
    };
    Ok(known.iter().filter_map(of).collect())
}

/// Settings that would do without, and a part of the error where they are not just of no effect.
const WAYS: [(&str, Option<&str>); 14] = [
    ("", None),
    ("[rules]\nproject_rules = false\nuser_rules = false\n", None),
    ("[[plugin]]\npath = \"etc/guard\"\nenabled = false\n", None),
    ("[[plugin]]\npath = \"etc/guard\"\non_failure = \"skip\"\nrequired = false\nsettings = { unknown = 1 }\n", None),
    ("[[plugin]]\npath = \"etc/../etc/guard/plugin.toml\"\nenabled = false\n", None),
    ("[[plugin]]\npath = \"other\"\n", None),
    ("[[plugin]]\npath = \"other\"\nenabled = false\n", None),
    ("[rules]\nfolders = [\"etc/rules\"]\n", None),
    ("[rules]\ndisabled_rules = [\"of-guard\"]\n", Some("`of-guard`")),
    ("[rules]\ndisabled_rules = [\"one\"]\n", Some("`one`")),
    ("[rules]\nenabled = false\n", Some("error[rule-required]")),
    ("[rules]\nfolders = [\"mine\"]\n", None),
    ("[[plugin]]\npath = \"mine-too\"\nrequired = true\n", None),
    ("[rules]\nrequired_folders = [\"mine\", \"work/.tidegate/rules\"]\nrequired = [\"one\", \"of-guard\"]\n", None),
];

#[tokio::test]
async fn no_setting_does_without_what_the_policy_requires() {
    let mut all = None;
    for (settings, refused) in WAYS {
        let machine = machine();
        match (rules(&machine, settings).await, refused) {
            (Ok(rules), None) => assert_eq!(all.get_or_insert_with(|| rules.clone()), &rules, "{settings}"),
            (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{settings}: {error}"),
            (found, _) => panic!("{settings}: {found:?}"),
        }
    }
    let all = all.unwrap();
    assert!(
        all.len() == 2 && all.iter().all(|rule| rule.contains("guard") || rule.contains("rules/one.md")),
        "{all:?}"
    );
    println!("{} ways", WAYS.len());
}

/// Takes something away that the policy requires.
type Lose = fn(&Machine);

#[tokio::test]
async fn what_is_missing_or_other_than_pinned_stops_the_host() {
    let lost: [(&str, Lose); 4] = [
        ("guard/plugin.toml", |machine| fs::remove_dir_all(machine.path("etc/guard")).unwrap()),
        ("unknown key", |machine| machine.write("etc/guard/plugin.toml", "nonsense = 1\n")),
        ("rules` does not exist", |machine| fs::remove_dir_all(machine.path("etc/rules")).unwrap()),
        ("SHA-256", |machine| {
            let manifest = fs::read_to_string(machine.path("etc/guard/plugin.toml")).unwrap();
            machine.write("etc/guard/plugin.toml", &format!("component = {{ path = \"g.wasm\" }}\n{manifest}"));
            machine.write("etc/guard/g.wasm", "\0asm\r\0\u{1}\0other code");
            let pinned = format!("path = \"guard\"\nsha256 = \"{}\"\n", "0".repeat(64));
            machine.write("etc/policy.toml", &POLICY.replace("path = \"guard\"\n", &pinned));
        }),
    ];
    for (part, lose) in lost {
        let machine = machine();
        lose(&machine);
        let error = rules(&machine, "").await.err().unwrap_or_else(|| panic!("{part}")).with_hint();
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[tokio::test]
async fn the_doctor_names_entries_that_have_no_effect() {
    let machine = machine();
    let settings = "[[plugin]]\npath = \"other\"\n[[plugin]]\npath = \"etc/guard\"\nenabled = false\n";
    let checks = machine.builder(settings).doctor(machine.path("work")).await;
    let check = checks.iter().find(|check| check.what == "policy").unwrap();
    for part in ["tidegate.toml:2", "tidegate.toml:4", "required plugins: ", "etc/guard", "required rule folders: "] {
        assert!(check.detail.contains(part), "{part} is not in {check:?}");
    }
    assert_eq!(check.health, tidegate::diagnostic::Health::Warning);
}

#[tokio::test]
async fn neither_an_edit_in_mid_session_nor_the_program_switches_it_off() {
    let machine = machine();
    machine.write("tidegate.toml", "");
    let file = machine.path("tidegate.toml");
    let read = move || Operator::load(&file).map_err(|found| found.in_one_line());
    let host = machine.builder("").follow(read).open().await.unwrap();
    let plugins = host.plugins();
    for edit in [
        "[[plugin]]\npath = \"etc/guard\"\nenabled = false\n",
        "[[plugin]]\npath = \"other\"\n",
        "[limits]\ntext_ms = 7\n",
    ] {
        machine.write("tidegate.toml", edit);
        drop(plugins.refresh().await);
        let [guard] = plugins.list().try_into().unwrap();
        assert!(guard.enabled && guard.folder == machine.path("etc/guard"), "{edit}: {guard:?}");
    }
    let id: PluginId = "guard".parse().unwrap();
    let refused = [
        plugins.disable(&id).await,
        plugins.unregister(&id).await,
        plugins.configure(&id, |entry| entry.required = false).await,
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("error[config-policy]") && error.contains("policy.toml:"), "{error}");
    }
}
