//! Asks at the terminal whether a tool is allowed to run, and whether a limit may be exceeded. Without a terminal no question is asked: a tool
//! does not run, with the reason, and a limit waits for a decision from elsewhere.

pub(crate) mod edit;
pub(crate) mod page;
pub(crate) mod summary;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tidegate::limit::{Limit, LimitDecision, LimitDecisionError, LimitRequest};
use tidegate::question::{Answer, Confirm, Nobody, Question};
use tidegate::{BoxFuture, EventKind, Session, Subscription};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::screen::clean::flat;
use crate::screen::{self, terminal};
use crate::style;

/// How long a question waits for the call to be printed: what comes before it is printed by another task.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the next question waits for the session to take an answer, which can answer that question, too.
const TAKING: Duration = Duration::from_millis(50);

/// Who answers, for records.
const BY: &str = "the terminal";

/// Rows of the terminal that a page leaves free: the line of its prompt, and what is typed there.
const RESERVED_ROWS: usize = 2;

/// The user at the terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The ids of the tool calls that are printed.
    pub(crate) printed: watch::Receiver<BTreeSet<String>>,
}

impl Confirm for Terminal {
    fn name(&self) -> &str {
        if terminal::is_interactive() { BY } else { Nobody.name() }
    }

    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        if !terminal::is_interactive() {
            return Nobody.confirm(question);
        }
        Box::pin(async move {
            let mut printed = self.printed.clone();
            let waiting = Waiting::new(question);
            // Where printing has ended or is late, the question is asked all the same.
            let shown = printed.wait_for(|ids| ids.contains(question.call.id.as_str()));
            let _late = tokio::time::timeout(PATIENCE, shown).await.is_err();
            ask(question, waiting).await.unwrap_or(Answer::Deny { reason: String::new() })
        })
    }
}

/// Asks at the terminal about each request for a higher limit, until the session is closed. Another process can decide, too: the question
/// is withdrawn then. Without a terminal nobody is asked here.
pub(crate) async fn limits(session: Session, mut events: Subscription) {
    if !terminal::is_interactive() {
        return;
    }
    let mut asked: Option<(String, AbortOnDropHandle<()>)> = None;
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::LimitEscalationRequested(request) => {
                let id = request.id.clone();
                let asking = tokio::spawn(ask_limit(session.clone(), request));
                asked = Some((id, AbortOnDropHandle::new(asking)));
            }
            EventKind::LimitEscalationResolved { request, .. } => drop(asked.take_if(|(id, _)| *id == request)),
            _ => {}
        }
    }
}

async fn ask_limit(session: Session, request: LimitRequest) {
    loop {
        let answer = put_limit(&request).await;
        let decision = match decision(&request, answer) {
            Ok(decision) => decision,
            Err(why) => {
                screen::note(why);
                continue;
            }
        };
        match session.decide_limit(&request.id, decision, BY) {
            // A limit that is not above the present one is asked for again.
            Err(error @ LimitDecisionError::NotRaised { .. }) => screen::note(error),
            Err(error) => return screen::note(error),
            Ok(()) => return,
        }
    }
}

/// Reads an answer; without one it is a no.
///
/// # Errors
/// The answer begins like a number and is no value of the limit: the sentence for the person.
fn decision(request: &LimitRequest, answer: Option<String>) -> Result<LimitDecision, String> {
    Ok(match answer {
        Some(answer) if answer == "y" || answer == "yes" => LimitDecision::Approved { max: request.proposed },
        Some(answer) if !matches!(answer.as_str(), "" | "n" | "no") => match amount(request.limit, &answer) {
            Some(max) => LimitDecision::Approved { max },
            None if answer.starts_with(|first: char| first == '$' || first.is_ascii_digit()) => {
                return Err(no_amount(Some(request.limit), &answer));
            }
            None => LimitDecision::Denied { reason: answer },
        },
        _ => LimitDecision::Denied { reason: String::new() },
    })
}

/// Reads a value of a limit: a count, US dollars, or a time in seconds or with a unit, such as `5m`.
pub(crate) fn amount(limit: Limit, text: &str) -> Option<f64> {
    const UNITS: [(char, f64); 3] = [('s', 1.0), ('m', 60.0), ('h', 3600.0)];
    let unit = UNITS.into_iter().find(|(unit, _)| limit == Limit::Duration && text.ends_with(*unit));
    let (number, factor) = unit.map_or((text, 1.0), |(unit, factor)| (text.trim_end_matches(unit), factor));
    let number = number.trim_start_matches('$').replace('_', "").parse::<f64>().ok()?;
    Some(number * factor).filter(|value| value.is_finite())
}

/// Says that a text is no value of a limit, and what would be one.
pub(crate) fn no_amount(limit: Option<Limit>, text: &str) -> String {
    let what = match limit {
        Some(Limit::Duration) => "a time, such as `90s`, `5m` or `1h`; a number is of seconds",
        Some(Limit::Spend) => "a number of US dollars",
        _ => "a whole number",
    };
    format!("`{}` is not {what}", flat(text))
}

/// Asks about a limit. `None`: there is no answer, which is a no.
async fn put_limit(request: &LimitRequest) -> Option<String> {
    let _asking = ASKING.lock().await;
    terminal::forget_input();
    let question = style::err(style::STRONG, &limit_question(request));
    answer(&format!("{question} [y: yes, a number: to that, n: no, or the reason for no] ")).await
}

/// What is asked about a limit.
pub(crate) fn limit_question(request: &LimitRequest) -> String {
    format!("Raise the limit `{}` to {}?", request.limit, request.limit.amount(request.proposed))
}

/// One question at a time has the terminal, in the order in which they are asked.
static ASKING: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// The questions that wait for the terminal: the session of each, and its number there.
static WAITING: LazyLock<watch::Sender<BTreeSet<(String, u64)>>> = LazyLock::new(watch::Sender::default);

/// A question that waits for the terminal until this is dropped. Those of a session are asked in the order of their numbers, whichever of them is
/// printed first.
struct Waiting((String, u64));

impl Waiting {
    fn new(question: &Question) -> Self {
        let number = question.id.as_str().rsplit('-').next().and_then(|number| number.parse().ok());
        let key = (question.session.as_str().to_owned(), number.unwrap_or(u64::MAX));
        WAITING.send_modify(|all| _ = all.insert(key.clone()));
        Self(key)
    }

    /// Waits until no earlier question of the session waits.
    async fn is_first(&self) {
        let (session, number) = &self.0;
        let mut all = WAITING.subscribe();
        let is_first =
            |all: &BTreeSet<(String, u64)>| !all.iter().any(|(other, earlier)| other == session && earlier < number);
        // The sender is never dropped.
        let _ended = all.wait_for(is_first).await.is_err();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.send_modify(|all| _ = all.remove(&self.0));
    }
}

/// Asks, one question after the other. Where it is dropped, the question was decided elsewhere.
async fn ask(question: &Question, waiting: Waiting) -> Option<Answer> {
    waiting.is_first().await;
    // A question that is answered elsewhere while it waits for the terminal is not shown.
    let asking = Arc::new(Arc::clone(&ASKING).lock_owned().await);
    drop(waiting);
    let answer = put(question, &asking).await;
    tokio::spawn(async move {
        tokio::time::sleep(TAKING).await;
        drop(asking);
    });
    answer
}

/// Prints a prompt and waits for a line. Where it is dropped before there is one, the prompt is marked as withdrawn.
async fn answer(prompt: &str) -> Option<String> {
    screen::prompt(prompt);
    let mut line = Withdrawn { is_waiting: true };
    let typed = terminal::read_line().await;
    line.is_waiting = false;
    typed
}

/// Ends the line of a prompt that nobody waits for any more.
struct Withdrawn {
    /// The prompt has no line yet.
    is_waiting: bool,
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        if self.is_waiting {
            screen::end_prompt();
            screen::note(style::err(
                style::DIM,
                "  the question is closed: it was decided elsewhere, or its turn has ended",
            ));
        }
    }
}

/// Opens the editor with arguments. It has the terminal until it ends, also where this is dropped because the question is closed.
async fn edit(arguments: &str, asking: &Arc<OwnedMutexGuard<()>>) -> Result<Option<String>, String> {
    let (done, edited) = oneshot::channel();
    let (arguments, asking) = (arguments.to_owned(), Arc::clone(asking));
    tokio::task::spawn_blocking(move || {
        if done.send(edit::edited(&arguments)).is_err() {
            screen::note(style::err(
                style::DIM,
                "  the question was closed while the editor ran: the arguments that you have edited are not used",
            ));
        }
        drop(asking);
    });
    edited.await.unwrap_or_else(|_| Err("the editor was aborted".to_owned()))
}

/// Shows the question, page by page where it is long, and reads the answer. `None`: there is none, which is a no.
async fn put(question: &Question, asking: &Arc<OwnedMutexGuard<()>>) -> Option<Answer> {
    if let Some(typed) = put_pages(&question.into(), "do not run it").await? {
        return Some(denied(no(&typed)));
    }
    let always = if question.always.is_some() { "a: always, " } else { "" };
    let keys = format!("[y: yes, {always}e: edit, n: no, or the reason for no]");
    loop {
        terminal::forget_input();
        let typed = answer(&format!("{} {keys} ", style::err(style::STRONG, "Run it?"))).await?;
        match typed.as_str() {
            "y" | "yes" => return Some(Answer::Approve),
            "a" | "always" if question.always.is_some() => return Some(Answer::Always),
            "e" | "edit" => match edit(&question.call.arguments, asking).await {
                Ok(Some(arguments)) => return Some(Answer::Edit { arguments }),
                Ok(None) => screen::note("nothing was changed"),
                Err(error) => screen::note(error),
            },
            _ => return Some(denied(typed)),
        }
    }
}

/// Prints a page, in parts where it is longer than the terminal. Returns what was typed in the place of reading on; `None`: the input has ended.
async fn put_pages(page: &page::Page<'_>, stop: &str) -> Option<Option<String>> {
    let (columns, rows) = terminal::size();
    let lines = page::lines(page, columns);
    let mut shown = 0;
    for part in lines.chunks(rows.saturating_sub(RESERVED_ROWS).max(1)) {
        if shown > 0 {
            terminal::forget_input();
            let more = format!("-- {shown} of {} lines; Enter: more, n: {stop} -- ", lines.len());
            let typed = answer(&more).await?;
            if !typed.is_empty() {
                return Some(Some(typed));
            }
        }
        part.iter().for_each(screen::note);
        shown += part.len();
    }
    Some(None)
}

/// Asks about a page with a question of one line. `None`: there is no answer, or the page was not read to its end.
pub(crate) async fn about(page: &page::Page<'_>, stop: &str, question: &str) -> Option<String> {
    let _asking = ASKING.lock().await;
    if put_pages(page, stop).await?.is_some() {
        return None;
    }
    terminal::forget_input();
    answer(question).await
}

fn denied(typed: String) -> Answer {
    let is_plain = matches!(typed.as_str(), "" | "n" | "no" | "a" | "always" | "e" | "edit");
    Answer::Deny { reason: if is_plain { String::new() } else { typed } }
}

/// An answer that was given before the whole call was shown cannot be a yes.
fn no(answer: &str) -> String {
    match answer {
        "y" | "yes" => "n".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_limits_are_read() {
        for (limit, text, expected) in [
            (Limit::Duration, "90", Some(90.0)),
            (Limit::Duration, "90s", Some(90.0)),
            (Limit::Duration, "1.5m", Some(90.0)),
            (Limit::Duration, "1h", Some(3600.0)),
            (Limit::Duration, "1 day", None),
            (Limit::Duration, "s", None),
            (Limit::Spend, "$2.5", Some(2.5)),
            (Limit::Tokens, "5_000_000", Some(5e6)),
            (Limit::Steps, "5m", None),
            (Limit::Steps, "inf", None),
            (Limit::Steps, "", None),
        ] {
            assert_eq!(amount(limit, text), expected, "{limit} {text}");
        }
    }
}
