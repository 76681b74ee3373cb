//! The catalogue of thread events: which types there are, what their payloads contain, and how they are recorded.
//!
//! The catalogue is data. The default of the program ([`defaults`]) is overridden by the user's file and then by that of the project:
//! tables are merged by key, lists of tables with an `id` by id, other lists are replaced. The result, a [`Catalogue`], becomes the
//! [`flow::EventCatalogue`] of a session when its conditions are evaluated over the session's configuration ([`Variables`]).
//!
//! The types of the program are those of `flow::EventKind`: data decides how an event is recorded, not which events the program emits.
//! Plugins and programs that embed the host can emit others, which a file declares with the schema of their payload; all of them are of one
//! kind, `custom_event`. A file comes from strangers where it is the project's, so nothing in it can make a transcript useless: events that a
//! session is rebuilt from are marked `required` in the default, and no file can have them left out, delayed or rejected; and a project's
//! file adds to what is recorded, and takes nothing of it away.

mod condition;
pub(crate) mod declared;
mod deviations;
mod files;
mod layers;
mod levels;
mod payload;
mod project;
mod resolve;
mod safety;
mod session;

pub use condition::{Condition, ConditionError, GRAMMAR, VARIABLES, Variable, VariableKind, Variables};
pub use deviations::{DEVIATIONS, Deviation};
pub(crate) use files::NAMES;
pub use files::{FILE, FOREIGN_FOLDER, YAML_FILE, foreign_file, project_file, user_file};
pub use levels::Level;
pub use resolve::{Catalogue, Emit, Required, Type};

pub use crate::layers::{LayerFile, LayerOrigin};
pub use crate::typed::{Durability, Fallback};

/// The version of the format, as `schema_version` has it.
pub const SCHEMA_VERSION: &str = "1.0.0";

/// The default catalogue, as TOML with comments.
pub fn defaults() -> &'static str {
    include_str!("thread_events.toml")
}
