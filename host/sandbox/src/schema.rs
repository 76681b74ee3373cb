//! The JSON Schema of a tool's arguments: what a plugin may write in it, and the check of arguments against it.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use boon::{CompileError, Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use flow::{Ambiguous, ProvidedTool};
use serde_json::{Map, Value};

use crate::limits::{
    self, CHECK_STEPS, MESSAGE_BYTES, SCHEMA_DEPTH, SCHEMA_NODES, SCHEMA_PATTERNS, TOOL_ARGUMENT_BYTES,
};

/// Raised when another version of the compiler may refuse what this one accepts: what was found valid is checked again.
pub(crate) const COMPILER: u32 = 1;
/// Names a schema inside of the compiler; nothing is loaded from it.
const LOCATION: &str = "tidegate://tool/parameters";
/// The compiler checks a schema against the schema of schemas, also where no reference leads, as deep as JSON can be. That has
/// overflowed 4 MiB.
const COMPILER_STACK: usize = 32 << 20;
/// Violations that are reported of one call.
const REPORTED: usize = 5;
/// Bytes of one violation, its place included.
const VIOLATION_BYTES: usize = 700;
/// Bytes of the place of one violation, whose keys are the model's.
const PLACE_BYTES: usize = 200;
/// Keywords that give a schema another base or a target that is known only while it is evaluated: with them, neither the
/// schema's size nor the absence of cycles could be seen.
const REFUSED: [&str; 7] =
    ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];
/// Keywords whose value is a schema, or in older drafts a list of schemas.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const NAMED: [&str; 4] = ["dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Keywords whose value is compared with a value of the arguments, item by item.
const COMPARED: [&str; 4] = ["const", "dependentRequired", "enum", "required"];

/// A tool with the schema that its calls are checked against.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What the plugin provides.
    pub provided: ProvidedTool,
    /// The schema of the arguments.
    pub schema: Arc<ToolSchema>,
}

/// A schema, ready to check arguments.
pub struct ToolSchema {
    source: Value,
    /// Compiled before the first check: the compiler takes more than a millisecond to get ready.
    compiled: OnceLock<(Schemas, SchemaIndex)>,
    /// What a value of the arguments is compared with at most.
    steps: usize,
}

/// The first places where a value does not conform to a schema, and how many more there are.
#[derive(Debug, Default)]
struct Violations {
    /// Each with its place, of bounded length.
    shown: Vec<String>,
    more: usize,
}

/// What the schemas of one plugin use up of what checks are allowed to cost.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    nodes: usize,
    patterns: usize,
    /// Subschemas, and what is compared in them.
    steps: usize,
}

impl ToolSchema {
    /// Takes a schema, whose cost is added to `cost`. It is not compiled yet.
    ///
    /// # Errors
    /// It is not a schema of an object, or uses what is not allowed: the reason, and what to do.
    pub(crate) fn new(schema: &Value, cost: &mut Cost) -> Result<Self, String> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("`parameters` must be the schema of an object: write `\"type\": \"object\"`".to_owned());
        }
        let before = cost.steps;
        Measure { root: schema, cost, open: Vec::new(), depth: 0 }.node(schema)?;
        Ok(Self { source: schema.clone(), compiled: OnceLock::new(), steps: cost.steps - before })
    }

    /// Compiles it ahead of the first check of a call of `tool`. Blocks: from async code call it with `spawn_blocking`. An error is logged,
    /// and returned by that check.
    pub fn prepare(&self, tool: &str) {
        if let Err(error) = self.compiled() {
            tracing::warn!(tool, %error, "the schema of a tool cannot be compiled");
        }
    }

    /// The compiled schema.
    ///
    /// # Errors
    /// It is not a valid JSON Schema: where, and why. Or there is no thread to compile it now; the next call tries again.
    pub(crate) fn compiled(&self) -> Result<&(Schemas, SchemaIndex), String> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled);
        }
        let compiled = on_large_stack(|| compile(&self.source))?;
        Ok(self.compiled.get_or_init(|| compiled))
    }

    #[cfg(all(test, unix))]
    pub(crate) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }

    /// Checks the arguments of a call of `tool`, as the model wrote them.
    ///
    /// # Errors
    /// They do not conform: every violation with its place and what is expected, for the model.
    pub fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        let invalid =
            |why: String| limits::shorten(format!("the arguments of `{tool}` are not valid: {why}"), MESSAGE_BYTES);
        let too_large = |why: String| {
            Err(format!("the arguments of `{tool}` are too large: {why}. Do less in one call, and call it more often."))
        };
        let bytes = arguments.len();
        if bytes > TOOL_ARGUMENT_BYTES {
            return too_large(format!("they have {bytes} bytes, the limit is {TOOL_ARGUMENT_BYTES}"));
        }
        // Readers of JSON differ in which of two values counts.
        if let Err(Ambiguous::RepeatedKey(key)) = flow::Preview::of_arguments(arguments) {
            let key = limits::cut(&key, PLACE_BYTES);
            return Err(invalid(format!("the key {key:?} occurs twice in one object. Write each key once.")));
        }
        let value: Value = serde_json::from_str(arguments).map_err(|error| invalid(format!("not JSON: {error}")))?;
        let (count, max) = (values(&value), CHECK_STEPS / self.steps.max(1));
        if count > max {
            return too_large(format!("they have {count} values, the limit for the schema of this tool is {max}"));
        }
        let (schemas, index) = self.compiled().map_err(|why| format!("`{tool}` cannot be called: {why}"))?;
        let Err(error) = schemas.validate(&value, *index) else { return Ok(()) };
        let Violations { shown: mut lines, more } = Violations::of([&error]);
        if more > 0 {
            lines.push(format!("{more} more"));
        }
        Err(invalid(format!("{}. Correct them and call it again.", lines.join("; "))))
    }
}

fn compile(schema: &Value) -> Result<(Schemas, SchemaIndex), String> {
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(Nothing));
    let mut schemas = Schemas::new();
    compiler.add_resource(LOCATION, schema.clone()).map_err(|error| refusal(&error))?;
    let index = compiler.compile(LOCATION, &mut schemas).map_err(|error| refusal(&error))?;
    Ok((schemas, index))
}

fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(COMPILER_STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("no thread to check `parameters` can be started: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the check of `parameters` failed".to_owned()))
    })
}

impl fmt::Debug for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSchema").finish_non_exhaustive()
    }
}

/// The values in a value, itself and the keys of objects among them. It is as deep as what the JSON reader accepts.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(|one| 1 + values(one)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A schema refers to nothing outside of itself: a plugin must not make the host read files or ask servers.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema can refer to itself only".into())
    }
}

fn refusal(error: &CompileError) -> String {
    let why = match error {
        CompileError::ValidationError { src, .. } => {
            let found = Violations::of([src]);
            found.shown.into_iter().next().unwrap_or_else(|| "it is not a JSON Schema".to_owned())
        }
        CompileError::InvalidRegex { regex, .. } => not_a_pattern(regex),
        CompileError::UnsupportedDraft { url } => format!("the draft `{}` is not known", limits::cut(url, 200)),
        other => other.to_string().replace(LOCATION, ""),
    };
    limits::shorten(format!("`parameters` is not a valid JSON Schema: {why}"), MESSAGE_BYTES)
}

fn not_a_pattern(pattern: &str) -> String {
    format!("the pattern `{}` is not a regular expression without look-around", limits::cut(pattern, 200))
}

impl Violations {
    fn of<'e>(errors: impl IntoIterator<Item = &'e ValidationError<'e, 'e>>) -> Self {
        let mut found = Self::default();
        errors.into_iter().for_each(|error| found.collect(error));
        found
    }

    /// The innermost errors: those around them only report that something inside is wrong. Of alternatives, all are reported.
    /// As deep as the schema.
    fn collect(&mut self, error: &ValidationError<'_, '_>) {
        let alternatives = matches!(error.kind, ErrorKind::AnyOf | ErrorKind::OneOf(None));
        if !error.causes.is_empty() && !alternatives {
            error.causes.iter().for_each(|cause| self.collect(cause));
        } else if self.shown.len() == REPORTED {
            self.more += 1;
        } else {
            let problem = if alternatives { alternatives_of(error) } else { words(&error.kind) };
            let said = match limits::shorten(error.instance_location.to_string(), PLACE_BYTES).as_str() {
                "" => problem,
                pointer => format!("at `{pointer}`: {problem}"),
            };
            let said = limits::shorten(said, VIOLATION_BYTES);
            if self.shown.last() != Some(&said) {
                self.shown.push(said);
            }
        }
    }
}

fn alternatives_of(error: &ValidationError<'_, '_>) -> String {
    let shown = Violations::of(&error.causes).shown;
    format!("none of the alternatives fits ({})", shown.join("; or "))
}

/// The problem for the model. Values of the schema are shown; the longest are cut.
fn words(kind: &ErrorKind<'_, '_>) -> String {
    let names = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let said = match kind {
        ErrorKind::Type { got, want } => {
            let want: Vec<String> = want.iter().map(|one| one.to_string()).collect();
            format!("expected {}, found {got}", want.join(" or "))
        }
        ErrorKind::Required { want } => format!("missing {}", names(want)),
        ErrorKind::AdditionalProperties { got } => {
            let got: Vec<&str> = got.iter().map(AsRef::as_ref).collect();
            format!("unknown {}", names(&got))
        }
        // In schemas themselves; in arguments formats are annotations. The engine's own words take several lines.
        ErrorKind::Format { got, want: "regex", .. } => not_a_pattern(got.as_str().unwrap_or_default()),
        other => other.to_string(),
    };
    limits::shorten(said, VIOLATION_BYTES)
}

/// Counts what a check evaluates at most for each value: the schema with its references written out. Without a bound,
/// a few lines of references to references take longer than anybody waits.
struct Measure<'s, 'c> {
    root: &'s Value,
    cost: &'c mut Cost,
    /// The references that lead here.
    open: Vec<&'s str>,
    /// Schemas around this one.
    depth: usize,
}

impl<'s> Measure<'s, '_> {
    /// Recurses no deeper than the limit that it enforces.
    fn node(&mut self, schema: &'s Value) -> Result<(), String> {
        if self.depth == SCHEMA_DEPTH {
            return Err(format!(
                "`parameters` has schemas more than {SCHEMA_DEPTH} deep inside of each other, references followed; \
                 simplify them"
            ));
        }
        self.depth += 1;
        self.count(schema)?;
        self.depth -= 1;
        Ok(())
    }

    fn count(&mut self, schema: &'s Value) -> Result<(), String> {
        self.cost.nodes += 1;
        self.cost.steps += 1;
        if self.cost.nodes > SCHEMA_NODES {
            return Err(format!(
                "the schemas of the plugin have more than {SCHEMA_NODES} subschemas with their references written out; \
                 simplify them"
            ));
        }
        // Anything else is refused by the compiler, or is `true` or `false`.
        let Value::Object(keywords) = schema else { return Ok(()) };
        if let Some(refused) = REFUSED.iter().find(|keyword| keywords.contains_key(**keyword)) {
            return Err(format!("`parameters` uses `{refused}`; refer to parts of the schema with `$ref`: \"#/…\""));
        }
        self.cost.steps += COMPARED.iter().filter_map(|keyword| keywords.get(*keyword)).map(values).sum::<usize>();
        self.patterns(keywords)?;
        self.reference(keywords)?;
        for inner in ONE.iter().chain(&LIST).filter_map(|keyword| keywords.get(*keyword)) {
            match inner {
                Value::Array(list) => list.iter().try_for_each(|one| self.node(one))?,
                one => self.node(one)?,
            }
        }
        for named in NAMED.iter().filter_map(|keyword| keywords.get(*keyword)?.as_object()) {
            named.values().try_for_each(|one| self.node(one))?;
        }
        Ok(())
    }

    fn patterns(&mut self, keywords: &Map<String, Value>) -> Result<(), String> {
        let named = keywords.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        self.cost.patterns += named + usize::from(keywords.contains_key("pattern"));
        if self.cost.patterns > SCHEMA_PATTERNS {
            return Err(format!("the schemas of the plugin have more than {SCHEMA_PATTERNS} patterns; remove some"));
        }
        Ok(())
    }

    fn reference(&mut self, keywords: &'s Map<String, Value>) -> Result<(), String> {
        let Some(Value::String(reference)) = keywords.get("$ref") else { return Ok(()) };
        let shown = limits::cut(reference, 200);
        let target = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'));
        let Some(target) = target.and_then(|pointer| self.root.pointer(pointer)) else {
            return Err(format!(
                "`parameters` refers to `{shown}`; write a JSON pointer into the schema, such as `#/$defs/item`"
            ));
        };
        if self.open.contains(&reference.as_str()) {
            return Err(format!("`parameters` refers to `{shown}` from within it; a schema must not contain itself"));
        }
        self.open.push(reference);
        self.node(target)?;
        self.open.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::{Cost, ToolSchema};

    fn refused(schema: &serde_json::Value) -> String {
        let schema = ToolSchema::new(schema, &mut Cost::default());
        schema.and_then(|schema| schema.compiled().map(drop)).unwrap_err()
    }

    #[test]
    fn violations_name_their_place_and_what_is_expected() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 1},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
                "kind": {"enum": ["todo", "idea"]},
                "at": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": ["text"],
            "additionalProperties": false,
            "$defs": {"tag": {"type": "string", "pattern": "^[a-z]+$"}},
        });
        let schema = ToolSchema::new(&schema, &mut Cost::default()).unwrap();
        let check = |arguments: &str| schema.check("note_add", arguments);
        assert_eq!(check(r#"{"text": "a", "tags": ["x"], "kind": "todo", "at": null}"#), Ok(()));
        for (arguments, expected) in [
            ("{}", "missing `text`"),
            ("[]", "expected object, found array"),
            ("{", "not JSON"),
            (r#"{"text": 3}"#, "at `/text`: expected string, found number"),
            (r#"{"text": "a", "tags": ["x", "Y"]}"#, "at `/tags/1`: "),
            (r#"{"text": "a", "tags": ["x", 1]}"#, "at `/tags/1`: expected string, found number"),
            (r#"{"text": "a", "txet": "b"}"#, "unknown `txet`"),
            (r#"{"text": "a", "kind": "x"}"#, "'todo', 'idea'"),
            (r#"{"text": "a", "at": "x"}"#, "none of the alternatives fits"),
            (r#"{"text": "a", "text": "b"}"#, "the key \"text\" occurs twice"),
        ] {
            let said = check(arguments).unwrap_err();
            assert!(said.starts_with("the arguments of `note_add` are not valid: "), "{said}");
            assert!(said.contains(expected), "{arguments}: {said}");
        }
    }

    #[test]
    fn a_schema_is_of_an_object_valid_and_closed() {
        for (schema, expected) in [
            (json!({}), "write `\"type\": \"object\"`"),
            (json!({"type": "string"}), "write `\"type\": \"object\"`"),
            (json!([]), "write `\"type\": \"object\"`"),
            (json!({"type": "object", "properties": 3}), "at `/properties`"),
            (json!({"type": "object", "properties": {"a": {"pattern": "("}}}), "is not a regular expression"),
            (json!({"type": "object", "properties": {"a": {"pattern": "(?=a)"}}}), "is not a regular expression"),
            (json!({"type": "object", "$schema": "https://example.org/draft"}), "`parameters` is not a valid"),
            (json!({"type": "object", "$ref": "file:///etc/hostname"}), "write a JSON pointer into the schema"),
            (json!({"type": "object", "not": {"$ref": "#/$defs/gone"}}), "write a JSON pointer into the schema"),
            (json!({"type": "object", "$id": "https://example.org/a"}), "uses `$id`"),
            (json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}), "must not contain itself"),
        ] {
            let said = refused(&schema);
            assert!(said.contains(expected), "{schema}: {said}");
        }
    }

    #[test]
    fn arguments_cannot_make_a_check_endless() {
        let all: Vec<_> = (0..2000).map(|at| json!({"minimum": at})).collect();
        let listed = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"allOf": all}}}});
        let words: Vec<_> = (0..5000).map(|at| format!("w{at}")).collect();
        let chosen = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"enum": words}}}});
        let long = json!({"a": vec![json!(1); 10_000]}).to_string();
        for schema in [listed, chosen] {
            let schema = ToolSchema::new(&schema, &mut Cost::default()).unwrap();
            let said = schema.check("t", &long).unwrap_err();
            assert!(said.starts_with("the arguments of `t` are too large: they have 10003 values"), "{said}");
            assert!(schema.check("t", "{\"a\": []}").is_ok());
        }
        let plain = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}});
        let plain = ToolSchema::new(&plain, &mut Cost::default()).unwrap();
        assert_eq!(plain.check("t", &long), Ok(()), "a long list is fine where the schema is small");
        let said = plain.check("t", &format!("{{\"a\": [], \"b\": \"{}\"}}", "x".repeat(256 << 10))).unwrap_err();
        assert!(said.contains("are too large: they have 262162 bytes, the limit is 262144."), "{said}");
        assert!(plain.check("t", &format!("{{\"b\": \"{}\"}}", "x".repeat(255 << 10))).is_ok());
    }

    #[test]
    fn what_is_said_about_arguments_has_a_bounded_length() {
        let mut nested = json!({"type": "integer"});
        for at in 0..20 {
            nested = json!({"anyOf": [nested, {"enum": ["ä".repeat(500), at]}, {"type": "null"}]});
        }
        let any = json!({"type": "object", "additionalProperties": nested});
        let any = ToolSchema::new(&any, &mut Cost::default()).unwrap();
        let members: serde_json::Map<_, _> =
            (0..9).map(|at| (format!("{at}{}", "ö".repeat(9000)), json!("x"))).collect();
        let said = any.check("t", &serde_json::Value::Object(members).to_string()).unwrap_err();
        assert!((1500..=4096).contains(&said.len()), "{}: {said}", said.len());
        assert!(said.contains("ö…`: none of the alternatives fits") && said.contains("; 4 more. Correct"), "{said}");
        let key = "\u{1}".repeat(9000);
        let key = serde_json::to_string(&key).unwrap();
        let said = any.check("t", &format!("{{{key}: 1, {key}: 2}}")).unwrap_err();
        assert!(said.len() <= 4096 && said.contains("occurs twice"), "{}", said.len());
        let closed = json!({"type": "object", "additionalProperties": false});
        let closed = ToolSchema::new(&closed, &mut Cost::default()).unwrap();
        let said = closed.check("t", &json!({"ü".repeat(9000): 1}).to_string()).unwrap_err();
        assert!(said.len() < 1000 && said.contains("unknown `ü") && said.contains("ü…. Correct them"), "{said}");
    }

    /// A chain of so many definitions, each of which refers to the next.
    fn chain(links: usize, wrapped: impl Fn(serde_json::Value) -> serde_json::Value) -> serde_json::Value {
        let mut defs = serde_json::Map::new();
        for at in 1..links {
            defs.insert(format!("d{at}"), wrapped(json!({"$ref": format!("#/$defs/d{}", at + 1)})));
        }
        defs.insert(format!("d{links}"), json!({"type": "integer"}));
        json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/d1"}}})
    }

    #[test]
    fn a_chain_of_references_cannot_overflow_the_stack() {
        let said = refused(&chain(2000, |next| next));
        assert!(said.contains("more than 64 deep"), "{said}");
        let said = refused(&chain(1000, |next| json!({"not": next})));
        assert!(said.contains("more than 64 deep"), "{said}");
        let said = refused(&chain(1000, |next| json!({"allOf": [next]})));
        assert!(said.contains("more than 64 deep"), "{said}");
        // The object, the property, and the definitions.
        let said = refused(&chain(63, |next| next));
        assert!(said.contains("more than 64 deep"), "{said}");
        let inner = ToolSchema::new(&chain(31, |next| json!({"allOf": [next]})), &mut Cost::default()).unwrap();
        assert!(inner.check("t", "{\"a\": \"x\"}").unwrap_err().contains("expected integer, found string"));
        let schema = ToolSchema::new(&chain(62, |next| next), &mut Cost::default()).unwrap();
        assert!(schema.check("t", "{\"a\": 1}").is_ok());
        assert!(schema.check("t", "{\"a\": \"x\"}").unwrap_err().contains("expected integer, found string"));
    }

    #[test]
    fn what_no_reference_leads_to_is_as_deep_as_json_can_be() {
        let mut text = "true".to_owned();
        for _ in 0..123 {
            text = format!("{{\"not\":{text}}}");
        }
        let schema = serde_json::from_str(&format!("{{\"type\":\"object\",\"$defs\":{{\"a\":{text}}}}}")).unwrap();
        assert!(ToolSchema::new(&schema, &mut Cost::default()).unwrap().check("t", "{}").is_ok());
    }

    #[test]
    fn a_schema_cannot_make_a_check_endless() {
        // Each definition refers twice to the next: 2^25 alternatives in a few kilobytes.
        let mut defs = serde_json::Map::new();
        for at in 0..25 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
        }
        defs.insert("d25".to_owned(), json!({"type": "integer"}));
        let said = refused(&json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}}));
        assert!(said.contains("more than 4096 subschemas"), "{said}");
        let patterns: serde_json::Map<_, _> = (0..40).map(|at| (format!("^a{at}"), json!(true))).collect();
        let said = refused(&json!({"type": "object", "patternProperties": patterns}));
        assert!(said.contains("more than 32 patterns"), "{said}");
    }
}
