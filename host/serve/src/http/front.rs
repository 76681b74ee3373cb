//! The routes of conventions that front ends of others speak: what a client wants is carried out as the commands of a session are, and the
//! answer is the stream of a turn. Whatever is sent again changes nothing, and gets the same stream.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use chat::{Command, QuestionId};
use record::{Shown, ShownBody};
use tidegate::Session;
use tidegate::input::{InputId, Receipt};
use tokio::sync::OwnedSemaphorePermit;

use super::bodies::LimitBody;
use super::commands;
use super::convention::Convention;
use super::events::Events;
use super::open::Open;
use super::problem::Problem;
use super::routes::Call;
use super::sent::check_message;
use super::server::busy;
use super::turn_stream::{Begin, TurnStream, headed, response};
use crate::conventions::{Has, Post, PostError, Reply, Turn, ag_ui, ui_stream};

type Answered = Result<Response<Body>, Problem>;

/// Carries out what `useChat` sends, and streams the turn.
pub(super) async fn ui_messages(call: Call) -> Answered {
    call.known().await?;
    let request: ui_stream::Request = call.body().await?;
    let post = request.post()?;
    let permit = permit(&call)?;
    if post.replies.is_empty() {
        let (_, open) = call.open().await?;
        let why = "the session waits for answers to its questions: answer them, and send the message then";
        covered(&open.session, &post, &questions(&open.session), why)?;
    }
    let (events, begin) = carried_out(&call, &post).await?;
    Ok(streamed((&call, permit), events, begin, Convention::ui(), String::new()))
}

/// Streams the turn that runs to `useChat`, which has lost it.
pub(super) async fn resume_ui_messages(call: Call) -> Answered {
    let permit = permit(&call)?;
    let (known, open) = call.open().await?;
    let (events, kept) = Events::kept((&known, &open, &call.user.name), &call.shared.closing)?;
    match current(&open.session, kept) {
        Some(begin) => Ok(streamed((&call, permit), events, begin, Convention::ui(), String::new())),
        None => {
            let mut nothing = Response::new(Body::empty());
            *nothing.status_mut() = StatusCode::NO_CONTENT;
            Ok(nothing)
        }
    }
}

/// Carries out the input of a run, and streams the run. What is wrong with an input, and not with the request, is the error of a run.
pub(super) async fn ag_ui(call: Call) -> Answered {
    call.known().await?;
    let request: ag_ui::Request = call.body().await?;
    let permit = permit(&call)?;
    let (run, post) = request.post();
    let mut text = String::new();
    let done = match post.map_err(Problem::from) {
        Ok(post) => {
            let (_, open) = call.open().await?;
            let limit = open.session.pending_limit().map(|limit| limit.id);
            let waits_for: Vec<String> = questions(&open.session).into_iter().chain(limit).collect();
            match covered(&open.session, &post, &waits_for, "the session waits for answers that `resume` does not have")
            {
                Ok(()) => carried_out(&call, &post).await,
                Err(problem) => Err(problem),
            }
        }
        Err(problem) => Err(problem),
    };
    let convention = Convention::ag_ui(run, &mut text);
    match done {
        Ok((events, begin)) => Ok(streamed((&call, permit), events, begin, convention, text)),
        Err(problem) if [400, 409, 422].contains(&problem.status) => {
            let mut convention = convention;
            convention.fail(problem.code, problem.detail(), &mut text);
            Ok(headed(Body::from(text), false))
        }
        Err(problem) => Err(problem),
    }
}

/// Returns the permit for a stream. Nothing is carried out for a client that cannot see it.
fn permit(call: &Call) -> Result<OwnedSemaphorePermit, Problem> {
    let streams = &call.user.streams;
    streams.enter().ok_or_else(|| busy(streams.limit, "streams"))
}

fn streamed(
    (call, permit): (&Call, OwnedSemaphorePermit),
    events: Events,
    begin: Begin,
    convention: Convention,
    text: String,
) -> Response<Body> {
    response(TurnStream::new(events, convention, begin, text), call.shared.limits.keep_alive, permit)
}

/// Carries out what a client wants, and returns where its stream begins. The events are subscribed to before anything happens.
async fn carried_out(call: &Call, post: &Post) -> Result<(Events, Begin), Problem> {
    post.messages.iter().try_for_each(check_message)?;
    let (known, open) = call.open().await?;
    let user = call.user.name.as_str();
    let (events, kept) = Events::kept((&known, &open, user), &call.shared.closing)?;
    let begin = match (post.messages.last(), post.replies.is_empty()) {
        (_, false) => after_questions(&open.session, &post.replies, kept)?,
        (Some(message), true) => of_input(&open.session, message.id.as_str(), kept)?,
        (None, true) => current(&open.session, kept).ok_or_else(|| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "nothing_new", "there is no new message, and no turn runs")
        })?,
    };
    if post.replies.is_empty() {
        if !post.messages.is_empty() {
            commands::of_messages(&open.session, Command::Prompt { messages: post.messages.clone() }, user)?;
        }
        return Ok((events, begin));
    }
    post.replies.iter().try_for_each(|reply| replied(&open, reply, user))?;
    for message in &post.messages {
        commands::of_messages(&open.session, Command::Steer { message: message.clone() }, user)?;
    }
    Ok((events, begin))
}

/// Hands an answer over. One that comes too late is none: the stream says what was decided.
fn replied(open: &Arc<Open>, reply: &Reply, user: &str) -> Result<(), Problem> {
    let limit = open.session.pending_limit().filter(|limit| limit.id == reply.id);
    let done = if limit.is_some() {
        let decision = match &reply.answer {
            chat::Answer::Deny { reason } => LimitBody::Deny { reason: reason.as_ref().map(ToString::to_string) },
            _ => LimitBody::Approve { max: reply.max },
        };
        commands::decided(open, &reply.id, decision, user)
    } else {
        commands::answered(open, &QuestionId::new(reply.id.clone()), reply.answer.clone(), user)
    };
    match done {
        Err(problem) if ["no_such_question", "no_such_request"].contains(&problem.code) => Ok(()),
        done => done,
    }
}

/// Returns the ids of the questions of a session, without those of its child agents.
fn questions(session: &Session) -> Vec<String> {
    let own = session.pending_questions().into_iter().filter(|question| question.session == *session.id());
    own.map(|question| question.id.as_str().to_owned()).collect()
}

/// A request that has something new has to answer what the turn waits for. A client would not see its message delivered.
fn covered(session: &Session, post: &Post, waits_for: &[String], why: &str) -> Result<(), Problem> {
    let left: Vec<&str> =
        waits_for.iter().filter(|id| !post.replies.iter().any(|reply| reply.id == **id)).map(String::as_str).collect();
    // A client that has nothing new, such as one that sends its input again, is shown what the turn waits for.
    let is_known = post.messages.iter().all(|message| commands::is_known(session, &(&message.id).into()));
    if left.is_empty() || (post.replies.is_empty() && is_known) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::CONFLICT, "interrupts_open", format!("{why}: {}", left.join(", "))))
}

/// The turn of an input.
fn of_input(session: &Session, id: &str, kept: Vec<Shown>) -> Result<Begin, Problem> {
    let is_it = |line: &Shown| match &line.body {
        ShownBody::InputReceived(message) | ShownBody::SteeringMessage(message) => message.id.as_deref() == Some(id),
        _ => false,
    };
    let input = Some(id.to_owned());
    if let Some(at) = kept.iter().position(is_it) {
        return Ok(Begin { lines: kept.into_iter().skip(at).collect(), input, ..Begin::default() });
    }
    match session.inbox().receipt(&InputId::new(id)) {
        Some(Receipt::Delivered { place, .. }) => restored(session, Some(place.turn), Has::Nothing),
        Some(Receipt::Removed) => {
            let why = "the message was removed: send it under another id";
            Err(Problem::new(StatusCode::CONFLICT, "not_waiting", why))
        }
        // It is delivered later.
        _ => Ok(Begin { input, ..Begin::default() }),
    }
}

/// The rest of a turn after the step whose questions are answered: the lines since the first of its questions, of which a client has some.
fn after_questions(session: &Session, replies: &[Reply], kept: Vec<Shown>) -> Result<Begin, Problem> {
    let is_answered = |id: &str| replies.iter().any(|reply| reply.id == id);
    let asked = |line: &Shown| match &line.body {
        ShownBody::ToolConfirmationRequested(asked) => asked.question_id.clone(),
        ShownBody::LimitEscalationRequested(limit) => Some(limit.approval_request_id.clone()),
        _ => None,
    };
    let last = kept.iter().rev().find(|line| asked(line).is_some_and(|id| is_answered(&id)));
    if let Some((turn, step)) = last.map(|line| (line.turn, line.step)) {
        let is_of_step = |line: &Shown| (line.turn, line.step) == (turn, step) && asked(line).is_some();
        let lines = kept.into_iter().skip_while(|line| !is_of_step(line)).collect();
        return Ok(Begin { turn: Some(Turn::new(turn)), lines, ..Begin::default() });
    }
    let question = session.pending_questions().into_iter().find(|question| is_answered(question.id.as_str()));
    if question.is_none() && !session.is_running() {
        let why = "there are no such questions";
        return Err(Problem::new(StatusCode::CONFLICT, "no_such_question", why));
    }
    let step = question.map_or(0, |question| question.place.step);
    restored(session, None, Has::AnswersTo(step))
}

/// The turn that runs, from its first line; `None`: none runs.
fn current(session: &Session, kept: Vec<Shown>) -> Option<Begin> {
    if !session.is_running() {
        return None;
    }
    let start = kept.iter().rposition(|line| matches!(line.body, ShownBody::TurnStart(_)));
    let ended = kept.iter().rposition(|line| matches!(line.body, ShownBody::TurnFinish(_)));
    match start.filter(|start| ended.is_none_or(|ended| ended < *start)) {
        Some(at) => {
            let lines: VecDeque<Shown> = kept.into_iter().skip(at).collect();
            let turn = lines.front().map(|line| Turn::new(line.turn));
            Some(Begin { turn, lines, ..Begin::default() })
        }
        None => restored(session, None, Has::Nothing).ok(),
    }
}

/// A turn whose lines are not kept any more. The snapshot is of the same moment as the subscription, or later: lines that are in both are of
/// answers, which the log takes once.
fn restored(session: &Session, turn: Option<u32>, has: Has) -> Result<Begin, Problem> {
    let snapshot = session.subscribe_from(u64::MAX).map_err(Problem::internal)?.snapshot;
    let saved = snapshot.ok_or_else(|| Problem::internal("the session has no snapshot"))?.chat.shown();
    let mut acts = Vec::new();
    let turn = Turn::restored(&saved, turn, has, &mut acts);
    let nothing = || Problem::new(StatusCode::CONFLICT, "no_such_turn", "the session has no turn");
    Ok(Begin { turn: Some(turn.ok_or_else(nothing)?), acts, ..Begin::default() })
}

impl From<PostError> for Problem {
    fn from(error: PostError) -> Self {
        let code = match &error {
            PostError::NotSupported(_) => "not_supported",
            PostError::Invalid(_) => "invalid_message",
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.to_string())
    }
}
