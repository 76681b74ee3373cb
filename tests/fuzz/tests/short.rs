//! A short run of every target: its seeds, and a fixed number of changed ones, the same every time.
#![allow(clippy::print_stdout, reason = "a run says how much it looked at; `--nocapture` shows it")]

use tidegate_fuzz::mutate::{Numbers, changed};
use tidegate_fuzz::{Target, target};

/// Changed inputs for each target.
const INPUTS: usize = 4_000;

fn run(name: &str) {
    let Target { run, seeds, words, .. } = target(name);
    let seeds = seeds();
    assert!(seeds.len() >= 5, "{name} has only {} seeds", seeds.len());
    for seed in &seeds {
        run(seed);
    }
    let mut numbers = Numbers::new(1);
    for _ in 0..INPUTS {
        run(&changed(&seeds, words, &mut numbers));
    }
    println!("{name}: {} seeds and {INPUTS} changed ones", seeds.len());
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
