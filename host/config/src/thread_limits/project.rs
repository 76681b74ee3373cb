//! What a project does not decide about limits: it can lower them, and it sets no prices.

use flow::Limits;

use super::{Layers, limits};
use crate::Code;
use crate::document::steps;
use crate::layers::LayerOrigin;

const HELP: &str = "a project can only lower what the user's file and the defaults permit; set it in `[limits]` of the user's \
                    `tidegate.toml`";

/// Notes the limits of a project that are higher than `most`, and its prices: with lower ones, money would not be limited.
pub(super) fn refuse(layers: &mut Layers<'_>, most: &Limits) {
    let wanted = limits(layers);
    // What is wrong with one of them is noted when they are read for good, and is no high limit.
    if !std::mem::take(&mut layers.found).is_empty() {
        return;
    }
    fn exceeds<T: PartialOrd>(wanted: Option<T>, most: Option<T>) -> bool {
        most.is_some_and(|most| wanted.is_none_or(|wanted| wanted > most))
    }
    let raised = [
        ("turns", exceeds(wanted.turns, most.turns)),
        ("steps", exceeds(wanted.steps, most.steps)),
        ("tokens", exceeds(wanted.tokens, most.tokens)),
        ("spend", exceeds(wanted.spend, most.spend)),
        ("spawns", exceeds(wanted.spawns, most.spawns)),
        ("depth", exceeds(wanted.depth, most.depth)),
        ("duration", exceeds(wanted.duration, most.duration)),
    ];
    for (key, _) in raised.into_iter().filter(|(_, is_raised)| *is_raised) {
        let message = format!("a project cannot raise the limit `{key}`");
        layers.refuse(Code::LimitsProject, (&steps!["limits", key], false), message, HELP);
    }
    if layers.origin(&steps!["price"]).is_some_and(|origin| origin != LayerOrigin::User) {
        layers.refuse(Code::LimitsProject, (&steps!["price"], true), "a project cannot set prices", HELP);
    }
}
