//! The entries of the table as used: conditions checked and compiled.

use std::ops::RangeInclusive;

use flow::{ErrorPattern, MessagePattern};
use serde_json::Value;

use super::layers::Layers;
use crate::Code;
use crate::typed::{ClassFile, OneOrMany, StatusFile, StatusWord};

/// The statuses that HTTP has.
const STATUSES: RangeInclusive<i64> = 100..=599;

/// The patterns, in order.
pub(super) fn resolve(layers: &mut Layers<'_>) -> Vec<ErrorPattern> {
    for (id, place) in layers.repeated_ids() {
        let message = format!("the entry `{}` is in this file twice", id.escape_debug());
        layers.error_at(Code::ConfigDuplicate, place, message, "give one of them another `id`");
    }
    let entries = std::mem::take(&mut layers.merged.class);
    entries.iter().filter_map(|entry| pattern(layers, entry)).collect()
}

fn pattern(layers: &mut Layers<'_>, entry: &ClassFile) -> Option<ErrorPattern> {
    let found = layers.found.len();
    let Some(class) = entry.class else {
        let message = format!(
            "the entry `{}` has no `class`, and no file below has an entry of this `id`",
            entry.id.escape_debug()
        );
        let entries = layers.default_value().get("class").and_then(Value::as_array);
        let ids = entries.into_iter().flatten().filter_map(|entry| entry.get("id")?.as_str());
        let help = "add `class = \"transient\"` or another class";
        let help = match flow::text::nearest(&entry.id, ids) {
            Some(near) => format!("did you mean the entry `{near}`? If it is new, {help}"),
            None => help.to_owned(),
        };
        error(layers, entry, "id", Code::ErrorsIncomplete, message, &help);
        return None;
    };
    let mut pattern = ErrorPattern::new(entry.id.clone(), class);
    pattern.kinds = listed(entry.kind.as_ref());
    pattern.providers = listed(entry.provider.as_ref());
    pattern.types = listed(entry.error_type.as_ref());
    pattern.codes = listed(entry.code.as_ref());
    pattern.statuses = statuses(layers, entry);
    pattern.message = message(layers, entry);
    pattern.should_retry = entry.should_retry;
    if layers.found.len() > found {
        return None;
    }
    if pattern.is_empty() {
        let message =
            format!("the entry `{}` has no condition, so it would match every error", entry.id.escape_debug());
        let help = "add one of `kind`, `provider`, `status`, `type`, `code`, `message`, `should_retry`";
        error(layers, entry, "id", Code::ErrorsIncomplete, message, help);
        return None;
    }
    Some(pattern)
}

/// Notes an error at a key of an entry.
fn error(layers: &mut Layers<'_>, entry: &ClassFile, key: &str, code: Code, message: String, help: &str) {
    if let Some(place) = layers.entry_place(&entry.id, key, 0) {
        layers.error_at(code, place, message, help);
    }
}

fn listed<T: Clone>(given: Option<&OneOrMany<T>>) -> Vec<T> {
    match given {
        None => Vec::new(),
        Some(OneOrMany::One(one)) => vec![one.clone()],
        Some(OneOrMany::Many(many)) => many.clone(),
    }
}

fn statuses(layers: &mut Layers<'_>, entry: &ClassFile) -> Vec<RangeInclusive<u16>> {
    let words = match entry.status.clone() {
        None => Vec::new(),
        Some(StatusFile::Number(status)) => vec![StatusWord::Number(status)],
        Some(StatusFile::Range(range)) => vec![StatusWord::Range(range)],
        Some(StatusFile::Many(words)) => words,
    };
    let mut found = Vec::new();
    for (index, word) in words.into_iter().enumerate() {
        match range(&word) {
            Some(range) => found.push(range),
            None => {
                let word = match word {
                    StatusWord::Number(status) => status.to_string(),
                    StatusWord::Range(range) => range.escape_debug().to_string(),
                };
                let message = format!("`{word}` is not an HTTP status or a range of them");
                let help = "write a number from 100 to 599, or a range such as `\"500-599\"`";
                if let Some(place) = layers.entry_place(&entry.id, "status", index) {
                    layers.error_at(Code::ErrorsInvalidStatus, place, message, help);
                }
            }
        }
    }
    found
}

fn range(word: &StatusWord) -> Option<RangeInclusive<u16>> {
    let (first, last) = match word {
        StatusWord::Number(status) => (*status, *status),
        StatusWord::Range(range) => {
            let (first, last) = range.split_once('-')?;
            (first.trim().parse().ok()?, last.trim().parse().ok()?)
        }
    };
    let fits = STATUSES.contains(&first) && STATUSES.contains(&last) && first <= last;
    if fits { Some(u16::try_from(first).ok()?..=u16::try_from(last).ok()?) } else { None }
}

fn message(layers: &mut Layers<'_>, entry: &ClassFile) -> Option<MessagePattern> {
    let text = entry.message.as_deref().filter(|text| !text.is_empty())?;
    match MessagePattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(cause) => {
            let message = format!("`message` is not a regular expression: {cause}");
            let help = "see https://docs.rs/regex/#syntax; write it between single quotes, in which a backslash is a backslash";
            error(layers, entry, "message", Code::ErrorsInvalidPattern, message, help);
            None
        }
    }
}
