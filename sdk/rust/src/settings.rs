//! Power `settings`: the extension's own settings, as its manifest declares and the operator sets them. Always granted.

use std::fmt;

use crate::host;

/// A value of the extension's own settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Text.
    Text(String),
    /// A number; whole numbers are exact up to 2^53.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// A list of texts.
    Texts(Vec<String>),
    /// A kind this version does not know; the text shows the value.
    Other(String),
}

impl Setting {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Texts(_) => "a list of texts",
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

/// A setting cannot be used as it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Which setting.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "setting `{}` {}", self.key, self.problem)
    }
}

impl std::error::Error for SettingError {}

/// A type that a setting can be read as: `String`, `f64`, `u32`, `bool`, `Vec<String>`.
pub trait FromSetting: Sized {
    /// Reads the value; an error says what it should be: `must be a text`.
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

    /// One setting; `None` where the manifest declares none of that name.
    ///
    /// # Errors
    /// It is set to another kind of value.
    pub fn get<T: FromSetting>(&self, key: &str) -> Result<Option<T>, SettingError> {
        let value = match &self.0 {
            Source::Host => host::setting(key),
            Source::Given(given) => given.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()),
        };
        value.map(T::from_setting).transpose().map_err(|problem| SettingError { key: key.to_owned(), problem })
    }

    /// One setting, or `default` where the manifest declares none of that name.
    ///
    /// # Errors
    /// It is set to another kind of value.
    pub fn get_or<T: FromSetting>(&self, key: &str, default: T) -> Result<T, SettingError> {
        Ok(self.get(key)?.unwrap_or(default))
    }
}

/// One setting as the host has it now; `None` where the manifest declares none of that name.
///
/// # Errors
/// It is set to another kind of value.
pub fn get<T: FromSetting>(key: &str) -> Result<Option<T>, SettingError> {
    Settings::host().get(key)
}

/// All settings, sorted by name.
pub fn all() -> Vec<(String, Setting)> {
    host::settings_all()
}
