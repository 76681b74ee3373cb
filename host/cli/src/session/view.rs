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
        Body::TurnStart(_) => {
            format!("\n{}", out(style::STRONG, &format!("Turn {}  {}", record.turn, time(record.ts))))
        }
        Body::InputReceived(input) => return lines(to, "› ", &input.text, style::STRONG),
        Body::SteeringMessage(input) => return lines(to, "› (steering) ", &input.text, style::STRONG),
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
        Body::StepFinish(finish) => {
            let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
            let (input, output) = (tokens(finish.tokens.input_tokens), tokens(finish.tokens.output_tokens));
            dim(&format!("  {}: {input} tokens in, {output} out", flat(&finish.finish_reason)))
        }
        Body::TurnFinish(finish) => {
            let why = because([&finish.error, &finish.reason, &finish.rule].into_iter().flatten().next());
            dim(&format!("  {}{why}", flat(&finish.status)))
        }
        Body::CustomEvent(event) => {
            format!("{} {}", out(style::TOOL, "◆"), shorten(&event.sentence().to_string(), SHORT))
        }
        Body::PlanUpdated(plan) => {
            let sentence = plan.sentence();
            writeln!(to, "{}", dim(&format!("  {}", flat(&sentence.text))))?;
            return lines(to, "  ", sentence.detail.as_deref().unwrap_or_default(), anstyle::Style::new());
        }
        body => return said(to, body),
    };
    writeln!(to, "{line}")
}

/// A record that is one sentence for a reader. What a turn goes on without has none here: a report has all of them.
fn said(to: &mut dyn Write, body: &Body) -> std::io::Result<()> {
    let head = match body {
        Body::RetryScheduled(_)
        | Body::RetrySucceeded(_)
        | Body::RuleHeld(_)
        | Body::RuleHoldReleased(_)
        | Body::TtsrInjection(_)
        | Body::TtsrRearmed(_)
        | Body::ExtensionPrompt(_)
        | Body::ExtensionLog(_) => return Ok(()),
        Body::ExtensionCallback(report) if report.outcome != "error" => return Ok(()),
        Body::ExtensionTool(report) if report.outcome != "error" => return Ok(()),
        Body::JournalFailed(_) | Body::SchemaViolation(_) => Some(style::BAD),
        Body::ErrorClassified(_)
        | Body::ExtensionCallback(_)
        | Body::ExtensionTool(_)
        | Body::ExtensionWithheld(_)
        | Body::Notice(_)
        | Body::StateLost(_)
        | Body::ThreadCancelled(_)
        | Body::ThreadError(_)
        | Body::ThreadSuspended(_)
        | Body::LimitEscalationRequested(_)
        | Body::ChildThreadFailed(_) => Some(style::WARNING),
        _ => None,
    };
    let Some(sentence) = body.sentence() else { return Ok(()) };
    let line = flat(&sentence.to_string().replace('\n', " "));
    match head {
        Some(style) => writeln!(to, "{} {line}", out(style, "!")),
        None => writeln!(to, "{}", dim(&format!("  {line}"))),
    }
}

fn dim(text: &str) -> String {
    out(style::DIM, text)
}

fn warning(head: &str) -> String {
    out(style::WARNING, head)
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
    let took = match (result.duration_ms, &result.error) {
        (Some(ms), _) => format!("{ms} ms"),
        // In a conversation of a gateway the client makes the calls.
        (None, None) => "run by the client".to_owned(),
        (None, Some(_)) => "not run here".to_owned(),
    };
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
