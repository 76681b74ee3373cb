//! The routes of conventions that front ends of others speak: what a client wants is carried out as the commands of a session are, and the
//! answer is the stream of a turn. Whatever is sent again changes nothing, and gets the same stream.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use chat::QuestionId;
use tidegate::Session;
use tokio::sync::OwnedSemaphorePermit;

use super::begin::{Begin, after_questions, current, of_input};
use super::bodies::LimitBody;
use super::convention::Convention;
use super::events::Events;
use super::open::Open;
use super::problem::Problem;
use super::routes::Call;
use super::sent::check_message;
use super::server::busy;
use super::turn_stream::{TurnStream, headed, response};
use super::waiting::questions;
use super::{again, commands};
use crate::conventions::{Post, PostError, Reply, ag_ui, ui_stream};

type Answered = Result<Response<Body>, Problem>;

/// Carries out what `useChat` sends, and streams the turn.
pub(super) async fn ui_messages(call: Call) -> Answered {
    call.known().await?;
    let request: ui_stream::Request = call.body().await?;
    let post = request.post()?;
    let permit = permit(&call)?;
    if post.replies.is_empty() {
        let (_, open) = call.open_settled().await?;
        let why = "the session waits for answers to its questions: answer them, and send the message then";
        covered(&open.session, &post, &questions(&open.session), why)?;
    }
    let (events, begin) = carried_out(&call, &post).await?;
    Ok(streamed((&call, permit), events, begin, Convention::ui(), String::new()))
}

/// Streams the turn that runs to `useChat`, which has lost it.
pub(super) async fn resume_ui_messages(call: Call) -> Answered {
    let permit = permit(&call)?;
    let (known, open) = call.open_settled().await?;
    let (events, kept) = Events::kept((&known, &open, &call.user.name), &call.shared.closing)?;
    match current(&open.session, kept)? {
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
            let (_, open) = call.open_settled().await?;
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
    let (known, open) = call.open_settled().await?;
    again::check(&open, &post.messages)?;
    let user = call.user.name.as_str();
    let (events, kept) = Events::kept((&known, &open, user), &call.shared.closing)?;
    let begin = match (post.messages.last(), post.replies.is_empty()) {
        (_, false) => after_questions(&open, &post.replies, kept)?,
        (Some(message), true) => of_input(&open.session, message.id.as_str(), kept)?,
        (None, true) => current(&open.session, kept)?.ok_or_else(|| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "nothing_new", "there is no new message, and no turn runs")
        })?,
    };
    post.replies.iter().try_for_each(|reply| replied(&open, reply, user))?;
    // Next to answers, a turn runs that they join.
    again::hand_over(&open, &post.messages, !post.replies.is_empty(), user)?;
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

impl From<PostError> for Problem {
    fn from(error: PostError) -> Self {
        let code = match &error {
            PostError::NotSupported(_) => "not_supported",
            PostError::Invalid(_) => "invalid_message",
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.to_string())
    }
}
