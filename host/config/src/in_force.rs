//! The settings that are in force, each with where it comes from: what `tidegate config show` prints.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use toml::de::DeValue;

use crate::document::Document;
use crate::leaves::{Leaf, collect, quoted};
use crate::operator_layers::{self, Layer, LayerKind};
use crate::schema::TypedFile as _;
use crate::typed::OperatorFile;
use crate::{Diagnostics, Operator, mask};

/// A key of the operator's settings with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInForce {
    /// Its path as TOML has it, `tools.permission."shell(git *)"`; of an entry of `[[plugin]]`, with the plugin's path in the place of the
    /// index.
    pub name: String,
    /// Its value as TOML. The characters of a secret are `*`.
    pub value: String,
    /// The files that set it, the highest layer last, each with the line of the value. Only lists that add up have several; none: it is
    /// the program's default.
    pub origin: Vec<SettingOrigin>,
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
    /// Every setting in force: what the files say together, and the defaults of all other keys that have one. Flags of a command line are
    /// not in it, and neither is the policy of the machine.
    ///
    /// # Errors
    /// As for [`Operator::of_layers`].
    pub fn in_force(&self) -> Result<Vec<SettingInForce>, Diagnostics> {
        let masked = |layer: &Layer| {
            let tree = Document::tree(&layer.source)?;
            Ok(Layer { kind: layer.kind, source: mask::masked(&layer.source, &tree, true) })
        };
        let layers: Vec<Layer> = self.layers.iter().map(masked).collect::<Result<_, Diagnostics>>()?;
        let read = |layer| Ok(Document::read::<OperatorFile>(layer)?.0);
        let documents: Vec<Document<'_>> =
            layers.iter().map(|layer| read(&layer.source)).collect::<Result<_, Diagnostics>>()?;
        let document = Document::stacked(documents, operator_layers::put);
        let mut leaves = Vec::new();
        if let DeValue::Table(root) = document.root() {
            collect(root, &mut Vec::new(), &mut leaves);
        }
        let set: BTreeSet<Vec<String>> = leaves.iter().map(|leaf| leaf.path.clone()).collect();
        let of_files = leaves.iter().map(|leaf| SettingInForce {
            name: leaf.name(),
            value: leaf.toml(),
            origin: origin(leaf, &document, &layers),
        });
        let mut all: Vec<SettingInForce> = of_files.collect();
        let schema = OperatorFile::schema().as_value();
        defaults(schema, schema, &mut Vec::new(), &mut |path, value| {
            if !set.iter().any(|set| set.starts_with(path)) {
                let name = path.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(".");
                all.push(SettingInForce { name, value: value.to_string(), origin: Vec::new() });
            }
        });
        // Plugins are in the order in which they are called, everything else by table.
        all.sort_by_key(|setting| setting.name.split('.').next().map(str::to_owned));
        Ok(all)
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

/// What a schema refers to, alone or with a description beside it.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let refers = schema.pointer("/allOf/0").unwrap_or(schema).get("$ref").and_then(Value::as_str);
    refers.and_then(|target| root.pointer(target.strip_prefix('#')?)).unwrap_or(schema)
}
