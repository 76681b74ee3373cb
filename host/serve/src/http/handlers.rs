//! What each route does: the session is looked up, and the library asked.

use std::sync::{Arc, PoisonError};

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate::SessionId;
use tidegate::config::is_user;
use tidegate::gateway::is_conversation;

use super::begin::saved;
use super::bodies::{CommandBody, NewFork, NewSession, SessionList, check_id, checked};
use super::events::Events;
use super::export::{self, Format};
use super::followed::FollowedEvents;
use super::known::Known;
use super::open::Open;
use super::openapi::openapi;
use super::problem::Problem;
use super::routes::Call;
use super::server::busy;
use super::sessions::{MAX_ID, Wanted};
use super::source::Source;
use super::{commands, sse, summary, websocket};
use crate::inbound;

type Answered = Result<Response<Body>, Problem>;

const LAST_EVENT_ID: &str = "last-event-id";

impl Call {
    /// Returns the id of the session that the path names; `None`: it names none, or no session has such an id.
    pub(super) fn session(&self) -> Option<SessionId> {
        let id = self.params.first()?.as_str();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_id = !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(is_plain);
        is_id.then(|| SessionId::new(id))
    }

    /// Returns the session that the path names.
    pub(super) async fn known(&self) -> Result<Arc<Known>, Problem> {
        let id = self.session().ok_or_else(Problem::not_found)?;
        self.shared.sessions.find(&id, &self.user.name).await
    }

    /// Returns the session that the path names, opened.
    pub(super) async fn open(&self) -> Result<(Arc<Known>, Arc<Open>), Problem> {
        let known = self.known().await?;
        self.shared.sessions.sweep().await;
        let open = self.shared.sessions.open(&known).await?;
        Ok((known, open))
    }

    /// As [`Call::open`], once the questions are asked again that the end of another process has left.
    pub(super) async fn open_settled(&self) -> Result<(Arc<Known>, Arc<Open>), Problem> {
        let (known, open) = self.open().await?;
        open.session.questions_settled().await;
        Ok((known, open))
    }

    /// Returns the session that the path names, if it is the user's own.
    async fn owned(&self) -> Result<Arc<Known>, Problem> {
        let known = self.known().await?;
        if !known.is_of(&self.user.name) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "not_owner", "only the owner of the session can do this"));
        }
        Ok(known)
    }

    /// Reads a parameter of the query; it has no escapes.
    fn query(&self, name: &str) -> Option<&str> {
        let pairs = self.head.uri.query().unwrap_or_default().split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Reads the body, which is JSON.
    pub(super) async fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let is_json =
            self.head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_json);
        if !is_json {
            let why = "the body is JSON: send it with `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", why));
        }
        let limits = self.shared.limits;
        let body = std::mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        let (bytes, _) =
            inbound::body::read(body, limits.body_bytes, limits.client_timeout, &self.shared.closing).await?;
        serde_json::from_slice(&bytes).map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
    }
}

fn is_json(kind: &str) -> bool {
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn json(status: StatusCode, body: &impl Serialize) -> Answered {
    let text = serde_json::to_string(body).map_err(Problem::internal)?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn done() -> Answered {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Returns the summary of one session.
async fn shown(call: &Call, known: &Known) -> Result<super::bodies::Summary, Problem> {
    let sessions = &call.shared.sessions;
    let recorded = sessions.summary(&known.id).await?;
    let mut shown = summary::of(known.access(), recorded.as_ref(), sessions.opened(&known.id).as_deref());
    shown.turns = Some(sessions.last_turn(&known.id).await?.unwrap_or(0));
    Ok(shown)
}

pub(super) async fn list(call: Call) -> Answered {
    let sessions = &call.shared.sessions;
    let all = sessions.list(&call.user.name).await?;
    let shown = all.into_iter().map(|(access, recorded)| {
        let open = sessions.opened(&SessionId::new(&*access.thread_id));
        summary::of(access, recorded.as_ref(), open.as_deref())
    });
    let mut sessions: Vec<_> = shown.collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.updated_ms));
    json(StatusCode::OK, &SessionList { sessions })
}

pub(super) async fn create(call: Call) -> Answered {
    let NewSession { id, agent, model } = call.body().await?;
    let write = checked(id)?;
    if agent.as_deref().is_some_and(|agent| !is_agent(agent)) {
        return Err(Problem::invalid("the name of an agent has between 1 and 64 letters, digits, `-` and `_`"));
    }
    call.shared.sessions.sweep().await;
    let known = call.shared.sessions.create(&call.user.name, Wanted { write, agent, model }).await?;
    json(StatusCode::CREATED, &shown(&call, &known).await?)
}

fn is_agent(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

pub(super) async fn show(call: Call) -> Answered {
    let known = call.known().await?;
    json(StatusCode::OK, &shown(&call, &known).await?)
}

pub(super) async fn delete(call: Call) -> Answered {
    let known = call.owned().await?;
    call.shared.sessions.delete(&known, &call.user.name).await?;
    done()
}

pub(super) async fn fork(call: Call) -> Answered {
    let parent = call.known().await?;
    not_of_gateway(&parent)?;
    let NewFork { id, turn } = call.body().await?;
    let known = call.shared.sessions.fork(&parent, &call.user.name, (checked(id)?, turn)).await?;
    json(StatusCode::CREATED, &shown(&call, &known).await?)
}

pub(super) async fn export(call: Call) -> Answered {
    let format = Format::of(call.query("format"))?;
    let known = call.known().await?;
    let chat = if is_conversation(&known.id) {
        call.shared.sessions.followed(&known.id).await?.chat()
    } else {
        saved(&call.open().await?.1.session)?
    };
    Ok(export::response(&known.id, chat, format))
}

pub(super) async fn share(call: Call) -> Answered {
    let known = call.owned().await?;
    not_of_gateway(&known)?;
    let name = named(&call)?;
    if !known.is_of(&name) {
        call.shared.sessions.share(&known, |access| access.users.extend([name])).await?;
    }
    done()
}

pub(super) async fn unshare(call: Call) -> Answered {
    let name = named(&call)?;
    // Whoever a session is shared with can leave it.
    let known = if name == call.user.name { call.known().await? } else { call.owned().await? };
    call.shared.sessions.share(&known, |access| access.users.retain(|user| *user != name)).await?;
    done()
}

fn not_of_gateway(known: &Known) -> Result<(), Problem> {
    if is_conversation(&known.id) { Err(Problem::of_gateway()) } else { Ok(()) }
}

fn named(call: &Call) -> Result<String, Problem> {
    let name = call.params.get(1).cloned().unwrap_or_default();
    if is_user(&name) { Ok(name) } else { Err(Problem::invalid("this is not the name of a user")) }
}

pub(super) async fn command(call: Call) -> Answered {
    call.known().await?;
    let body: CommandBody = call.body().await?;
    // The access can have ended while the body came.
    let (_, open) = if body.is_decision() { call.open_settled().await? } else { call.open().await? };
    json(StatusCode::OK, &commands::carry_out(&open, body, &call.user.name)?)
}

pub(super) async fn events(mut call: Call) -> Answered {
    let from = position(&call.head.headers, call.query("from"))?;
    let streams = &call.user.streams;
    let permit = streams.enter().ok_or_else(|| busy(streams.limit, "streams"))?;
    let events = source(&call, from.as_deref()).await?;
    let shared = Arc::clone(&call.shared);
    let keep_alive = shared.limits.keep_alive;
    if !websocket::is_asked_for(&call.head.headers) {
        return Ok(sse::response(events, keep_alive, permit));
    }
    let response = websocket::accepted(&call.head.headers)?;
    let upgrade = call.head.extensions.remove::<OnUpgrade>().ok_or_else(|| Problem::internal("no upgrade"))?;
    shared.tasks.spawn(websocket::serve(upgrade, events, keep_alive, permit));
    Ok(response)
}

/// Subscribes to the events of the session that the path names.
async fn source(call: &Call, from: Option<&str>) -> Result<Source, Problem> {
    let (known, closing) = (call.known().await?, call.shared.closing.child_token());
    let user = &*call.user.name;
    if is_conversation(&known.id) {
        call.shared.sessions.sweep().await;
        let of = (&call.shared.sessions, known, user);
        return FollowedEvents::subscribe(of, from, closing).await.map(Source::Followed);
    }
    let (known, open) = call.open().await?;
    let events = Events::subscribe((known, open, user), from, closing)?;
    Ok(Source::Session(Box::new(events)))
}

/// Returns the id of the last event that the client has.
fn position(headers: &HeaderMap, query: Option<&str>) -> Result<Option<String>, Problem> {
    let header = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or("?"));
    let given = header.or(query).filter(|id| !id.is_empty());
    given.map(|id| check_id(id).map(|()| id.to_owned())).transpose()
}

pub(super) async fn describe(_: Call) -> Answered {
    let mut response = Response::new(Body::from(openapi()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
