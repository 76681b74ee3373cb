//! The description of all routes, OpenAPI 3.1, made of the table that serves them.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::bodies::SessionState;
use super::problem::Problem;
use super::routes::{Content, Parameter, ROUTES, Route};

/// Problems that every request can have.
const ALWAYS: [u16; 10] = [400, 401, 403, 408, 413, 421, 429, 431, 500, 503];

/// Returns the description as JSON.
pub fn openapi() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in &ROUTES {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(operations) = operations.as_object_mut() {
            operations.insert(route.method.to_owned(), operation(route, &mut generator));
        }
    }
    // Lines of the stream, for clients that are generated.
    let _referenced = generator.subschema_for::<record::Shown>();
    let _referenced = generator.subschema_for::<SessionState>();
    let schemas: Value = generator.take_definitions(true).into_iter().collect::<Map<_, _>>().into();
    let described = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions over HTTP. `host/SERVE.md` describes the events of a session and the websocket.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    });
    format!("{described:#}\n")
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "parameters": parameters(route),
        "responses": responses(route, generator),
    });
    if let (Some(body), Some(fields)) = (route.body, operation.as_object_mut()) {
        let schema = body(generator);
        let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        fields.insert("requestBody".to_owned(), body);
    }
    operation
}

/// The names that parts of paths can have: those of sessions, of users, and of chats of clients.
const NAMES: [(&str, &str, u32); 3] = [
    ("id", "^[A-Za-z0-9._-]+$", 128),
    ("name", "^[.]*[A-Za-z0-9_@-][A-Za-z0-9._@-]*$", 64),
    ("chat", "^[A-Za-z0-9_-]+$", 128),
];

fn parameters(route: &Route) -> Vec<Value> {
    let is_in_path = |name: &str| route.path.split('/').any(|part| part.trim_matches(['{', '}']) == name);
    let of_path = NAMES.iter().filter(|(name, ..)| is_in_path(name)).map(|(name, pattern, longest)| {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": longest, "pattern": pattern});
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    });
    let of_query = route.query.iter().map(|Parameter { name, about, values }| {
        let mut schema = json!({"type": "string"});
        if let (false, Some(fields)) = (values.is_empty(), schema.as_object_mut()) {
            fields.insert("enum".to_owned(), json!(values));
        }
        json!({"name": name, "in": "query", "required": false, "description": about, "schema": schema})
    });
    of_path.chain(of_query).collect()
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let (status, content) = &route.success;
    let content = match content {
        Content::Nothing => None,
        Content::StreamOrNothing => Some(json!({"text/event-stream": {}})),
        Content::Json(schema) => Some(json!({"application/json": {"schema": schema(generator)}})),
        Content::Text(kinds) => {
            Some(kinds.iter().map(|kind| ((*kind).to_owned(), json!({}))).collect::<Map<_, _>>().into())
        }
    };
    let mut responses = Map::new();
    let mut success = json!({"description": "Success"});
    if let (Some(content), Some(fields)) = (content, success.as_object_mut()) {
        fields.insert("content".to_owned(), content);
    }
    responses.insert(status.to_string(), success);
    if matches!(route.success.1, Content::StreamOrNothing) {
        responses.insert("204".to_owned(), json!({"description": "There is nothing to stream"}));
    }
    let problem = generator.subschema_for::<Problem>();
    for status in route.problems.iter().chain(&ALWAYS) {
        let content = json!({"application/problem+json": {"schema": problem}});
        responses.insert(status.to_string(), json!({"description": "Problem", "content": content}));
    }
    responses.into()
}
