//! Where the stream of a turn begins for a client of a convention: at lines that are kept, or at the state of a chat in their place.

use std::collections::VecDeque;

use axum::http::StatusCode;
use chat::{PendingLimit, SavedChat};
use record::{Shown, ShownBody};
use tidegate::Session;
use tidegate::input::{InputId, Receipt};

use super::open::Open;
use super::problem::Problem;
use crate::conventions::{Act, Has, Reply, Turn};

/// Where the stream of a client begins.
#[derive(Debug, Default)]
pub(super) struct Begin {
    /// The turn; `None`: that of the input below, which has not begun.
    pub(super) turn: Option<Turn>,
    /// What it has shown that is not in lines any more.
    pub(super) acts: Vec<Act>,
    /// Lines that are there.
    pub(super) lines: VecDeque<Shown>,
    /// The input whose turn is waited for.
    pub(super) input: Option<String>,
}

/// The turn of an input.
pub(super) fn of_input(session: &Session, id: &str, kept: Vec<Shown>) -> Result<Begin, Problem> {
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
pub(super) fn after_questions(open: &Open, replies: &[Reply], kept: Vec<Shown>) -> Result<Begin, Problem> {
    let is_answered = |id: &str| replies.iter().any(|reply| reply.id == id);
    let last = kept.iter().rev().find(|line| asked(line).is_some_and(is_answered));
    if let Some((turn, step)) = last.map(|line| (line.turn, line.step)) {
        // Calls that the end of a process has left are those of an earlier turn, whose lines are not kept.
        if step == 0 {
            return restored(&open.session, Some(turn), Has::AnswersTo(turn, step));
        }
        let is_of_step = |line: &Shown| (line.turn, line.step) == (turn, step) && asked(line).is_some();
        let lines = kept.into_iter().skip_while(|line| !is_of_step(line)).collect();
        return Ok(Begin { turn: Some(Turn::new(turn)), lines, ..Begin::default() });
    }
    let question = open.session.pending_questions().into_iter().find(|question| is_answered(question.id.as_str()));
    if let Some(question) = question {
        let (turn, step) = (question.place.turn, question.place.step);
        return restored(&open.session, Some(turn), Has::AnswersTo(turn, step));
    }
    if let Some((turn, step)) = replies.iter().find_map(|reply| open.place_of(&reply.id)) {
        return restored(&open.session, Some(turn), Has::AnswersTo(turn, step));
    }
    if let Some(limit) = open_limit(&open.session)?.filter(|limit| is_answered(&limit.id)) {
        return restored(&open.session, Some(limit.turn), Has::AnswersTo(limit.turn, limit.step));
    }
    let ids: Vec<String> = replies.iter().map(|reply| format!("`{}`", reply.id)).collect();
    let why = "it was answered, its turn has ended, or the program was started again and does not ask it any more";
    let why = format!("the session has no open question {}: {why}", ids.join(", "));
    Err(Problem::new(StatusCode::CONFLICT, "no_such_question", why))
}

/// Returns the request for a higher limit that is open, with its turn and its step.
pub(super) fn open_limit(session: &Session) -> Result<Option<PendingLimit>, Problem> {
    let Some(open) = session.pending_limit() else { return Ok(None) };
    Ok(saved(session)?.limit().filter(|limit| *limit.id == *open.id).cloned())
}

/// The question, or the request for a higher limit, that a line is about.
fn asked(line: &Shown) -> Option<&str> {
    match &line.body {
        ShownBody::ToolConfirmationRequested(asked) => asked.question_id.as_deref(),
        ShownBody::LimitEscalationRequested(limit) => Some(&limit.approval_request_id),
        _ => None,
    }
}

/// The turn that runs, from its first line; `None`: none runs.
pub(super) fn current(session: &Session, kept: Vec<Shown>) -> Result<Option<Begin>, Problem> {
    if !session.is_running() {
        return Ok(None);
    }
    let start = kept.iter().rposition(|line| matches!(line.body, ShownBody::TurnStart(_)));
    let ended = kept.iter().rposition(|line| matches!(line.body, ShownBody::TurnFinish(_)));
    match start.filter(|start| ended.is_none_or(|ended| ended < *start)) {
        Some(at) if saved(session)?.turns().last().is_none_or(|turn| turn.continues.is_none()) => {
            let lines: VecDeque<Shown> = kept.into_iter().skip(at).collect();
            let turn = lines.front().map(|line| Turn::new(line.turn));
            Ok(Some(Begin { turn, lines, ..Begin::default() }))
        }
        // Its lines are not kept any more, or it is a part of one whose lines are not.
        _ => Ok(restored(session, None, Has::Nothing).ok()),
    }
}

/// A turn whose lines are not kept any more. The snapshot is of the same moment as the subscription, or later: lines that are in both are of
/// answers, which the log takes once.
fn restored(session: &Session, turn: Option<u32>, has: Has) -> Result<Begin, Problem> {
    let saved = saved(session)?.shown();
    let mut acts = Vec::new();
    let turn = Turn::restored(&saved, turn, has, &mut acts);
    let nothing = || Problem::new(StatusCode::CONFLICT, "no_such_turn", "the session has no turn");
    Ok(Begin { turn: Some(turn.ok_or_else(nothing)?), acts, ..Begin::default() })
}

/// What a chat has learnt from all events of the session so far.
pub(super) fn saved(session: &Session) -> Result<SavedChat, Problem> {
    let snapshot = session.subscribe_from(u64::MAX).map_err(Problem::internal)?.snapshot;
    Ok(snapshot.ok_or_else(|| Problem::internal("the session has no snapshot"))?.chat)
}
