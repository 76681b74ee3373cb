//! Level 2: primitives put together by hand: a dashboard that shows the text as it streams and the calls with their times.
//!
//! ```text
//! cargo run -p tidegate-chat --example level_2
//! ```
#![allow(dead_code, reason = "a test runs the example without its main function")]

mod support;

use std::error::Error;
use std::io::{Write, stdout};

use tidegate_chat::{LogOptions, MessageLog, RenderMode, StreamingText, ToolConfirmations};

/// Prints the streaming text bit by bit, and the calls when their turn is over.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut log = MessageLog::new(LogOptions::default().render_mode(RenderMode::AtEnd));
    let mut questions = ToolConfirmations::default();
    let mut streaming = StreamingText::default();
    let (mut drawn, mut listed) = (0, 0);
    for event in support::events(support::RECORDED)? {
        if streaming.process(&event).is_yes() {
            let text = streaming.text();
            if text.len() < drawn {
                // Shown text became void, or another answer begins.
                writeln!(out)?;
                drawn = 0;
            }
            for chunk in text.chunks_from(drawn) {
                write!(out, "{chunk}")?;
            }
            drawn = text.len();
        }
        if questions.process(&event).is_yes() {
            for question in questions.state().pending() {
                writeln!(out, "\n? {} {}", question.tool, question.arguments)?;
            }
        }
        if log.process(&event).is_yes() {
            let snapshot = log.snapshot();
            let calls = snapshot.messages().flat_map(|message| message.calls.iter().cloned().collect::<Vec<_>>());
            for call in calls.skip(listed) {
                listed += 1;
                let time = call.duration_ms.map_or("not run".to_owned(), |ms| format!("{ms} ms"));
                writeln!(out, "\n- {} {time}", call.tool)?;
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut stdout().lock())
}
