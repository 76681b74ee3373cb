//! Commands of front ends, each of which is harmless when it is sent again.

use axum::http::StatusCode;
use chat::{Answer, Command, Outgoing, Receipt};
use tidegate::input::{InputId, NotWaiting, Receipt as InputReceipt};
use tidegate::limit::LimitDecisionError;
use tidegate::{CommandError, Session, carry_out_command};

use super::begin::open_limit;
use super::bodies::{CommandBody, LimitBody, Once, ReceiptBody, Receipts, ServerCommand};
use super::open::{Before, Open};
use super::problem::Problem;
use super::sent::messages_of;

/// Carries out a command of a user. The same one again changes nothing and has the same answer.
///
/// # Errors
/// The session refuses it.
pub(super) fn carry_out(open: &Open, body: CommandBody, user: &str) -> Result<Receipts, Problem> {
    match body.of_chat()? {
        Ok(Command::Answer { question, answer, .. }) => answered(open, &question, answer, user)?,
        Ok(command) => return taken_once(open, command, user),
        Err(ServerCommand::Once { what, id }) => once(open, what, id.as_deref(), user)?,
        Err(ServerCommand::DecideLimit { request, decision }) => decided(open, &request, decision, user)?,
    }
    Ok(Receipts { receipts: Vec::new() })
}

/// Carries out a command about messages, each of whose ids is that of one message.
pub(super) fn taken_once(open: &Open, command: Command, user: &str) -> Result<Receipts, Problem> {
    let messages = messages_of(&command).to_vec();
    let mut sent = open.sent();
    sent.check(&messages, |message| is_known(&open.session, &(&message.id).into()))?;
    let receipts = of_messages(&open.session, command, user)?;
    sent.note(&messages);
    Ok(receipts)
}

/// Carries out a command about messages, and returns what became of them.
fn of_messages(session: &Session, command: Command, user: &str) -> Result<Receipts, Problem> {
    let (command, ids) = match command {
        Command::Prompt { messages } => {
            let ids: Vec<InputId> = messages.iter().map(|message| (&message.id).into()).collect();
            let new: Vec<Outgoing> =
                messages.into_iter().filter(|message| !is_known(session, &(&message.id).into())).collect();
            (Some(Command::Prompt { messages: new.clone() }).filter(|_| !new.is_empty()), ids)
        }
        Command::Steer { message } | Command::Interrupt { message } | Command::Queue { message }
            if is_known(session, &(&message.id).into()) =>
        {
            (None, vec![(&message.id).into()])
        }
        command => {
            let id = match &command {
                Command::Steer { message }
                | Command::Interrupt { message }
                | Command::Queue { message }
                | Command::Edit { message } => (&message.id).into(),
                Command::Remove { id } | Command::TakeBack { id } => id.into(),
                _ => return Err(Problem::invalid("the command is not one about messages")),
            };
            (Some(command), vec![id])
        }
    };
    if let Some(command) = command {
        let wanted = match &command {
            Command::Remove { .. } => Some(InputReceipt::Removed),
            Command::TakeBack { .. } => Some(InputReceipt::Returned),
            _ => None,
        };
        match carry_out_command(session, command, user) {
            // It was done before, and the answer was lost.
            Err(CommandError::NotWaiting(NotWaiting { receipt, .. })) if wanted.is_some() && receipt == wanted => {}
            done => done?,
        }
    }
    let receipts = ids.iter().map(|id| ReceiptBody { id: id.as_str().to_owned(), receipt: receipt(session, id) });
    Ok(Receipts { receipts: receipts.collect() })
}

/// Whether the session has taken a message before. One that was given back can be sent again.
pub(super) fn is_known(session: &Session, id: &InputId) -> bool {
    session.inbox().receipt(id).is_some_and(|receipt| receipt != InputReceipt::Returned)
}

fn receipt(session: &Session, id: &InputId) -> Receipt {
    match session.inbox().receipt(id) {
        // The input of a turn that has begun at this moment has none yet.
        Some(InputReceipt::Queued) => Receipt::Sent,
        Some(InputReceipt::Delivered { place, seq }) => Receipt::Delivered { turn: place.turn, step: place.step, seq },
        Some(InputReceipt::Removed) => Receipt::Removed,
        Some(InputReceipt::Returned) | None => Receipt::Returned,
    }
}

pub(super) fn answered(open: &Open, question: &chat::QuestionId, answer: Answer, user: &str) -> Result<(), Problem> {
    let (key, content) = (format!("answer {}", question.as_str()), format!("{user} {answer:?}"));
    let command = Command::Answer { question: question.clone(), call: "".into(), child: None, answer };
    first(open, (key, content), || {
        let asked = open.session.pending_questions().into_iter().find(|asked| asked.id.as_str() == question.as_str());
        carry_out_command(&open.session, command, user)?;
        if let Some(asked) = asked {
            open.note_place(question.as_str(), (asked.place.turn, asked.place.step));
        }
        Ok(())
    })
}

/// Does something whose first time counts: where it was done before with the same content, the answer to that was lost.
fn first(
    open: &Open,
    (key, content): (String, String),
    act: impl FnOnce() -> Result<(), Problem>,
) -> Result<(), Problem> {
    if open.is_done(&key, &content) {
        return Ok(());
    }
    match act() {
        Ok(()) => drop(open.note(&key, &content)),
        // Another request has done it meanwhile.
        Err(_) if open.is_done(&key, &content) => {}
        Err(problem) => return Err(problem),
    }
    Ok(())
}

fn once(open: &Open, what: Once, id: Option<&str>, user: &str) -> Result<(), Problem> {
    if let Some(id) = id {
        match open.note(&format!("once {id}"), &format!("{what:?}")) {
            Before::New => {}
            Before::Same => return Ok(()),
            Before::Other => {
                let why = "the id was used for another command";
                return Err(Problem::new(StatusCode::CONFLICT, "id_in_use", why));
            }
        }
    }
    match what {
        Once::Flush => drop(open.session.inbox().flush()),
        Once::Cancel => open.session.cancel_by(user),
        Once::Continue => open.session.resume().detach(),
    }
    Ok(())
}

pub(super) fn decided(open: &Open, request: &str, decision: LimitBody, user: &str) -> Result<(), Problem> {
    let (key, content) = (format!("limit {request}"), format!("{user} {decision:?}"));
    let pending = open.session.pending_limit().filter(|pending| pending.id == request);
    let decision = decision.decision(pending.map(|pending| pending.proposed));
    first(open, (key, content), || {
        let asked = open_limit(&open.session)?.filter(|limit| *limit.id == *request);
        open.session.decide_limit(request, decision, user).map_err(|error| {
            let (status, code) = match &error {
                LimitDecisionError::NotOpen { .. } => (StatusCode::CONFLICT, "no_such_request"),
                _ => (StatusCode::UNPROCESSABLE_ENTITY, "decision_refused"),
            };
            Problem::new(status, code, error.to_string())
        })?;
        if let Some(limit) = asked {
            open.note_place(request, (limit.turn, limit.step));
        }
        Ok(())
    })
}
