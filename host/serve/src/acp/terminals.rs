//! The terminals of a client, in which the commands of `shell` run where it has any.

use tidegate::BoxFuture;
use tidegate::tool::{CallId, TerminalCommand, TerminalEnd, TerminalExit, Terminals};
use tokio::sync::{mpsc, oneshot};

use super::client::Client;
use super::sdk::{Error, v1};
use super::tool;

/// A terminal that a call runs in.
pub(super) type Shown = (CallId, v1::TerminalId);

/// Terminals of the client.
#[derive(Debug)]
pub(super) struct ClientTerminals {
    pub(super) client: Client,
    /// Receives which call has which terminal, so that the client shows it there.
    pub(super) shown: mpsc::UnboundedSender<Shown>,
}

/// A terminal that exists as long as this does.
struct Terminal {
    client: Client,
    id: v1::TerminalId,
    is_released: bool,
}

impl Terminals for ClientTerminals {
    fn run<'a>(&'a self, command: TerminalCommand<'a>) -> BoxFuture<'a, Result<TerminalEnd, String>> {
        Box::pin(async move {
            let failed = |error: Error| format!("{} cannot run it in a terminal: {error}", self.client.can.name);
            let mut terminal = self.create(&command).await.map_err(failed)?;
            let _entry = self.show(&command, &terminal.id);
            let exit = match tokio::time::timeout(command.timeout, terminal.client.terminal_exit(&terminal.id)).await {
                Ok(exit) => exited(exit.map_err(failed)?),
                Err(_) => {
                    terminal.client.kill_terminal(&terminal.id).await.map_err(failed)?;
                    TerminalExit::Timeout
                }
            };
            let output = terminal.client.terminal_output(&terminal.id).await.map_err(failed)?;
            terminal.is_released = true;
            terminal.client.release_terminal(&terminal.id).await.map_err(failed)?;
            let mut end = TerminalEnd::new(output.output, exit);
            end.truncated = output.truncated;
            Ok(end)
        })
    }
}

impl ClientTerminals {
    /// Has the client show the terminal in the call that runs in it. The calls of child agents are not sent: theirs is shown as long as it
    /// runs.
    fn show(&self, command: &TerminalCommand<'_>, terminal: &v1::TerminalId) -> Option<Entry> {
        let Some(child) = command.child else {
            // Nobody shows it where the session is closed.
            let _ = self.shown.send((command.call.clone(), terminal.clone()));
            return None;
        };
        let id = v1::ToolCallId::new(format!("{child}/{}", terminal.0));
        let title = tool::command_title(command.command);
        let call = v1::ToolCall::new(id.clone(), title)
            .kind(v1::ToolKind::Execute)
            .status(v1::ToolCallStatus::InProgress)
            .content(vec![v1::ToolCallContent::Terminal(v1::Terminal::new(terminal.clone()))]);
        self.client.update(v1::SessionUpdate::ToolCall(call));
        Some(Entry { client: self.client.clone(), id })
    }

    /// Creates the terminal in a task of its own: where the call is cancelled meanwhile, the client can have started the command all the same,
    /// and it is stopped then.
    async fn create(&self, command: &TerminalCommand<'_>) -> Result<Terminal, Error> {
        let (client, request) = (self.client.clone(), self.client.terminal_request(command));
        let (created, terminal) = oneshot::channel();
        tokio::spawn(async move {
            let id = client.create_terminal(request).await;
            // Dropped here where nobody waits for it any more, which stops the command.
            drop(created.send(id.map(|id| Terminal { client, id, is_released: false })));
        });
        terminal.await.unwrap_or_else(|_| Err(Error::internal_error()))
    }
}

/// The entry of a child agent's command, which ends with it. How the command ended is in the terminal.
struct Entry {
    client: Client,
    id: v1::ToolCallId,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let fields = v1::ToolCallUpdateFields::new().status(v1::ToolCallStatus::Completed);
        let update = v1::ToolCallUpdate::new(self.id.clone(), fields);
        self.client.update(v1::SessionUpdate::ToolCallUpdate(update));
    }
}

fn exited(status: v1::TerminalExitStatus) -> TerminalExit {
    match (status.exit_code, status.signal) {
        (Some(code), None) => TerminalExit::Code(code),
        (_, Some(signal)) => TerminalExit::Signal(signal),
        (None, None) => TerminalExit::Signal("unknown".to_owned()),
    }
}

impl Drop for Terminal {
    /// The result is not needed any more: the command is stopped.
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let (client, id) = (self.client.clone(), self.id.clone());
        // Without a runtime the process ends, and the client with its connection.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(runtime.spawn(async move {
            let (killed, released) = (client.kill_terminal(&id).await, client.release_terminal(&id).await);
            if let Some(error) = killed.err().or(released.err()) {
                tracing::debug!(terminal = %id.0, "a terminal was not released: {error}");
            }
        }));
    }
}
