//! `tidegate run`: turns of one session, printed as asked.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tidegate::config::StatePlace;
use tidegate::event::ThreadMode;
use tidegate::metrics::Metrics;
use tidegate::{
    Event, EventKind, Host, Operator, Session, SessionId, SessionOptions, Subscription, TurnReport, TurnStatus, record,
};
use tokio::sync::{mpsc, watch};

use crate::args::{Common, Output, Run};
use crate::ask::Terminal;
use crate::ending::{EndReason, Ending};
use crate::exit::{Exit, Failure};
use crate::metrics::Measured;
use crate::print::Printer;
use crate::shown::Shown;
use crate::summary::Summary;
use crate::{ask, open, print, say, screen, session, state, trust};

/// A prompt from standard input has at most this many bytes.
const MAX_PROMPT: u64 = 4 << 20;

/// Runs the turns. `exported`: the metrics that are exported in addition to those of the arguments.
pub(crate) async fn run(common: &Common, args: Run, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    let ending = Ending::watch();
    if args.shown && args.output != Output::StreamJson {
        return Err(Failure::setup("--shown needs `--output stream-json`: the other formats have only what was shown"));
    }
    let prompts: Vec<Option<String>> = match prompts(&args.prompts)? {
        // It continues without a prompt.
        none if none.is_empty() => vec![None],
        prompts => prompts.into_iter().map(Some).collect(),
    };
    let found = trust::decided(common).await?;
    let operator = settings(common, &args, found.operator().clone())?;
    screen::set_raw(!operator.terminal.markdown);
    if args.session.is_some() && operator.state.place == StatePlace::Memory {
        say::note(
            "warning: `[state] backend = \"memory\"` keeps nothing after this run; set `disk` or `redis` for --session",
        );
    }
    let measured = Measured::start(&args.metrics, exported).await?;
    let (calls, printed_calls) = watch::channel(BTreeSet::new());
    let builder = Host::builder(operator)
        .max_instances(open::MAX_INSTANCES)
        .confirm(Arc::new(Terminal { printed: printed_calls }))
        .permissions(open::permissions(&args.permission)?)
        .record(args.record.clone())
        .remember_shown_prompts();
    let again = (common.clone(), args.clone());
    let builder = builder
        .follow(move || found.again().and_then(|now| settings(&again.0, &again.1, now).map_err(Failure::into_line)));
    let host = measured.count(builder).open().await?;
    let mode = if prompts.len() > 1 { ThreadMode::Conversation } else { ThreadMode::Single };
    // A run sends what its arguments say, and nothing else.
    let mut options = SessionOptions::new(&common.workspace).thread_mode(mode).hold_waiting();
    if let Some(id) = chosen(&host, &args, common)? {
        options = options.id(id);
        // What goes over the wire is recorded of the host's own model alone.
        if args.provider.names_no_model() && args.record.is_none() {
            options = options.keep_model();
        }
    }
    if args.output == Output::Json || (args.output == Output::Text && !screen::is_live()) {
        options = options.accepted_only();
    }
    let session = host.session(options).await?;
    print::warnings(&session.loaded());
    ending.begin_work();
    let how = How {
        output: args.output,
        shown: args.shown,
        summarize: args.summary,
        recorded: host.transcripts().is_some(),
        calls,
        ending,
    };
    let ended = turns(&session, prompts, how).await;
    // Last: looking at all sessions must not delay an answer, and the one that was continued is not old any more.
    remove_expired(&host, &common.workspace).await;
    measured.finish(ended)
}

/// Removes sessions that are too old, and says so.
pub(crate) async fn remove_expired(host: &Host, workspace: &Path) {
    match host.remove_expired_sessions(&[workspace.to_owned()]).await {
        Ok(lines) => lines.iter().for_each(|line| say::note(format_args!("note: {line}"))),
        Err(error) => say::note(format_args!("warning: expired sessions and state cannot be removed: {error}")),
    }
}

fn settings(common: &Common, args: &Run, operator: Operator) -> Result<Operator, Failure> {
    open::session_settings(common, operator, &args.provider, args.no_transcript, args.session.is_some())
}

/// The session that the arguments name; `None`: a new one.
fn chosen(host: &Host, args: &Run, common: &Common) -> Result<Option<SessionId>, Failure> {
    if let Some(id) = &args.session {
        return state::session_id(id).map(Some);
    }
    continued(host, args.go_on, args.resume.as_deref(), common)
}

/// The recorded session that is continued: the one with this id, or the latest of the workspace.
pub(crate) fn continued(
    host: &Host,
    latest: bool,
    resume: Option<&str>,
    common: &Common,
) -> Result<Option<SessionId>, Failure> {
    if !latest && resume.is_none() {
        return Ok(None);
    }
    let store = host.transcripts().ok_or_else(|| {
        Failure::setup("no session can be continued: `enabled = false` under `[transcript]` of the operator's file")
    })?;
    Ok(Some(match resume {
        Some(id) => {
            let id = store.find(id)?;
            session::warn_of_workspace(store, &id, &common.workspace)?;
            id
        }
        None => store.latest(&common.workspace)?,
    }))
}

/// How turns are run and shown.
struct How {
    output: Output,
    /// Of events: only what was shown.
    shown: bool,
    /// A summary follows.
    summarize: bool,
    /// The session is recorded.
    recorded: bool,
    /// Learns which tool calls are printed.
    calls: watch::Sender<BTreeSet<String>>,
    ending: Ending,
}

/// Runs the turns of a session and prints them; the session is closed then.
async fn turns(session: &Session, prompts: Vec<Option<String>>, how: How) -> Result<Exit, Failure> {
    let How { output, shown, summarize, recorded, calls, ending } = how;
    let thread = session.id().as_str().to_owned();
    let events = session.subscribe();
    let (finished, turns) = mpsc::unbounded_channel();
    // What a session continues with, where no prompt says it, can be a message that the user has written before.
    let echo = prompts.len() > 1 || prompts.contains(&None);
    let printing =
        tokio::spawn(Show { output, shown, thread, recorded, echo, calls, ending: ending.clone(), turns }.all(events));
    let asking = tokio::spawn(ask::limits(session.clone(), session.subscribe()));
    let mut reports = Vec::new();
    for prompt in prompts {
        let report = turn(session, prompt, &ending).await;
        let completed = report.status == TurnStatus::Completed;
        reports.push(report.clone());
        // If printing has ended no report is possible; the cause is handled below.
        let _ended = finished.send(Ended { report, rules: session.loaded().rule_problem_lines() });
        if !completed {
            break;
        }
    }
    // No turn of another one is waited for.
    drop(finished);
    let rules = session.rule_metrics();
    asking.abort();
    session.close();
    let exit = reports.last().map_or(Exit::Completed, |report| Exit::of(&report.status));
    let (summary, broken) =
        printing.await.map_err(|error| Failure::late(format_args!("printing was aborted: {error}")))?;
    session.closed().await;
    if let Some(error) = broken.filter(|error| EndReason::of(error) == EndReason::OutputFailed) {
        return Err(error.into());
    }
    let exit = unread(exit, ending.by());
    if summarize {
        summary.print(&reports, session, &rules);
    }
    // Somebody relies on what the session keeps: a script must see that it is gone.
    Ok(if summary.state_lost && exit == Exit::Completed { Exit::Failed } else { exit })
}

/// How a run ends whose output nobody reads any more: that is no failure, but one of the turn is.
fn unread(exit: Exit, reason: Option<EndReason>) -> Exit {
    match (exit, reason) {
        (Exit::Cancelled, Some(EndReason::OutputGone)) => {
            say::note("note: the turn was cancelled because nobody reads standard output any more");
            Exit::Completed
        }
        _ => exit,
    }
}

/// Runs one turn, which is cancelled when the program is asked to end.
async fn turn(session: &Session, prompt: Option<String>, ending: &Ending) -> TurnReport {
    let turn = prompt.map_or_else(|| session.resume(), |prompt| session.prompt(prompt));
    let report = turn.report();
    tokio::pin!(report);
    tokio::select! {
        biased;
        reason = ending.requested() => {
            session.cancel_by(match reason {
                EndReason::Signal => "a signal",
                EndReason::OutputGone | EndReason::OutputFailed => "the end of the output",
            });
            report.await
        }
        report = &mut report => report,
    }
}

/// How events are shown.
struct Show {
    output: Output,
    /// Of events: only what was shown.
    shown: bool,
    /// The thread's id in records.
    thread: String,
    /// The session is recorded.
    recorded: bool,
    /// Input is repeated.
    echo: bool,
    /// Learns which tool calls are printed.
    calls: watch::Sender<BTreeSet<String>>,
    ending: Ending,
    /// What became of each turn, once it has ended.
    turns: mpsc::UnboundedReceiver<Ended>,
}

/// What the object of a turn is made of.
#[derive(Default)]
struct Objects {
    shown: Shown,
    /// The object of the last turn is printed.
    is_over: bool,
}

/// What became of a turn.
struct Ended {
    report: TurnReport,
    /// Rules that were not in force as written, a line each.
    rules: Vec<String>,
}

impl Show {
    /// Prints events until the session is closed, and counts them. Where nothing can be printed any more, the program is asked to end, because
    /// the effects of a turn would be invisible, and the error is returned; what happens until the end counts nevertheless.
    async fn all(mut self, mut events: Subscription) -> (Summary, Option<std::io::Error>) {
        let mut printer =
            Printer::new(self.echo && self.output == Output::Text, self.recorded.then(|| self.thread.clone()));
        let (mut summary, mut objects, mut broken) = (Summary::default(), Objects::default(), None);
        while let Some(event) = events.next().await {
            summary.take(&event);
            if broken.is_some() {
                if let EventKind::StateLost { message } | EventKind::JournalFailed { message, .. } = &event.kind {
                    say::note(format_args!("warning: {message}"));
                }
                continue;
            }
            let printed = match self.one(&event, &mut printer) {
                Ok(()) if self.output == Output::Json => self.object(&event, &mut objects, &mut summary).await,
                printed => printed,
            };
            if let Err(error) = printed {
                self.ending.request(EndReason::of(&error));
                broken = Some(error);
            }
        }
        (summary, broken)
    }

    /// Prints the object of a turn when it ends.
    async fn object(&mut self, event: &Event, objects: &mut Objects, summary: &mut Summary) -> std::io::Result<()> {
        objects.shown.take(&event.kind);
        match &event.kind {
            EventKind::TurnStart => objects.is_over = false,
            // No object of a turn follows that could contain it.
            EventKind::Notice { message }
            | EventKind::StateLost { message }
            | EventKind::JournalFailed { message, .. }
                if objects.is_over =>
            {
                say::note(format_args!("warning: {message}"));
            }
            EventKind::TurnFinish { .. } => {
                let Some(Ended { report, rules }) = self.turns.recv().await else { return Ok(()) };
                objects.is_over = true;
                let problems = [rules, summary.take_problems(event.place.turn)].concat();
                screen::json(&as_json(&self.thread, &report, &objects.shown.rest(), &problems))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn one(&self, event: &Event, printer: &mut Printer) -> std::io::Result<()> {
        match self.output {
            Output::Text => printer.event(event)?,
            Output::StreamJson if self.shown => {
                if let Some(shown) = record::Shown::of(event, &self.thread) {
                    screen::json(&shown.json())?;
                }
            }
            Output::StreamJson => screen::json(&record::json(event, &self.thread))?,
            // It has no place in the objects, and must be seen before it is used.
            Output::Json
                if matches!(event.kind, EventKind::ExtensionPrompt(_) | EventKind::LimitEscalationRequested(_)) =>
            {
                printer.event(event)?;
            }
            Output::Json => {}
        }
        if let EventKind::ToolConfirmationRequested { call, .. } = &event.kind {
            self.calls.send_modify(|calls| calls.extend([call.as_str().to_owned()]));
        }
        Ok(())
    }
}

/// A turn as one object. `partial`: what was shown of an answer that did not come to its end. `problems`: what went wrong in
/// addition to the turn's status, such as a plugin that failed or a rule that cannot be used as written, a line each.
fn as_json(session: &str, report: &TurnReport, partial: &str, problems: &[String]) -> serde_json::Value {
    json!({
        "session": session,
        "status": record::status(&report.status),
        "text": report.text,
        "partial_text": (!partial.is_empty()).then_some(partial),
        "stop_reason": report.stop.as_ref().map(|stop| stop.as_str()),
        "steps": report.place.step,
        "interrupts": report.interrupts,
        "problems": problems,
        "usage": {"input_tokens": report.usage.input, "output_tokens": report.usage.output},
    })
}

pub(crate) fn prompts(arguments: &[String]) -> Result<Vec<String>, Failure> {
    if arguments.iter().filter(|argument| *argument == "-").count() > 1 {
        return Err(Failure::setup("standard input can be read once: give `-` for one prompt only"));
    }
    arguments.iter().map(|argument| prompt(argument)).collect()
}

fn prompt(argument: &str) -> Result<String, Failure> {
    if argument.trim().is_empty() {
        return Err(Failure::setup("a prompt is empty: say what to do, or give `-` to read it from standard input"));
    }
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
