//! Prints a turn as it happens, for people.
//!
//! The answer goes to standard output, everything else to standard error. At a terminal the answer streams. Where
//! standard output is a file or a pipe, each answer is printed when it is accepted, because what a rule stopped must not
//! end up in somebody's file. Of an answer that was cancelled or cut off, the text that was shown until then is printed at
//! the end of the turn.

use std::collections::BTreeMap;

use tidegate::diagnostic::Troubles;
use tidegate::event::{CompactionMethod, RegistrationAction};
use tidegate::limit::LimitDecision;
use tidegate::plugin::Loaded;
use tidegate::prompt::{ExtensionPrompt, PromptText};
use tidegate::record::Body;
use tidegate::rule::{FiredRule, FiredRules};
use tidegate::tool::CallId;
use tidegate::{Event, EventKind, TurnStatus};

use crate::matches::{self, Matches};
use crate::say::count;
use crate::screen::clean::flat;
use crate::screen::wrap::{CONTINUED, ROW, text_columns, wrapped};
use crate::screen::{self, Answer};
use crate::shown::Shown;
use crate::style::{self, err};

/// The tool whose calls are shown as the plan that they contain.
const PLAN: &str = "plan";

/// Prints the events of one turn.
pub(crate) struct Printer {
    /// Standard output is a terminal.
    live: bool,
    /// Input is echoed, because there are several turns.
    echo: bool,
    shown: Shown,
    answer: Answer,
    troubles: Troubles,
    /// Arguments of the calls that a person is asked about.
    asked: BTreeMap<CallId, String>,
    /// The tool call that was announced last.
    called: Option<CallId>,
    /// The id of the session, where it is recorded.
    session: Option<String>,
    /// The session is continued where its events are printed.
    is_chat: bool,
    matches: Matches,
    /// Rules whose line is not printed yet.
    fired: FiredRules,
}

impl Printer {
    /// `session`: its id, where it is recorded, for commands about it.
    pub(crate) fn new(echo: bool, session: Option<String>) -> Self {
        screen::share();
        let (live, answer) = (screen::is_live(), Answer::new());
        Self {
            live,
            echo,
            shown: Shown::default(),
            answer,
            troubles: Troubles::default(),
            asked: BTreeMap::new(),
            called: None,
            session,
            is_chat: false,
            matches: Matches::default(),
            fired: FiredRules::default(),
        }
    }

    /// Prints what a conversation of a chat does not contain.
    pub(crate) fn of_chat(session: Option<String>) -> Self {
        Self { is_chat: true, ..Self::new(false, session) }
    }

    /// Prints one event; most say nothing to a person.
    ///
    /// # Errors
    /// Standard output is gone, such as a pipe that was closed.
    pub(crate) fn event(&mut self, event: &Event) -> std::io::Result<()> {
        self.before(event)?;
        if let Some(accepted) = self.shown.take(&event.kind) {
            self.ended(&accepted)?;
        }
        match &event.kind {
            EventKind::CognitionOutDelta { text, .. } if self.live => self.answer.push(text)?,
            EventKind::CognitionOut { partial: Some(_), .. } if self.live => {
                self.answer.pause()?;
                self.answer.continue_after(self.shown.remains());
            }
            EventKind::InputReceived { message, .. } if self.echo && !message.hidden => {
                self.line(&err(style::STRONG, &format!("› {}", message.plain_text().trim_end())))?;
            }
            EventKind::SteeringMessage { text, hidden: false, .. } => {
                self.line(&err(style::STRONG, &format!("› {}", text.trim_end())))?;
            }
            // The question itself shows the call. Questions of all calls are asked at once, and a line between them would follow a prompt.
            EventKind::ToolConfirmationRequested { call, arguments, .. } => {
                self.asked.insert(call.clone(), shorten(arguments, 160));
                if self.live {
                    self.answer.pause()?;
                }
            }
            EventKind::ToolCallStart { call, tool, arguments } => {
                self.asked.remove(call);
                // Its arguments are the plan, which follows.
                let arguments = if tool == PLAN { String::new() } else { shorten(arguments, 160) };
                self.call(call, tool, &arguments)?;
            }
            EventKind::ToolCallResult { tool, is_error: false, .. } if tool == PLAN => self.called = None,
            EventKind::ToolCallResult { call, tool, output, diff, is_error, .. } => {
                // A call that never ran was not announced.
                let arguments = self.asked.remove(call).unwrap_or_default();
                self.call(call, tool, &arguments)?;
                self.called = None;
                for line in result_lines(output, diff.as_deref(), *is_error) {
                    self.line(&line)?;
                }
            }
            EventKind::TurnFinish { status } => {
                let rest = self.shown.rest();
                self.ended(&rest)?;
                self.status(status)?;
            }
            _ => self.host(event)?,
        }
        Ok(())
    }

    /// Prints what a conversation does not contain: what rules, plugins, limits and the host itself did.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(crate) fn host(&mut self, event: &Event) -> std::io::Result<()> {
        match &event.kind {
            EventKind::TurnStart => {
                self.troubles.begin_turn();
                self.matches.begin_turn();
            }
            EventKind::ExtensionRegistered { plugin, version, action, callbacks } => {
                let names: Vec<&str> = callbacks.iter().map(|one| one.kind().as_str()).collect();
                let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
                let how = if *action == RegistrationAction::Register { String::new() } else { format!(" ({action})") };
                self.dim(&format!("+ plugin {plugin} {version}{how}{names}"))?;
            }
            EventKind::ExtensionUnregistered { plugin, action, reason } => {
                self.dim(&format!("- plugin {plugin} ({action}): {reason}"))?;
            }
            EventKind::ExtensionPrompt(prompt) => self.prompt(prompt)?,
            EventKind::CustomMessage { text, .. } => {
                self.dim("  reminder to the model:")?;
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    self.dim(&format!("  │ {line}"))?;
                }
            }
            EventKind::RuleFired { found, action, first, again }
                if self.matches.should_report(found, *action, *first, *again) =>
            {
                for fired in self.fired.take(found, *action, *again) {
                    self.rule(&fired)?;
                }
            }
            EventKind::RulesReloaded { notices, .. } => {
                self.dim(&format!("  {}", text_of(&event.kind)))?;
                for notice in notices {
                    self.warning("!", notice)?;
                }
            }
            EventKind::ExtensionCallback(report) => {
                let trouble = self.troubles.take(report);
                self.trouble(trouble)?;
            }
            EventKind::ExtensionTool(report) => {
                let trouble = self.troubles.take_tool(report);
                self.trouble(trouble)?;
            }
            EventKind::ExtensionLog { plugin, level, message } => self.log(plugin.as_str(), level, message)?,
            EventKind::LimitEscalationRequested(request) => {
                self.warning("! limit:", &request.message)?;
                let how = self.session.as_deref().map(flat).map(|id| {
                    format!("; `tidegate session approve {id}` or `tidegate session deny {id}` decides from elsewhere")
                });
                self.dim(&format!("    waiting for a decision{}", how.unwrap_or_default()))?;
            }
            EventKind::ErrorClassified { retryable: true, .. }
            | EventKind::Notice { .. }
            | EventKind::StateLost { .. }
            | EventKind::JournalFailed { .. }
            | EventKind::ChildThreadFailed { .. }
            | EventKind::ContextCompactionEnd { error: Some(_), .. } => self.warning("!", &sentence(&event.kind))?,
            EventKind::PlanUpdated { .. } => self.plan(&event.kind)?,
            EventKind::RuleHoldReleased { .. }
            | EventKind::LimitEscalationResolved { decision: LimitDecision::Approved { .. }, .. }
            | EventKind::RetryScheduled { .. }
            | EventKind::ChildThreadStarted { .. }
            | EventKind::ContextCompactionStart { method: CompactionMethod::Summary, .. } => {
                self.dim(&format!("  {}", sentence(&event.kind)))?;
            }
            EventKind::ContextCompactionEnd { left_out, .. } if !left_out.is_empty() => {
                self.dim(&format!("  {}", sentence(&event.kind)))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints what was held back until the event, which is printed after it.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(crate) fn before(&mut self, event: &Event) -> std::io::Result<()> {
        match &event.kind {
            EventKind::RuleFired { found, .. } if found.evidence.unread => Ok(()),
            _ => self.fired.rest().map_or(Ok(()), |fired| self.rule(&fired)),
        }
    }

    /// A rule has fired, or several that cannot read the same call.
    fn rule(&mut self, fired: &FiredRule) -> std::io::Result<()> {
        let what = matches::done(fired.action, fired.again);
        let others = count(fired.others.len() as u64, "more rule", "more rules");
        let others = if fired.others.is_empty() { String::new() } else { format!(" (the same for {others})") };
        let (rule, text) = (&fired.found.rule, shorten(&fired.found.evidence.text, 80));
        self.warning(&format!("▲ rule {rule}"), &format!("{what}: {text:?}{others}"))
    }

    /// An answer has ended. Where it was not printed as it streamed, it is printed now.
    fn ended(&mut self, text: &str) -> std::io::Result<()> {
        if !self.live {
            self.answer.push(text)?;
        }
        self.answer.finish()
    }

    /// Announces a call, once: when it runs, or when it has a result without having run.
    fn call(&mut self, call: &CallId, tool: &str, arguments: &str) -> std::io::Result<()> {
        if self.called.as_ref() == Some(call) {
            return Ok(());
        }
        self.called = Some(call.clone());
        self.line(format!("{} {arguments}", err(style::TOOL, &format!("● {tool}"))).trim_end())
    }

    /// A line of the host.
    fn line(&mut self, line: &str) -> std::io::Result<()> {
        if self.live {
            self.answer.pause()?;
        }
        screen::note(line);
        Ok(())
    }

    fn dim(&mut self, line: &str) -> std::io::Result<()> {
        self.line(&err(style::DIM, line))
    }

    fn warning(&mut self, head: &str, text: &str) -> std::io::Result<()> {
        self.line(&format!("{} {text}", err(style::WARNING, head)))
    }

    /// A plan, as a list.
    fn plan(&mut self, kind: &EventKind) -> std::io::Result<()> {
        let body = Body::of(kind);
        let Some(sentence) = body.sentence() else { return Ok(()) };
        self.line(&err(style::STRONG, &format!("  {}", flat(&sentence.text))))?;
        let entries = sentence.detail.unwrap_or_default();
        entries.lines().try_for_each(|entry| self.line(&format!("  {}", flat(entry))))
    }

    /// What a plugin has the model read, word for word.
    fn prompt(&mut self, prompt: &ExtensionPrompt) -> std::io::Result<()> {
        let why = if prompt.changed { "has changed" } else { "is new in this workspace" };
        self.warning("!", &format!("plugin {} adds this text to the prompt; it {why}:", prompt.plugin))?;
        prompt_lines(&prompt.texts, screen::note_columns(), err).iter().try_for_each(|line| self.line(line))
    }

    /// What went wrong with a plugin.
    fn trouble(&mut self, trouble: Option<(String, Vec<String>)>) -> std::io::Result<()> {
        let Some((line, more)) = trouble else { return Ok(()) };
        self.warning("! plugin", &line)?;
        more.iter().try_for_each(|line| self.dim(&format!("    {line}")))
    }

    /// What a plugin wrote to its log; what helps only its author is in `--output stream-json`.
    fn log(&mut self, plugin: &str, level: &str, message: &str) -> std::io::Result<()> {
        match level {
            "trace" | "debug" => Ok(()),
            "info" => self.dim(&format!("  {plugin}: {message}")),
            _ => self.warning("! plugin", &format!("{plugin}: {message}")),
        }
    }

    /// Prints how a turn ended, unless it completed.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(crate) fn status(&mut self, status: &TurnStatus) -> std::io::Result<()> {
        match status {
            TurnStatus::Completed => Ok(()),
            TurnStatus::Rejected { by, reason } => {
                self.line(&format!("{} by {by}: {reason}", err(style::BAD, "rejected")))
            }
            TurnStatus::StoppedByRule { rule } => self.line(&format!("{} by rule {rule}", err(style::BAD, "stopped"))),
            TurnStatus::Cancelled => self.line(&err(style::BAD, "cancelled")),
            TurnStatus::Failed { message, .. } => self.line(&format!("{} {message}", err(style::BAD, "failed:"))),
            TurnStatus::Suspended { message, .. } => {
                self.warning("suspended:", message)?;
                let next = match self.session.as_deref().map(flat) {
                    _ if self.is_chat => "    `/continue` continues the turn".to_owned(),
                    Some(id) => format!("    continue with `tidegate run --resume {id}`"),
                    None => "    the session is not recorded and cannot be continued".to_owned(),
                };
                self.dim(&next)
            }
            TurnStatus::NoProgress { message } => self.line(&format!("{} {message}", err(style::BAD, "no progress:"))),
            TurnStatus::StepLimit { steps } => {
                let help = "raise `max_steps` under `[turn]` in tidegate.toml to allow more";
                self.line(&format!("{} after {steps} steps; {help}", err(style::BAD, "stopped")))
            }
        }
    }
}

/// What a person reads about an event, in one line.
pub(crate) fn sentence(kind: &EventKind) -> String {
    flat(&raw_sentence(kind))
}

/// The same for JSON, which escapes by itself.
pub(crate) fn raw_sentence(kind: &EventKind) -> String {
    Body::of(kind).sentence().map(|sentence| sentence.to_string()).unwrap_or_default()
}

/// The same without the words of others.
fn text_of(kind: &EventKind) -> String {
    Body::of(kind).sentence().map(|sentence| flat(&sentence.text)).unwrap_or_default()
}

/// The lines that show the result of a tool: the change that it made, or the first line of its output and how many follow.
pub(crate) fn result_lines(output: &str, diff: Option<&str>, is_error: bool) -> Vec<String> {
    if is_error {
        return vec![format!("  {} {}", err(style::BAD, "failed:"), shorten(output, 400))];
    }
    let Some(diff) = diff else {
        let mut lines = output.trim_matches(['\n', '\r']).lines();
        let first = err(style::DIM, &format!("  {}", shorten(lines.next().unwrap_or_default(), 120)));
        let more = lines.count();
        let more = (more > 0).then(|| count(more as u64, "more line", "more lines"));
        return std::iter::once(first).chain(more.map(|more| err(style::DIM, &format!("  … {more}")))).collect();
    };
    let coloured = |line: &str| {
        let style = match line.as_bytes().first() {
            Some(b'+') => style::GOOD,
            Some(b'-') => style::BAD,
            _ => style::DIM,
        };
        format!("  {}", err(style, line))
    };
    diff.lines().map(coloured).collect()
}

/// What is not as it should be, on standard error.
pub(crate) fn warnings(loaded: &Loaded) {
    for warning in tidegate::diagnostic::by_kind(loaded.warnings()) {
        screen::block(screen::diagnostic(&warning));
        screen::note("");
    }
}

/// A path without the detours that joining two paths leaves: `a/../b` is `b`.
pub(crate) fn tidy_path(path: &str) -> String {
    match tidegate::text::normal_path(path).as_str() {
        "" => ".".to_owned(),
        path => flat(path),
    }
}

/// The strings that a plugin has the model read, each below its place. A bar marks their lines: none can pass for one of the host, also
/// where a line continues. `columns` are those of the terminal that they are for, if it is one. `paint` is that of its stream.
pub(crate) fn prompt_lines(
    texts: &[PromptText],
    columns: Option<usize>,
    paint: fn(anstyle::Style, &str) -> String,
) -> Vec<String> {
    let rows = |line: &str| -> Vec<String> {
        let line = flat(line);
        let parts = columns.map_or_else(|| vec![line.clone()], |columns| wrapped(&line, text_columns(columns)));
        let begins = std::iter::once(ROW).chain(std::iter::repeat(CONTINUED));
        begins.zip(parts).map(|(begin, part)| paint(style::DIM, &format!("{begin}{part}"))).collect()
    };
    let lines = |one: &PromptText| {
        let text = one.text.lines().flat_map(rows).collect::<Vec<_>>();
        std::iter::once(format!("  {}", flat(&one.place))).chain(text)
    };
    texts.iter().flat_map(lines).collect()
}

/// At most `most` characters of a text, on one line and with nothing that acts on a terminal.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let line = flat(&text.replace('\n', " "));
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests;
