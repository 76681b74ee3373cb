//! The check of edited arguments against the JSON Schema of their tool.

use std::error::Error;

use boon::{Compiler, Draft, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

/// Names the schema inside of the compiler; nothing is loaded from it.
const LOCATION: &str = "tidegate://tool/parameters";

/// The compiler recurses as deep as the schema, and the check as deep as the arguments.
const STACK: usize = 32 << 20;

/// Violations that are reported.
const REPORTED: usize = 5;

/// Characters of one violation.
const LENGTH: usize = 500;

/// A schema refers to nothing outside of itself.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema can refer to itself only".into())
    }
}

/// Checks a value.
///
/// # Errors
/// The places where it does not conform, a line each; or why the schema cannot be used, which no arguments conform to.
pub(super) fn check(schema: &Value, value: &Value) -> Result<(), Vec<String>> {
    std::thread::scope(|scope| {
        let work = || check_here(schema, value);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| vec![format!("no thread for the check can be started: {error}")])?;
        thread.join().unwrap_or_else(|_| Err(vec!["the check failed".to_owned()]))
    })
}

fn check_here(schema: &Value, value: &Value) -> Result<(), Vec<String>> {
    let unusable = |error: boon::CompileError| vec![cut(&format!("the schema cannot be used: {error}"))];
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(Nothing));
    let mut schemas = Schemas::new();
    compiler.add_resource(LOCATION, schema.clone()).map_err(unusable)?;
    let index = compiler.compile(LOCATION, &mut schemas).map_err(unusable)?;
    schemas.validate(value, index).map_err(|error| {
        let mut problems = Vec::new();
        collect(&error, &mut problems);
        problems
    })
}

/// The innermost errors: those around them only report that something inside is wrong.
fn collect(error: &ValidationError<'_, '_>, problems: &mut Vec<String>) {
    if problems.len() == REPORTED {
        return;
    }
    if !error.causes.is_empty() {
        error.causes.iter().for_each(|cause| collect(cause, problems));
        return;
    }
    let problem = match error.instance_location.to_string().as_str() {
        "" => error.kind.to_string(),
        place => format!("at `{place}`: {}", error.kind),
    };
    problems.push(cut(&problem));
}

fn cut(text: &str) -> String {
    text.chars().take(LENGTH).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn violations_name_their_place() {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
            "required": ["path"],
            "additionalProperties": false,
        });
        check(&schema, &json!({"path": "a", "count": 2})).unwrap();
        let problems = check(&schema, &json!({"count": 0, "other": true})).unwrap_err().join("\n");
        for part in ["'path'", "at `/count`", "'other'"] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        assert!(check(&json!({"type": 5}), &json!({})).unwrap_err()[0].contains("the schema cannot be used"));
        let remote = json!({"$ref": "https://example.com/schema.json"});
        assert!(check(&remote, &json!({})).unwrap_err()[0].contains("the schema cannot be used"));
    }
}
