//! A human-readable transcript: a line or a few for each record that matters to a reader.

use std::io::Write;

use serde_json::Value;
use tidegate::record::{Body, CognitionOut, Record, ToolCallResult, ToolConfirmationResolved};

use crate::print::shorten;
use crate::screen::clean::flat;
use crate::style::{self, out};

/// Characters of arguments and outputs that are printed.
const SHORT: usize = 160;

/// Prints a record, if it matters to a reader.
pub(super) fn print(to: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    let line = match &record.body {
        Body::ThreadStarted(started) => {
            let model = format!("{} ({})", flat(&started.model), flat(&started.provider));
            let mode = Some(flat(&started.thread_mode)).filter(|mode| mode != "conversation");
            let mode = mode.map(|mode| format!("  {mode}")).unwrap_or_default();
            let head = format!("session {}  {model}  in {}{mode}", flat(&started.session_id), flat(&started.workspace));
            // The first input follows anyway.
            match started.inputs.as_ref().filter(|inputs| !inputs.contains_key("text")) {
                Some(inputs) => {
                    let inputs = shorten(&Value::Object(inputs.clone()).to_string(), SHORT);
                    format!("{head}\n{}", dim(&format!("started with {inputs}")))
                }
                None => head,
            }
        }
        Body::ThreadCancelled(by) => {
            let why = because(by.reason.as_deref());
            format!("{} by {}{why}", warning("the session was cancelled"), flat(&by.cancelled_by))
        }
        Body::ThreadResumed(resumed) => {
            let model = format!("{} ({})", flat(&resumed.model), flat(&resumed.provider));
            dim(&format!("resumed by {}  {model}", flat(&resumed.resumed_by)))
        }
        Body::ThreadSuspended(suspended) => {
            let (reason, message) = (flat(&suspended.suspend_reason), flat(&suspended.message));
            format!("{} ({reason}): {message}", warning("suspended"))
        }
        Body::LimitEscalationRequested(request) => format!("{} {}", warning("! limit:"), flat(&request.message)),
        Body::LimitEscalationResolved(resolved) => {
            let why = because(resolved.reason.as_deref().filter(|why| !why.is_empty()));
            decision(&resolved.decision, &resolved.decided_by, &why)
        }
        Body::TurnStart(_) => {
            format!("\n{}", out(style::STRONG, &format!("Turn {}  {}", record.turn, time(record.ts))))
        }
        Body::InputReceived(input) => return lines(to, "› ", &input.text, style::STRONG),
        Body::SteeringMessage(input) => return lines(to, "› (steering) ", &input.text, style::STRONG),
        Body::InputEdited(edited) => dim(&format!("  input {} was edited before it was delivered", flat(&edited.id))),
        Body::InputWithdrawn(input) => {
            dim(&format!("  input {} was {} before it was delivered", flat(&input.id), flat(&input.receipt)))
        }
        Body::CognitionIn(spoken) if spoken.role == "system" => {
            dim(&format!("  system prompt, {} bytes", spoken.text.len()))
        }
        Body::CustomMessage(custom) => {
            writeln!(to, "{}", dim(&format!("  {} to the model:", flat(&custom.custom_type))))?;
            return lines(to, "  │ ", &custom.text, style::DIM);
        }
        Body::CognitionReasoning(reasoning) => {
            return lines(to, "  ~ ", &shorten(&reasoning.text, SHORT), style::DIM);
        }
        Body::CognitionOut(answer) => return self::answer(to, answer),
        Body::ToolCallStart(start) => {
            let call = out(style::TOOL, &format!("● {}", flat(&start.tool)));
            format!("{call} {}", shorten(&start.input.to_string(), SHORT))
        }
        Body::ToolCallResult(result) => tool(result),
        Body::ToolConfirmationResolved(resolved) => confirmed(resolved),
        Body::RuleFired(fired) => {
            let (action, text) = (flat(&fired.action), shorten(&fired.evidence.text, 80));
            format!("{} {action}: {text:?}", warning(&format!("▲ rule {}", flat(&fired.rule))))
        }
        Body::ErrorClassified(error) => {
            let message = flat(error.metadata["message"].as_str().unwrap_or_default());
            format!("{} {} ({}): {message}", warning("! model"), flat(&error.category), flat(&error.error_code))
        }
        Body::ExtensionCallback(report) if report.outcome == "error" => {
            let reason = flat(report.reason.as_deref().unwrap_or_default());
            format!("{} failed in {}: {reason}", plugin(&report.extension_id), flat(&report.callback))
        }
        Body::ExtensionWithheld(withheld) => {
            let (head, reason) = (plugin(&withheld.extension_id), flat(&withheld.reason));
            format!("{head} withheld {} bytes: {reason}", withheld.bytes)
        }
        Body::Notice(notice) | Body::StateLost(notice) => format!("{} {}", warning("!"), flat(&notice.message)),
        Body::ChildThreadStarted(child) => {
            let (agent, id) = (flat(&child.child_directive), flat(&child.child_thread_id));
            dim(&format!("  agent {agent} started: session {id}"))
        }
        Body::ChildThreadFailed(child) => {
            let head = warning(&format!("! session {}", flat(&child.child_thread_id)));
            format!("{head} failed: {}", flat(&child.error))
        }
        Body::ContextCompactionEnd(end) => dim(&match (&end.error, end.left_out_in_words()) {
            (_, Some(left_out)) => format!("  left out for the model, to fit its context: {left_out}"),
            (None, None) => format!("  the conversation was summarised; {} messages stay", end.kept_messages),
            (Some(error), None) => format!("  the conversation was not summarised: {}", flat(error)),
        }),
        Body::CustomEvent(event) => {
            let by = event.extension_id.as_deref().map(|id| format!(" of {}", flat(id))).unwrap_or_default();
            let payload = shorten(&event.payload.to_string(), SHORT);
            format!("{}{by}: {payload}", out(style::TOOL, &format!("◆ {}", flat(&event.event_type))))
        }
        Body::JournalFailed(failed) => format!("{} {}", out(style::BAD, "!"), flat(&failed.message)),
        Body::SchemaViolation(violation) => {
            let of = flat(&violation.event_type);
            format!("{} an event of the type `{of}` was not valid and is not recorded", out(style::BAD, "!"))
        }
        Body::StepFinish(finish) => {
            let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
            let (input, output) = (tokens(finish.tokens.input_tokens), tokens(finish.tokens.output_tokens));
            dim(&format!("  {}: {input} tokens in, {output} out", flat(&finish.finish_reason)))
        }
        Body::TurnFinish(finish) => {
            let why = because([&finish.error, &finish.reason, &finish.rule].into_iter().flatten().next());
            dim(&format!("  {}{why}", flat(&finish.status)))
        }
        Body::Unknown { r#type, .. } => {
            dim(&format!("  a record of the type `{}`, which this version does not know", flat(r#type)))
        }
        _ => return Ok(()),
    };
    writeln!(to, "{line}")
}

fn dim(text: &str) -> String {
    out(style::DIM, text)
}

fn warning(head: &str) -> String {
    out(style::WARNING, head)
}

fn plugin(id: &str) -> String {
    warning(&format!("! plugin {}", flat(id)))
}

fn because<S: AsRef<str>>(why: Option<S>) -> String {
    why.map(|why| format!(": {}", flat(why.as_ref()))).unwrap_or_default()
}

/// The line of a decision; `by` is empty where nobody has made it.
fn decision(word: &str, by: &str, why: &str) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" by {}", flat(by)) };
    dim(&format!("  {}{by}{why}", flat(&word.replace('_', " "))))
}

/// A record of an early version names neither the decision nor who made it.
fn confirmed(resolved: &ToolConfirmationResolved) -> String {
    let approved = if resolved.approved { "approved" } else { "denied" };
    let by = if resolved.decision.is_none() { "a person" } else { "" };
    decision(resolved.decision.as_deref().unwrap_or(approved), resolved.decided_by.as_deref().unwrap_or(by), "")
}

fn answer(to: &mut dyn Write, answer: &CognitionOut) -> std::io::Result<()> {
    if answer.is_partial {
        let error = flat(answer.error.as_deref().unwrap_or_default());
        let percent = answer.completion_percentage.map(|percent| format!(", about {percent:.0} %")).unwrap_or_default();
        writeln!(to, "{}", dim(&format!("  a partial answer of {} bytes{percent}: {error}", answer.text.len())))?;
        if answer.retained == "nothing" {
            return Ok(());
        }
    }
    lines(to, "", answer.seen(), anstyle::Style::new())
}

fn tool(result: &ToolCallResult) -> String {
    let took = result.duration_ms.map_or_else(|| "not run".to_owned(), |ms| format!("{ms} ms"));
    let (head, text) = match &result.error {
        Some(error) => (out(style::BAD, "  failed:"), error),
        None => (dim("  ok:"), &result.output),
    };
    format!("{head} {} {}", shorten(text, SHORT), dim(&format!("({took})")))
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
