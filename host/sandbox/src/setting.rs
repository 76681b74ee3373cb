//! A plugin's own settings, as the operator's file and the manifest give them.

use std::collections::BTreeMap;

/// Settings by name.
pub type Settings = BTreeMap<String, Setting>;

/// A value of a plugin's settings, of the kind that the manifest declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A string of any length.
    Text(String),
    /// A number; whole numbers are exact up to 2^53.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// A list of texts.
    Texts(Vec<String>),
}
