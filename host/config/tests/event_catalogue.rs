//! The default event catalogue, and what files on top of it change.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow::{EventKind, SourceFile};
use tidegate_config::events::{Catalogue, LayerFile, Required, Variables, defaults};
use tidegate_config::{Layer, LayerKind};

fn source(name: &str, text: &str) -> Arc<SourceFile> {
    SourceFile::new(Path::new(name), text)
}

fn load(files: &[&str]) -> Catalogue {
    let files: Vec<_> =
        files.iter().map(|text| source("a.toml", &format!("schema_version = \"1.0.0\"\n{text}"))).collect();
    Catalogue::of_sources(&files).unwrap_or_else(|found| panic!("{found}"))
}

#[test]
fn every_kind_of_event_has_a_type() {
    let catalogue = load(&[]);
    let types: BTreeSet<&str> = catalogue.types.keys().map(String::as_str).collect();
    let kinds: BTreeSet<&str> = EventKind::NAMES.iter().copied().collect();
    assert_eq!(kinds.difference(&types).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(types.difference(&kinds).collect::<Vec<_>>(), Vec::<&&str>::new(), "types without a kind");
}

/// `config show --defaults` prints the default, and its output is what people begin with.
#[test]
fn the_default_on_top_of_itself_changes_nothing() {
    let settings = Layer { kind: LayerKind::User, source: source("tidegate.toml", defaults()) };
    let copied = Catalogue::of_layers(&[LayerFile::of_settings(&settings)]);
    let (copied, noted) = copied.unwrap_or_else(|found| panic!("{found}"));
    assert!(noted.is_empty(), "{noted:?}");
    assert_eq!(copied, load(&[]));
}

#[test]
fn one_throttle_changes_only_that_throttle() {
    let mut expected = load(&[]);
    expected.types.get_mut("cognition_out_delta").unwrap().emit.throttle = Duration::from_millis(250);
    assert_eq!(load(&["event_types.cognition_out_delta.emit_config.throttle = \"250ms\""]), expected);
}

#[test]
fn the_project_is_on_top_of_the_user_on_top_of_the_default() {
    let user = "[event_types.notice]\ndescription = \"user\"\ncategory = \"tool\"\n[categories]\nmine = \"user\"";
    let project = "[event_types.notice]\ndescription = \"project\"\ncriticality = \"mine\"\n\
                   [criticality_levels.mine]\ndescription = \"d\"\ndurability = \"best_effort\"";
    let both = load(&[user, project]);
    let notice = &both.types["notice"];
    assert_eq!((notice.description.as_str(), notice.category.as_str()), ("project", "tool"));
    assert_eq!((notice.criticality.as_str(), both.categories["mine"].as_str()), ("mine", "user"));
    // Without a fallback, nothing of the level is dropped.
    assert!(both.for_session(&Variables::default()).get("notice").unwrap().critical);
    let drops = load(&[user, project, "criticality_levels.mine.fallback = \"drop\""]);
    assert!(!drops.for_session(&Variables::default()).get("notice").unwrap().critical);
}

#[test]
fn toml_and_yaml_say_the_same() {
    let toml = "schema_version = \"1.0.0\"\n[event_types.tool_call_progress.emit_config]\nmilestones = [0, 50.5]\nthrottle = \"2s\"\n\
                [event_types.notice.payload_schema]\nrequired = []\n";
    let yaml = "schema_version: '1.0.0'\nevent_types:\n  tool_call_progress:\n    emit_config:\n      milestones:\n      - 0\n      - 50.5\n\
                \n      throttle: 2s\n  notice: {payload_schema: {required: []}}\n";
    let one = Catalogue::of_sources(&[source("a.toml", toml)]).unwrap();
    assert_eq!(one, Catalogue::of_sources(&[source("a.yaml", yaml)]).unwrap());
    assert_eq!(one.types["tool_call_progress"].emit.milestones, [0.0, 50.5]);
}

#[test]
fn conditions_are_evaluated_for_each_session() {
    let catalogue = load(&["event_types.extension_log.emit_config.condition = \"provider_config.model == 'm'\""]);
    let mut variables = Variables::default();
    let enabled = |variables: &Variables, name: &str| catalogue.for_session(variables).get(name).unwrap().enabled;
    assert!(!enabled(&variables, "extension_log") && enabled(&variables, "cognition_out_delta"));
    variables.model = "m".to_owned();
    variables.stream_enabled = false;
    assert!(enabled(&variables, "extension_log") && !enabled(&variables, "cognition_out_delta"));

    // Reasoning that the provider requires is kept whatever the condition says.
    let reasoning =
        |variables: &Variables| catalogue.for_session(variables).get("cognition_reasoning").unwrap().clone();
    let kept = reasoning(&variables);
    assert!(kept.required && kept.critical && kept.enabled && kept.throttle_ms == 0);
    variables.reasoning_returned = false;
    let dropped = reasoning(&variables);
    assert!(!dropped.required && !dropped.critical && !dropped.enabled);
}

#[test]
fn a_critical_type_is_recorded_at_once_whatever_it_inherits() {
    let catalogue = load(&["event_types.tool_call_progress.criticality = \"critical\""]);
    let session = catalogue.for_session(&Variables::default());
    let progress = session.get("tool_call_progress").unwrap();
    assert!(progress.critical && progress.throttle_ms == 0 && progress.milestones.is_empty());
}

#[test]
fn a_session_can_be_rebuilt_from_the_required_types() {
    let catalogue = load(&[]);
    let required: Vec<&str> = catalogue
        .types
        .iter()
        .filter(|(_, of)| of.required == Required::Always)
        .map(|(name, _)| name.as_str())
        .collect();
    let expected = "child_thread_started cognition_in cognition_out context_compaction_end custom_message history_replaced \
                    input_edited input_queued input_received input_withdrawn limit_escalation_requested limit_escalation_resolved steering_message step_finish step_start thread_resumed thread_started \
                    thread_suspended tool_call_result tool_call_start tool_confirmation_requested tool_confirmation_resolved \
                    ttsr_injection ttsr_rearmed turn_finish turn_start";
    assert_eq!(required.join(" "), expected);
}

/// A tree that is nested deeper than the stack must not end the program: a project file comes from strangers.
#[test]
fn deep_nesting_is_refused() {
    let deep = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(5000), close.repeat(5000));
    let schema = "schema_version = \"1.0.0\"\nevent_types.notice.payload_schema";
    let files = [
        ("a.toml", format!("{schema}.x = {}", deep("[", "", "]"))),
        ("a.toml", format!("{schema}.x = {}", deep("{a=", "1", "}"))),
        ("a.toml", format!("{schema}.{} = 1", vec!["a"; 5000].join("."))),
        (
            "a.toml",
            format!("schema_version = \"1.0.0\"\n[event_types.notice.payload_schema.{}]", vec!["a"; 5000].join(".")),
        ),
        ("a.yaml", format!("schema_version: 1.0.0\nx: {}", deep("[", "", "]"))),
        ("a.yaml", format!("schema_version: 1.0.0\nx: {}", deep("{a: ", "1", "}"))),
        ("a.yaml", format!("schema_version: 1.0.0\nx:\n{}", "- ".repeat(5000))),
    ];
    for (name, text) in files {
        assert!(Catalogue::of_sources(&[source(name, &text)]).is_err(), "{}", &text[..80]);
    }
}
