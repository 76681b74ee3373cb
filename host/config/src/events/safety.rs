//! What no file can change: events that must not be lost, and settings that can have no effect.

use std::collections::BTreeMap;

use flow::{Aggregate, EventTraits};

use super::layers::Layers;
use super::{Catalogue, Level, Required, Type};
use crate::Code;
use crate::document::{Step, steps};
use crate::layers::LayerOrigin;
use crate::typed::{Durability, EventTypeFile};

/// Notes what is wrong with one type, apart from its level.
pub(super) fn check(
    layers: &mut Layers<'_>,
    levels: &BTreeMap<String, Level>,
    name: &str,
    file: &EventTypeFile,
    of: &Type,
) {
    check_markers(layers, name);
    check_effects(layers, name, file, of);
    if of.required == Required::Never || !layers.is_type(name) {
        check_payload(layers, name);
    } else {
        check_required(layers, name, of);
    }
    let Some(level) = levels.get(&of.criticality) else { return };
    if !level.is_droppable(file.emit_config.is_async) {
        check_critical(layers, name, level, of);
    }
}

fn at(name: &str, key: &str) -> Vec<Step> {
    match key.strip_prefix("emit_config.") {
        Some(key) => steps!["event_types", name, "emit_config", key].to_vec(),
        None => steps!["event_types", name, key].to_vec(),
    }
}

fn check_markers(layers: &mut Layers<'_>, name: &str) {
    for key in ["required", "required_if"] {
        if layers.changed(&at(name, key)).is_some() {
            let message = format!("`{key}` can only be set by the program");
            layers.refuse(Code::EventsUnsafe, (&at(name, key), true), message, "remove the key");
        }
    }
}

/// A setting without any effect looks as if it had one.
fn check_effects(layers: &mut Layers<'_>, name: &str, file: &EventTypeFile, of: &Type) {
    let can = EventTraits::of(name);
    let emit = &file.emit_config;
    let idle = [
        ("emit_on_error", file.emit_on_error.is_some() && !can.reports_errors, "no event of it reports an error"),
        (
            "emit_config.accumulate_on_error",
            emit.accumulate_on_error.is_some() && !can.accumulates,
            "nothing is accumulated for it",
        ),
        ("emit_config.milestones", !of.emit.milestones.is_empty() && !can.has_progress, "its events have no progress"),
        (
            "emit_config.aggregate",
            of.emit.aggregate != Aggregate::Never && !can.can_be_counted,
            "its events cannot be counted",
        ),
    ];
    for (key, _, why) in idle.into_iter().filter(|(_, is_idle, _)| *is_idle) {
        let short = key.trim_start_matches("emit_config.");
        let message = format!("`{short}` has no effect on `{name}`: {why}");
        layers.refuse(Code::EventsWithoutEffect, (&at(name, key), true), message, "remove the key");
    }
}

/// A project cannot know what events of this program contain: those that its schema rejects would be missing in the transcript.
fn check_payload(layers: &mut Layers<'_>, name: &str) {
    let Some(place) = layers.changed(&at(name, "payload_schema")).filter(|_| layers.is_type(name)) else { return };
    if layers.origin(&place).is_some_and(|origin| origin != LayerOrigin::User) {
        let message = format!("what events of `{name}` contain is decided by the program, and not by a project");
        layers.refuse(Code::EventsUnsafe, (&place, true), message, "remove the key");
    }
}

/// A session is rebuilt from the type, so nothing can make its events fewer.
fn check_required(layers: &mut Layers<'_>, name: &str, of: &Type) {
    let always = of.required == Required::Always;
    let unsafe_keys = [
        ("payload_schema", true, "events that it rejects would not be recorded"),
        ("emit_config.condition", always && of.emit.condition.is_some(), "it would not be recorded in every session"),
        ("emit_on_error", always && !of.emit_on_error, "answers that broke off would not be recorded"),
    ];
    for (key, is_unsafe, why) in unsafe_keys {
        if let Some(place) = layers.changed(&at(name, key)).filter(|_| is_unsafe) {
            let message = format!("sessions are rebuilt from `{name}`, so its `{key}` cannot be changed: {why}");
            layers.refuse(Code::EventsUnsafe, (&place, true), message, "remove the key");
        }
    }
}

/// An event that the turn waits for cannot be held back. What a critical type inherits from the default has no effect.
fn check_critical(layers: &mut Layers<'_>, name: &str, level: &Level, of: &Type) {
    let delays = [
        ("emit_config.throttle", !of.emit.throttle.is_zero()),
        ("emit_config.milestones", !of.emit.milestones.is_empty()),
        ("emit_config.aggregate", of.emit.aggregate != Aggregate::Never),
        ("emit_config.async", of.emit.is_async == Some(true) && level.durability == Durability::Guaranteed),
    ];
    for (key, _) in delays.into_iter().filter(|(_, is_set)| *is_set) {
        if layers.changed(&at(name, key)).is_some() {
            let short = key.trim_start_matches("emit_config.");
            let help = if of.required == Required::Always {
                "remove the key: sessions are rebuilt from these events"
            } else {
                "remove the key, or set `criticality = \"droppable\"`"
            };
            let message = format!("events of `{name}` are critical, so `{short}` cannot hold them back");
            layers.refuse(Code::EventsUnsafe, (&at(name, key), true), message, help);
        }
    }
}

/// Notes required types whose level lets events be lost: each at its own `criticality` where a file sets it, else the level once.
pub(super) fn check_levels(layers: &mut Layers<'_>, catalogue: &Catalogue) {
    let mut reported = Vec::new();
    let required: Vec<_> = catalogue.types.iter().filter(|(name, _)| layers.is_required(name)).collect();
    for (name, of) in required {
        let level = catalogue.levels.get(&of.criticality);
        if !level.is_some_and(|level| level.is_droppable(of.emit.is_async)) {
            continue;
        }
        let is_own = layers.is_overridden(&at(name, "criticality"));
        if !is_own && reported.contains(&&of.criticality) {
            continue;
        }
        let path = if is_own {
            at(name, "criticality")
        } else {
            steps!["criticality_levels", of.criticality.as_str()].to_vec()
        };
        let message = format!("sessions are rebuilt from `{name}`, so its events cannot be droppable");
        let help = "use a level whose `durability` is `guaranteed`, such as `critical`";
        if !is_own {
            reported.push(&of.criticality);
        }
        layers.refuse(Code::EventsUnsafe, (&path, !is_own), message, help);
    }
}
