//! Power `settings`: the extension's own settings, as its manifest declares and the operator sets them. Always granted.
//!
//! [`Settings::read`] reads all of them into a type with `#[derive(Deserialize)]`; [`Settings::get`] reads one.

mod read;

use std::fmt;

use serde::de::DeserializeOwned;

use crate::host;

/// A value of the extension's own settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// A string of any length.
    Text(String),
    /// A number; whole numbers are exact up to 2^53.
    Number(f64),
    /// True or false, as in TOML.
    Boolean(bool),
    /// A list of strings.
    Texts(Vec<String>),
    /// Any other value, such as a table, as JSON text. The contract has it because its types cannot grow later; hosts of this
    /// version send none, since `plugin.toml` has no type for it.
    Json(String),
    /// A kind that this version does not know; the string shows the value.
    Other(String),
}

impl Setting {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Texts(_) => "a list of texts",
            Self::Json(_) => "a table",
            Self::Other(_) => "of a kind this extension does not know",
        }
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Setting {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Setting {
    fn from(yes: bool) -> Self {
        Self::Boolean(yes)
    }
}

impl<const N: usize> From<[&str; N]> for Setting {
    fn from(texts: [&str; N]) -> Self {
        Self::Texts(texts.iter().map(ToString::to_string).collect())
    }
}

/// A setting is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingError {
    /// The setting's name; empty where the error is about all of them.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "settings: {}", self.problem),
            key => write!(f, "setting `{key}` {}", self.problem),
        }
    }
}

impl std::error::Error for SettingError {}

/// A type that a setting can be read as: `String`, `f64`, `u32`, `bool`, `Vec<String>`.
pub trait FromSetting: Sized {
    /// Reads the value; an error states the expected type: `must be a text`.
    ///
    /// # Errors
    /// The value is of another kind, or out of range.
    fn from_setting(value: Setting) -> Result<Self, String>;
}

macro_rules! from_setting {
    ($type:ty, $case:ident, $kind:literal) => {
        impl FromSetting for $type {
            fn from_setting(value: Setting) -> Result<Self, String> {
                match value {
                    Setting::$case(value) => Ok(value),
                    other => Err(format!("must be {}, and is {}", $kind, other.kind())),
                }
            }
        }
    };
}

from_setting!(String, Text, "a text");
from_setting!(f64, Number, "a number");
from_setting!(bool, Boolean, "a boolean");
from_setting!(Vec<String>, Texts, "a list of texts");

impl FromSetting for u32 {
    fn from_setting(value: Setting) -> Result<Self, String> {
        let number = f64::from_setting(value)?;
        if number.fract() == 0.0 && (0.0..=f64::from(Self::MAX)).contains(&number) {
            // In range and whole: the cast is exact.
            Ok(number as Self)
        } else {
            Err(format!("must be a whole number from 0 to {}, and is {number}", Self::MAX))
        }
    }
}

/// The settings an extension is made with.
#[derive(Clone, Debug)]
pub struct Settings(Source);

#[derive(Clone, Debug)]
enum Source {
    /// Asked of the host when needed, so that an extension that reads none does not even import the power.
    Host,
    Given(Vec<(String, Setting)>),
}

impl Settings {
    /// These settings, for tests of a type's own `new`.
    pub fn given(settings: impl IntoIterator<Item = (String, Setting)>) -> Self {
        Self(Source::Given(settings.into_iter().collect()))
    }

    pub(crate) fn host() -> Self {
        Self(Source::Host)
    }

    /// Reads all settings into a type, by the names of its fields.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use tidegate_sdk::{Setting, Settings};
    ///
    /// #[derive(Deserialize)]
    /// struct Options {
    ///     greeting: String,
    ///     max: u32,
    ///     #[serde(default)]
    ///     names: Vec<String>,
    /// }
    ///
    /// let given = [("greeting".to_owned(), Setting::from("hello")), ("max".to_owned(), Setting::from(3.0))];
    /// let options: Options = Settings::given(given).read()?;
    /// assert_eq!((options.greeting.as_str(), options.max, options.names.len()), ("hello", 3, 0));
    /// # Ok::<(), tidegate_sdk::SettingError>(())
    /// ```
    ///
    /// # Errors
    /// A setting is of another kind or out of range, or one that the type requires is not declared.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SettingError> {
        read::read(match &self.0 {
            Source::Host => host::settings_all(),
            Source::Given(given) => given.clone(),
        })
    }

    /// Returns one setting: the operator's value, else the default in `plugin.toml`.
    ///
    /// # Errors
    /// The manifest declares none of that name, or it is set to another kind of value.
    pub fn get<T: FromSetting>(&self, key: &str) -> Result<T, SettingError> {
        let undeclared = || SettingError { key: key.to_owned(), problem: "is not declared in plugin.toml".to_owned() };
        self.find(key)?.ok_or_else(undeclared)
    }

    /// Returns one setting, or `default` where the manifest declares none of that name.
    ///
    /// # Errors
    /// It is set to another kind of value.
    pub fn get_or<T: FromSetting>(&self, key: &str, default: T) -> Result<T, SettingError> {
        Ok(self.find(key)?.unwrap_or(default))
    }

    /// Returns one setting; `None` where the manifest declares none of that name.
    ///
    /// # Errors
    /// It is set to another kind of value.
    pub fn find<T: FromSetting>(&self, key: &str) -> Result<Option<T>, SettingError> {
        let value = match &self.0 {
            Source::Host => host::setting(key),
            Source::Given(given) => given.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()),
        };
        value.map(T::from_setting).transpose().map_err(|problem| SettingError { key: key.to_owned(), problem })
    }
}

/// Returns one setting as the host has it now: the operator's value, else the default in `plugin.toml`.
///
/// # Errors
/// The manifest declares none of that name, or it is set to another kind of value.
pub fn get<T: FromSetting>(key: &str) -> Result<T, SettingError> {
    Settings::host().get(key)
}

/// Returns all settings, sorted by name.
pub fn all() -> Vec<(String, Setting)> {
    host::settings_all()
}
