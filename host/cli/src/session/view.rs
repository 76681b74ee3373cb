//! A human-readable transcript: a line or a few for each record that matters to a reader.

use std::io::Write;

use tidegate::transcript::{Body, CognitionOut, Record, ToolCallResult};

use crate::print::shorten;
use crate::screen::clean::flat;
use crate::style::{self, out};

/// Characters of arguments and outputs that are printed.
const SHORT: usize = 160;

/// Prints records in order.
#[derive(Debug, Default)]
pub(super) struct View {
    turn: u32,
}

impl View {
    /// Prints a record, if it matters to a reader.
    pub(super) fn print(&mut self, to: &mut dyn Write, record: &Record) -> std::io::Result<()> {
        let dim = |text: String| out(style::DIM, &text);
        match &record.body {
            Body::ThreadStarted(started) => {
                let model = format!("{} ({})", flat(&started.model), flat(&started.provider));
                writeln!(to, "session {}  {model}  in {}", flat(&started.session_id), flat(&started.workspace))
            }
            Body::ThreadResumed(resumed) => {
                let model = format!("{} ({})", flat(&resumed.model), flat(&resumed.provider));
                writeln!(to, "{}", dim(format!("resumed by {}  {model}", flat(&resumed.resumed_by))))
            }
            Body::ThreadSuspended(suspended) => {
                let head = out(style::WARNING, "suspended");
                writeln!(to, "{head} ({}): {}", flat(&suspended.suspend_reason), flat(&suspended.message))
            }
            Body::LimitEscalationRequested(request) => {
                writeln!(to, "{} {}", out(style::WARNING, "! limit:"), flat(&request.message))
            }
            Body::LimitEscalationResolved(resolved) => {
                let by = Some(flat(&resolved.decided_by)).filter(|by| !by.is_empty());
                let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                let why = resolved.reason.as_deref().filter(|why| !why.is_empty());
                let why = why.map(|why| format!(": {}", flat(why))).unwrap_or_default();
                writeln!(to, "{}", dim(format!("  {}{by}{why}", flat(&resolved.decision).replace('_', " "))))
            }
            Body::TurnStart(_) => {
                self.turn = record.turn;
                writeln!(to, "\n{}", out(style::STRONG, &format!("Turn {}  {}", record.turn, time(record.ts))))
            }
            Body::InputReceived(input) => lines(to, "› ", &input.text, style::STRONG),
            Body::SteeringMessage(input) => lines(to, "› (steering) ", &input.text, style::STRONG),
            Body::InputEdited(edited) => {
                writeln!(to, "{}", dim(format!("  input {} was edited before it was delivered", flat(&edited.id))))
            }
            Body::InputWithdrawn(input) => {
                let (id, receipt) = (flat(&input.id), flat(&input.receipt));
                writeln!(to, "{}", dim(format!("  input {id} was {receipt} before it was delivered")))
            }
            Body::CognitionIn(spoken) if spoken.role == "system" => {
                writeln!(to, "{}", dim(format!("  system prompt, {} bytes", spoken.text.len())))
            }
            Body::CustomMessage(custom) => {
                writeln!(to, "{}", dim(format!("  {} to the model:", flat(&custom.custom_type))))?;
                lines(to, "  │ ", &custom.text, style::DIM)
            }
            Body::CognitionReasoning(reasoning) => lines(to, "  ~ ", &shorten(&reasoning.text, SHORT), style::DIM),
            Body::CognitionOut(answer) => self.answer(to, answer),
            Body::ToolCallStart(start) => {
                let call = format!("● {}", flat(&start.tool));
                writeln!(to, "{} {}", out(style::TOOL, &call), shorten(&start.input.to_string(), SHORT))
            }
            Body::ToolCallResult(result) => tool(to, result),
            Body::ToolConfirmationResolved(resolved) => {
                let approved = if resolved.approved { "approved" } else { "denied" };
                let word = resolved.decision.as_deref().unwrap_or(approved);
                let by =
                    resolved.decided_by.as_deref().unwrap_or(if resolved.decision.is_none() { "a person" } else { "" });
                let by = if by.is_empty() { String::new() } else { format!(" by {}", flat(by)) };
                writeln!(to, "{}", dim(format!("  {}{by}", flat(&word.replace('_', " ")))))
            }
            Body::RuleFired(fired) => {
                let name = format!("▲ rule {}", flat(&fired.rule));
                let what = format!("{}: {:?}", flat(&fired.action), shorten(&fired.evidence.text, 80));
                writeln!(to, "{} {what}", out(style::WARNING, &name))
            }
            Body::ErrorClassified(error) => {
                let message = error.metadata["message"].as_str().unwrap_or_default();
                let head = out(style::WARNING, "! model");
                writeln!(to, "{head} {} ({}): {}", flat(&error.category), flat(&error.error_code), flat(message))
            }
            Body::ExtensionCallback(report) if report.outcome == "error" => {
                let head = out(style::WARNING, &format!("! plugin {}", flat(&report.extension_id)));
                let reason = report.reason.as_deref().unwrap_or_default();
                writeln!(to, "{head} failed in {}: {}", flat(&report.callback), flat(reason))
            }
            Body::ExtensionWithheld(withheld) => {
                let head = out(style::WARNING, &format!("! plugin {}", flat(&withheld.extension_id)));
                writeln!(to, "{head} withheld {} bytes: {}", withheld.bytes, flat(&withheld.reason))
            }
            Body::Notice(notice) | Body::StateLost(notice) => {
                writeln!(to, "{} {}", out(style::WARNING, "!"), flat(&notice.message))
            }
            Body::ChildThreadStarted(child) => {
                let (agent, id) = (flat(&child.child_directive), flat(&child.child_thread_id));
                writeln!(to, "{}", dim(format!("  agent {agent} started: session {id}")))
            }
            Body::ChildThreadFailed(child) => {
                let head = out(style::WARNING, &format!("! session {}", flat(&child.child_thread_id)));
                writeln!(to, "{head} failed: {}", flat(&child.error))
            }
            Body::ContextCompactionEnd(end) => {
                let what = match &end.error {
                    None => format!("the conversation was summarised; {} messages stay", end.kept_messages),
                    Some(error) => format!("the conversation was not summarised: {}", flat(error)),
                };
                writeln!(to, "{}", dim(format!("  {what}")))
            }
            Body::JournalFailed(failed) => writeln!(to, "{} {}", out(style::BAD, "!"), flat(&failed.message)),
            Body::SchemaViolation(violation) => {
                let of = flat(&violation.event_type);
                writeln!(to, "{} an event of the type `{of}` was not valid and is not recorded", out(style::BAD, "!"))
            }
            Body::StepFinish(finish) => {
                let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
                let (input, output) = (tokens(finish.tokens.input_tokens), tokens(finish.tokens.output_tokens));
                writeln!(to, "{}", dim(format!("  {}: {input} tokens in, {output} out", flat(&finish.finish_reason))))
            }
            Body::TurnFinish(finish) => {
                let why = [&finish.error, &finish.reason, &finish.rule].into_iter().flatten().next();
                let why = why.map(|why| format!(": {}", flat(why))).unwrap_or_default();
                writeln!(to, "{}", dim(format!("  {}{why}", flat(&finish.status))))
            }
            Body::Unknown { r#type, .. } => {
                writeln!(
                    to,
                    "{}",
                    dim(format!("  a record of the type `{}`, which this version does not know", flat(r#type)))
                )
            }
            _ => Ok(()),
        }
    }

    fn answer(&self, to: &mut dyn Write, answer: &CognitionOut) -> std::io::Result<()> {
        let text = answer.seen();
        if answer.is_partial {
            let error = answer.error.as_deref().unwrap_or_default();
            writeln!(
                to,
                "{}",
                out(style::DIM, &format!("  a partial answer of {} bytes: {}", answer.text.len(), flat(error)))
            )?;
            if answer.retained == "nothing" {
                return Ok(());
            }
        }
        lines(to, "", text, anstyle::Style::new())
    }
}

fn tool(to: &mut dyn Write, result: &ToolCallResult) -> std::io::Result<()> {
    let took = result.duration_ms.map_or_else(|| "not run".to_owned(), |ms| format!("{ms} ms"));
    let (head, text) = match &result.error {
        Some(error) => (out(style::BAD, "  failed:"), error),
        None => (out(style::DIM, "  ok:"), &result.output),
    };
    writeln!(to, "{head} {} {}", shorten(text, SHORT), out(style::DIM, &format!("({took})")))
}

/// A text of several lines, each with nothing that acts on a terminal.
fn lines(to: &mut dyn Write, before: &str, text: &str, style: anstyle::Style) -> std::io::Result<()> {
    text.lines().try_for_each(|line| writeln!(to, "{}", out(style, &format!("{before}{}", flat(line)))))
}

/// The time of day of a record, in UTC.
fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}
