//! Level 3: events as they are, for a front end that shows something else: here, how much of what the model wrote was discarded.
//!
//! ```text
//! cargo run -p tidegate-chat --example level_3
//! ```
#![allow(dead_code, reason = "a test runs the example without its main function")]

mod support;

use std::error::Error;
use std::io::{Write, stdout};

use flow::EventKind;

/// Prints one line for each answer that did not come to its end.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    for event in support::events(support::RECORDED)? {
        if let EventKind::CognitionOut { partial: Some(partial), .. } = &event.kind {
            let void = partial.shown_bytes - partial.kept_bytes.min(partial.shown_bytes);
            let place = event.place;
            writeln!(out, "turn {} step {}: {}, {void} shown bytes are void", place.turn, place.step, partial.error)?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut stdout().lock())
}
