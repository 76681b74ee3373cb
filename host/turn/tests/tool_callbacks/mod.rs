//! `on_tool_call` and `on_tool_result`: what they change is what runs, what is shown and what is kept.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod results;

use flow::{Callback, Event, EventKind};
use tidegate_kit::{Plugin, Scene, Script, rule_set};

/// An extension of this id with one callback, of this priority.
fn plugin(id: &'static str, callback: Callback, priority: u8) -> Plugin {
    Plugin { id, callbacks: vec![(callback, priority)], ..Plugin::default() }
}

fn scene(scripts: impl IntoIterator<Item = Script>, plugins: Vec<Plugin>) -> Scene {
    Scene::new(scripts, plugins, rule_set(&[], |_| {}))
}

/// What the model read of the result of the one call.
fn result(scene: &Scene) -> String {
    scene.model.request(1).last().unwrap().1.clone()
}

/// The arguments of the calls that ran, as events have them.
fn started(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match &event.kind {
        EventKind::ToolCallStart { arguments, .. } => Some(arguments.clone()),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

/// The events of a name, as their records.
fn records(events: &[Event], name: &str) -> Vec<serde_json::Value> {
    let records = events.iter().filter(|event| event.kind.name() == name);
    records.map(|event| record::json(event, "test")["payload"].clone()).collect()
}
