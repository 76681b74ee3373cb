//! The limits of sessions, and what tokens cost.
//!
//! Both are data. The default of the program ([`defaults`]) is overridden by `[limits]` of the user's settings: limits key by key, prices by the
//! name of their model. A project only lowers limits.

mod project;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use flow::{Limits, Price, Spend};
use schemars::Schema;
use serde_json::Value;

use crate::document::{Step, steps};
use crate::layer_files::Places;
use crate::layers::{DefaultLayer, LayerFile, Layered};
use crate::schema::{TypedFile as _, versioned};
use crate::typed::{AmountFile, CountFile, PriceFile, SessionLimitsFile, ThreadLimitsFile};
use crate::{Code, Diagnostic, Diagnostics, Location, Operator, SourceFile, duration, layer_files};

/// The version of the format, as `schema_version` has it.
pub const SCHEMA_VERSION: &str = "1.0.0";

/// The name of a file of its own with the limits: in `tidegate` of the user's configuration folder, and in `.tidegate` of a workspace.
pub const FILE: &str = "thread_limits.toml";

/// The word for no limit.
const UNLIMITED: &str = "unlimited";

pub(crate) type Layers<'a> = crate::layers::Layers<'a, ThreadLimitsFile>;

/// What sessions may take, and what tokens cost.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThreadLimits {
    /// What a session may take.
    pub limits: Limits,
    /// How long an approval of a higher limit is waited for.
    pub approval_timeout: Duration,
    /// What is left out of the file of the project: limits that are higher than the user's, and prices.
    pub left_out: Vec<Diagnostic>,
    prices: Vec<(String, Price)>,
    spend_place: Option<Location>,
}

/// The default, as TOML with comments.
pub fn defaults() -> &'static str {
    include_str!("thread_limits.toml")
}

/// The file of a project; `None` where there is none.
///
/// # Errors
/// It is a link to a file outside of the workspace, which a project could use to show files of this machine.
pub fn project_file(workspace: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    layer_files::project_file(workspace, &[FILE])
}

/// The limits of a session in a workspace: the default of the program with `[limits]` of the operator and the files of the user and of the
/// project on top, as far as they exist. `user`: the folder of the user's files, `tidegate` in the configuration folder.
///
/// # Errors
/// A file cannot be read, or something in it is wrong; all that is wrong with one file is reported together.
pub fn load(operator: &Operator, user: Option<&Path>, workspace: &Path) -> Result<ThreadLimits, Diagnostics> {
    let places = Places { settings: &operator.layers, user, workspace };
    of_layers(&places.read(&[FILE], None)?)
}

/// The default of the program with these files on top of it, lowest first.
///
/// # Errors
/// Something in a file is wrong; all that is wrong is reported together.
pub fn of_sources(files: &[Arc<SourceFile>]) -> Result<ThreadLimits, Diagnostics> {
    of_layers(&files.iter().map(LayerFile::of_user).collect::<Vec<_>>())
}

/// The same with files of a project among them, of which nothing counts that only the user decides.
///
/// # Errors
/// Something in a file is wrong; all that is wrong is reported together.
pub fn of_layers(files: &[LayerFile]) -> Result<ThreadLimits, Diagnostics> {
    layered(files).map(|(_, limits)| limits)
}

/// The layers without what of a project's was left out, and the limits that they make.
pub(crate) fn layered(files: &[LayerFile]) -> Result<(Layers<'_>, ThreadLimits), Diagnostics> {
    let mut layers = Layers::read(files)?;
    for place in not_finite(&layers) {
        let help = "write a number of US dollars; for no limit, `\"unlimited\"`";
        layers.error_at(Code::LimitsInvalidAmount, place, "this is not an amount of money", help);
    }
    if !layers.found.is_empty() {
        return Err(Diagnostics(layers.found));
    }
    let users = LayerFile::of_users(files);
    if users.len() < files.len() {
        // What is wrong with it is reported below.
        let most = Layers::read(&users).map(|mut users| limits(&mut users)).unwrap_or_default();
        project::refuse(&mut layers, &most);
        layers.leave_out()?;
    }
    let limits = limits(&mut layers);
    let timeout = std::mem::take(&mut layers.merged.approval).timeout;
    let approval_timeout = timeout.and_then(|text| time(&mut layers, &steps!["approval", "timeout"], &text));
    let entries = std::mem::take(&mut layers.merged.price);
    let prices = entries.iter().filter_map(|entry| price(&mut layers, entry)).collect();
    let spend_place = limits.spend.map(|_| layers.place(&steps!["limits", "spend"], false));
    let mut found = std::mem::take(&mut layers.found);
    found.sort_by_key(|one| one.location().map(|at| (at.file.path.clone(), at.span.start)));
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    let (approval_timeout, left_out) = (approval_timeout.unwrap_or_default(), std::mem::take(&mut layers.warnings));
    Ok((layers, ThreadLimits { limits, approval_timeout, left_out, prices, spend_place }))
}

impl ThreadLimits {
    /// The price of a model; `None`: it is not known.
    ///
    /// ```
    /// let limits = tidegate_config::thread_limits::of_sources(&[])?;
    /// assert!(limits.price("claude-sonnet-4-5-20250929").is_some());
    /// assert!(limits.price("claude-sonnet-4-5-large").is_none());
    /// # Ok::<(), tidegate_config::Diagnostics>(())
    /// ```
    pub fn price(&self, model: &str) -> Option<Price> {
        let fits = |id: &str| match id.strip_suffix('*') {
            Some(start) => model.starts_with(start),
            None => model.strip_prefix(id).is_some_and(|rest| rest.is_empty() || is_date(rest)),
        };
        let found = self.prices.iter().filter(|(id, _)| fits(id)).max_by_key(|(id, _)| id.len());
        found.map(|(_, price)| *price)
    }

    /// The price for a session with this model.
    ///
    /// # Errors
    /// Money is limited and the price is not known, so the limit could not be kept.
    pub fn price_for(&self, model: &str) -> Result<Option<Price>, Diagnostics> {
        let price = self.price(model);
        match &self.spend_place {
            Some(place) if price.is_none() => {
                let message = format!(
                    "the price of the model `{}` is not known, so `spend` cannot be limited",
                    model.escape_debug()
                );
                let help = format!(
                    "add `[[limits.price]]` with `id = \"{}\"`, `input` and `output` to the user's tidegate.toml, or limit `tokens` instead",
                    model.escape_debug()
                );
                Err(Diagnostic::error(Code::LimitsUnknownPrice, message).at(place.clone(), "").help(help).into())
            }
            _ => Ok(price),
        }
    }
}

/// The date at the end of a model's name, such as `-20250929` or `-2024-08-06`.
fn is_date(rest: &str) -> bool {
    let Some(date) = rest.strip_prefix('-') else { return false };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    digits == 8 && (date.len() == 8 || (date.len() == 10 && date.bytes().filter(|byte| *byte == b'-').count() == 2))
}

fn limits(layers: &mut Layers<'_>) -> Limits {
    let SessionLimitsFile { turns, steps, tokens, spend, spawns, depth, duration } = layers.merged.limits.clone();
    let count = |count: Option<CountFile>| if let Some(CountFile::Number(most)) = count { Some(most) } else { None };
    let mut limits = Limits::default();
    limits.turns = count(turns);
    limits.steps = count(steps);
    limits.tokens = count(tokens);
    limits.spawns = count(spawns);
    limits.depth = count(depth);
    limits.spend = spend.and_then(|spend| match spend {
        AmountFile::Number(dollars) => Some(Spend::of_dollars(dollars)),
        AmountFile::Word(_) => None,
    });
    let given = duration.filter(|text| text != UNLIMITED);
    limits.duration = given.and_then(|text| time(layers, &steps!["limits", "duration"], &text));
    limits
}

fn time(layers: &mut Layers<'_>, path: &[Step], text: &str) -> Option<Duration> {
    let time = duration::parse(text).filter(|time| !time.is_zero());
    if time.is_none() {
        let message = format!("`{}` is not a duration", text.escape_debug());
        layers.error(
            Code::LimitsInvalidDuration,
            path,
            message,
            "write a whole number and a unit, such as `90s`, `10m` or `2h`",
        );
    }
    time
}

fn price(layers: &mut Layers<'_>, entry: &PriceFile) -> Option<(String, Price)> {
    let (Some(input), Some(output)) = (entry.input, entry.output) else {
        let message = format!("the price of `{}` has no `input` or no `output`", entry.id.escape_debug());
        if let Some(place) = place(layers, &entry.id) {
            layers.error_at(Code::LimitsIncomplete, place, message, "add both, in US dollars for a million tokens");
        }
        return None;
    };
    let mut price = Price::default();
    (price.input, price.output) = (input, output);
    price.cache_read = entry.cache_read.unwrap_or(input);
    price.cache_write = entry.cache_write.unwrap_or(input);
    Some((entry.id.clone(), price))
}

/// Where files have `nan` or `inf` as an amount: what they are merged as has no such numbers.
fn not_finite(layers: &Layers<'_>) -> Vec<Location> {
    let mut found = Vec::new();
    for (document, value) in layers.highest_first() {
        if value.pointer("/limits/spend").is_some_and(Value::is_null) {
            found.push(document.place(&steps!["limits", "spend"]));
        }
        let entries = value.get("price").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (at, entry) in entries.iter().enumerate() {
            let wrong = |key: &&&str| entry.get(**key).is_some_and(Value::is_null);
            let keys = ["input", "output", "cache_read", "cache_write"];
            found.extend(keys.iter().filter(wrong).map(|key| document.place(&steps!["price", at, *key])));
        }
    }
    found
}

/// The id of an entry in the highest layer that has it.
fn place(layers: &Layers<'_>, id: &str) -> Option<Location> {
    layers.highest_first().find_map(|(document, value)| {
        let entries = value.get("price")?.as_array()?;
        let at = entries.iter().position(|entry| entry.get("id").is_some_and(|of| of == id))?;
        Some(document.place(&steps!["price", at, "id"]))
    })
}

impl Layered for ThreadLimitsFile {
    const FILES: &'static str = "session limits";
    const VERSION: &'static str = SCHEMA_VERSION;
    const VERSION_CODE: Code = Code::LimitsSchemaVersion;
    const IN_SETTINGS: &'static [(&'static str, [&'static str; 2])] =
        &[("limits", ["limits", "session"]), ("approval", ["limits", "approval"]), ("price", ["limits", "price"])];
    const NAMED: &'static [&'static str] = &["price"];

    fn default_layer() -> &'static Result<DefaultLayer, Diagnostics> {
        static SOURCE: LazyLock<Arc<SourceFile>> =
            LazyLock::new(|| SourceFile::new("limits of the program", defaults()));
        static DEFAULT: LazyLock<Result<DefaultLayer, Diagnostics>> =
            LazyLock::new(|| DefaultLayer::read::<ThreadLimitsFile>(&SOURCE));
        &DEFAULT
    }

    fn file_schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| versioned(ThreadLimitsFile::schema(), FILE));
        &SCHEMA
    }
}
