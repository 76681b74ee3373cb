//! All benches in one program, so that link-time optimisation, which takes minutes, is done once. `cargo xtask bench [NAME …]` runs
//! each in a process of its own, since memory that one used would count for the next.
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

mod backlog;
mod callback;
mod editors;
mod extensions;
mod front_ends;
mod gateway;
mod rule_sets;
mod rules;
mod segments;
mod start;
mod state;
mod support;
mod turn;

const BENCHES: [(&str, fn()); 12] = [
    ("callback", callback::bench),
    ("extensions", extensions::bench),
    ("state", state::bench),
    ("rules", rules::bench),
    ("rule-sets", rule_sets::bench),
    ("segments", segments::bench),
    ("turn", turn::bench),
    ("start", start::bench),
    ("front-ends", front_ends::bench),
    ("editors", editors::bench),
    ("backlog", backlog::bench),
    ("gateway", gateway::bench),
];

/// The benches to run, with commas between them; all where it is not set. Arguments belong to Criterion.
const CHOSEN: &str = "TIDEGATE_BENCHES";

fn main() {
    let chosen = std::env::var(CHOSEN).unwrap_or_default();
    for (name, bench) in BENCHES {
        if chosen.is_empty() || chosen.split(',').any(|wanted| wanted == name) {
            bench();
        }
    }
}
