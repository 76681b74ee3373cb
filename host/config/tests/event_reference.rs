//! The page for operators that explains each event type, generated from the default catalogue.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use flow::Aggregate;
use serde_json::Value;
use tidegate_config::events::{
    Catalogue, DEVIATIONS, FILE, FOREIGN_FOLDER, GRAMMAR, LayerFile, Required, Type, VARIABLES, YAML_FILE,
};
use tidegate_config::{Layer, LayerKind};

const HEAD: &str = "\
# Thread events

A thread is one execution of a session; its transcript is a sequence of events. The catalogue says which types there are, what the
payload of each contains, and how it is recorded. Its default is part of the program: `tidegate config show --defaults` prints it.

## The table `[events]`

`[events]` of [`tidegate.toml`](../../CONFIGURATION.md) overrides the default: that of the user, and then that of the workspace, key by key. It has only what it changes:

```toml
[events.event_types.cognition_out_delta.emit_config]
throttle = \"5s\"

[events.event_types.extension_log.emit_config]
condition = \"not provider_config.kind == 'recording'\"
```

Anything unknown is an error: a key, a type, a category, a level, a variable. In the table of a workspace, what a session must not lose,
what the user's sets to another value, what makes records fewer or later and what has no effect is left out, with a notice that names its line, so that no project keeps a session from starting.
It counts whether the workspace is trusted or not.

A file of its own is still read: `FILE` or `YAML` in `tidegate` of the configuration folder, or in `.tidegate` of the workspace, with `schema_version = \"1.0.0\"` and the keys of
`[events]`. Where `tidegate.toml` next to it sets the same key, `tidegate.toml` counts, and a warning shows both places. Anchors, tags and null are not supported in YAML.
Other programs have the same format: `FOREIGN/YAML` of a workspace is read below the project's own. It can have keys that this program does not know, which are left out, too, and no `schema_version`.

## Event types of your own

A name that the program does not have declares a type, for events that plugins and programs that embed the host emit. It needs a
`payload_schema`, which is checked where an event is emitted; `category` is `custom` and `criticality` is `droppable` unless the file says otherwise:

```toml
[events.event_types.deployment]
description = \"A deployment was started\"
payload_schema = { type = \"object\", required = [\"target\"], properties.target = { type = \"string\" } }
emit_config.throttle = \"1s\"
```

A plugin declares its own types under `[events.NAME]` of its manifest, and emits those and the ones of these files; a program emits with
`Session::emit`. All of them are records of the type `custom_event`, which names the declared one. A payload is an object of at most 16 KiB, and each plugin can emit 256 events in a turn.

## How events are recorded

| key of a type | meaning |
|---|---|
| `category` | The group of the type. |
| `criticality` | The level of the type: whether its events can be lost. |
| `payload_schema` | A JSON Schema of the payload, without references. An event with another payload is not recorded; `schema_violation` is. |
| `emit_on_error` | `false`: an event that reports an error is not recorded, such as an answer that broke off. Default: `true`. |
| `emit_config.async` | `false`: the turn waits for the events, also where the level could drop them. |
| `emit_config.throttle` | The shortest time between two records of the type, such as `250ms`, `1s` or `2m`; `0s` records all. What is held back is \
recorded before the next critical event, so the last value is never lost. Text is joined, so that nothing of it is lost either. |
| `emit_config.condition` | The type is recorded only in sessions that fulfil it. |
| `emit_config.milestones` | Of the events with a progress, those are recorded that reach the next milestone, and the last one before the \
result. The throttle does not apply to them. |
| `emit_config.accumulate_on_error` | `false`: reasoning that was interrupted is not recorded. Default: `true`. |
| `emit_config.aggregate` | `\"turn\"`: one record for each turn, extension and callback; failures have their own. `\"never\"`: all have. |

Subscribers, such as a front end, get every event whatever the catalogue says; all of this is about the transcript.

An event is droppable if the `durability` of its level is `best_effort`, the level has `fallback = \"drop\"`, and the level or the type is
`async`. The turn waits until all other events are on disk; they are critical, and cannot be throttled, counted or thinned out. What a type
inherits of that from the default has no effect while it is critical.

A session is rebuilt from the types that are marked *required*. No file can make them droppable, leave them out, or change what their
payload must contain.
";

const CONDITIONS: &str = "
## Conditions

A condition is evaluated once, over the configuration of a session. `not` binds weaker than `==` and stronger than `and`, which binds
stronger than `or`. Both sides of `==` have one type, and a variable alone is a condition only if it is a boolean.

```text
";

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn page() -> String {
    let catalogue = Catalogue::of_sources(&[]).unwrap();
    let mut page = HEAD.replace("FILE", FILE).replace("YAML", YAML_FILE).replace("FOREIGN", FOREIGN_FOLDER);
    levels(&mut page, &catalogue);
    page.extend([CONDITIONS, GRAMMAR, "```\n\n| variable | type | value |\n|---|---|---|\n"]);
    for one in VARIABLES {
        let kind = one.kind.noun().trim_start_matches("a ");
        writeln!(page, "| `{}` | {kind} | {} |", one.name, line(one.about)).unwrap();
    }
    for (category, about) in &catalogue.categories {
        writeln!(page, "\n## Events of `{category}`\n\n{about}.").unwrap();
        for (name, of) in catalogue.types.iter().filter(|(_, of)| of.category == *category) {
            event_type(&mut page, name, of);
        }
    }
    page.push_str("\n## Deviations from the specification\n\n| type | key | reason |\n|---|---|---|\n");
    for one in DEVIATIONS {
        writeln!(page, "| `{}` | `{}` | {} |", one.event_type, one.key, line(one.reason)).unwrap();
    }
    page
}

fn levels(page: &mut String, catalogue: &Catalogue) {
    page.push_str("\n| level | durability | `async` | fallback | meaning |\n|---|---|---|---|---|\n");
    for (name, level) in &catalogue.levels {
        let durability = format!("{:?}", level.durability).to_lowercase().replace("besteffort", "best_effort");
        let fallback = level.fallback.map(|one| format!("`{one:?}`").to_lowercase()).unwrap_or_default();
        let (is_async, about) = (level.is_async, line(&level.description));
        writeln!(page, "| `{name}` | `{durability}` | {is_async} | {fallback} | {about} |").unwrap();
    }
}

fn event_type(page: &mut String, name: &str, of: &Type) {
    writeln!(page, "\n### `{name}`\n\n{}. {}.", of.description.trim_end_matches('.'), recorded(of)).unwrap();
    let properties = of.payload_schema["properties"].as_object();
    let Some(properties) = properties.filter(|all| !all.is_empty()) else { return };
    let required = of.payload_schema["required"].as_array().cloned().unwrap_or_default();
    page.push_str("\n| field | value | meaning |\n|---|---|---|\n");
    for (key, about) in properties {
        let mark = if required.iter().any(|one| one == key) { ", required" } else { "" };
        let meaning = line(about["description"].as_str().unwrap_or_default());
        writeln!(page, "| `{key}` | {}{mark} | {meaning} |", value(about)).unwrap();
    }
}

/// How the type is recorded, in one sentence without its end.
fn recorded(of: &Type) -> String {
    let emit = &of.emit;
    let mut parts = vec![format!("Recorded as `{}`", of.criticality)];
    match &of.required {
        Required::Never => {}
        Required::Always => parts.push("required".to_owned()),
        Required::If(condition) => parts.push(format!("required if `{}`", condition.text())),
    }
    if !emit.throttle.is_zero() {
        parts.push(format!("throttle {} ms", emit.throttle.as_millis()));
    }
    if !emit.milestones.is_empty() {
        parts.push(format!("milestones {}", emit.milestones.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")));
    }
    if emit.aggregate == Aggregate::Turn {
        parts.push("counted for each turn".to_owned());
    }
    if let Some(condition) = &emit.condition {
        parts.push(format!("if `{}`", condition.text()));
    }
    if !of.emit_on_error {
        parts.push("not after an error".to_owned());
    }
    parts.join("; ")
}

fn value(about: &Value) -> String {
    if let Some(words) = about["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`").replace('"', "")).collect::<Vec<_>>().join(", ");
    }
    let kind = about["type"].as_str().unwrap_or("string or object");
    match (kind, about["items"]["type"].as_str(), about["properties"].as_object()) {
        ("array", Some(items), _) => format!("list of {items}s"),
        (_, _, Some(members)) => {
            let members: Vec<String> = members.keys().map(|key| format!("`{key}`")).collect();
            format!("object: {}", members.join(", "))
        }
        _ => match (about["minimum"].as_f64(), about["maximum"].as_f64()) {
            (Some(least), Some(most)) => format!("{kind}, {least} to {most}"),
            (Some(least), None) => format!("{kind}, at least {least}"),
            _ => kind.to_owned(),
        },
    }
}

#[test]
fn the_page_of_thread_events_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/thread_events.md");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, page()).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        published == page(),
        "reference/thread_events.md is out of date; `TIDEGATE_BLESS=1 cargo test -p tidegate-config --test it event_reference::` rewrites it"
    );
}

/// The examples of the page are ones that can be copied.
#[test]
fn the_examples_of_the_page_load() {
    let examples: Vec<&str> = HEAD.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let source = flow::SourceFile::new("example.toml", example);
        let layer = LayerFile::of_settings(&Layer { kind: LayerKind::User, source });
        Catalogue::of_layers(&[layer]).unwrap_or_else(|found| panic!("{found}"));
    }
}
