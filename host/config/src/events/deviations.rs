//! Where the default catalogue deviates from the specification of thread events, and why.

/// A place at which the default differs from the specification, or where the program does something that the place does not say.
#[derive(Clone, Copy, Debug)]
pub struct Deviation {
    /// The event type.
    pub event_type: &'static str,
    /// The key in the type, with dots.
    pub key: &'static str,
    /// Whether the default has another value than the specification.
    pub differs: bool,
    /// What is different, and why.
    pub reason: &'static str,
}

/// All deviations, in the order of the types. A test compares them with the specification's own file.
pub const DEVIATIONS: [Deviation; 10] = [
    Deviation {
        event_type: "thread_cancelled",
        key: "description",
        differs: true,
        reason: "Threads are also cancelled by a front end and by a signal, and the event is about the thread: a turn that is cancelled ends \
                 with `turn_finish`.",
    },
    Deviation {
        event_type: "step_finish",
        key: "payload_schema.required",
        differs: true,
        reason: "`cost` is optional: where the price of a model is not known, the cost is absent and never invented.",
    },
    Deviation {
        event_type: "step_finish",
        key: "payload_schema.properties.finish_reason.enum",
        differs: true,
        reason: "`cancelled` is added: a step that was cancelled has its `step_finish`, too.",
    },
    Deviation {
        event_type: "cognition_in",
        key: "payload_schema.properties.role.enum",
        differs: true,
        reason: "`assistant` is added: the kept start of a stopped answer joins the conversation as a message of its own where the model \
                 cannot continue from it.",
    },
    Deviation {
        event_type: "cognition_out_delta",
        key: "emit_config.throttle",
        differs: false,
        reason: "The throttle applies to the transcript and not to subscribers: a front end shows text as it streams. Held back text is \
                 joined, so the recorded deltas contain all of it.",
    },
    Deviation {
        event_type: "cognition_reasoning",
        key: "criticality",
        differs: false,
        reason: "It is kept like a critical event where `required_if` is fulfilled, and always where it stays in the conversation \
                 (`retained`): a provider that signs its reasoning accepts the history only with it.",
    },
    Deviation {
        event_type: "tool_call_progress",
        key: "payload_schema.required",
        differs: true,
        reason: "`progress` is optional: most tools cannot know how far they are, and an unknown progress is absent and never invented.",
    },
    Deviation {
        event_type: "tool_call_progress",
        key: "emit_config.milestones",
        differs: false,
        reason: "Milestones decide about events with a progress, and the throttle about those without. The last progress before a result \
                 is recorded, too.",
    },
    Deviation {
        event_type: "error_classified",
        key: "payload_schema.properties.category.enum",
        differs: true,
        reason: "`context_overflow` is added: a request that is too large is no other failure, because the session becomes smaller and \
                 sends it again.",
    },
    Deviation {
        event_type: "limit_escalation_requested",
        key: "payload_schema.properties.limit_code.enum",
        differs: true,
        reason: "`depth_exceeded` is added: the depth of child threads is a limit, too.",
    },
];

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::super::layers::default_value;
    use super::super::{Catalogue, LayerFile, LayerOrigin};
    use super::DEVIATIONS;
    use crate::document::Document;
    use crate::typed::CatalogueFile;
    use crate::{Code, SourceFile, yaml};

    fn specification(name: &str) -> (Value, std::sync::Arc<SourceFile>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/events/specification").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let head = if text.contains("schema_version") { "" } else { "schema_version: 1.0.0\n" };
        let source = SourceFile::new(path, format!("{head}{text}"));
        let mut tree = yaml::read(&source, Code::EventsYaml).unwrap();
        tree.get_mut().remove("schema_version");
        let (document, _) =
            Document::of_tree::<CatalogueFile>(&source, tree, <CatalogueFile as crate::schema::TypedFile>::schema())
                .unwrap();
        (document.decode().unwrap(), source)
    }

    /// The paths at which `ours` has another value than the specification, or lacks one. Properties that we add to a schema, types,
    /// categories and the markers of the program are no differences.
    fn differences(path: &str, specified: &Value, ours: &Value, found: &mut BTreeSet<String>) {
        match (specified, ours) {
            (Value::Object(specified), Value::Object(ours)) => {
                let is_open = path.ends_with("properties") || !path.contains('.');
                let is_added =
                    |key: &&String| !is_open && !specified.contains_key(*key) && !key.starts_with("required");
                found.extend(ours.keys().filter(is_added).map(|key| format!("{path}.{key}")));
                for (key, value) in specified {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    differences(&path, value, ours.get(key).unwrap_or(&Value::Null), found);
                }
            }
            (specified, ours) if specified == ours => {}
            _ => {
                found.insert(path.to_owned());
            }
        }
    }

    #[test]
    fn the_default_is_the_specification_apart_from_the_deviations() {
        let ours = default_value().unwrap();
        let mut found = BTreeSet::new();
        differences("", &specification("thread_events.yaml").0, &ours, &mut found);
        let flags = specification("emit_on_error.yaml").0;
        for (name, flag) in flags["event_types"].as_object().unwrap() {
            assert_eq!(ours["event_types"][name]["emit_on_error"], flag["emit_on_error"], "{name}");
            // Another part of the specification sets it.
            found.remove(&format!("event_types.{name}.emit_on_error"));
        }
        let listed = DEVIATIONS.iter().filter(|one| one.differs);
        let listed: BTreeSet<String> =
            listed.map(|one| format!("event_types.{}.{}", one.event_type, one.key)).collect();
        assert_eq!(found, listed);
        for one in DEVIATIONS.iter().filter(|one| !one.differs) {
            let pointer = format!("/event_types/{}/{}", one.event_type, one.key.replace('.', "/"));
            assert!(ours.pointer(&pointer).is_some(), "{pointer} is not a key of the default");
        }
    }

    /// The specification's file is one that a user would try. Only what would break sessions is refused.
    #[test]
    fn the_specification_as_a_file_is_refused_only_where_it_would_break_sessions() {
        let (_, source) = specification("thread_events.yaml");
        let found = Catalogue::of_sources(&[source]).unwrap_err();
        assert!(found.0.iter().all(|one| one.code == Code::EventsUnsafe), "{found}");
        let lines: Vec<String> = found.0.iter().map(|one| one.location().unwrap().line().to_string()).collect();
        let messages: Vec<&str> = found.0.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(lines.len(), 3, "{messages:?}");
        let types = ["`step_finish`", "`cognition_in`", "`limit_escalation_requested`"];
        assert!(messages.iter().zip(types).all(|(message, of)| message.contains(of)), "{messages:?}");
    }

    /// As a file of a project it loads: that is left out, with a warning at each line.
    #[test]
    fn the_specification_is_a_file_of_a_project() {
        for origin in [LayerOrigin::Project, LayerOrigin::Foreign] {
            let layer = |name| LayerFile::new(&specification(name).1, origin);
            let (catalogue, left_out) =
                Catalogue::of_layers(&[layer("emit_on_error.yaml"), layer("thread_events.yaml")])
                    .unwrap_or_else(|found| panic!("{found}"));
            let default = Catalogue::of_sources(&[]).unwrap();
            assert_eq!(catalogue.types.len(), default.types.len());
            for (name, of) in &catalogue.types {
                assert_eq!(of.payload_schema, default.types[name].payload_schema, "{name}");
                assert_eq!(
                    (&of.required, &of.emit),
                    (&default.types[name].required, &default.types[name].emit),
                    "{name}"
                );
            }
            assert!(left_out.iter().all(|one| one.code == Code::EventsUnsafe && !one.is_error()), "{left_out:?}");
            let places: Vec<(usize, &str)> = left_out
                .iter()
                .map(|one| (one.location().unwrap().line(), one.message.split('`').nth(1).unwrap()))
                .collect();
            assert_eq!(
                places,
                [
                    (88, "step_finish"),
                    (98, "step_finish"),
                    (112, "cognition_in"),
                    (200, "tool_call_progress"),
                    (238, "error_classified"),
                    (264, "limit_escalation_requested")
                ]
            );
        }
    }

    /// A file for another program: what it extends is not there, it has no version, and a type of its own.
    #[test]
    fn a_file_of_another_program_loads() {
        let text = "extends: rye/agent/threads/config/events.yaml\nevent_types:\n  my_custom_event:\n    category: custom\n    \
                    criticality: droppable\n    payload_schema:\n      type: object\n      required: [message]\n  \
                    notice:\n    schema: {type: object}\n  removed_type:\n    category: custom\n";
        let source = SourceFile::new("thread_events.yaml", text);
        let layer = |origin| [LayerFile::new(&source, origin)];
        let (catalogue, left_out) =
            Catalogue::of_layers(&layer(LayerOrigin::Foreign)).unwrap_or_else(|found| panic!("{found}"));
        assert!(catalogue.types["my_custom_event"].is_declared && !catalogue.types["notice"].is_declared);
        let messages: Vec<(usize, &str)> =
            left_out.iter().map(|one| (one.location().unwrap().line(), one.message.as_str())).collect();
        assert_eq!(
            messages,
            [
                (1, "unknown key `extends`"),
                (10, "unknown key `schema` in `[event_types.notice]`"),
                (11, "unknown event type `removed_type`")
            ]
        );
        // One of the project's own has no such excuse.
        assert!(Catalogue::of_layers(&layer(LayerOrigin::Project)).is_err());
    }
}
