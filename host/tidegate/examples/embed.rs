//! An embedder's own callbacks, rules and choice of the model, with a stream of what was shown: a support bot in one file.
//!
//! ```text
//! cargo run -p tidegate --example embed
//! ```
#![allow(clippy::print_stdout, reason = "an example at the terminal")]

mod support;

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::Duration;

use support::{Answer, Prepared};
use tidegate::native::{CallError, Native, NativeCall, NativeExtension, TextAnswer, TextPlace};
use tidegate::plugin::{Callback, Registered, TextUnit};
use tidegate::record::ShownBody;
use tidegate::rule::RuleSpec;
use tidegate::{Host, Operator, SessionOptions};

/// Hides the numbers of orders.
struct Orders;

impl NativeExtension for Orders {
    fn on_plain_text(&self, _: &NativeCall, text: &str, _: &TextPlace) -> Result<TextAnswer, CallError> {
        Ok(TextAnswer::Replace(text.replace(|letter: char| letter.is_ascii_digit(), "#")))
    }
}

/// Asks one model and then another one, and writes what was shown.
pub(crate) async fn run(workspace: &Path, mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let lines = Registered::from(Callback::PlainText(TextUnit::Line.into())).closed();
    let promise = RuleSpec::new("no-promise", "Promise nothing.").condition(r"(?i)\bI promise\b").scope("text");
    let host = Host::builder(Operator::default())
        .extension(Native::new("orders".parse()?, Orders).on(lines))
        .rule(promise)
        .open()
        .await?;
    let model = |answers: &[&str]| {
        Prepared::new(answers.iter().map(|&text| Answer::Text(text.into())).collect::<Vec<_>>(), Duration::ZERO)
    };
    let first = model(&["Well, I promise order 4711.", "Order 4711 is late."]);
    let session = host.session(SessionOptions::new(workspace).model(first)).await?;
    let mut shown = session.subscribe_shown();
    session.prompt("Where is my order?").report().await;
    session.set_model(model(&["It arrives on day 9."]))?;
    session.prompt("When does it arrive?").report().await;
    session.close();
    while let Some(line) = shown.next().await {
        match line.body {
            ShownBody::CognitionOutDelta(delta) => write!(out, "{}", delta.text)?,
            ShownBody::RuleFired(fired) => write!(out, "[{}]", fired.rule)?,
            ShownBody::ThreadResumed(resumed) => writeln!(out, "[now {}]", resumed.model)?,
            ShownBody::TurnFinish(turn) => writeln!(out, " ({})", turn.status)?,
            _ => {}
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::temp_dir(), stdout().lock()).await
}
