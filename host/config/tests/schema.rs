//! The published schemas are those that the reader checks against.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use flow::SourceFile;
use serde_json::Value;
use tidegate_config::{
    Diagnostics, Manifest, Operator, Policy, agent_schema, error_schema, event_schema, manifest_schema,
    operator_schema, policy_schema, thread_limit_schema,
};

fn up_to_date(name: &str, generated: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(name);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, generated).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        published == generated,
        "{name} is not what the types say; `TIDEGATE_BLESS=1 cargo test -p tidegate-config --test it schema::` writes it anew"
    );
}

#[test]
fn operator_schema_is_up_to_date() {
    up_to_date("tidegate.schema.json", &operator_schema());
}

#[test]
fn manifest_schema_is_up_to_date() {
    up_to_date("plugin.schema.json", &manifest_schema());
}

#[test]
fn policy_schema_is_up_to_date() {
    up_to_date("policy.schema.json", &policy_schema());
}

#[test]
fn event_schema_is_up_to_date() {
    up_to_date("thread_events.schema.json", &event_schema());
}

#[test]
fn error_schema_is_up_to_date() {
    up_to_date("errors.schema.json", &error_schema());
}

#[test]
fn thread_limit_schema_is_up_to_date() {
    up_to_date("thread_limits.schema.json", &thread_limit_schema());
}

#[test]
fn agent_schema_is_up_to_date() {
    up_to_date("agent.schema.json", &agent_schema());
}

/// A key without a description is useless in an editor.
#[test]
fn every_key_is_described() {
    let mut keys = 0;
    let schemas = [
        operator_schema(),
        manifest_schema(),
        policy_schema(),
        event_schema(),
        error_schema(),
        thread_limit_schema(),
        agent_schema(),
    ];
    for schema in schemas {
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let tables = schema["definitions"].as_object().unwrap().values().chain([&schema]);
        for (key, about) in tables.filter_map(|table| table["properties"].as_object()).flatten() {
            keys += 1;
            let words = about["description"].as_str().unwrap_or_default();
            assert!(words.ends_with('.') || words.ends_with('`'), "`{key}` is not described by a sentence: {about}");
        }
    }
    assert!(keys > 60, "only {keys} keys looked at");
}

/// The keywords that the reader of settings knows, and those that only explain.
const KEYWORDS: [&str; 19] = [
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "format",
    "items",
    "maximum",
    "minLength",
    "minimum",
    "oneOf",
    "properties",
    "required",
    "title",
];

/// A keyword that the reader does not know would be in what editors are given, and nothing would check it.
#[test]
fn the_reader_knows_every_keyword() {
    fn walk(schema: &Value, found: &mut BTreeSet<String>) {
        let Some(members) = schema.as_object() else { return };
        for (key, value) in members {
            found.insert(key.clone());
            match (key.as_str(), value) {
                ("properties" | "definitions", Value::Object(inner)) => inner.values().for_each(|one| walk(one, found)),
                ("items" | "additionalProperties", one) => walk(one, found),
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => all.iter().for_each(|one| walk(one, found)),
                _ => {}
            }
        }
    }
    let mut found = BTreeSet::new();
    for schema in [operator_schema(), manifest_schema(), policy_schema(), event_schema(), error_schema()] {
        walk(&serde_json::from_str(&schema).unwrap(), &mut found);
    }
    // The last two are those of ids of plugins, whose type checks them.
    let known: BTreeSet<String> =
        KEYWORDS.iter().chain(&["type", "maxLength", "pattern"]).map(|word| (*word).to_owned()).collect();
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// What the reader refuses for the schema's sake, by the codes of its findings.
const OF_SCHEMA: [&str; 5] =
    ["config-unknown-key", "config-missing-key", "config-wrong-type", "config-out-of-range", "config-empty-value"];

/// Files that conform, and are refused with such a code for what no schema can say.
const BEYOND: [&str; 3] =
    ["limits.state_mib_more-than-a-session", "plugin.limits_state-more-than-a-session", "turn.max_repeats_once"];

/// The reader explains, with places in TOML and the nearest known word; what conforms to the schema `boon` decides as well, for every file of
/// the corpus.
#[test]
fn the_reader_and_boon_agree_on_every_file() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/config");
    type Reader = fn(&Arc<SourceFile>) -> Result<(), Diagnostics>;
    let kinds: [(&str, String, Reader); 3] = [
        ("operator", operator_schema(), |source| Operator::of_source(source).map(drop)),
        ("manifest", manifest_schema(), |source| Manifest::of_source(source).map(drop)),
        ("policy", policy_schema(), |source| Policy::of_source(source).map(drop)),
    ];
    let mut counts = (0, 0);
    for (kind, schema, read) in kinds {
        let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
        compiler.set_default_draft(boon::Draft::V7);
        compiler.add_resource("tidegate://schema", serde_json::from_str(&schema).unwrap()).unwrap();
        let at = compiler.compile("tidegate://schema", &mut schemas).unwrap();
        let folders = ["valid", "invalid"].map(|folder| fs::read_dir(corpus.join(kind).join(folder)).unwrap());
        let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let text = fs::read_to_string(&path).unwrap();
            // What is no TOML is no question of the schema, and JSON has no dates.
            let Ok(value) = toml::from_str::<toml::Table>(&text) else { continue };
            let value = serde_json::to_value(&value).unwrap();
            let conforms = schemas.validate(&value, at).is_ok();
            let found = read(&SourceFile::new(&path, text)).err().map(|found| found.0).unwrap_or_default();
            let codes: Vec<&str> = found.iter().map(|one| one.code.as_str()).collect();
            let is_refused = codes.iter().any(|code| OF_SCHEMA.contains(code));
            assert!(conforms || !codes.is_empty(), "{}: only boon refuses it", path.display());
            assert!(
                !conforms || !is_refused || BEYOND.contains(&path.file_stem().unwrap().to_str().unwrap()),
                "{}: only the reader refuses it: {codes:?}",
                path.display()
            );
            if conforms { counts.0 += 1 } else { counts.1 += 1 }
        }
    }
    assert!(counts.0 > 50 && counts.1 > 50, "{counts:?}");
}
