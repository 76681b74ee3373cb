//! Event catalogues and their conditions: whatever a project's file says, a session can be rebuilt from its transcript.

use config::events::{Catalogue, Condition, Required, Variables};
use flow::SourceFile;

pub(crate) const WORDS: &[&str] = &[
    "schema_version = \"1.0.0\"\n",
    "schema_version: \"1.0.0\"\n",
    "event_types",
    "criticality_levels",
    "categories",
    "cognition_in",
    "cognition_out_delta",
    "notice",
    "payload_schema",
    "properties",
    "emit_config",
    "criticality",
    "critical",
    "droppable",
    "best_effort",
    "fallback = \"drop\"\n",
    "async = true\n",
    "throttle = \"1s\"\n",
    "condition = \"",
    "milestones = [0, 50]\n",
    "required = ",
    "true",
    "[",
    "]",
    "{",
    "}",
    ".",
    "\"",
    "'",
    "\n  ",
    "- ",
    ": ",
    "&a ",
    "*a",
    "!!str ",
    "<<: ",
    "|\n",
    "ä",
];

pub(crate) const CONDITION_WORDS: &[&str] = &[
    "provider_config.stream.enabled",
    "turn.max_steps",
    "not ",
    " and ",
    " or ",
    " == ",
    "(",
    ")",
    "'",
    "\"",
    "-5",
    "0.5",
    "ä",
];

pub(crate) fn catalogue(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let default = Catalogue::of_sources(&[]).unwrap();
    for name in ["a.toml", "a.yaml"] {
        match Catalogue::of_sources(&[SourceFile::new(name, text.as_ref())]) {
            Ok(catalogue) => is_safe(&default, &catalogue),
            Err(found) => {
                assert!(!found.0.is_empty() && found.0.iter().all(flow::Diagnostic::is_error));
                // Every place is one of the text: an error can be shown.
                assert!(!found.render(false).is_empty());
            }
        }
    }
}

/// The types of the program are all there, and what a session is rebuilt from is kept as in the default.
fn is_safe(default: &Catalogue, catalogue: &Catalogue) {
    assert!(default.types.keys().all(|name| catalogue.types.contains_key(name)));
    let session = catalogue.for_session(&Variables::default());
    for (name, of) in default.types.iter().filter(|(_, of)| of.required != Required::Never) {
        let kept = session.get(name).unwrap();
        assert!(
            kept.required && kept.critical && kept.enabled && kept.emit_on_error && kept.accumulate_on_error,
            "{name}"
        );
        assert!(kept.throttle_ms == 0 && kept.milestones.is_empty(), "{name}");
        assert_eq!(kept.payload_schema, of.payload_schema, "{name}");
    }
}

pub(crate) fn condition(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Condition::parse(&text) {
        Ok(condition) => {
            let negation = Condition::parse(&format!("not ({text})"));
            // The negation can be too deep or too long.
            if let Ok(negation) = negation {
                let variables = Variables::default();
                assert_ne!(condition.is_fulfilled(&variables), negation.is_fulfilled(&variables), "{text:?}");
            }
        }
        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error:?}"),
    }
}
