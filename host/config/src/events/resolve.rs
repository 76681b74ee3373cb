//! The catalogue as used: plain values, defaults filled in, conditions parsed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flow::Aggregate;
use serde_json::Value;

use super::layers::Layers;
use super::payload::Cost;
use super::{Condition, Level, declared, levels, payload, project, safety};
use crate::document::{Step, steps};
use crate::layers::LayerFile;
use crate::typed::{AggregateWord, EmitFile, EventTypeFile};
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile, check, duration};

/// The longest throttle.
const MAX_THROTTLE: Duration = Duration::from_secs(3600);

/// The event types with the levels and categories that they name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Catalogue {
    /// The types, by name.
    pub types: BTreeMap<String, Type>,
    /// The criticality levels, by name.
    pub levels: BTreeMap<String, Level>,
    /// The categories: their names and what they contain.
    pub categories: BTreeMap<String, String>,
}

/// An event type, for every session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Type {
    /// Its group, a key of [`Catalogue::categories`].
    pub category: String,
    /// The name of its criticality level.
    pub criticality: String,
    /// What it reports.
    pub description: String,
    /// The JSON Schema of its payload.
    pub payload_schema: Value,
    /// Whether an event that reports an error is recorded.
    pub emit_on_error: bool,
    /// Whether a session can be rebuilt without its events.
    pub required: Required,
    /// When its events are recorded.
    pub emit: Emit,
    /// A file has declared it: its events are those of plugins and of programs that embed the host.
    pub is_declared: bool,
}

/// Whether a session can be rebuilt without the events of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Required {
    /// It can, so files can have its events left out.
    Never,
    /// It cannot: none of the type's events is ever left out or delayed.
    Always,
    /// It cannot where this condition is fulfilled.
    If(Condition),
}

/// When events of a type are recorded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Emit {
    /// What the type sets instead of what its level does.
    pub is_async: Option<bool>,
    /// The shortest time between two records; zero records all.
    pub throttle: Duration,
    /// In which sessions; `None`: in all.
    pub condition: Option<Condition>,
    /// The values of the progress that are recorded; empty: all.
    pub milestones: Vec<f64>,
    /// Whether what was accumulated until an interruption is recorded.
    pub accumulate_on_error: bool,
    /// Over what events are counted.
    pub aggregate: Aggregate,
}

impl Catalogue {
    /// The default of the program with these files of the user on top of it, lowest first. A file whose name ends with `.yaml` is read as
    /// YAML.
    ///
    /// # Errors
    /// Something in a file is wrong; all that is wrong is reported together.
    pub fn of_sources(files: &[Arc<SourceFile>]) -> Result<Self, Diagnostics> {
        let files: Vec<LayerFile> = files.iter().map(LayerFile::of_user).collect();
        Self::of_layers(&files).map(|(catalogue, _)| catalogue)
    }

    /// The same with files of a project among them, in which what a session must not lose, what makes records fewer and what has no effect is
    /// left out. Returns what was left out, too.
    ///
    /// # Errors
    /// Something else in a file is wrong; all that is wrong is reported together.
    pub fn of_layers(files: &[LayerFile]) -> Result<(Self, Vec<Diagnostic>), Diagnostics> {
        Self::layered(files).map(|(layers, catalogue)| (catalogue, layers.warnings))
    }

    /// The layers without what of a project's was left out, and the catalogue that they make.
    pub(crate) fn layered(files: &[LayerFile]) -> Result<(Layers<'_>, Self), Diagnostics> {
        let mut layers = Layers::read(files)?;
        let users = LayerFile::of_users(files);
        let own = if users.len() < files.len() { Some(Self::of_layers(&users)?.0) } else { None };
        loop {
            layers.refuse_over_users(Code::EventsUnsafe, &["event_types", "criticality_levels"], "payload_schema");
            let catalogue = Self::resolve(&mut layers);
            if let Some(own) = &own {
                project::refuse(&mut layers, own, &catalogue);
            }
            // What is left out can make something else of a file count.
            if layers.found.is_empty() && layers.leave_out()? {
                continue;
            }
            let mut found = std::mem::take(&mut layers.found);
            found.sort_by_key(place);
            layers.warnings.sort_by_key(place);
            return if found.is_empty() { Ok((layers, catalogue)) } else { Err(Diagnostics(found)) };
        }
    }

    /// Whether events of a type can be lost. A level that does not exist was refused when the catalogue was read.
    pub(super) fn is_droppable(&self, of: &Type) -> bool {
        self.levels.get(&of.criticality).is_some_and(|level| level.is_droppable(of.emit.is_async))
    }

    /// What the layers say together. What is wrong is noted in them.
    fn resolve(layers: &mut Layers<'_>) -> Self {
        let levels = levels::resolve(layers);
        let categories = layers.merged.categories.clone();
        let mut cost = Cost::default();
        let mut catalogue = Self { types: BTreeMap::new(), levels, categories };
        for (name, file) in std::mem::take(&mut layers.merged.event_types) {
            let is_built_in = layers.is_type(&name);
            if !is_built_in && !declared::check(layers, &name, &file) {
                continue;
            }
            let read = catalogue.event_type(layers, &name, &file, &mut cost);
            safety::check(layers, &catalogue.levels, &name, &file, &read);
            catalogue.types.insert(name, Type { is_declared: !is_built_in, ..read });
        }
        safety::check_levels(layers, &catalogue);
        catalogue
    }

    fn event_type(&self, layers: &mut Layers<'_>, name: &str, file: &EventTypeFile, cost: &mut Cost) -> Type {
        let path = |key: &str| steps!["event_types", name, key];
        let mut known = |known: Vec<&str>, value: &Option<String>, key: &str, kind: &str| {
            // Only a type that a file declares can be without it.
            let value = value.clone().unwrap_or_else(|| declared::default(key).to_owned());
            if !known.contains(&value.as_str()) {
                let message = format!("unknown {key} `{}` of the event type `{name}`", value.escape_debug());
                let help = check::suggest(&value, &known, kind);
                layers.error(Code::EventsUnknownName, &path(key), message, help);
            }
            value
        };
        let category = known(names(&self.categories), &file.category, "category", "categories");
        let criticality = known(names(&self.levels), &file.criticality, "criticality", "criticality levels");
        let schema = file.payload_schema.clone().unwrap_or_default();
        // Compiling all schemas of the default takes longer than reading it; a test compiles them.
        if layers.is_overridden(&path("payload_schema"))
            && let Err(refusal) = payload::check(&schema, cost)
        {
            let message = format!("the payload schema of `{name}` {}", refusal.why);
            let place = schema_path(layers, path("payload_schema").to_vec(), &refusal.pointer);
            layers.error(Code::EventsInvalidSchema, &place, message, payload::HELP);
        }
        let required = match (&file.required, &file.required_if) {
            (Some(true), _) => Required::Always,
            (_, Some(text)) => condition(layers, &path("required_if"), text).map_or(Required::Always, Required::If),
            (_, None) => Required::Never,
        };
        Type {
            category,
            criticality,
            description: file.description.clone().unwrap_or_default(),
            payload_schema: Value::Object(schema),
            emit_on_error: file.emit_on_error.unwrap_or(true),
            required,
            emit: emit(layers, name, &file.emit_config),
            is_declared: false,
        }
    }
}

fn place(one: &Diagnostic) -> Option<(PathBuf, usize)> {
    one.location().map(|at| (at.file.path.clone(), at.span.start))
}

/// The steps of a JSON pointer below `path`, as far as a file contains them.
fn schema_path(layers: &Layers<'_>, mut path: Vec<Step>, pointer: &str) -> Vec<Step> {
    for name in pointer.split('/').skip(1) {
        let key = Step::Key(name.replace("~1", "/").replace("~0", "~"));
        let steps = [Some(key), name.parse().ok().map(Step::Index)];
        let longer = steps.into_iter().flatten().map(|step| [path.as_slice(), &[step]].concat());
        match longer.into_iter().find(|longer| layers.is_overridden(longer)) {
            Some(longer) => path = longer,
            None => break,
        }
    }
    path
}

fn names<V>(map: &BTreeMap<String, V>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

fn emit(layers: &mut Layers<'_>, name: &str, file: &EmitFile) -> Emit {
    let path = |key: &str| steps!["event_types", name, "emit_config", key];
    let throttle = file.throttle.as_deref().map_or(Ok(Duration::ZERO), throttle).unwrap_or_else(|message| {
        let help = "write a whole number and a unit, `ms`, `s`, `m` or `h`: `250ms`, `1s`; `0s` records every event";
        layers.error(Code::EventsInvalidThrottle, &path("throttle"), message, help);
        Duration::ZERO
    });
    let milestones = file.milestones.clone().unwrap_or_default();
    let is_ascending = milestones.is_sorted_by(|one, next| one < next);
    if !is_ascending || milestones.iter().any(|one| !(0.0..=100.0).contains(one)) {
        let message = "milestones must be ascending numbers from 0 to 100";
        layers.error(Code::EventsInvalidMilestones, &path("milestones"), message, "such as `[0, 25, 50, 75, 100]`");
    }
    Emit {
        is_async: file.is_async,
        throttle,
        condition: file.condition.as_deref().and_then(|text| condition(layers, &path("condition"), text)),
        milestones,
        accumulate_on_error: file.accumulate_on_error.unwrap_or(true),
        aggregate: match file.aggregate {
            Some(AggregateWord::Turn) => Aggregate::Turn,
            Some(AggregateWord::Never) | None => Aggregate::Never,
        },
    }
}

/// A condition at `path`; errors are noted at their place inside of the string.
fn condition(layers: &mut Layers<'_>, path: &[Step], text: &str) -> Option<Condition> {
    let error = match Condition::parse(text) {
        Ok(condition) => return Some(condition),
        Err(error) => error,
    };
    let whole = layers.place(path, false);
    let typed = whole.file.text.get(whole.span.clone()).unwrap_or_default();
    // Behind the quotes, unless something in the string is escaped: then the whole string is shown.
    let inside = [0, 1, 3].into_iter().find(|skip| typed.get(*skip..).is_some_and(|rest| rest.starts_with(text)));
    let place = inside.map_or(whole.clone(), |skip| {
        let start = whole.span.start + skip;
        Location::new(&whole.file, start + error.span.start..start + error.span.end)
    });
    let found = Diagnostic::error(Code::EventsInvalidCondition, error.message).at(place, "");
    layers.found.push(found.help(error.help));
    None
}

/// A throttle, which is a duration.
fn throttle(text: &str) -> Result<Duration, String> {
    let throttle = duration::parse(text).ok_or_else(|| format!("`{}` is not a throttle", text.escape_debug()))?;
    if throttle > MAX_THROTTLE { Err(format!("the throttle `{text}` is longer than an hour")) } else { Ok(throttle) }
}
