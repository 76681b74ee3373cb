//! The table of routes: what serves requests, and what describes them.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use axum::routing::{MethodFilter, on};
use schemars::{Schema, SchemaGenerator};

use super::access::User;
use super::bodies::{CommandBody, NewFork, NewSession, Receipts, SessionList, Summary};
use super::problem::Problem;
use super::server::Shared;
use super::{front, handlers, peers};
use crate::conventions::{ag_ui, ui_stream};

/// A request of a user to a route.
pub(super) struct Call {
    pub(super) shared: Arc<Shared>,
    pub(super) user: User,
    /// The variable parts of the path, in order.
    pub(super) params: Vec<String>,
    pub(super) head: Parts,
    /// Taken by whoever reads it.
    pub(super) body: Mutex<Body>,
}

pub(super) type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Problem>> + Send>>;

/// Returns the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The content of a response.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Nothing,
    Json(SchemaOf),
    /// Other media types.
    Text(&'static [&'static str]),
    /// A stream, or status 204 where there is none.
    StreamOrNothing,
}

/// A parameter of the query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The values that it can have; empty for any.
    pub(super) values: &'static [&'static str],
}

/// A route: its handler, and what a description says of it.
pub(super) struct Route {
    pub(super) method: &'static str,
    filter: MethodFilter,
    pub(super) path: &'static str,
    /// The name of the operation, for generated clients.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Parameters of the query.
    pub(super) query: &'static [Parameter],
    pub(super) body: Option<SchemaOf>,
    pub(super) success: (u16, Content),
    /// The statuses of problems, in addition to those of every request.
    pub(super) problems: &'static [u16],
    handler: fn(Call) -> Answer,
}

/// Defines the handler of a route: an async function that is boxed.
macro_rules! handler {
    ($name:path) => {
        |call| Box::pin($name(call))
    };
}

fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const SESSIONS: &str = "/v1/sessions";
const SESSION: &str = "/v1/sessions/{id}";
const FORK: &str = "/v1/sessions/{id}/fork";
const EXPORT: &str = "/v1/sessions/{id}/export";
const USER: &str = "/v1/sessions/{id}/users/{name}";
const COMMANDS: &str = "/v1/sessions/{id}/commands";
const EVENTS: &str = "/v1/sessions/{id}/events";
const UI_MESSAGES: &str = "/v1/sessions/{id}/ui-messages";
const UI_STREAM: &str = "/v1/sessions/{id}/ui-messages/{chat}/stream";
const AG_UI: &str = "/v1/sessions/{id}/ag-ui";
const OPENAPI: &str = "/v1/openapi.json";

/// All routes, as they are served and described.
pub(super) const ROUTES: [Route; 14] = [
    Route {
        method: "get",
        filter: MethodFilter::GET,
        path: SESSIONS,
        name: "listSessions",
        about: "Lists the sessions of the user, and those that are shared with the user, the latest first.",
        query: &[],
        body: None,
        success: (200, Content::Json(schema::<SessionList>)),
        problems: &[],
        handler: handler!(handlers::list),
    },
    Route {
        method: "post",
        filter: MethodFilter::POST,
        path: SESSIONS,
        name: "createSession",
        about: "Creates a session. The same `id` again returns the session that it has created.",
        query: &[],
        body: Some(schema::<NewSession>),
        success: (201, Content::Json(schema::<Summary>)),
        problems: &[400, 409, 415, 422],
        handler: handler!(handlers::create),
    },
    Route {
        method: "get",
        filter: MethodFilter::GET,
        path: SESSION,
        name: "showSession",
        about: "Shows a session.",
        query: &[],
        body: None,
        success: (200, Content::Json(schema::<Summary>)),
        problems: &[404],
        handler: handler!(handlers::show),
    },
    Route {
        method: "delete",
        filter: MethodFilter::DELETE,
        path: SESSION,
        name: "deleteSession",
        about: "Deletes a session with its transcript and what plugins keep in it. Only its owner can.",
        query: &[],
        body: None,
        success: (204, Content::Nothing),
        problems: &[403, 404, 409],
        handler: handler!(handlers::delete),
    },
    Route {
        method: "post",
        filter: MethodFilter::POST,
        path: FORK,
        name: "forkSession",
        about: "Creates a session that continues another one from the end of a turn. The same `id` again returns the session that it has created.",
        query: &[],
        body: Some(schema::<NewFork>),
        success: (201, Content::Json(schema::<Summary>)),
        problems: &[400, 404, 409, 415],
        handler: handler!(handlers::fork),
    },
    Route {
        method: "get",
        filter: MethodFilter::GET,
        path: EXPORT,
        name: "exportSession",
        about: "Returns what was shown of a session as a file.",
        query: &[Parameter {
            name: "format",
            about: "Markdown, a page, or a line of JSON for each message. Default: `md`.",
            values: &["md", "html", "jsonl"],
        }],
        body: None,
        success: (
            200,
            Content::Text(&["text/markdown; charset=utf-8", "text/html; charset=utf-8", "application/x-ndjson"]),
        ),
        problems: &[400, 404, 409],
        handler: handler!(handlers::export),
    },
    Route {
        method: "put",
        filter: MethodFilter::PUT,
        path: USER,
        name: "shareSession",
        about: "Shares a session with a user, who can do everything in it but delete and share it. Only its owner can.",
        query: &[],
        body: None,
        success: (204, Content::Nothing),
        problems: &[400, 403, 404],
        handler: handler!(handlers::share),
    },
    Route {
        method: "delete",
        filter: MethodFilter::DELETE,
        path: USER,
        name: "unshareSession",
        about: "Ends the sharing of a session with a user, whose streams of events end. Only its owner can, and the user alone.",
        query: &[],
        body: None,
        success: (204, Content::Nothing),
        problems: &[400, 403, 404],
        handler: handler!(handlers::unshare),
    },
    Route {
        method: "post",
        filter: MethodFilter::POST,
        path: COMMANDS,
        name: "command",
        about: "Does something in a session. The same command with the same ids again changes nothing, and has the same answer.",
        query: &[],
        body: Some(schema::<CommandBody>),
        success: (200, Content::Json(schema::<Receipts>)),
        problems: &[400, 404, 409, 415, 422],
        handler: handler!(handlers::command),
    },
    Route {
        method: "get",
        filter: MethodFilter::GET,
        path: EVENTS,
        name: "events",
        about: "Streams what happens in a session, as server-sent events or, with `Upgrade: websocket`, on a websocket.",
        query: &[Parameter {
            name: "from",
            about: "The id of the last event that the client has; `Last-Event-ID` counts before it.",
            values: &[],
        }],
        body: None,
        success: (200, Content::Text(&["text/event-stream"])),
        problems: &[400, 404, 409],
        handler: handler!(handlers::events),
    },
    Route {
        method: "post",
        filter: MethodFilter::POST,
        path: UI_MESSAGES,
        name: "sendUiMessages",
        about: "Sends what `useChat` of the AI SDK posts: the last message of the user, or answers to questions. Streams the turn as UI message chunks.",
        query: &[],
        body: Some(schema::<ui_stream::Request>),
        success: (200, Content::Text(&["text/event-stream"])),
        problems: &[400, 404, 409, 415, 422],
        handler: handler!(front::ui_messages),
    },
    Route {
        method: "get",
        filter: MethodFilter::GET,
        path: UI_STREAM,
        name: "resumeUiMessages",
        about: "Streams the turn that runs from its start, as UI message chunks. The name of the chat, which is the client's, is ignored.",
        query: &[],
        body: None,
        success: (200, Content::StreamOrNothing),
        problems: &[404, 409],
        handler: handler!(front::resume_ui_messages),
    },
    Route {
        method: "post",
        filter: MethodFilter::POST,
        path: AG_UI,
        name: "runAgUi",
        about: "Runs the session as an agent of AG-UI: sends the messages of the user at the end, or answers to interrupts. Streams the events of the run.",
        query: &[],
        body: Some(schema::<ag_ui::Request>),
        success: (200, Content::Text(&["text/event-stream"])),
        problems: &[400, 404, 409, 415],
        handler: handler!(front::ag_ui),
    },
    Route {
        method: "get",
        filter: MethodFilter::GET,
        path: OPENAPI,
        name: "describe",
        about: "Returns this description.",
        query: &[],
        body: None,
        success: (200, Content::Text(&["application/json"])),
        problems: &[],
        handler: handler!(handlers::describe),
    },
];

/// Makes the router of all routes.
pub(super) fn router() -> Router<Arc<Shared>> {
    let mut router = Router::new();
    for route in ROUTES {
        let handler = route.handler;
        let serve = move |State(shared): State<Arc<Shared>>, params: RawPathParams, mut request: Request| async move {
            let Some(user) = request.extensions_mut().remove::<User>() else {
                return Problem::internal("a request has no user").response();
            };
            let params = params.iter().map(|(_, value)| value.to_owned()).collect();
            let (head, body) = request.into_parts();
            let mut call = Call { shared, user, params, head, body: Mutex::new(body) };
            let answered = match peers::passed_on(&mut call).await {
                Ok(None) => handler(call).await,
                Ok(Some(response)) => Ok(response),
                Err(problem) => Err(problem),
            };
            answered.unwrap_or_else(|problem| problem.response())
        };
        router = router.route(route.path, on(route.filter, serve));
    }
    router.fallback(async || Problem::not_found().response()).method_not_allowed_fallback(async || {
        let why = "the address does not have this method";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", why).response()
    })
}
