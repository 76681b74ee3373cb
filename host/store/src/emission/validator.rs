//! Checks payloads against the schemas of the catalogue.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use boon::{CompileError, Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use flow::EventCatalogue;
use record::Body;
use serde_json::{Value, json};

/// The type of the record that takes the place of one with an invalid payload.
const VIOLATION: &str = "schema_violation";
/// Problems that are reported of one payload.
const MAX_PROBLEMS: usize = 8;
/// Bytes of the message of one problem: a payload can contain long values.
const MAX_MESSAGE_BYTES: usize = 300;

/// The schemas of all event types, compiled.
pub struct Validator {
    schemas: Schemas,
    types: BTreeMap<String, SchemaIndex>,
}

/// A payload does not conform to the schema of its event type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload of `{event_type}` does not conform to its schema: {}", problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
#[non_exhaustive]
pub struct Violation {
    /// The event type.
    pub event_type: String,
    /// What is wrong, at most eight problems.
    pub problems: Vec<Problem>,
}

/// What an invalid payload leads to. The default is a panic in builds with debug assertions, and a record in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnViolation {
    /// The thread that writes the transcript panics, and the journal fails.
    Panic,
    /// A `schema_violation` is recorded in place of the event.
    Record,
}

impl Default for OnViolation {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Panic } else { Self::Record }
    }
}

/// One way in which a payload contradicts a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the payload: a JSON pointer, empty for the whole.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// A schema of the catalogue cannot be compiled. The reader of catalogues has refused such schemas.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload schema of `{event_type}` is not valid: {reason}")]
#[non_exhaustive]
pub struct InvalidSchema {
    /// The event type.
    pub event_type: String,
    /// Why it cannot be compiled.
    pub reason: String,
}

impl Validator {
    /// Compiles the schemas of a catalogue. It takes some milliseconds; sessions with the same catalogue can share the result.
    ///
    /// # Errors
    /// A schema is not a JSON Schema.
    pub fn new(catalogue: &EventCatalogue) -> Result<Self, InvalidSchema> {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(Nothing));
        let (mut schemas, mut types) = (Schemas::new(), BTreeMap::new());
        for (name, of) in catalogue.iter() {
            let location = format!("tidegate://event/{name}");
            let invalid =
                |error: CompileError| InvalidSchema { event_type: name.to_owned(), reason: error.to_string() };
            compiler.add_resource(&location, of.payload_schema.clone()).map_err(invalid)?;
            types.insert(name.to_owned(), compiler.compile(&location, &mut schemas).map_err(invalid)?);
        }
        Ok(Self { schemas, types })
    }

    /// Checks the payload of an event. A type without a schema in the catalogue takes any payload.
    ///
    /// # Errors
    /// The problems, at most as many as [`Violation::problems`] contains.
    pub fn check(&self, event_type: &str, payload: &Value) -> Result<(), Violation> {
        let Some(index) = self.types.get(event_type) else { return Ok(()) };
        self.schemas.validate(payload, *index).map_err(|error| {
            let mut problems = Vec::new();
            collect(&error, &mut problems);
            Violation { event_type: event_type.to_owned(), problems }
        })
    }

    /// Returns what is to be written in place of a body whose payload is invalid: a `schema_violation`; `None` if it is valid.
    ///
    /// # Panics
    /// The payload is invalid, and that is to be a panic: the code that made it is wrong, or the schema is.
    pub fn replacement(&self, body: &Body, on_violation: OnViolation) -> Option<Body> {
        // Records have string keys, and no number in them is infinite: nothing of them is refused.
        let payload = serde_json::to_value(body).map(|mut body| body["payload"].take()).unwrap_or_default();
        let violation = self.check(body.name(), &payload).err()?;
        assert!(on_violation == OnViolation::Record, "{violation}: {payload}");
        tracing::error!("an event is not recorded: {violation}");
        Some(Body::Unknown { r#type: VIOLATION.to_owned(), payload: violation.payload() })
    }
}

impl Violation {
    /// The payload of the `schema_violation` that is recorded in place of the event.
    pub fn payload(&self) -> Value {
        let problems = self.problems.iter().map(|one| json!({"path": one.path, "message": one.message}));
        json!({"event_type": self.event_type, "problems": problems.collect::<Vec<_>>()})
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "at `{path}`, {}", self.message)
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").field("types", &self.types.len()).finish_non_exhaustive()
    }
}

/// The innermost errors: those around them only say that something inside is wrong.
fn collect(error: &ValidationError<'_, '_>, problems: &mut Vec<Problem>) {
    if !error.causes.is_empty() {
        error.causes.iter().for_each(|cause| collect(cause, problems));
    } else if problems.len() < MAX_PROBLEMS {
        let message = match &error.kind {
            ErrorKind::Required { want } => format!("the field {} is missing", quoted(want)),
            kind => kind.to_string(),
        };
        problems.push(Problem { path: error.instance_location.to_string(), message: shortened(message) });
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
    }
    message
}

/// A schema refers to nothing outside of itself.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema can refer to itself only".into())
    }
}
