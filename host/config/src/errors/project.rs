//! What the file of a project cannot do: have requests sent again that are not without it, or more often, or sooner.

use flow::{ErrorClass, RetryTable, RetryWait};
use serde_json::Value;

use super::layers::Layers;
use crate::Code;
use crate::document::{Step, steps};
use crate::layers::LayerOrigin;

const HELP: &str =
    "a project can only have fewer retries and longer waits; set it in `[errors]` of the user's `tidegate.toml`";

/// Notes what of a project `with` has more of than `own`, the table without it. `value` is that of the merged layers without it.
pub(super) fn refuse(layers: &mut Layers<'_>, with: &RetryTable, own: &RetryTable, value: &Value) {
    refuse_entries(layers, own, value);
    for class in ErrorClass::ALL {
        refuse_policy(layers, *class, with, own);
    }
}

/// Entries whose errors are sent again, and conditions of entries that are not the project's: any other condition lets an error reach, or
/// miss, another entry.
fn refuse_entries(layers: &mut Layers<'_>, own: &RetryTable, value: &Value) {
    let entries = |value: &Value| value.get("class").and_then(Value::as_array).cloned().unwrap_or_default();
    let known = entries(value);
    let is_repeated = |class: &Value| {
        let class = class.as_str().and_then(ErrorClass::from_word);
        // What is too large is sent again whatever the policy is, and the conversation becomes smaller for it.
        class.is_none_or(|class| class == ErrorClass::ContextOverflow || own.policy(class).is_some())
    };
    // From the last one: one that is left out does not move those that are still to be left out.
    for (at, entry) in layers.of_project().map(entries).unwrap_or_default().iter().enumerate().rev() {
        let id = entry.get("id").and_then(Value::as_str).unwrap_or_default().escape_debug().to_string();
        let class = entry.get("class");
        let Some(known) = known.iter().find(|known| known.get("id") == entry.get("id")) else {
            if class.is_some_and(is_repeated) {
                let message = format!("the entry `{id}` of a project cannot be of a class that is sent again");
                refuse_at(layers, &steps!["class", at], message);
            }
            continue;
        };
        for (key, value) in entry.as_object().into_iter().flatten().filter(|(key, _)| *key != "id") {
            let is_lower = key == "class" && !is_repeated(value);
            if known.get(key) != Some(value) && !is_lower {
                let message = format!("a project cannot change the `{key}` of the entry `{id}`");
                refuse_at(layers, &steps!["class", at, key.as_str()], message);
            }
        }
    }
}

fn refuse_policy(layers: &mut Layers<'_>, class: ErrorClass, with: &RetryTable, own: &RetryTable) {
    let Some(wanted) = with.policy(class) else { return };
    let path = |key: &str| steps!["retry", class.as_str(), key];
    let Some(own) = own.policy(class) else {
        let message = format!("a project cannot have errors of the class `{class}` sent again");
        return refuse_at(layers, &steps!["retry", class.as_str()], message);
    };
    let is_other = wanted.wait != own.wait
        || wanted.headers != own.headers
        || (wanted.fallback != own.fallback && wanted.fallback != RetryWait::None);
    if is_other {
        let message = format!("a project cannot choose how the waits of the class `{class}` are found");
        return refuse_at(layers, &steps!["retry", class.as_str()], message);
    }
    let more = [
        ("max_retries", wanted.max_retries > own.max_retries),
        ("base", wanted.base < own.base),
        ("max", wanted.max < own.max),
        ("jitter", wanted.jitter > own.jitter),
    ];
    for (key, _) in more.into_iter().filter(|(_, is_more)| *is_more) {
        let message = format!("the `{key}` of a project cannot make the retries of the class `{class}` more or sooner");
        refuse_at(layers, &path(key), message);
    }
}

fn refuse_at(layers: &mut Layers<'_>, path: &[Step], message: String) {
    if layers.origin(path).is_some_and(|origin| origin != LayerOrigin::User) {
        layers.refuse(Code::ErrorsProject, (path, true), message, HELP);
    }
}
