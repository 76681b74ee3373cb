//! The keys of a settings file that have no keys of their own, as messages name them.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key without keys of its own.
pub(crate) struct Leaf<'t> {
    pub(crate) path: Vec<String>,
    pub(crate) value: &'t Spanned<DeValue<'t>>,
}

/// The keys of a table. In a list of tables, each entry is a leaf of its own, named by its `path`, or else by its `name`.
pub(crate) fn collect<'t>(table: &'t DeTable<'t>, path: &mut Vec<String>, into: &mut Vec<Leaf<'t>>) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => collect(inner, path, into),
            DeValue::Array(items) if items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_))) => {
                for item in items.iter() {
                    let DeValue::Table(inner) = item.get_ref() else { continue };
                    let named = inner.get("path").or_else(|| inner.get("name"));
                    let name = named.and_then(|name| name.get_ref().as_str());
                    path.push(name.unwrap_or_default().to_owned());
                    collect(inner, path, into);
                    path.pop();
                }
            }
            _ => into.push(Leaf { path: path.clone(), value }),
        }
        path.pop();
    }
}

impl Leaf<'_> {
    /// Its path as TOML has it; of an entry of `[[plugin]]`, with the plugin's path in the place of the index.
    pub(crate) fn name(&self) -> String {
        self.path.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(".")
    }
}

/// A key as TOML has it.
pub(crate) fn quoted(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { key.to_owned() } else { toml::Value::from(key).to_string() }
}
