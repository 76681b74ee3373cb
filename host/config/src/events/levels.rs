//! Criticality levels: whether events can be lost, and whether the turn waits for them.

use std::collections::BTreeMap;

use super::layers::Layers;
use crate::Code;
use crate::document::{Step, steps};
use crate::typed::{Durability, Fallback, LevelFile};

/// How events of a criticality level are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Level {
    /// What the level means.
    pub description: String,
    /// Whether its events can be lost.
    pub durability: Durability,
    /// The turn does not wait until an event is on disk, unless the event's type decides otherwise.
    pub is_async: bool,
    /// What happens when the queue of the writer is full; `None`: the turn waits.
    pub fallback: Option<Fallback>,
}

impl Level {
    /// Whether events of a type of this level can be lost; `is_async` is what the type sets.
    pub(super) fn is_droppable(&self, is_async: Option<bool>) -> bool {
        self.durability == Durability::BestEffort
            && is_async.unwrap_or(self.is_async)
            && self.fallback == Some(Fallback::Drop)
    }
}

/// The levels that are complete and consistent; errors are noted.
pub(super) fn resolve(layers: &mut Layers<'_>) -> BTreeMap<String, Level> {
    let files = std::mem::take(&mut layers.merged.criticality_levels);
    let levels = files.iter().filter_map(|(name, file)| Some((name.clone(), level(layers, name, file)?)));
    let levels = levels.collect();
    layers.merged.criticality_levels = files;
    levels
}

fn level(layers: &mut Layers<'_>, name: &str, file: &LevelFile) -> Option<Level> {
    let path = |key: &str| -> Vec<Step> { steps!["criticality_levels", name, key].to_vec() };
    let (Some(description), Some(durability)) = (&file.description, file.durability) else {
        let message = format!("the new criticality level `{name}` is incomplete");
        let help = "add `description = …` and `durability = \"guaranteed\"` or `\"best_effort\"`";
        layers.key_error(Code::EventsIncomplete, &steps!["criticality_levels", name], message, help);
        return None;
    };
    if durability == Durability::Guaranteed {
        let contradicts = [(file.is_async == Some(true), "async"), (file.fallback.is_some(), "fallback")];
        for key in contradicts.into_iter().filter_map(|(is_set, key)| is_set.then_some(key)) {
            let message = format!("the level `{name}` is `guaranteed`, which contradicts its `{key}`");
            let help = "the turn waits for events of this level; remove the key, or set `durability = \"best_effort\"`";
            // The key that a file changed is the one to look at.
            let changed = if layers.is_overridden(&path("durability")) { "durability" } else { key };
            layers.error(Code::EventsIncomplete, &path(changed), message, help);
        }
    }
    Some(Level {
        description: description.clone(),
        durability,
        is_async: file.is_async.unwrap_or(durability == Durability::BestEffort),
        fallback: file.fallback,
    })
}
