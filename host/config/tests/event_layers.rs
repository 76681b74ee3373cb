//! What the user has set about thread events is not changed by a file that comes with a workspace, key by key.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the test prints how many cases it has")]

use std::collections::BTreeSet;

use flow::SourceFile;
use tidegate_config::event_schema;
use tidegate_config::events::{Catalogue, FILE, LayerFile, LayerOrigin};

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
    let source = SourceFile::new(FILE, format!("schema_version = \"1.0.0\"\n[{table}]\n{keys}\n"));
    LayerFile { source, origin }
}

#[test]
fn a_project_does_not_change_what_the_user_has_set() {
    for (key, table, user, project) in KEYS {
        for origin in [LayerOrigin::Project, LayerOrigin::Foreign] {
            let users = layer(table, user, LayerOrigin::User);
            let (alone, _) =
                Catalogue::of_layers(std::slice::from_ref(&users)).unwrap_or_else(|found| panic!("{key}: {found}"));
            let both = [users, layer(table, project, origin)];
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
    println!("{} keys", KEYS.len());
}

/// What the user has not set is the project's to choose, as far as sessions can be rebuilt.
#[test]
fn a_project_changes_defaults() {
    let throttle = layer("event_types.extension_log.emit_config", "throttle = \"7s\"", LayerOrigin::Project);
    let (catalogue, left_out) = Catalogue::of_layers(&[throttle]).unwrap();
    assert_eq!((catalogue.types["extension_log"].emit.throttle.as_secs(), left_out.len()), (7, 0));
}
