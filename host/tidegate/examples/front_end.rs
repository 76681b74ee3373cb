//! The shortest front end: a chat that is connected with its session. Everything is drawn anew when a turn is over; a question is answered
//! when it appears.
//!
//! ```text
//! cargo run -p tidegate --example front_end
//! ```
#![allow(clippy::print_stdout, reason = "an example at the terminal")]

mod support;

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::Duration;

use tidegate::chat::{Answer, Author, ChatMode, ChatState};
use tidegate::event::Backlog;
use tidegate::{Chat, Host, Operator, SessionOptions};

/// Sends a prompt, approves what it asks for, and draws what there is at the end.
pub(crate) async fn run(workspace: &Path, prompt: &str, mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let answers = [
        support::Answer::Call("write_file", r#"{"path": "hello.txt", "content": "Hello!\n"}"#.to_owned()),
        support::Answer::Text("The file is there.".to_owned()),
    ];
    let model = support::Prepared::new(answers, Duration::from_millis(10));
    let host = Host::builder(Operator::default()).open().await?;
    let options = SessionOptions::new(workspace).model(model).backlog(Backlog::default()).questions_wait();
    let session = host.session(options).await?;

    let mut chat = Chat::open(&session)?;
    chat.submit(prompt);
    while let Some(state) = chat.changed().await {
        if let Some(question) = state.questions.pending().find(|question| question.answer.is_none()) {
            // Here a front end shows all that the question has, and waits for the person.
            writeln!(out, "? {} {}", question.tool, question.arguments)?;
            chat.respond(&question.id, Answer::Approve)?;
        }
        let is_answered = state.messages.messages().any(|message| message.author == Author::Assistant);
        if state.mode == ChatMode::Idle && is_answered {
            draw(&state, &mut out)?;
            session.close();
        }
    }
    Ok(())
}

fn draw(state: &ChatState, out: &mut impl Write) -> std::io::Result<()> {
    for message in state.messages.messages() {
        let who = if message.author == Author::User { "you" } else { "agent" };
        writeln!(out, "{who}: {}", message.text())?;
        for call in message.calls.iter() {
            writeln!(out, "  {} {:?}", call.tool, call.status)?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::temp_dir(), "Write hello.txt", stdout().lock()).await
}
