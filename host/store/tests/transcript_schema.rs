//! The published JSON Schema of transcripts: it is that of the types, it accepts every line of the corpus, and it refuses each type of
//! record with a payload of another shape.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use config::events::{Catalogue, Variables};
use record::{Body, Record};
use serde_json::{Value, json};
use tidegate_store::emission::Validator;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The published schema, compiled: a line, the header, and a record.
struct Published {
    schemas: Schemas,
    line: SchemaIndex,
    header: SchemaIndex,
    record: SchemaIndex,
    events: Validator,
}

impl Published {
    fn new() -> Self {
        let text = fs::read_to_string(root().join("schema/transcript.schema.json")).unwrap();
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("tidegate://transcript", serde_json::from_str(&text).unwrap()).unwrap();
        let mut of = |at: &str| {
            compiler
                .compile(&format!("tidegate://transcript{at}"), &mut schemas)
                .unwrap_or_else(|error| panic!("{at}: {error}"))
        };
        let (line, header, record) = (of(""), of("#/definitions/TranscriptHeader"), of("#/definitions/Record"));
        let catalogue = Catalogue::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
        let events = Validator::new(&catalogue.for_session(&Variables::default())).unwrap();
        Self { schemas, line, header, record, events }
    }

    /// Whether a record is valid as one, and as a line.
    fn record(&self, record: &Value) -> Result<(), String> {
        let checked = |index| self.schemas.validate(record, index).map_err(|error| format!("{error:#}"));
        checked(self.record).and_then(|()| checked(self.line))
    }
}

/// The lines of the transcripts of the corpus, each with its place.
fn corpus() -> Vec<(String, Value)> {
    let folder = root().join("../../tests/corpus/transcripts");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    assert!(files.len() >= 4, "{files:?}");
    let lines = files.iter().flat_map(|file| {
        let text = fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let lines: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (1..).zip(lines).map(move |(number, line)| (format!("{name}:{number}"), line))
    });
    lines.collect()
}

#[test]
fn the_schema_is_up_to_date() {
    let (file, generated) = (root().join("schema/transcript.schema.json"), tidegate_store::transcript_schema());
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, &generated).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == generated,
        "the schema is not that of the types; `TIDEGATE_BLESS=1 cargo test -p tidegate-store --test it transcript_schema::` writes it"
    );
}

#[test]
fn every_field_is_described() {
    let schema: Value = serde_json::from_str(&tidegate_store::transcript_schema()).unwrap();
    let mut fields = 0;
    for (name, of) in schema["definitions"].as_object().unwrap() {
        for (field, about) in of["properties"].as_object().into_iter().flatten() {
            // What each type of record has instead of others.
            let about = about["description"].as_str().unwrap_or_default();
            assert!(about.ends_with(['.', '`']), "`{name}.{field}` is not described by a sentence: {about:?}");
            fields += 1;
        }
    }
    assert!(fields > 150, "only {fields} fields");
}

#[test]
fn every_line_of_the_corpus_is_valid() {
    let published = Published::new();
    let mut headers = 0;
    for (place, line) in corpus() {
        if line.get("format").is_some() {
            for index in [published.header, published.line] {
                published.schemas.validate(&line, index).unwrap_or_else(|error| panic!("{place}: {error:#}"));
            }
            headers += 1;
            continue;
        }
        published.record(&line).unwrap_or_else(|error| panic!("{place}: {error}"));
        let kind = line["type"].as_str().unwrap();
        published.events.check(kind, &line["payload"]).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    assert!(headers >= 4, "only {headers} headers");
}

/// A value of another JSON type.
fn other(value: &Value) -> Value {
    if value.is_string() { json!(7) } else { json!("text") }
}

/// Every way to change one field of a record: without it, where it is one of all records, and with a value of another type or `null`.
fn mutations(record: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for pointer in ["", "/payload"] {
        for (key, value) in record.pointer(pointer).unwrap().as_object().unwrap() {
            for (how, value) in [("null", Value::Null), ("of another type", other(value))] {
                let mut mutated = record.clone();
                mutated.pointer_mut(pointer).unwrap()[key] = value;
                all.insert(format!("{pointer}/{key} {how}"), mutated);
            }
        }
    }
    for key in ["seq", "ts", "thread_id", "turn", "step", "attempt", "type", "payload"] {
        let mut mutated = record.clone();
        mutated.as_object_mut().unwrap().remove(key);
        all.insert(format!("without {key}"), mutated);
    }
    all
}

/// The required fields of a payload, as the event catalogue has them.
fn required() -> BTreeMap<String, Vec<String>> {
    let catalogue = Catalogue::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
    let session = catalogue.for_session(&Variables::default());
    let names = |schema: &Value| {
        schema["required"].as_array().into_iter().flatten().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    session.iter().map(|(name, of)| (name.to_owned(), names(&of.payload_schema))).collect()
}

#[test]
fn a_mutated_record_of_each_type_is_refused() {
    let (published, required, corpus) = (Published::new(), required(), corpus());
    let mut refused = 0;
    for kind in Body::TYPES {
        let records = corpus.iter().filter(|(_, line)| line["type"] == *kind);
        let mut any = false;
        for (place, record) in records {
            any = true;
            for (how, mutated) in mutations(record) {
                // Where the types have any JSON, such as the arguments of a tool, the catalogue has more.
                let event = published.events.check(kind, &mutated["payload"]);
                assert!(
                    published.record(&mutated).is_err() || event.is_err(),
                    "{place}, {kind}: {how} is valid: {mutated}"
                );
                refused += 1;
            }
            for key in &required[*kind] {
                let mut mutated = record.clone();
                mutated["payload"].as_object_mut().unwrap().remove(key).unwrap();
                assert!(published.events.check(kind, &mutated["payload"]).is_err(), "{place}, {kind}: without {key}");
                // The reader and the schema agree on what cannot be missing.
                let read = Record::read(mutated.to_string().as_bytes());
                assert_eq!(published.record(&mutated).is_ok(), read.is_ok(), "{place}, {kind}: without {key}");
                refused += 1;
            }
        }
        assert!(any, "no transcript of the corpus has a record of the type {kind}");
    }
    assert!(refused > 5_000, "only {refused} mutations");
}

/// Additions of later versions are valid.
#[test]
fn unknown_types_and_fields_are_valid() {
    let published = Published::new();
    let (_, line) = corpus().into_iter().find(|(_, line)| line["type"] == "notice").unwrap();
    for (pointer, key, value) in
        [("", "later", json!(1)), ("/payload", "later", json!({})), ("", "type", json!("later"))]
    {
        let mut mutated = line.clone();
        mutated.pointer_mut(pointer).unwrap()[key] = value;
        assert_eq!(published.record(&mutated), Ok(()), "{mutated}");
    }
}
