//! `tidegate run`: turns of one session, printed as asked.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate::{Cancel, Event, Host, Message, SessionId, Subscription, TurnReport, TurnStatus, transcript};

use crate::args::{Common, Output, Run};
use crate::ask::Terminal;
use crate::exit::{Exit, Failure};
use crate::print::Printer;
use crate::summary::Summary;
use crate::{open, print};

/// A prompt from standard input has at most this many bytes.
const MAX_PROMPT: u64 = 4 << 20;

/// Runs the turns.
pub(crate) async fn run(common: &Common, args: Run) -> Result<Exit, Failure> {
    let prompts = prompts(&args.prompts)?;
    let mut operator = open::operator(common)?;
    open::choose_provider(&mut operator, &args.provider);
    let builder = Host::builder(operator, &common.workspace)
        .confirm(Arc::new(Terminal))
        .permissions(open::permissions(&args.permission)?)
        .record(args.record.clone());
    let host = builder.open().await?;
    if args.output == Output::Text {
        print::warnings(host.loaded());
    }
    let id = session_id();
    let mut session = host.session(SessionId::new(id.clone()));
    let events = session.subscribe();
    let cancel = cancel_on_signal();
    let printing = tokio::spawn(show(events, args.output, id, prompts.len() > 1));
    let mut reports = Vec::new();
    for prompt in prompts {
        let report = session.run(vec![Message::user(prompt)], &cancel).await;
        let completed = report.status == TurnStatus::Completed;
        reports.push(report);
        if !completed {
            break;
        }
    }
    session.close();
    let summary = printed(printing.await)?.filter(|_| args.summary);
    if let Some(summary) = summary {
        summary.print(&reports, &host);
    }
    if args.output == Output::Json {
        for report in &reports {
            println!("{}", as_json(report));
        }
    }
    Ok(reports.last().map_or(Exit::Completed, |report| Exit::of(&report.status)))
}

/// What became of printing; `None` where whoever read the output has gone: nothing more can be said there.
fn printed(result: Result<std::io::Result<Summary>, tokio::task::JoinError>) -> Result<Option<Summary>, Failure> {
    match result {
        Ok(Ok(summary)) => Ok(Some(summary)),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(None),
        Ok(Err(error)) => Err(Failure::setup(format!("cannot write to standard output: {error}"))),
        Err(error) => Err(Failure::setup(format!("printing was cut off: {error}"))),
    }
}

/// Prints events until the session is closed, and counts them.
async fn show(mut events: Subscription, output: Output, thread: String, echo: bool) -> std::io::Result<Summary> {
    use std::io::Write;
    let mut printer = Printer::new(echo);
    let mut summary = Summary::default();
    while let Some(event) = events.next().await {
        summary.take(&event);
        match output {
            Output::Text => printer.event(&event)?,
            Output::StreamJson => stream_json(&mut std::io::stdout().lock(), &event, &thread)?,
            Output::Json => {}
        }
    }
    std::io::stdout().flush()?;
    Ok(summary)
}

fn stream_json(out: &mut impl std::io::Write, event: &Event, thread: &str) -> std::io::Result<()> {
    writeln!(out, "{}", transcript::record(event, thread))?;
    out.flush()
}

/// A turn as one object.
fn as_json(report: &TurnReport) -> serde_json::Value {
    json!({
        "status": transcript::status(&report.status),
        "text": report.text,
        "stop_reason": report.stop.as_ref().map(|stop| stop.as_str()),
        "steps": report.place.step,
        "interrupts": report.interrupts,
        "usage": {"input_tokens": report.usage.input, "output_tokens": report.usage.output},
    })
}

fn prompts(arguments: &[String]) -> Result<Vec<String>, Failure> {
    if arguments.iter().filter(|argument| *argument == "-").count() > 1 {
        return Err(Failure::setup("standard input can be read once: give `-` for one prompt only"));
    }
    arguments.iter().map(|argument| prompt(argument)).collect()
}

fn prompt(argument: &str) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_PROMPT + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(Failure::setup(format!("cannot read the prompt from standard input: {error}"))),
        Ok(bytes) if bytes as u64 > MAX_PROMPT => {
            Err(Failure::setup(format!("the prompt has more than {MAX_PROMPT} bytes; put long material into a file")))
        }
        Ok(_) if text.trim().is_empty() => Err(Failure::setup("the prompt on standard input is empty")),
        Ok(_) => Ok(text),
    }
}

/// The first Ctrl-C cancels the turn in order; the second ends the program.
fn cancel_on_signal() -> Cancel {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.cancel();
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(i32::from(Exit::Cancelled.code()));
            }
        }
    });
    cancel
}

/// Unique among the processes of this machine: the time and the process.
fn session_id() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    format!("{:x}-{:x}", since.as_millis(), std::process::id())
}
