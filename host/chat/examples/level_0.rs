//! Level 0: a chat that works, with nothing set. Draws each change of a recorded session.
//!
//! ```text
//! cargo run -p tidegate-chat --example level_0
//! ```
#![allow(dead_code, reason = "a test runs the example without its main function")]

mod support;

use std::error::Error;
use std::io::{Write, stdout};

use tidegate_chat::{Author, ChatSession, ChatState};

/// Draws a recorded session: in a front end, the events of a subscription.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut chat = ChatSession::default();
    chat.submit("Write a function that adds one");
    for event in support::events(support::RECORDED)? {
        if chat.process(&event).is_yes() {
            // Here a front end draws; the example draws when a turn is over.
            let state = chat.snapshot();
            if !state.steering.is_executing() {
                draw(&state, out)?;
            }
        }
        // Here a front end's driver calls its session: `prompt`, `steer`, …
        let _commands = chat.take_commands();
    }
    Ok(())
}

fn draw(state: &ChatState, out: &mut impl Write) -> std::io::Result<()> {
    for message in state.messages.messages() {
        let name = if message.author == Author::User { "you" } else { "agent" };
        writeln!(out, "{name}: {}", message.text())?;
        for call in message.calls.iter() {
            writeln!(out, "  {} {:?} {}", call.tool, call.status, call.summary.as_deref().unwrap_or_default())?;
        }
    }
    writeln!(out, "[{:?}]\n", state.mode)
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut stdout().lock())
}
