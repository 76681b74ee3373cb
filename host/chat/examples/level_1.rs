//! Level 1: a chat with settings. A policy answers questions, a transform changes messages, and the front end has modes of its own.
//!
//! ```text
//! cargo run -p tidegate-chat --example level_1
//! ```
#![allow(dead_code, reason = "a test runs the example without its main function")]

mod support;

use std::error::Error;
use std::io::{Write, stdout};

use tidegate_chat::{
    ChatMessage, ChatOptions, ChatSession, Command, LogOptions, ModeInput, Policy, RenderMode, SteeringMode,
    SteeringOptions,
};

/// The modes of this front end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Ready,
    Thinking,
    Asking,
    Failed,
}

fn mode(input: ModeInput) -> Mode {
    match input {
        ModeInput { confirming: true, .. } => Mode::Asking,
        ModeInput { executing: true, .. } => Mode::Thinking,
        ModeInput { failed: true, .. } => Mode::Failed,
        ModeInput { .. } => Mode::Ready,
    }
}

/// Leaves out what is void.
fn valid(message: &ChatMessage) -> Option<ChatMessage> {
    let mut message = message.clone();
    message.blocks = message.blocks.iter().filter(|block| block.void.is_none()).cloned().collect();
    Some(message)
}

/// Prints a recorded session turn by turn, and what the driver is to do.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let options = ChatOptions::with_mode(mode)
        .log(LogOptions::default().render_mode(RenderMode::Message).transform(valid))
        .steering(SteeringOptions::default().mode(SteeringMode::Queue))
        .policy(|question| match question.tool.as_str() {
            "read" | "glob" | "grep" => Policy::APPROVE,
            "shell" => Policy::deny("commands are not allowed here"),
            _ => Policy::Prompt,
        });
    let mut chat = ChatSession::new(options);
    chat.submit("Write a function that adds one");
    chat.submit("Run the tests and push");
    let mut before = None;
    for event in support::events(support::RECORDED)? {
        if chat.process(&event).is_yes() {
            let mode = chat.snapshot().mode;
            if before.replace(mode) != Some(mode) {
                writeln!(out, "mode: {mode:?}")?;
            }
        }
        for command in chat.take_commands() {
            match command {
                Command::Prompt { messages } => writeln!(out, "prompt: {}", messages[0].text)?,
                Command::Answer { question, answer, .. } => {
                    writeln!(out, "answer to {}: {answer:?}", question.as_str())?;
                }
                other => writeln!(out, "{other:?}")?,
            }
        }
    }
    let shown: usize = chat.snapshot().messages.messages().map(|message| message.blocks.len()).sum();
    writeln!(out, "{shown} blocks")?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut stdout().lock())
}
