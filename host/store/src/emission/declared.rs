//! Declared event types, with the checks of what is emitted.

use std::collections::BTreeMap;

use flow::ports::EmitError;
use flow::{EventCatalogue, EventType, PluginId};
use serde_json::Value;

use super::validator::{InvalidSchema, Validator};

/// Bytes of the payload of a custom event, as JSON.
const MAX_EVENT_BYTES: usize = 16 << 10;

/// The declared types of a session, with the schemas of their payloads.
pub struct DeclaredTypes {
    /// By name: the plugin that alone emits it, or `None` where a catalogue declares the type.
    owners: BTreeMap<String, Option<PluginId>>,
    validator: Validator,
}

/// A type that a plugin declares.
#[derive(Clone, Debug)]
pub struct OwnType {
    /// Whose it is.
    pub plugin: PluginId,
    /// The name that its manifest gives it.
    pub name: String,
    /// The JSON Schema of the payload.
    pub payload_schema: Value,
}

impl OwnType {
    fn full_name(plugin: &PluginId, name: &str) -> String {
        format!("{plugin}.{name}")
    }
}

impl std::fmt::Debug for DeclaredTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeclaredTypes").field("owners", &self.owners).finish_non_exhaustive()
    }
}

impl DeclaredTypes {
    /// The types that files have declared in a catalogue, and those of plugins. Where both declare one, the catalogue counts.
    ///
    /// # Errors
    /// A schema is not a JSON Schema. The readers of catalogues and of manifests have refused such schemas.
    pub fn new(catalogue: &EventCatalogue, plugins: impl IntoIterator<Item = OwnType>) -> Result<Self, InvalidSchema> {
        let (mut owners, mut types) = (BTreeMap::new(), BTreeMap::new());
        for OwnType { plugin, name, payload_schema } in plugins {
            let name = OwnType::full_name(&plugin, &name);
            let mut of = EventType::new("", "", false);
            of.payload_schema = payload_schema;
            types.insert(name.clone(), of);
            owners.insert(name, Some(plugin));
        }
        for (name, of) in catalogue.iter().filter(|(_, of)| of.declared) {
            types.insert(name.to_owned(), of.clone());
            owners.entry(name.to_owned()).or_default();
        }
        Ok(Self { owners, validator: Validator::new(&EventCatalogue::new(types))? })
    }

    /// As [`flow::ports::EventTypes::admit`].
    ///
    /// # Errors
    /// It cannot be emitted.
    pub fn admit(&self, plugin: Option<&PluginId>, event_type: &str, payload: &Value) -> Result<String, EmitError> {
        let own = plugin.map(|plugin| OwnType::full_name(plugin, event_type));
        let may = |name: &String| {
            self.owners.get(name).is_some_and(|owner| owner.as_ref().is_none_or(|one| Some(one) == plugin))
        };
        let event_type = own.into_iter().chain([event_type.to_owned()]).find(may).ok_or_else(|| {
            let known = self.owners.keys().filter(|name| may(name)).cloned().collect();
            EmitError::Unknown { event_type: event_type.to_owned(), known }
        })?;
        let bytes = payload.to_string().len();
        if bytes > MAX_EVENT_BYTES {
            return Err(EmitError::TooLarge { event_type, bytes, max: MAX_EVENT_BYTES });
        }
        self.validator.check(&event_type, payload).map_err(|wrong| EmitError::Payload(wrong.to_string()))?;
        Ok(event_type)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalogue() -> EventCatalogue {
        let declared = |schema: Value| {
            let mut of = EventType::new("custom", "droppable", false);
            (of.declared, of.payload_schema) = (true, schema);
            of
        };
        let schema = json!({"type": "object", "required": ["target"], "properties": {"target": {"type": "string"}}});
        let types = [
            ("deployment".to_owned(), declared(schema)),
            ("any".to_owned(), declared(json!({"type": "object"}))),
            ("guard.strict".to_owned(), declared(json!({"type": "object", "required": ["why"]}))),
            ("notice".to_owned(), EventType::new("host", "critical", true)),
        ];
        EventCatalogue::new(types.into_iter().collect())
    }

    #[test]
    fn what_is_declared_and_conforms_is_emitted() {
        let (guard, other): (PluginId, PluginId) = ("guard".parse().unwrap(), "other".parse().unwrap());
        let own = |name: &str| OwnType {
            plugin: guard.clone(),
            name: name.into(),
            payload_schema: json!({"type": "object"}),
        };
        let types = DeclaredTypes::new(&catalogue(), [own("seen"), own("strict"), own("any")]).unwrap();
        let admit =
            |plugin: Option<&PluginId>, event_type: &str, payload: Value| types.admit(plugin, event_type, &payload);
        let emitted = [
            (None, "deployment", json!({"target": "test"}), "deployment"),
            (Some(&other), "deployment", json!({"target": "test"}), "deployment"),
            (Some(&guard), "seen", json!({}), "guard.seen"),
            (Some(&guard), "guard.seen", json!({}), "guard.seen"),
            // Its own type before that of the catalogue.
            (Some(&guard), "any", json!({}), "guard.any"),
            (Some(&other), "any", json!({}), "any"),
            (Some(&guard), "strict", json!({"why": 1}), "guard.strict"),
        ];
        for (plugin, event_type, payload, name) in emitted {
            assert_eq!(admit(plugin, event_type, payload).unwrap(), name);
        }
        let refused = [
            (
                None,
                "deployment",
                json!({"target": 1}),
                "the payload of `deployment` does not conform to its schema: at `/target`",
            ),
            (None, "deployment", json!({}), "the field `target` is missing"),
            (None, "any", json!("text"), "does not conform"),
            // An event of the program cannot be emitted in its place.
            (None, "notice", json!({"message": "forged"}), "those that are: `any`, `deployment`"),
            (None, "any", json!({"long": "x".repeat(MAX_EVENT_BYTES)}), "the limit is 16384"),
            // Nor can one of another plugin.
            (Some(&other), "guard.seen", json!({}), "the event type `guard.seen` is not declared"),
            (None, "guard.seen", json!({}), "the event type `guard.seen` is not declared"),
            // The catalogue counts before the manifest.
            (Some(&guard), "strict", json!({}), "the field `why` is missing"),
        ];
        for (plugin, event_type, payload, why) in refused {
            let error = admit(plugin, event_type, payload).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
