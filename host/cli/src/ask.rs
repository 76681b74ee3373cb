//! Asks at the terminal whether a tool may run. Without a terminal nobody is asked: the answer is no, with the reason.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::time::Duration;

use tidegate::{BoxFuture, Confirm, Confirmation, Nobody, ToolCall};

use tokio::sync::{oneshot, watch};

use crate::style;

/// How long a question waits for the call to be printed: what comes before it is printed by another task.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whoever sits at the terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The ids of the tool calls that are printed.
    pub(crate) printed: watch::Receiver<BTreeSet<String>>,
}

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
            let mut printed = self.printed.clone();
            // Where printing has ended or is late, the question is asked all the same.
            let shown = printed.wait_for(|ids| ids.contains(call.id.as_str()));
            let _late = tokio::time::timeout(PATIENCE, shown).await.is_err();
            match ask(question).await.trim() {
                "y" | "Y" | "yes" => Confirmation::Approved,
                "" | "n" | "N" | "no" => Confirmation::Denied { reason: "not run: the user said no".into() },
                why => Confirmation::Denied { reason: format!("not run: the user said no: {why}") },
            }
        })
    }
}

/// Reading a line cannot be cancelled. It waits on a thread of its own, which the program does not wait for at its end.
async fn ask(question: String) -> String {
    let (answer, asked) = oneshot::channel();
    // An answer after a cancel is for nobody.
    let reader = std::thread::Builder::new().spawn(move || drop(answer.send(read_line(&question))));
    // Nobody could be asked, or the reader is gone: that is a no.
    if reader.is_err() { String::new() } else { asked.await.unwrap_or_default() }
}

fn read_line(question: &str) -> String {
    let mut line = String::new();
    let mut out = stderr();
    let asked = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    // No answer can be read: that is a no.
    if asked.and_then(|()| stdin().lock().read_line(&mut line)).is_err() { String::new() } else { line }
}
