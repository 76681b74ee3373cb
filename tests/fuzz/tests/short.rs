//! A short run of every target: its seeds, and a fixed number of changed ones, the same every time. `TIDEGATE_TIMES` is how many times the
//! usual number it takes.
#![allow(clippy::print_stdout, reason = "a run says how much it looked at; `--nocapture` shows it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tidegate_fuzz::mutate::{Numbers, changed};
use tidegate_fuzz::{Target, target};

/// Changed inputs for each target: as usual, or `TIDEGATE_TIMES` as many, as in the night.
fn inputs() -> usize {
    1_000 * std::env::var("TIDEGATE_TIMES").map_or(1, |times| times.parse().unwrap())
}

fn run(name: &str) {
    let Target { run, seeds, words, .. } = target(name);
    let seeds = seeds();
    assert!(seeds.len() >= 5, "{name} has only {} seeds", seeds.len());
    for seed in &seeds {
        run(seed);
    }
    let mut numbers = Numbers::new(1);
    for _ in 0..inputs() {
        run(&changed(&seeds, words, &mut numbers));
    }
    println!("{name}: {} seeds and {} changed ones", seeds.len(), inputs());
}

#[test]
fn front_matter() {
    run("front_matter");
}

#[test]
fn scope() {
    run("scope");
}

#[test]
fn json() {
    run("json");
}

#[test]
fn condition() {
    run("condition");
}

#[test]
fn event_catalogue() {
    run("event_catalogue");
}

#[test]
fn event_condition() {
    run("event_condition");
}

#[test]
fn engine() {
    run("engine");
}

#[test]
fn anthropic() {
    run("anthropic");
}

#[test]
fn openai_chat() {
    run("openai_chat");
}

#[test]
fn openai_responses() {
    run("openai_responses");
}
