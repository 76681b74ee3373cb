//! The Agent Client Protocol (ACP) version 1: an editor starts the program, opens sessions in it and shows what they do.
//!
//! Messages are JSON-RPC, one a line, or one a frame of a websocket. `host/EDITORS.md` lists what is supported.

mod access;
mod agent;
mod ask;
mod calls;
mod client;
mod commands;
mod content;
mod diff;
mod environment;
mod files;
mod fork;
mod handshake;
mod history;
mod hosts;
mod initialize_gate;
mod input;
mod listen;
mod names;
mod notices;
mod options;
mod outgoing;
mod prompts;
mod sdk;
mod sender;
mod session;
mod shown;
mod socket;
mod stdout;
mod steering;
mod tail;
mod terminals;
mod time;
mod tool;
mod trust;
mod updates;

use std::sync::Arc;

use tidegate::HostBuilder;
use tidegate::trust::{SettingsReader, WorkspaceSettings};
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::access::{Access, TokenError};
use self::agent::Agent;
use self::hosts::Hosts;

/// An agent for editors. Hosts are opened when the first session needs them, so that an editor gets an answer at once, and share one
/// engine.
#[derive(Debug)]
pub struct Server {
    hosts: Arc<Hosts>,
}

/// The connection to the editor failed. When the editor closes it, that is no error.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the editor failed: {0}")]
pub struct ConnectionError(String);

impl Server {
    /// A server whose hosts `build` makes: one for each workspace whose operator's file counts, and one for all others. Whether one counts is
    /// the user's to decide, who is asked in the editor. The error is one line for the user of the editor.
    pub fn new(
        reader: SettingsReader,
        build: impl Fn(&WorkspaceSettings) -> Result<HostBuilder, String> + Send + Sync + 'static,
    ) -> Self {
        Self { hosts: Arc::new(Hosts::new(reader, Arc::new(build))) }
    }

    /// Serves one editor on standard input and output, where nothing else must write to standard output, until it closes the connection
    /// or `stop` completes. All sessions are closed then, and their state is saved. Turns that run are cancelled; a question about a tool call
    /// of a recorded session stays open, and is asked again when the session is loaded.
    ///
    /// # Errors
    /// A line cannot be read or written.
    pub async fn stdio(self, stop: impl Future<Output = ()>) -> Result<(), ConnectionError> {
        connection(self.hosts, stop, async |agent| sdk::stdio(agent).await).await
    }

    /// The same on other streams, such as those of a socket: messages are read from `input` and written to `output`.
    ///
    /// # Errors
    /// As [`Server::stdio`].
    pub async fn streams(
        self,
        output: impl AsyncWrite + Send + 'static,
        input: impl AsyncRead + Send + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ConnectionError> {
        connection(self.hosts, stop, async |agent| sdk::streams(agent, output, input).await).await
    }
}

/// Serves one client until it closes the connection or `stop` completes, and closes its sessions.
async fn connection(
    hosts: Arc<Hosts>,
    stop: impl Future<Output = ()>,
    serve: impl AsyncFnOnce(&Arc<Agent>) -> Result<(), sdk::Error>,
) -> Result<(), ConnectionError> {
    let agent = Arc::new(Agent::new(hosts));
    let ended = tokio::select! {
        ended = serve(&agent) => ended,
        () = stop => Ok(()),
    };
    agent.close_all().await;
    ended.map_err(|error| ConnectionError(error.to_string()))
}
