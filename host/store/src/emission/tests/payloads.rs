//! Payloads and the schemas of the default catalogue.

use record::Body;
use serde_json::{Map, Value, json};

use super::policy;
use crate::emission::{OnViolation, Validator};

fn validator() -> Validator {
    Validator::new(policy("").catalogue()).unwrap()
}

/// The type of a value, or the first of several.
fn kind(schema: &Value) -> &str {
    schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap()
}

/// A value that conforms to a schema.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match kind(schema) {
        "string" => json!("text"),
        "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "number" => schema.get("minimum").cloned().unwrap_or(json!(1.5)),
        "boolean" => json!(true),
        "array" => schema.get("items").map_or(json!([]), |items| json!([sample(items)])),
        "object" => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let fields = required.iter().map(|key| key.as_str().unwrap());
            Value::Object(fields.map(|key| (key.to_owned(), sample(&schema["properties"][key]))).collect::<Map<_, _>>())
        }
        other => panic!("a type that the catalogue does not use: {other}"),
    }
}

/// A value that no schema of this type accepts.
fn wrong(schema: &Value) -> Value {
    match kind(schema) {
        "string" => json!(1),
        _ => json!("text"),
    }
}

/// Case 1 of the specification.
#[test]
fn a_payload_needs_each_of_its_required_fields() {
    let (policy, validator) = (policy(""), validator());
    let (mut types, mut fields) = (0, 0);
    for (name, of) in policy.catalogue().iter() {
        let payload = sample(&of.payload_schema);
        assert_eq!(validator.check(name, &payload), Ok(()), "{name}: {payload}");
        for key in payload.as_object().unwrap().keys() {
            let mut without = payload.clone();
            without.as_object_mut().unwrap().remove(key);
            let violation = validator.check(name, &without).unwrap_err();
            let message = format!("the field `{key}` is missing");
            assert_eq!((violation.problems.len(), &violation.problems[0].message), (1, &message), "{name}");
            fields += 1;
        }
        types += 1;
    }
    assert!(types >= 49 && fields > 100, "{types} types, {fields} fields");
}

/// Each property is checked, not only those that are required.
#[test]
fn a_payload_needs_the_types_of_its_fields() {
    let (policy, validator) = (policy(""), validator());
    for (name, of) in policy.catalogue().iter() {
        for (key, schema) in of.payload_schema["properties"].as_object().into_iter().flatten() {
            let mut payload = sample(&of.payload_schema);
            payload[key] = sample(schema);
            assert_eq!(validator.check(name, &payload), Ok(()), "{name}.{key}");
            payload[key] = wrong(schema);
            let violation = validator.check(name, &payload).unwrap_err();
            assert_eq!(violation.problems[0].path, format!("/{key}"), "{name}.{key}");
            // What is unknown is absent, and never null.
            payload[key] = Value::Null;
            assert!(validator.check(name, &payload).is_err(), "{name}.{key}");
        }
    }
}

#[test]
fn a_file_of_a_project_changes_what_is_valid() {
    let stricter = "[event_types.notice.payload_schema]\nproperties.message = { maxLength = 3 }";
    let validator = Validator::new(policy(stricter).catalogue()).unwrap();
    assert_eq!(validator.check("notice", &json!({"message": "abc"})), Ok(()));
    let violation = validator.check("notice", &json!({"message": "abcd"})).unwrap_err();
    assert!(
        violation.to_string().contains("the payload of `notice` does not conform to its schema: at `/message`"),
        "{violation}"
    );
}

#[test]
fn the_record_of_a_violation_conforms_to_its_own_schema() {
    let validator = validator();
    let violation = validator.check("notice", &json!({"message": 5})).unwrap_err();
    let payload = violation.payload();
    assert_eq!(payload["event_type"], "notice");
    assert_eq!(payload["problems"][0]["path"], "/message");
    assert_eq!(validator.check("schema_violation", &payload), Ok(()));
}

#[test]
fn problems_are_bounded() {
    let list: Vec<Value> = (0..50).map(|_| json!("x".repeat(5000))).collect();
    let violation =
        validator().check("ttsr_injection", &json!({"rules": 1, "discarded_bytes": "x".repeat(5000), "records": list}));
    let violation = violation.unwrap_err();
    assert_eq!(violation.problems.len(), 8);
    assert!(violation.payload().to_string().len() < 4096);
}

fn notice(payload: Value) -> Body {
    Body::Unknown { r#type: "notice".to_owned(), payload }
}

#[test]
fn valid_payloads_are_passed_on() {
    assert_eq!(validator().replacement(&notice(json!({"message": "m"})), OnViolation::Panic), None);
}

#[test]
#[should_panic(expected = "the payload of `notice` does not conform")]
fn an_invalid_payload_is_an_error_of_the_program() {
    validator().replacement(&notice(json!({})), OnViolation::Panic);
}

#[test]
fn an_invalid_payload_is_recorded_as_a_violation() {
    let written = validator().replacement(&notice(json!({})), OnViolation::Record).unwrap();
    let Body::Unknown { payload, .. } = &written else { panic!("{written:?}") };
    assert_eq!((written.name(), &payload["event_type"]), ("schema_violation", &json!("notice")));
    assert_eq!(OnViolation::default() == OnViolation::Panic, cfg!(debug_assertions));
}
