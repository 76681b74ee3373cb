//! The SDK of the protocol. No other module names it: a new version of it is a change of this one.
//!
//! The SDK reads the next message when the handler of the last has returned. What has an order (prompts, cancels, changes of settings)
//! is done in the handler, and what waits in a task of its own.

use std::sync::Arc;

use agent_client_protocol as acp;
pub(super) use agent_client_protocol::Error;
pub(super) use agent_client_protocol::schema::ProtocolVersion;
pub(super) use agent_client_protocol::v1::schema as v1;
use blocking::Unblock;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::compat::{FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _, TokioAsyncWriteCompatExt as _};

use super::agent::Agent;
use super::initialize_gate::InitializeGate;
use super::input::Utf8;
use super::stdout::Stdout;

/// The connection to the client. Messages are sent in the order of the calls.
pub(super) type Connection = acp::v1::ConnectionTo<acp::Client>;

/// Answers a request, once. Where it is dropped the client gets an error.
pub(super) type Responder<T> = acp::v1::Responder<T>;

/// Whether a request has no response because the connection has ended, and not because the client refuses it.
pub(super) fn is_gone(error: &Error) -> bool {
    acp::is_incoming_transport_closed(error) || acp::is_connection_terminated(error)
}

/// A message to the client in which a diff of a file that does not exist says so: the SDK leaves `oldText` out, and clients that look for the
/// field do not show such a diff.
#[derive(Clone, Debug)]
pub(super) struct Explicit<T>(pub(super) T);

impl<T: acp::JsonRpcMessage> acp::JsonRpcMessage for Explicit<T> {
    fn matches_method(method: &str) -> bool {
        T::matches_method(method)
    }

    fn method(&self) -> &str {
        self.0.method()
    }

    fn to_untyped_message(&self) -> Result<acp::UntypedMessage, Error> {
        let mut message = self.0.to_untyped_message()?;
        for about in ["update", "toolCall"] {
            let content = message.params.get_mut(about).and_then(|about| about.get_mut("content")?.as_array_mut());
            let diffs = content.into_iter().flatten().filter(|one| one["type"] == "diff");
            for diff in diffs.filter_map(Value::as_object_mut) {
                diff.entry("oldText").or_insert(Value::Null);
            }
        }
        Ok(message)
    }

    fn parse_message(method: &str, params: &Value) -> Result<Self, Error> {
        T::parse_message(method, params).map(Self)
    }
}

impl<T: acp::JsonRpcNotification> acp::JsonRpcNotification for Explicit<T> {}

impl<T: acp::JsonRpcRequest> acp::JsonRpcRequest for Explicit<T> {
    type Response = T::Response;
}

/// `_session/steering`: a message for the running turn. A convention of other agents, not of the protocol.
#[derive(Clone, Debug, Serialize, Deserialize, acp::JsonRpcRequest)]
#[request(method = "_session/steering", response = SteeringResponse)]
#[serde(rename_all = "camelCase")]
pub(super) struct SteeringRequest {
    pub(super) session_id: v1::SessionId,
    pub(super) prompt: Vec<v1::ContentBlock>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<v1::Meta>,
}

/// `_session/rules`: the stream rules whose reminders are in the conversation. Not of the protocol.
#[derive(Clone, Debug, Serialize, Deserialize, acp::JsonRpcRequest)]
#[request(method = "_session/rules", response = RulesResponse)]
#[serde(rename_all = "camelCase")]
pub(super) struct RulesRequest {
    pub(super) session_id: v1::SessionId,
}

/// The rules, in the order in which they were injected last.
#[derive(Clone, Debug, Serialize, Deserialize, acp::JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
pub(super) struct RulesResponse {
    pub(super) rules: Vec<InjectedRule>,
}

/// A rule whose reminder is in the conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InjectedRule {
    pub(super) rule: String,
    pub(super) turn: u64,
    pub(super) stream: String,
    pub(super) action: String,
    pub(super) matched: String,
}

/// What became of it.
#[derive(Clone, Debug, Serialize, Deserialize, acp::JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
pub(super) struct SteeringResponse {
    pub(super) outcome: SteeringOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// The outcomes that other agents have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SteeringOutcome {
    /// The running turn reads it before its next request.
    Injected,
    /// No turn was running: the message started one.
    StartedNewTurn,
    /// The client asked to send a prompt itself where no turn is running, and has to: none is, or the message is a command.
    PromptRequired,
}

/// A handler that answers in a task of its own.
macro_rules! later {
    ($agent:expr, $method:ident, $request:ty) => {{
        let agent = Arc::clone($agent);
        async move |request: $request, responder: Responder<_>, connection: Connection| {
            let agent = Arc::clone(&agent);
            tokio::spawn(async move { agent.$method(request, responder, connection).await });
            Ok(())
        }
    }};
}

/// A handler that has done its work when it returns.
macro_rules! now {
    ($agent:expr, $method:ident, $request:ty) => {{
        let agent = Arc::clone($agent);
        async move |request: $request, responder: Responder<_>, _: Connection| {
            responder.respond_with_result(agent.$method(&request))
        }
    }};
}

/// The same for one that waits. The messages after it wait as well: it must not ask the client for anything.
macro_rules! in_order {
    ($agent:expr, $method:ident, $request:ty) => {{
        let agent = Arc::clone($agent);
        async move |request: $request, responder: Responder<_>, _: Connection| {
            responder.respond_with_result(agent.$method(&request).await)
        }
    }};
}

/// Serves on standard input and output until the input ends.
pub(super) async fn stdio(agent: &Arc<Agent>) -> Result<(), Error> {
    // On threads that the end of the program does not wait for, as it would for those of the runtime.
    let (output, written) = Stdout::start(std::io::stdout()).map_err(Error::into_internal_error)?;
    let input = Unblock::new(std::io::stdin()).compat();
    let agent = Arc::clone(agent);
    // A task, which ends with this future: it runs on the threads on which the updates are made, and not on the one that waits for the end.
    let mut connection = JoinSet::new();
    connection.spawn(async move { streams(&agent, output, input).await });
    let ended = connection.join_next().await;
    written.all().await;
    match ended {
        Some(Ok(ended)) => ended,
        Some(Err(error)) => Err(Error::into_internal_error(error)),
        None => Ok(()),
    }
}

/// Serves on a pair of streams until the input ends.
pub(super) async fn streams(
    agent: &Arc<Agent>,
    output: impl AsyncWrite + Send + 'static,
    input: impl AsyncRead + Send + 'static,
) -> Result<(), Error> {
    let output = agent.outgoing.counted(output).compat_write();
    let input = InitializeGate::new(Utf8::new(input), &agent.outgoing);
    serve(agent, acp::ByteStreams::new(output, input.compat())).await
}

async fn serve(agent: &Arc<Agent>, transport: impl acp::ConnectTo<acp::Agent> + 'static) -> Result<(), Error> {
    let prompts = Arc::clone(agent);
    let prompt = async move |request: v1::PromptRequest, responder: Responder<_>, _: Connection| {
        prompts.prompt(request, responder);
        Ok(())
    };
    let steers = Arc::clone(agent);
    let steer = async move |request: SteeringRequest, responder: Responder<_>, _: Connection| {
        steers.steer(request, responder);
        Ok(())
    };
    let cancels = Arc::clone(agent);
    let cancel = async move |notification: v1::CancelNotification, _: Connection| {
        cancels.cancel(&notification);
        Ok(())
    };
    acp::Agent
        .v1()
        .name("tidegate")
        .on_receive_request(now!(agent, initialize, v1::InitializeRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, authenticate, v1::AuthenticateRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, new_session, v1::NewSessionRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, load_session, v1::LoadSessionRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, resume_session, v1::ResumeSessionRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, fork_session, v1::ForkSessionRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, list_sessions, v1::ListSessionsRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, close_session, v1::CloseSessionRequest), acp::on_receive_request!())
        .on_receive_request(later!(agent, delete_session, v1::DeleteSessionRequest), acp::on_receive_request!())
        .on_receive_request(now!(agent, set_mode, v1::SetSessionModeRequest), acp::on_receive_request!())
        .on_receive_request(in_order!(agent, set_option, v1::SetSessionConfigOptionRequest), acp::on_receive_request!())
        .on_receive_request(now!(agent, injected_rules, RulesRequest), acp::on_receive_request!())
        .on_receive_request(steer, acp::on_receive_request!())
        .on_receive_request(prompt, acp::on_receive_request!())
        .on_receive_notification(cancel, acp::on_receive_notification!())
        .connect_to(transport)
        .await
}
