//! Asks at the terminal whether a tool may run. Without a terminal nobody is asked: the answer is no, with the reason.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use tidegate::{BoxFuture, Confirm, Confirmation, Nobody, ToolCall};

use crate::style;

/// Whoever sits at the terminal.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Confirm for Terminal {
    fn confirm<'a>(&'a self, call: &'a ToolCall, reason: &'a str) -> BoxFuture<'a, Confirmation> {
        if !stdin().is_terminal() || !stderr().is_terminal() {
            return Nobody.confirm(call, reason);
        }
        let question = format!(
            "\n{} {} {}\n  {reason}. Run it? [y/N or why not] ",
            style::err(style::WARNING, "?"),
            style::err(style::STRONG, &call.name),
            crate::print::shorten(&call.arguments, 400),
        );
        Box::pin(async move {
            // Reading a line cannot be cancelled; on Ctrl-C the program ends and takes the thread with it.
            let answer = tokio::task::spawn_blocking(move || read_line(&question)).await;
            match answer.unwrap_or_default().trim() {
                "y" | "Y" | "yes" => Confirmation::Approved,
                "" | "n" | "N" | "no" => Confirmation::Denied { reason: "not run: the user said no".into() },
                why => Confirmation::Denied { reason: format!("not run: the user said no: {why}") },
            }
        })
    }
}

fn read_line(question: &str) -> String {
    let mut line = String::new();
    let mut out = stderr();
    let asked = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    // No answer can be read: that is a no.
    if asked.and_then(|()| stdin().lock().read_line(&mut line)).is_err() { String::new() } else { line }
}
