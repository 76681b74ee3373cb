//! Event types that a file declares: for events of plugins, and of programs that embed the host.

use std::collections::BTreeMap;

use super::layers::Layers;
use super::payload::{self, Cost};
use crate::Code;
use crate::document::{Document, steps};
use crate::layers::LayerOrigin;
use crate::typed::{EventFile, EventTypeFile};

/// The longest name of a type.
const MAX_NAME: usize = 64;

/// What a declared type has where its file does not say it.
pub(super) fn default(key: &str) -> &'static str {
    match key {
        "category" => "custom",
        "criticality" => "droppable",
        _ => "",
    }
}

/// Whether a name that is none of the program's types declares one. A payload schema is what declares it: without one, a name is more
/// likely to be a wrong one.
pub(super) fn check(layers: &mut Layers<'_>, name: &str, file: &EventTypeFile) -> bool {
    let path = steps!["event_types", name];
    let shown = name.escape_debug();
    if file.payload_schema.is_none() {
        let near = flow::text::nearest(name, layers.types());
        let about =
            "a type of your own has a `payload_schema`; `tidegate config show --defaults` lists those of the program";
        let help = near.map_or(about.to_owned(), |near| format!("did you mean `{near}`? ({about})"));
        let message = format!("unknown event type `{shown}`");
        if layers.origin(&path) == Some(LayerOrigin::Foreign) {
            layers.refuse(Code::EventsUnknownType, (&path, true), message, help);
        } else {
            layers.key_error(Code::EventsUnknownType, &path, message, help);
        }
        return false;
    }
    if !is_name(name) {
        let message = format!("`{shown}` cannot be the name of an event type");
        let help = format!("write at most {MAX_NAME} letters, digits, `_`, `-` and `.`, beginning with a letter");
        layers.key_error(Code::EventsUnknownType, &path, message, help);
        return false;
    }
    true
}

/// The types of events that a manifest declares.
pub(crate) fn check_manifest(document: &mut Document<'_>, events: &BTreeMap<String, EventFile>) {
    let mut cost = Cost::default();
    for (name, event) in events {
        let path = steps!["events", name.as_str()];
        if !is_name(name) || name.contains('.') {
            let message = format!("`{}` cannot be the name of an event type", name.escape_debug());
            let help = format!("write at most {MAX_NAME} letters, digits, `_` and `-`, beginning with a letter");
            document.error(Code::EventsUnknownType, &path, message, help);
        }
        if let Err(refusal) = payload::check(&event.payload_schema, &mut cost) {
            let message = format!("the payload schema of `{}` {}", name.escape_debug(), refusal.why);
            let path = steps!["events", name.as_str(), "payload_schema"];
            document.error(Code::EventsInvalidSchema, &path, message, payload::HELP);
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.len() <= MAX_NAME && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_part)
}
