//! Asks at the terminal whether a tool is allowed to run, and whether a limit may be exceeded. Without a terminal no question is asked: a tool
//! does not run, with the reason, and a limit waits for a decision from elsewhere.

pub(crate) mod edit;
pub(crate) mod page;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tidegate::{
    Answer, BoxFuture, Confirm, EventKind, LimitDecision, LimitDecisionError, LimitRequest, Nobody, Question, Session,
    Subscription,
};
use tokio::sync::{Mutex, oneshot, watch};

use crate::screen::{self, terminal};
use crate::style;

/// How long a question waits for the call to be printed: what comes before it is printed by another task.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the next question waits for the session to take an answer, which can answer that question, too.
const TAKING: Duration = Duration::from_millis(50);

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
        if terminal::is_interactive() { "the terminal" } else { Nobody.name() }
    }

    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        if !terminal::is_interactive() {
            return Nobody.confirm(question);
        }
        Box::pin(async move {
            let mut printed = self.printed.clone();
            // Where printing has ended or is late, the question is asked all the same.
            let shown = printed.wait_for(|ids| ids.contains(question.call.id.as_str()));
            let _late = tokio::time::timeout(PATIENCE, shown).await.is_err();
            ask(question).await.unwrap_or(Answer::Deny { reason: String::new() })
        })
    }
}

/// Asks at the terminal about each request for a higher limit, until the session is closed. Another process can decide, too: the question
/// stays on the screen then, and its answer is ignored. Without a terminal nobody is asked here.
pub(crate) async fn limits(session: Session, mut events: Subscription) {
    if !terminal::is_interactive() {
        return;
    }
    while let Some(event) = events.next().await {
        let EventKind::LimitEscalationRequested(request) = event.kind else { continue };
        let session = session.clone();
        // Reading a line cannot be cancelled, and the program does not wait for it at its end.
        let _ = std::thread::Builder::new().spawn(move || {
            loop {
                let Some(decision) = decision(&request, put_limit(&request)) else {
                    screen::note("that is not a number");
                    continue;
                };
                match session.decide_limit(&request.id, decision, "the terminal") {
                    // A limit that is not above the present one is asked for again.
                    Err(error @ LimitDecisionError::NotRaised { .. }) => screen::note(error),
                    Err(error) => return screen::note(error),
                    Ok(()) => return,
                }
            }
        });
    }
}

/// Reads an answer; without one it is a no. `None`: the answer begins like a number and is none.
pub(crate) fn decision(request: &LimitRequest, answer: Option<String>) -> Option<LimitDecision> {
    Some(match answer {
        Some(answer) if answer == "y" || answer == "yes" => LimitDecision::Approved { max: request.proposed },
        Some(answer) if !matches!(answer.as_str(), "" | "n" | "no") => {
            match answer.trim_start_matches('$').replace('_', "").parse() {
                Ok(max) => LimitDecision::Approved { max },
                Err(_) if answer.starts_with(|first: char| first == '$' || first.is_ascii_digit()) => return None,
                Err(_) => LimitDecision::Denied { reason: answer },
            }
        }
        _ => LimitDecision::Denied { reason: String::new() },
    })
}

/// Asks about a limit. `None`: there is no answer, which is a no.
fn put_limit(request: &LimitRequest) -> Option<String> {
    let _asking = ASKING.blocking_lock();
    terminal::forget_input();
    let question = limit_question(request);
    screen::prompt(format_args!(
        "{} [y: yes, a number: to that, n: no, or the reason for no] ",
        style::err(style::STRONG, &question)
    ));
    terminal::read_line()
}

/// What is asked about a limit.
pub(crate) fn limit_question(request: &LimitRequest) -> String {
    format!("Raise the limit `{}` to {}?", request.limit, request.limit.amount(request.proposed))
}

/// One question at a time has the terminal, in the order in which they are asked.
static ASKING: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// Reading a line cannot be cancelled. It waits on a thread of its own, which the program does not wait for at its end.
async fn ask(question: &Question) -> Option<Answer> {
    let (answer, asked) = oneshot::channel();
    let question = question.clone();
    // A question that is answered elsewhere while it waits for the terminal is not shown.
    let asking = Arc::clone(&ASKING).lock_owned().await;
    // An answer after a cancel is ignored.
    let reader = std::thread::Builder::new().spawn(move || {
        drop(answer.send(put(&question)));
        std::thread::sleep(TAKING);
        drop(asking);
    });
    // Nobody could be asked, or the reader is gone: that is a no.
    if reader.is_err() { None } else { asked.await.ok().flatten() }
}

/// Shows the question, page by page where it is long, and reads the answer. `None`: there is none, which is a no.
fn put(question: &Question) -> Option<Answer> {
    let (columns, rows) = terminal::size();
    let lines = page::lines(&question.into(), columns);
    let page = rows.saturating_sub(RESERVED_ROWS).max(1);
    let mut shown = 0;
    for lines_of_page in lines.chunks(page) {
        if shown > 0 {
            terminal::forget_input();
            screen::prompt(format_args!("-- {shown} of {} lines; Enter: more, n: do not run it -- ", lines.len()));
            match terminal::read_line()?.as_str() {
                "" => {}
                other => return Some(denied(no(other))),
            }
        }
        lines_of_page.iter().for_each(screen::note);
        shown += lines_of_page.len();
    }
    let always = if question.always.is_some() { "a: always, " } else { "" };
    loop {
        terminal::forget_input();
        let keys = format!("[y: yes, {always}e: edit, n: no, or the reason for no]");
        screen::prompt(format_args!("{} {keys} ", style::err(style::STRONG, "Run it?")));
        let typed = terminal::read_line()?;
        match typed.as_str() {
            "y" | "yes" => return Some(Answer::Approve),
            "a" | "always" if question.always.is_some() => return Some(Answer::Always),
            "e" | "edit" => match edit::edited(&question.call.arguments) {
                Ok(Some(arguments)) => return Some(Answer::Edit { arguments }),
                Ok(None) => screen::note("nothing was changed"),
                Err(error) => screen::note(error),
            },
            _ => return Some(denied(typed)),
        }
    }
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
