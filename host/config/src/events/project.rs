//! What the file of a project cannot do: have fewer events recorded than without it.

use flow::Aggregate;

use super::layers::Layers;
use super::{Catalogue, Type};
use crate::Code;
use crate::document::{Step, steps};
use crate::layers::LayerOrigin;

const HELP: &str = "remove the key, or set it in `[events]` of the user's `tidegate.toml`";

/// Notes what of a project makes the records of a type fewer or later than they are in `own`, what the files of the user and the default say.
pub(super) fn refuse(layers: &mut Layers<'_>, own: &Catalogue, with: &Catalogue) {
    for (name, of) in &with.types {
        let Some(without) = own.types.get(name) else {
            // A plugin's events are named so, and a type of a file counts before that of a manifest.
            if name.contains('.') {
                let message =
                    format!("a project does not declare `{}`: such names are those of plugins", name.escape_debug());
                refuse_at(layers, &steps!["event_types", name.as_str()], message, "choose a name without a `.`");
            }
            continue;
        };
        let loses = with.is_droppable(of) && !own.is_droppable(without);
        for key in fewer(without, of, loses) {
            let path: Vec<Step> = ["event_types", name].into_iter().chain(key.split('.')).map(Step::from).collect();
            let short = key.trim_start_matches("emit_config.");
            let message = format!("the `{short}` of a project cannot make the records of `{name}` fewer");
            refuse_at(layers, &path, message, HELP);
        }
    }
    for (name, level) in &own.levels {
        let is_changed = with.levels.get(name).is_some_and(|with| {
            (with.durability, with.is_async, with.fallback) != (level.durability, level.is_async, level.fallback)
        });
        for key in ["durability", "async", "fallback"].into_iter().filter(|_| is_changed) {
            let message = format!("a project does not change the level `{}`", name.escape_debug());
            let help = "declare a level with a name of your own";
            refuse_at(layers, &steps!["criticality_levels", name.as_str(), key], message, help);
        }
    }
}

/// The keys of a type that can be why its records are fewer or later. `loses`: its events can be lost, and could not before.
fn fewer(without: &Type, with: &Type, loses: bool) -> Vec<&'static str> {
    let (old, new) = (&without.emit, &with.emit);
    let keeps_milestones = new.milestones.is_empty()
        || (!old.milestones.is_empty() && old.milestones.iter().all(|one| new.milestones.contains(one)));
    let always = |condition: &super::Condition| condition.text() == "true";
    let keys = [
        ("criticality", loses),
        ("emit_config.async", loses),
        ("emit_on_error", without.emit_on_error && !with.emit_on_error),
        ("emit_config.throttle", new.throttle > old.throttle),
        ("emit_config.condition", new.condition != old.condition && !new.condition.as_ref().is_some_and(always)),
        ("emit_config.milestones", !keeps_milestones),
        ("emit_config.accumulate_on_error", old.accumulate_on_error && !new.accumulate_on_error),
        ("emit_config.aggregate", new.aggregate != Aggregate::Never && old.aggregate == Aggregate::Never),
    ];
    keys.into_iter().filter(|(_, is_fewer)| *is_fewer).map(|(key, _)| key).collect()
}

fn refuse_at(layers: &mut Layers<'_>, path: &[Step], message: String, help: &str) {
    if layers.origin(path).is_some_and(|origin| origin != LayerOrigin::User) {
        layers.refuse(Code::EventsUnsafe, (path, true), message, help);
    }
}
