//! The lines about turns, steps and callbacks.

use crate::figures::{count, dollars, known, of, took, took_ms};
use crate::report::{Callback, Log, Step, Turn};

/// Returns how a turn ended, and what it took, in one line.
pub(crate) fn turn_line(turn: &Turn) -> String {
    let status = turn.finish.as_ref().map_or("not finished", |finish| finish.status.as_str());
    let why = turn.finish.as_ref().and_then(|finish| {
        let steps = finish.steps.map(|steps| of(u64::from(steps), "step", "steps"));
        [finish.error.clone(), finish.reason.clone(), finish.rule.clone(), steps].into_iter().flatten().next()
    });
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let tokens = turn.tokens();
    let (input, output) = (known(tokens.input_tokens), known(tokens.output_tokens));
    format!("{status}{why}, {}, tokens: {input} in, {output} out", took_ms(turn.duration_ms()))
}

/// Returns how a step ended, in one line; empty where that is not recorded.
pub(crate) fn step_line(step: &Step) -> String {
    let Some(finish) = &step.finish else { return String::new() };
    let (input, output) = (known(finish.tokens.input_tokens), known(finish.tokens.output_tokens));
    let cache = finish.tokens.cache_read_tokens.map(|tokens| format!(", {} of them from the cache", count(tokens)));
    let cost = finish.cost.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    format!("{}, tokens: {input} in{}, {output} out{cost}", finish.finish_reason, cache.unwrap_or_default())
}

/// Returns the callbacks of a position in one line; `None`: there were none that did anything.
pub(crate) fn callbacks(log: &Log) -> Option<String> {
    let called = log.callbacks.iter().filter(|one| one.total_us > 0.0 || one.changed > 0);
    let one = |one: &Callback| {
        let changed = if one.changed > 0 { format!(", {} changed", count(one.changed)) } else { String::new() };
        let calls = of(one.calls, "call", "calls");
        format!("{} {}: {calls}{changed}, {}", one.extension, one.callback, took(one.total_us))
    };
    let all: Vec<String> = called.map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
