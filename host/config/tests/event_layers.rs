//! What a file that comes with a workspace cannot do about thread events, key by key: change what the user has set, and have less recorded.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the test prints how many cases it has")]

use std::collections::BTreeSet;

use flow::{EventCatalogue, SourceFile};
use tidegate_config::events::{Catalogue, FILE, LayerFile, LayerOrigin, Variables};
use tidegate_config::{Layer, LayerKind, Operator, event_schema};

use crate::support::tables::{EVENTS, as_table};

/// A key with its table: what the user sets, and what a project would set instead. The first part of the name is its table in the schema.
const KEYS: [(&str, &str, &str, &str); 16] = [
    ("EventTypeFile.category", "event_types.extension_log", "category = \"tool\"", "category = \"error\""),
    (
        "EventTypeFile.criticality",
        "event_types.extension_log",
        "criticality = \"critical\"",
        "criticality = \"droppable\"",
    ),
    ("EventTypeFile.description", "event_types.extension_log", "description = \"A.\"", "description = \"B.\""),
    (
        "EventTypeFile.payload_schema",
        "event_types.own",
        "payload_schema = { type = \"object\" }",
        "payload_schema = { type = \"object\", required = [\"a\"] }",
    ),
    ("EventTypeFile.emit_on_error", "event_types.cognition_reasoning", "emit_on_error = true", "emit_on_error = false"),
    // Only the program sets these two.
    ("EventTypeFile.required", "event_types.extension_log", "", "required = true"),
    ("EventTypeFile.required_if", "event_types.extension_log", "", "required_if = \"true\""),
    ("EmitFile.async", "event_types.extension_log.emit_config", "async = false", "async = true"),
    ("EmitFile.throttle", "event_types.extension_log.emit_config", "throttle = \"1s\"", "throttle = \"1h\""),
    (
        "EmitFile.condition",
        "event_types.extension_log.emit_config",
        "condition = \"turn.max_steps == 50\"",
        "condition = \"turn.max_steps == 999\"",
    ),
    (
        "EmitFile.milestones",
        "event_types.tool_call_progress.emit_config",
        "milestones = [1, 2, 3]",
        "milestones = [100]",
    ),
    (
        "EmitFile.accumulate_on_error",
        "event_types.cognition_reasoning.emit_config",
        "accumulate_on_error = true",
        "accumulate_on_error = false",
    ),
    (
        "EmitFile.aggregate",
        "event_types.extension_callback.emit_config",
        "aggregate = \"never\"",
        "aggregate = \"turn\"",
    ),
    (
        "LevelFile.durability",
        "criticality_levels.own",
        "description = \"O.\"\ndurability = \"guaranteed\"\nasync = false",
        "durability = \"best_effort\"",
    ),
    (
        "LevelFile.async",
        "criticality_levels.own",
        "description = \"O.\"\ndurability = \"best_effort\"\nasync = false",
        "async = true",
    ),
    (
        "LevelFile.fallback",
        "criticality_levels.own",
        "description = \"O.\"\ndurability = \"best_effort\"\nasync = true\nfallback = \"drop\"",
        "",
    ),
];

fn layer(table: &str, keys: &str, origin: LayerOrigin) -> LayerFile {
    file(&format!("schema_version = \"1.0.0\"\n[{table}]\n{keys}\n"), Form::File(origin))
}

/// Where a layer is written.
#[derive(Clone, Copy)]
enum Form {
    /// In a file of its own, with its version.
    File(LayerOrigin),
    /// In the table of a `tidegate.toml`.
    Table(LayerKind),
}

const USERS: [Form; 3] = [Form::File(LayerOrigin::User), Form::Table(LayerKind::User), Form::Table(LayerKind::Named)];
const PROJECTS: [Form; 3] =
    [Form::File(LayerOrigin::Project), Form::File(LayerOrigin::Foreign), Form::Table(LayerKind::Workspace)];

fn file(text: &str, form: Form) -> LayerFile {
    match form {
        Form::File(origin) => LayerFile::new(&SourceFile::new(FILE, text), origin),
        Form::Table(kind) => {
            let source = SourceFile::new("tidegate.toml", as_table(text, EVENTS));
            LayerFile::of_settings(&Layer { kind, source })
        }
    }
}

#[test]
fn a_project_does_not_change_what_the_user_has_set() {
    for (key, table, user, project) in KEYS {
        let text = |keys: &str| format!("schema_version = \"1.0.0\"\n[{table}]\n{keys}\n");
        for (users, form) in USERS.iter().flat_map(|users| PROJECTS.map(|form| (*users, form))) {
            let users = file(&text(user), users);
            let (alone, _) =
                Catalogue::of_layers(std::slice::from_ref(&users)).unwrap_or_else(|found| panic!("{key}: {found}"));
            let both = [users, file(&text(project), form)];
            let (both, left_out) = Catalogue::of_layers(&both).unwrap_or_else(|found| panic!("{key}: {found}"));
            assert_eq!(both, alone, "{key}");
            assert_eq!(left_out.len(), usize::from(!project.is_empty()), "{key}: {left_out:?}");
            assert!(left_out.iter().all(|one| !one.is_error() && one.code.as_str() == "events-unsafe"), "{left_out:?}");
        }
    }
    // A key that is added to the format has to be decided about here; descriptions of levels change nothing.
    let schema: serde_json::Value = serde_json::from_str(&event_schema()).unwrap();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for table in ["EventTypeFile", "EmitFile", "LevelFile"] {
        let keys = schema["definitions"][table]["properties"].as_object().unwrap().keys();
        known.extend(keys.map(|key| format!("{table}.{key}")));
    }
    let elsewhere = ["EventTypeFile.emit_config", "LevelFile.description"].map(str::to_owned);
    let decided: BTreeSet<String> = KEYS.iter().map(|(key, ..)| (*key).to_owned()).chain(elsewhere).collect();
    assert_eq!(known, decided);
    // The rest changes what an event says about itself, or is refused for each type.
    let fewer: BTreeSet<&str> = FEWER.iter().map(|(key, ..)| *key).collect();
    let others = ["category", "description", "payload_schema", "required", "required_if"]
        .map(|key| format!("EventTypeFile.{key}"));
    let of_types = decided.iter().filter(|key| !key.starts_with("LevelFile") && *key != "EventTypeFile.emit_config");
    assert_eq!(of_types.filter(|key| !others.contains(key)).map(String::as_str).collect::<BTreeSet<_>>(), fewer);
    println!("{} keys", KEYS.len());
}

/// What makes the records of a type fewer or later, whatever the type: a key, its table in the type, and its value.
const FEWER: [(&str, &str, &str); 8] = [
    ("EventTypeFile.criticality", "", "criticality = \"droppable\""),
    ("EventTypeFile.emit_on_error", "", "emit_on_error = false"),
    ("EmitFile.async", ".emit_config", "async = true"),
    ("EmitFile.throttle", ".emit_config", "throttle = \"1h\""),
    ("EmitFile.condition", ".emit_config", "condition = \"not true\""),
    ("EmitFile.milestones", ".emit_config", "milestones = [100]"),
    ("EmitFile.accumulate_on_error", ".emit_config", "accumulate_on_error = false"),
    ("EmitFile.aggregate", ".emit_config", "aggregate = \"turn\""),
];

/// How events are recorded in a session, and the lines that are left out.
fn recorded(files: &[LayerFile]) -> (EventCatalogue, Vec<usize>) {
    let (catalogue, left_out) = Catalogue::of_layers(files).unwrap_or_else(|found| panic!("{found}"));
    assert!(left_out.iter().all(|one| !one.is_error() && one.location().is_some()), "{left_out:?}");
    let lines = left_out.iter().map(|one| one.location().unwrap().line());
    (catalogue.for_session(&Variables::of(&Operator::default())), lines.collect())
}

/// The transcript, `session show` and exports have what the program records by default, or more, whatever comes with a workspace.
#[test]
fn a_project_makes_no_records_fewer() {
    let default = recorded(&[]).0;
    let types: Vec<&str> = default.iter().map(|(name, _)| name).collect();
    for (key, table, keys) in FEWER {
        // One file for all of them, in which each type has two lines behind the first one.
        let one = |name: &&str| format!("[event_types.{name}{table}]\n{keys}\n");
        let text = format!("schema_version = \"1.0.0\"\n{}", types.iter().map(one).collect::<String>());
        for form in PROJECTS {
            let (with, left_out) = recorded(&[file(&text, form)]);
            assert!(with == default, "{key}");
            for (at, (name, of)) in default.iter().enumerate() {
                let is_default = !of.critical || !of.emit_on_error || name == "cognition_reasoning";
                assert!(left_out.contains(&(2 * at + 3)) || is_default, "{key} of {name}: {left_out:?}");
            }
        }
    }
    assert!(types.len() >= 50, "{} types", types.len());
    println!("{} types, {} keys", types.len(), FEWER.len());
    let all = "criticality = \"droppable\"\nemit_config = { condition = \"not true\", throttle = \"1h\" }";
    for name in ["rule_fired", "extension_callback", "extension_registered", "thread_completed"] {
        let (with, left_out) = recorded(&[layer(&format!("event_types.{name}"), all, LayerOrigin::Project)]);
        assert!(with == default, "{name}");
        assert_eq!(left_out.len(), if name == "extension_callback" { 2 } else { 3 }, "{name}");
    }
    // A level, through which all types of it would be lost; and a type of a plugin.
    for (table, keys, lines) in [
        ("criticality_levels.critical", "durability = \"best_effort\"\nasync = true\nfallback = \"drop\"", 1),
        ("criticality_levels.droppable", "async = false", 1),
        ("event_types.\"guard.found\"", "payload_schema = { type = \"object\", required = [\"never\"] }", 1),
    ] {
        let file = layer(table, keys, LayerOrigin::Project);
        let found = Catalogue::of_layers(std::slice::from_ref(&file));
        let (with, left_out) = found.unwrap_or_else(|found| panic!("{table}: {found}"));
        assert!(with.for_session(&Variables::of(&Operator::default())) == default, "{table}");
        assert_eq!(left_out.len(), lines, "{table}: {left_out:?}");
    }
    // A type that the user declares, of which the user's file has no such key.
    let users = layer("event_types.own", "payload_schema = { type = \"object\" }", LayerOrigin::User);
    let without = recorded(std::slice::from_ref(&users)).0;
    let silent = layer("event_types.own.emit_config", "condition = \"not true\"", LayerOrigin::Project);
    assert_eq!(recorded(&[users, silent]), (without, vec![3]));
}

/// What only adds is the project's to choose.
#[test]
fn a_project_adds_to_what_is_recorded() {
    for (table, keys) in [
        ("event_types.cognition_out_delta.emit_config", "throttle = \"0s\"\ncondition = \"true\""),
        ("event_types.cognition_out_delta", "criticality = \"critical\""),
        ("event_types.thread_completed", "emit_on_error = true"),
        ("event_types.tool_call_progress.emit_config", "milestones = [0, 10, 25, 50, 75, 90, 100]"),
        ("event_types.tool_call_progress.emit_config", "milestones = []"),
        ("event_types.extension_callback.emit_config", "aggregate = \"never\""),
        ("event_types.notice", "description = \"What happened.\"\ncategory = \"error\""),
        ("event_types.own", "payload_schema = { type = \"object\" }\nemit_config.condition = \"not true\""),
    ] {
        let (with, left_out) = recorded(&[layer(table, keys, LayerOrigin::Project)]);
        assert!(with != recorded(&[]).0, "{keys} has no effect");
        assert!(left_out.is_empty(), "{table}: {keys}: {left_out:?}");
    }
}
