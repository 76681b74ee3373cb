//! The limits of an answer to `on_llm_output`, as the contract has them.

use crate::OutputAnswer;

const ANNOTATIONS: usize = 32;
const KEY_BYTES: usize = 128;
const VALUE_BYTES: usize = 64 << 10;

/// Drops the annotations that the host does not keep; returns why, one reason each.
pub(super) fn annotations(answer: &mut OutputAnswer) -> Vec<String> {
    let mut dropped = Vec::new();
    for (number, (key, value)) in std::mem::take(&mut answer.annotations).into_iter().enumerate() {
        match problem(number, &key, &value) {
            None => answer.annotations.push((key, value)),
            Some(problem) => dropped.push(format!("annotation `{key}`: {problem}")),
        }
    }
    dropped
}

fn problem(number: usize, key: &str, value: &str) -> Option<String> {
    if number >= ANNOTATIONS {
        Some(format!("more than {ANNOTATIONS} annotations"))
    } else if key.is_empty() || key.len() > KEY_BYTES {
        Some(format!("its key has {} bytes, a key has 1 to {KEY_BYTES}", key.len()))
    } else if value.len() > VALUE_BYTES {
        Some(format!("its value has {} bytes, a value has at most {VALUE_BYTES}", value.len()))
    } else {
        serde_json::from_str::<serde_json::Value>(value).err().map(|error| format!("no JSON: {error}"))
    }
}
