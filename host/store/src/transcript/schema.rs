//! The JSON Schema of the lines of a transcript, for programs that read transcripts or `--output stream-json`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};

use super::format::TranscriptHeader;

/// A line of a transcript: the first is the header, and each other one a record.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, clippy::large_enum_variant, reason = "only its schema is used")]
enum TranscriptLine {
    Header(TranscriptHeader),
    Record(record::Record),
}

/// Returns the schema as JSON text, with a line end. The root is a line of a transcript; `definitions` has the header, the record, which is
/// also what `tidegate run --output stream-json` prints, and each payload under its name. Unknown fields and types are valid, because
/// later versions add them.
pub fn transcript_schema() -> String {
    let settings = SchemaSettings::draft07().for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<TranscriptLine>();
    RecursiveTransform(flow::schema::without_null).transform(&mut schema);
    format!("{:#}\n", schema.as_value())
}
