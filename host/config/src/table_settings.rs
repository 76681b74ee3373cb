//! The settings of the tables that override a default of the program, each with where it comes from.

use std::path::Path;

use serde_json::Value;

use crate::document::Step;
use crate::in_force::{SettingInForce, SettingOrigin};
use crate::layers::{Layered, Layers};
use crate::typed::{CatalogueFile, ErrorsFile, ThreadLimitsFile};
use crate::{Diagnostic, Diagnostics, Operator, errors, events, join, thread_limits};

/// Whether a key of `tidegate.toml` is in one of the tables: a project sets them without being trusted, and only within bounds.
pub(crate) fn is_in_table(path: &[String]) -> bool {
    let tables = [ErrorsFile::IN_SETTINGS, CatalogueFile::IN_SETTINGS, ThreadLimitsFile::IN_SETTINGS].concat();
    tables.iter().any(|(_, [name, inner])| matches!(path, [first, second, ..] if first == name && second == inner))
}

/// Those of all tables, and what of the workspace's was left out, or is set twice.
pub(crate) fn in_force(
    operator: &Operator,
    user: Option<&Path>,
    workspace: &Path,
) -> Result<(Vec<SettingInForce>, Vec<Diagnostic>), Diagnostics> {
    let places = crate::layer_files::Places { settings: &operator.layers, user, workspace };
    let (mut all, mut found) = (Vec::new(), Vec::new());
    let errors = places.read(&[errors::FILE], None)?;
    let errors = errors::layered(&errors)?.0;
    all.extend(of_table(&errors));
    found.extend(errors.warnings);
    let events = places.read(&events::NAMES, events::foreign_file(workspace)?)?;
    let events = events::Catalogue::layered(&events)?.0;
    all.extend(of_table(&events));
    found.extend(events.warnings);
    let limits = places.read(&[thread_limits::FILE], None)?;
    let (limits, read) = thread_limits::layered(&limits)?;
    all.extend(of_table(&limits));
    found.extend(read.left_out);
    Ok((all, found))
}

/// Those that files set, and the defaults of all others but of entries that have names of their own: those are too many to be read.
fn of_table<T: Layered>(layers: &Layers<'_, T>) -> Vec<SettingInForce> {
    let mut all = Vec::new();
    walk(layers.merged_value(), &mut Vec::new(), &mut |path, value| {
        let of_file = layers.files.iter().rev().find_map(|file| {
            let place = file.document.place(&steps(&file.value, path)?);
            Some(SettingOrigin { layer: file.kind, file: place.file.path.clone(), line: place.line() })
        });
        let is_named = path.first().is_some_and(|key| T::NAMED.contains(&key.as_str()));
        if of_file.is_some() || !is_named {
            let name = secrets::without_secrets(&join::name::<T>(path)).into_owned();
            all.push(SettingInForce { name, value: without_secrets(value), origin: Vec::from_iter(of_file) });
        }
    });
    all
}

/// The values that are no tables. Of a list of entries with an `id`, each is visited by itself, named by it.
fn walk(value: &Value, path: &mut Vec<String>, visit: &mut impl FnMut(&[String], &Value)) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().filter(|(key, _)| *key != "id").map(|(key, inner)| (key.clone(), inner)).collect()
        }
        Value::Array(entries) => match entries.iter().map(|entry| Some((id(entry)?.to_owned(), entry))).collect() {
            Some(entries) => entries,
            None => return visit(path, value),
        },
        _ => return visit(path, value),
    };
    for (key, value) in inner {
        path.push(key);
        walk(value, path, visit);
        path.pop();
    }
}

/// The path in a file; `None` where it is not there.
fn steps(value: &Value, path: &[String]) -> Option<Vec<Step>> {
    let (mut at, mut steps) = (value, Vec::new());
    for key in path {
        let step;
        (step, at) = match at {
            Value::Array(entries) => {
                let index = entries.iter().position(|entry| id(entry) == Some(key))?;
                (Step::Index(index), entries.get(index)?)
            }
            _ => (Step::Key(key.clone()), at.get(key)?),
        };
        steps.push(step);
    }
    Some(steps)
}

fn id(entry: &Value) -> Option<&str> {
    entry.get("id")?.as_str()
}

fn without_secrets(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(secrets::without_secrets(text).into_owned()),
        Value::Array(items) => Value::Array(items.iter().map(without_secrets).collect()),
        other => other.clone(),
    }
}
