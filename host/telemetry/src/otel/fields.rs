//! The fields of a span, as they are recorded.

use std::fmt::Debug;

use opentelemetry::{Array, StringValue, Value};
use tracing::field::{Field, Visit};

/// The longest string that is exported; the end of a longer one is cut. Names come from models too.
const MAX_BYTES: usize = 256;

/// The fields that have a value, in the order in which they got it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, before)) => *before = value,
            None => self.0.push((name, value)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The text of a field; empty for one that has none.
    pub(crate) fn text(&self, name: &str) -> &str {
        if let Some(Value::String(text)) = self.get(name) { text.as_str() } else { "" }
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        if let Some(Value::I64(number)) = self.get(name) { Some(*number) } else { None }
    }

    pub(crate) fn decimal(&self, name: &str) -> Option<f64> {
        if let Some(Value::F64(number)) = self.get(name) { Some(*number) } else { None }
    }
}

/// Fields that are none of a turn's spans' have other types, and are left out.
impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let value = match field.name() {
            "rules" => Value::Array(Array::String(value.split(',').map(cut).collect())),
            _ => Value::String(cut(value)),
        };
        self.set(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::I64(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), Value::F64(value));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

fn cut(text: &str) -> StringValue {
    text[..text.floor_char_boundary(MAX_BYTES)].to_owned().into()
}
