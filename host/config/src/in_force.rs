//! The settings that are in force, each with where it comes from: what `tidegate config show` prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::de::DeValue;

use crate::document::Document;
use crate::leaves::{Leaf, collect, quoted};
use crate::operator_layers::{self, Layer, LayerKind};
use crate::schema::TypedFile as _;
use crate::typed::OperatorFile;
use crate::{Diagnostic, Diagnostics, Operator, mask, table_settings};

/// A key of the operator's settings with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInForce {
    /// Its path as TOML has it, `tools.permission."shell(git *)"`; of an entry of `[[plugin]]`, with the plugin's path in the place of the
    /// index.
    pub name: String,
    /// Its value. The characters of a secret are `*`.
    pub value: Value,
    /// The files that set it, the highest layer last, each with the line of the value. Only lists that add up have several; none: it is
    /// the program's default.
    pub origin: Vec<SettingOrigin>,
}

impl SettingInForce {
    /// The setting as a line of TOML.
    pub fn toml(&self) -> String {
        format!("{} = {}", self.name, toml(&self.value))
    }
}

/// A value as TOML, in one line.
fn toml(value: &Value) -> String {
    match value {
        // What JSON escapes, TOML escapes alike, but for one character.
        Value::String(_) => value.to_string().replace('\u{7f}', "\\u007f"),
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}

/// A place in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingOrigin {
    /// Whose file it is.
    pub layer: LayerKind,
    /// The file, as messages show it.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl Operator {
    /// The settings in force in a workspace: what the files say together, and the defaults of all other keys that have one. A key whose default
    /// depends on others is not in it unless it is set, and neither are the many defaults of entries with names of their own: event types,
    /// error classes, prices. Flags of a command line are not in it, nor is the policy of the machine. Returns what is to be reported about
    /// the files, too. `user`: the folder of the user's files, `tidegate` in the configuration folder.
    ///
    /// # Errors
    /// As for [`Operator::of_layers`].
    pub fn in_force(
        &self,
        user: Option<&Path>,
        workspace: &Path,
    ) -> Result<(Vec<SettingInForce>, Vec<Diagnostic>), Diagnostics> {
        let documents: Vec<Document<'_>> = self
            .layers
            .iter()
            .map(|layer| Ok(Document::read::<OperatorFile>(&layer.source)?.0))
            .collect::<Result<_, Diagnostics>>()?;
        let document = Document::stacked(documents, operator_layers::put);
        let mut leaves = Vec::new();
        if let DeValue::Table(root) = document.root() {
            collect(root, &mut Vec::new(), &mut leaves);
        }
        leaves.retain(|leaf| !table_settings::is_in_table(&leaf.path));
        // With every table that they are in: a default of a table that has keys is none.
        let set: BTreeSet<&[String]> =
            leaves.iter().flat_map(|leaf| (1..=leaf.path.len()).map(|length| &leaf.path[..length])).collect();
        let of_files = leaves.iter().map(|leaf| SettingInForce {
            name: secrets::without_secrets(&leaf.name()).into_owned(),
            value: mask::hidden(&leaf.path, leaf.value),
            origin: origin(leaf, &document, &self.layers),
        });
        let mut all: Vec<SettingInForce> = of_files.collect();
        let schema = OperatorFile::schema().as_value();
        defaults(schema, schema, &mut Vec::new(), &mut |path, value| {
            if !set.contains(path) {
                let name = path.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(".");
                all.push(SettingInForce { name, value: value.clone(), origin: Vec::new() });
            }
        });
        let (tables, found) = table_settings::in_force(self, user, workspace)?;
        all.extend(tables);
        // Plugins are in the order in which they are called, everything else by table.
        all.sort_by_key(|setting| setting.name.split('.').next().map(str::to_owned));
        Ok((all, found))
    }
}

/// Where the value of a leaf is written: a list that adds up has items of several files.
fn origin(leaf: &Leaf<'_>, document: &Document<'_>, layers: &[Layer]) -> Vec<SettingOrigin> {
    let values = match leaf.value.get_ref() {
        DeValue::Array(items) if !items.is_empty() => items.iter().collect(),
        _ => vec![leaf.value],
    };
    let mut found: Vec<SettingOrigin> = Vec::new();
    for place in values.into_iter().map(|value| document.place_of(value)) {
        let Some(layer) = layers.iter().find(|layer| layer.source.path == place.file.path) else { continue };
        if found.iter().all(|one| one.layer != layer.kind) {
            let file = layer.source.path.clone();
            found.push(SettingOrigin { layer: layer.kind, file, line: place.line() });
        }
    }
    found
}

/// The defaults of a schema: every key that is no table and has one.
fn defaults(root: &Value, schema: &Value, path: &mut Vec<String>, visit: &mut impl FnMut(&[String], &Value)) {
    let schema = resolved(root, schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (key, property) in properties {
        path.push(key.clone());
        let inner = resolved(root, property);
        match property.get("default").or_else(|| inner.get("default")) {
            _ if inner.get("properties").is_some() => defaults(root, inner, path, visit),
            Some(Value::Null) | None => {}
            Some(Value::Object(members)) if members.is_empty() => {}
            Some(Value::Array(items)) if items.is_empty() => {}
            Some(value) => visit(path, value),
        }
        path.pop();
    }
}

/// What a schema refers to, alone or with a description next to it.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let refers = schema.pointer("/allOf/0").unwrap_or(schema).get("$ref").and_then(Value::as_str);
    refers.and_then(|target| root.pointer(target.strip_prefix('#')?)).unwrap_or(schema)
}
