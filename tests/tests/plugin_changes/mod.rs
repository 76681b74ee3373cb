//! Plugins that change while sessions are open: edited files, an edited configuration, and what the embedder asks for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod guards;
mod pins;
mod place;

use std::fs;
use std::sync::Arc;

use tidegate::diagnostic::{Health, SourceFile, render};
use tidegate::metrics::Metrics;
use tidegate::plugin::{PluginEntry, Power};
use tidegate::{EventKind, HostError, Operator};
use tidegate_kit::Frozen;

use place::{KEPT, NEW, Place, Run, component, id, manifest, started};

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_manifest_is_in_force_from_the_next_turn_and_the_state_is_kept() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    assert_eq!(run.say("!count").await, KEPT, "the instance is kept while nothing changes");
    place.write_manifest(&manifest().replace("0.1.0", "0.2.0"));
    let (text, changes) = run.turn("!count").await;
    assert_eq!((text.as_str(), changes), (NEW, vec!["reload conformance 0.2.0".to_owned()]));
    assert_eq!(run.say("!state-get k").await, "Some(\"kept\")");
    // The same text again is no change.
    place.write_manifest(&manifest().replace("0.1.0", "0.2.0"));
    assert_eq!(run.say("!count").await, "9");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_reads_of_a_plugin_is_shown_before_the_first_turn_with_it() {
    let place = Place::new("");
    let host = place.host().await;
    let shown = async |run: &Run| {
        run.model.scripts.lock().unwrap().push_back("!pass".to_owned());
        let mut turn = run.session.prompt("go");
        let mut places = Vec::new();
        while let Some(event) = turn.next().await {
            match event.kind {
                EventKind::ExtensionPrompt(prompt) => {
                    let texts = prompt.texts.iter().map(|one| format!("{}: {}", one.place, one.text.trim_end()));
                    places.push((prompt.changed, texts.collect::<Vec<_>>()));
                }
                EventKind::CognitionIn { .. } if places.is_empty() => places.push((false, Vec::new())),
                _ => {}
            }
        }
        places
    };
    let run = place.session(&host).await;
    let first = shown(&run).await;
    assert!(!first[0].0 && first[0].1[0].starts_with("tool \"run\""), "{first:?}");
    let none = vec![(false, Vec::new())];
    assert_eq!(shown(&run).await, none);
    assert_eq!(shown(&place.session(&host).await).await, none, "the workspace has seen it");
    let addition = "[[prompt]]\nposition = \"user_suffix\"\ncontent = \"Be brief.\"\n";
    let capabilities = "[capabilities]\nprompt = \"adds text\"";
    place.write_manifest(&(manifest().replace("[capabilities]", capabilities) + addition));
    assert_eq!(shown(&run).await, none, "without the power the text is not used");
    place.write_operator(&Place::entry("").replace("grants = [", "grants = [\"prompt\", "));
    let changed = shown(&run).await;
    assert!(changed[0].0 && changed[0].1[0] == "user_suffix: Be brief.", "{changed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_show_the_breaker_of_all_sessions_of_each_version() {
    let (place, metrics) = (Place::new(""), Metrics::new());
    // Without a clock that goes on no back-off ends.
    let builder = place.builder().metrics(&metrics).clock(Arc::new(Frozen::default()));
    let host = builder.open().await.unwrap();
    let shown = || {
        let text = metrics.prometheus();
        let line =
            text.lines().find_map(|line| line.strip_prefix("extension_breaker_state{extension_id=\"conformance\"} "));
        line.unwrap().to_owned()
    };
    let last = started(&place, &host).await;
    place.write_manifest(&manifest().replace("0.1.0", "0.2.0"));
    for _ in 0..3 {
        let run = place.session(&host).await;
        for _ in 0..3 {
            run.turn("!error no").await;
        }
        run.session.close();
        run.session.closed().await;
    }
    assert_eq!(shown(), "2", "their own breakers went with the sessions");
    let (text, changes) = last.turn("!count").await;
    assert_eq!((text.as_str(), changes), ("!count", vec!["reload conformance 0.2.0".to_owned()]));
    assert_eq!(shown(), "2", "a session that changes to this version does not close its breaker");
    place.write_manifest(&manifest().replace("0.1.0", "0.3.0"));
    assert_eq!(last.turn("!count").await.0, NEW);
    assert_eq!(shown(), "0", "the next version has another breaker");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_of_state_that_nothing_migrates_to_is_a_warning() {
    let place = Place::new("");
    let warnings = async |state_version: u32| {
        place.write_manifest(&manifest().replace("[build]", &format!("state_version = {state_version}\n[build]")));
        let host = place.host().await;
        let checks = host.doctor(place.0.path()).await;
        let of_doctor = checks.iter().filter(|check| check.health == Health::Warning).map(|check| check.detail.clone());
        let shown = host.loaded(place.0.path()).await.unwrap().warnings();
        (of_doctor.collect::<Vec<_>>(), shown.iter().map(|one| render(one, false)).collect::<Vec<_>>())
    };
    assert_eq!(warnings(1).await, (vec![], vec![]));
    let (doctor, shown) = warnings(3).await;
    let message = "plugin `conformance`: its `state_version` is 3, and its component exports no `migration`";
    assert!(doctor.len() == 1 && doctor[0].starts_with(message), "{doctor:?}");
    let caret = "\n7 | state_version = 3\n  | ^^^^^^^^^^^^^ state of older versions cannot be used\n";
    assert!(shown[0].starts_with(&format!("warning[plugin-no-migration]: {message}\n")), "{shown:?}");
    assert!(shown.len() == 1 && shown[0].contains(caret), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_cannot_be_used_leaves_the_one_before_in_use() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    place.write_manifest(&manifest().replace("description = \"A guest", "descripton = \"A guest"));
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!(text, "Some(\"kept\")");
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0].starts_with("plugin `conformance` was not reloaded, and version 0.1.0 stays in use"),
        "{changes:?}"
    );
    assert!(changes[0].contains("descripton") && changes[0].contains("plugin.toml:4"), "{changes:?}");
    // The component, cut short as by a build that is under way.
    place.write_manifest(&manifest());
    fs::write(place.plugin().join("component.wasm"), &component()[..1000]).unwrap();
    let (text, changes) = run.turn("!count").await;
    assert_eq!(text, "9", "it is still the same instance");
    assert!(changes.len() == 1 && changes[0].contains("version 0.1.0 stays in use"), "{changes:?}");
    // A session that opens now has the working version too.
    let other = place.session(&host).await;
    assert_eq!(other.turn("!count").await.0, NEW);
    fs::write(place.plugin().join("component.wasm"), component()).unwrap();
    place.write_manifest(&manifest().replace("0.1.0", "0.3.0"));
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!((text.as_str(), changes), ("Some(\"kept\")", vec!["reload conformance 0.3.0".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_without_a_plugin_and_uses_it_again() {
    let place = Place::new("");
    let host = place.host().await;
    let (run, other) = (started(&place, &host).await, started(&place, &host).await);
    run.session.disable_plugin(&id("conformance")).unwrap();
    let (text, changes) = run.turn("!count").await;
    assert_eq!((text.as_str(), changes), ("!count", vec!["disable conformance".to_owned()]));
    assert_eq!(other.say("!count").await, KEPT, "the other session goes on");
    run.session.enable_plugin(&id("conformance")).unwrap();
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!((text.as_str(), changes), ("Some(\"kept\")", vec!["enable conformance 0.1.0".to_owned()]));
    let unknown = run.session.disable_plugin(&id("other")).unwrap_err();
    assert_eq!(unknown.code().map(|code| code.as_str()), Some("host-unknown-plugin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_disables_enables_and_configures_plugins_of_all_sessions() {
    let place = Place::new("");
    let host = place.host().await;
    let (run, other) = (started(&place, &host).await, started(&place, &host).await);
    host.plugins().disable(&id("conformance")).await.unwrap();
    assert!(host.plugins().list().iter().all(|plugin| !plugin.enabled));
    for run in [&run, &other] {
        assert_eq!(run.turn("!count").await, ("!count".to_owned(), vec!["disable conformance".to_owned()]));
    }
    host.plugins().enable(&id("conformance")).await.unwrap();
    host.plugins().configure(&id("conformance"), |entry| entry.required = true).await.unwrap();
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!((text.as_str(), changes), ("Some(\"kept\")", vec!["enable conformance 0.1.0".to_owned()]));
    let refused = host.plugins().disable(&id("conformance")).await.unwrap_err();
    assert!(matches!(refused, HostError::PluginRequired { .. }), "{refused}");
    assert_eq!(refused.code().map(|code| code.as_str()), Some("host-plugin-required"));
    assert!(
        run.session.disable_plugin(&id("conformance")).is_err()
            && host.plugins().unregister(&id("conformance")).await.is_err()
    );
    // What cannot be used is refused, and nothing changes.
    let refused = host.plugins().configure(&id("conformance"), |entry| entry.grants.clear()).await.unwrap_err();
    assert!(refused.to_string().contains("requests the power"), "{refused}");
    assert_eq!(run.say("!count").await, KEPT);
}

#[tokio::test(flavor = "multi_thread")]
async fn unregistering_ends_after_the_running_turn_and_deletes_the_state() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    // Case 11: the callback that runs finishes.
    run.model.scripts.lock().unwrap().push_back("!work 1\n!state-set late 1".to_owned());
    let mut running = run.session.prompt("go");
    while !matches!(running.next().await.unwrap().kind, EventKind::CognitionIn { .. }) {}
    host.plugins().unregister(&id("conformance")).await.unwrap();
    assert_eq!(running.report().await.text, "()", "the callback was stopped");
    assert_eq!(host.plugins().list().len(), 0);
    let (text, changes) = run.turn("!state-keys").await;
    assert_eq!(
        (text.as_str(), changes),
        ("!state-keys", vec!["clear".to_owned(), "unregister conformance".to_owned()])
    );
    let mut entry = PluginEntry::of_path(&place.plugin());
    entry.grants = vec![Power::State, Power::Session, Power::History, Power::Tools, Power::ProvideTools];
    entry.settings.insert("unit".into(), (tidegate::plugin::SettingValue::Text("whole".into()), None));
    entry.settings.insert("only".into(), (tidegate::plugin::SettingValue::Texts(vec!["on_plain_text".into()]), None));
    assert_eq!(host.plugins().register(entry.clone()).await.unwrap(), id("conformance"));
    let twice = host.plugins().register(entry).await.unwrap_err();
    assert!(matches!(twice, HostError::PluginRegistered { .. }), "{twice}");
    let (text, changes) = run.turn("!state-keys").await;
    assert_eq!((text.as_str(), changes), ("[]", vec!["register conformance 0.1.0".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_left_and_came_back_between_two_turns_starts_without_state() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    let entry = Operator::load(&place.operator_file()).unwrap().plugins.remove(0);
    host.plugins().unregister(&id("conformance")).await.unwrap();
    host.plugins().register(entry).await.unwrap();
    let (text, changes) = run.turn("!state-keys").await;
    assert_eq!(text, "[]");
    assert_eq!(changes, ["clear", "unregister conformance", "register conformance 0.1.0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_configuration_is_in_force_from_the_next_turn_or_not_at_all() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    let system = |text: &str| format!("[prompt]\nsystem = {text:?}\n");
    place.write_operator(&(system("Be brief.") + &Place::entry("priority.on_plain_text = 60")));
    let (_, changes) = run.turn("!count").await;
    assert_eq!(changes, ["reload conformance 0.1.0"]);
    assert!(run.model.prompts.lock().unwrap().last().unwrap().contains("Be brief."));
    // A file that cannot be read, and one that names a plugin which is not there, change nothing.
    place.write_operator("limits = \n");
    let (text, changes) = run.turn("!count").await;
    assert_eq!(text, KEPT);
    assert!(
        changes.len() == 1 && changes[0].contains("cannot be read") && changes[0].contains("tidegate.toml:1"),
        "{changes:?}"
    );
    place.write_operator(&(system("Be long.") + &Place::entry("") + "[[plugin]]\npath = \"missing\"\n"));
    let (text, changes) = run.turn("!count").await;
    assert_eq!(text, "9");
    assert!(changes.len() == 1 && changes[0].contains("the one before remains in force"), "{changes:?}");
    assert!(run.model.prompts.lock().unwrap().last().unwrap().contains("Be brief."));
    // Switched off and on, with its state.
    place.write_operator(&Place::entry("enabled = false"));
    let (text, changes) = run.turn("!count").await;
    assert_eq!((text.as_str(), changes), ("!count", vec!["disable conformance".to_owned()]));
    place.write_operator(&Place::entry(""));
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!((text.as_str(), changes), ("Some(\"kept\")", vec!["enable conformance 0.1.0".to_owned()]));
    // What the model may do does not change while the program runs.
    place.write_operator(&(Place::entry("") + "[tools.permission]\nshell = \"allow\"\n"));
    let (_, changes) = run.turn("!count").await;
    assert_eq!(changes, ["changes of [tools] take effect when the program is restarted"]);
    // Without the plugin.
    place.write_operator("[rules]\nbuiltin_rules = false\nuser_rules = false\n");
    let (text, changes) = run.turn("!count").await;
    assert_eq!((text.as_str(), changes), ("!count", vec!["clear".to_owned(), "unregister conformance".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_whose_tool_has_left_is_a_warning() {
    let place = Place::new("");
    let permission = "[tools.permission]\nrun = \"allow\"\n";
    place.write_operator(&(Place::entry("") + permission));
    let host = place.host().await;
    let run = started(&place, &host).await;
    place.write_operator(&format!("[rules]\nbuiltin_rules = false\nuser_rules = false\n{permission}"));
    let (_, changes) = run.turn("!count").await;
    let warned =
        changes.iter().find(|change| change.contains("the permission `run` is for a tool that is not offered here"));
    assert!(warned.is_some(), "{changes:?}");
    assert!(run.say("!count").await == "!count", "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_disabled_and_then_unregistered_leaves_nothing_behind() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    let entry = Operator::load(&place.operator_file()).unwrap().plugins.remove(0);
    host.plugins().disable(&id("conformance")).await.unwrap();
    assert_eq!(run.turn("!count").await.1, ["disable conformance"]);
    host.plugins().unregister(&id("conformance")).await.unwrap();
    assert_eq!(run.turn("!count").await.1, ["clear", "unregister conformance"]);
    host.plugins().register(entry).await.unwrap();
    assert_eq!(run.turn("!state-keys").await, ("[]".to_owned(), vec!["register conformance 0.1.0".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_plugin_is_used_whatever_disabled_it() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    host.plugins().disable(&id("conformance")).await.unwrap();
    host.plugins().configure(&id("conformance"), |entry| entry.required = true).await.unwrap();
    assert_eq!(run.turn("!count").await, (NEW.to_owned(), vec!["reload conformance 0.1.0".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_were_refused_are_used_when_the_cause_is_gone_without_another_edit() {
    let place = Place::new("");
    place.settle();
    let host = place.host().await;
    let run = started(&place, &host).await;
    assert_eq!(run.say("!count").await, KEPT);
    // A configuration that names a plugin which is built later.
    let later = place.0.path().join("later");
    place.write_operator(&(Place::entry("") + "[[plugin]]\npath = \"later\"\n"));
    place.settle();
    let (_, changes) = run.turn("!count").await;
    assert!(changes.len() == 1 && changes[0].contains("the one before remains in force"), "{changes:?}");
    assert_eq!(run.say("!count").await, "12", "it is reported once");
    // A session that opens now is told, too.
    let other = place.session(&host).await;
    let (_, changes) = other.turn("!count").await;
    assert!(changes.iter().any(|change| change.contains("the one before remains in force")), "{changes:?}");
    fs::create_dir(&later).unwrap();
    let text = "id = \"later\"\nversion = \"1.0.0\"\napi = \"0.1\"\ndescription = \"Later.\"\n\
                [tools]\npreferred_tools = [\"grep\"]\n";
    fs::write(later.join("plugin.toml"), text).unwrap();
    assert_eq!(run.turn("!count").await.1, ["register later 1.0.0"]);
    // An edit of a plugin is not lost with a change that is refused.
    place.write_manifest(&manifest().replace("0.1.0", "0.2.0"));
    place.settle();
    let nowhere = PluginEntry::of_path(&place.0.path().join("nowhere"));
    assert!(host.plugins().register(nowhere).await.is_err());
    assert_eq!(run.turn("!count").await.1, ["reload conformance 0.2.0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_moved_keeps_its_state_and_an_edited_entry_replaces_what_the_program_had_made_of_it() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    let moved = place.0.path().join("moved");
    fs::rename(place.plugin(), &moved).unwrap();
    place.write_operator(&Place::entry("").replace("\"plugin\"", "\"moved\""));
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!((text.as_str(), changes), ("Some(\"kept\")", vec!["reload conformance 0.1.0".to_owned()]));
    host.plugins().configure(&id("conformance"), |entry| entry.grants.push(Power::Prompt)).await.unwrap_err();
    let long = |entry: &mut PluginEntry| entry.limits.text = Some(std::time::Duration::from_millis(400));
    host.plugins().configure(&id("conformance"), long).await.unwrap();
    assert_eq!(host.plugins().limits(&id("conformance")).unwrap().text.as_millis(), 400);
    place.write_operator(&Place::entry("limits.text_ms = 300").replace("\"plugin\"", "\"moved\""));
    let (_, changes) = run.turn("!count").await;
    assert!(changes.iter().any(|change| change.contains("replaces what the program had changed of it")), "{changes:?}");
    assert_eq!(host.plugins().limits(&id("conformance")).unwrap().text.as_millis(), 300);
    // One that the file switches off is neither enabled nor configured by the program, but can be removed.
    place.write_operator(&Place::entry("enabled = false").replace("\"plugin\"", "\"moved\""));
    assert_eq!(run.turn("!count").await.1, ["disable conformance"]);
    let off = host.plugins().enable(&id("conformance")).await.unwrap_err();
    assert!(matches!(off, HostError::PluginOff { .. }), "{off}");
    host.plugins().unregister(&id("conformance")).await.unwrap();
    assert_eq!(run.turn("!count").await.1, ["clear", "unregister conformance"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_gone_unregisters_nothing() {
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    fs::remove_file(place.operator_file()).unwrap();
    let (text, changes) = run.turn("!state-get k").await;
    assert_eq!(text, "Some(\"kept\")");
    assert!(changes.len() == 1 && changes[0].contains("tidegate.toml is not there"), "{changes:?}");
    place.write_operator(&Place::entry(""));
    assert_eq!(run.say("!state-get k").await, "Some(\"kept\")");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_plugins_are_reloaded_under_many_sessions() {
    let place = Arc::new(Place::new(""));
    let host = place.host().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..12 {
        let run = place.session(&host).await;
        tasks.spawn(async move {
            let key = format!("own-{number}");
            run.turn(&format!("!state-set {key} {number}")).await;
            for _ in 0..15 {
                let (text, changes) = run.turn(&format!("!state-get {key}")).await;
                assert_eq!(text, format!("Some(\"{number}\")"));
                assert!(changes.iter().all(|change| change.starts_with("reload conformance")), "{changes:?}");
            }
        });
    }
    let mut edits = 0;
    while !tasks.is_empty() {
        edits += 1;
        // In the place of the other file at once, as editors write.
        let text = manifest().replace("0.1.0", &format!("0.1.{edits}"));
        let (new, file) = (place.plugin().join("new"), place.plugin().join("plugin.toml"));
        fs::write(&new, text).unwrap();
        fs::rename(new, file).unwrap();
        tokio::select! {
            done = tasks.join_next() => drop(done.map(Result::unwrap)),
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
        }
    }
    assert!(edits > 2, "the plugin was edited while sessions ran");
}

#[test]
fn the_operators_file_of_these_tests_is_valid() {
    Operator::of_source(&SourceFile::new("tidegate.toml", Place::entry("required = true"))).unwrap();
}
