//! Fuzz targets for stream rules, event catalogues and the decoders of the wire formats. Each is a function from bytes to a verdict: it panics where something does not hold.
//!
//! `cargo test -p tidegate-fuzz` runs each on its seeds and on some thousands of changed ones, the same every time. The
//! long way, with coverage as the guide, is in `tests/fuzz/README.md`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a target stops where something is not as it should be")]

mod condition;
mod engine;
mod events;
mod front_matter;
mod json;
pub mod mutate;
mod scope;
mod seeds;
mod streams;

/// A fuzz target: its name, its seeds and its function.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its program and of its folder of inputs.
    pub name: &'static str,
    /// Looks at one input; panics where something does not hold.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that inputs are made of.
    pub words: &'static [&'static str],
}

/// The targets, in the order in which they run.
pub const TARGETS: [Target; 10] = [
    Target { name: "front_matter", run: front_matter::run, seeds: seeds::front_matter, words: front_matter::WORDS },
    Target { name: "scope", run: scope::run, seeds: seeds::scope, words: scope::WORDS },
    Target { name: "json", run: json::run, seeds: seeds::json, words: json::WORDS },
    Target { name: "condition", run: condition::run, seeds: seeds::condition, words: condition::WORDS },
    Target { name: "event_catalogue", run: events::catalogue, seeds: seeds::event_catalogue, words: events::WORDS },
    Target {
        name: "event_condition",
        run: events::condition,
        seeds: seeds::event_condition,
        words: events::CONDITION_WORDS,
    },
    Target { name: "engine", run: engine::run, seeds: seeds::engine, words: &[] },
    Target { name: "anthropic", run: streams::anthropic, seeds: seeds::anthropic, words: streams::WORDS },
    Target { name: "openai_chat", run: streams::openai_chat, seeds: seeds::openai_chat, words: streams::WORDS },
    Target {
        name: "openai_responses",
        run: streams::openai_responses,
        seeds: seeds::openai_responses,
        words: streams::WORDS,
    },
];

/// The target of this name.
///
/// # Panics
/// There is none.
pub fn target(name: &str) -> Target {
    TARGETS.into_iter().find(|target| target.name == name).unwrap()
}
