//! Reads settings into a type of the author's, through serde. An error names the setting that it is about.

use std::fmt::Display;

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::{Setting, SettingError};

impl serde::de::Error for SettingError {
    fn custom<T: Display>(problem: T) -> Self {
        Self { key: String::new(), problem: problem.to_string() }
    }
}

pub(super) fn read<T: DeserializeOwned>(settings: Vec<(String, Setting)>) -> Result<T, SettingError> {
    let entries = settings.into_iter().map(|(key, setting)| (key.clone(), Entry { key, setting }));
    T::deserialize(MapDeserializer::new(entries))
}

/// One setting on its way into a field.
struct Entry {
    key: String,
    setting: Setting,
}

impl Entry {
    fn read<T>(self, read: impl FnOnce(Value) -> Result<T, serde_json::Error>) -> Result<T, SettingError> {
        let Self { key, setting } = self;
        json(setting)
            .and_then(|value| read(value).map_err(|error| format!("is not valid: {error}")))
            .map_err(|problem| SettingError { key, problem })
    }
}

impl IntoDeserializer<'_, SettingError> for Entry {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Entry {
    type Error = SettingError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        self.read(|value| value.deserialize_any(visitor))
    }

    // A setting that is declared has a value.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        self.read(|value| value.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        self.read(|value| value.deserialize_newtype_struct(name, visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

fn json(setting: Setting) -> Result<Value, String> {
    /// Whole numbers up to here are exact, and become integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match setting {
        Setting::Text(text) => Ok(text.into()),
        Setting::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT => Ok((number as i64).into()),
        Setting::Number(number) => Ok(number.into()),
        Setting::Boolean(yes) => Ok(yes.into()),
        Setting::Texts(texts) => Ok(texts.into()),
        Setting::Json(text) => serde_json::from_str(&text).map_err(|error| format!("is not valid JSON: {error}")),
        Setting::Other(_) => Err("is of a kind that this extension does not know".to_owned()),
    }
}
