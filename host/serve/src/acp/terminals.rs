//! The terminals of a client, in which the commands of `shell` run where it has any.

use tidegate::{BoxFuture, CallId, TerminalCommand, TerminalEnd, TerminalExit, Terminals};
use tokio::sync::mpsc;

use super::client::Client;
use super::sdk::{Error, v1};

/// A terminal that a call runs in.
pub(super) type Shown = (CallId, v1::TerminalId);

/// Terminals of the client.
#[derive(Debug)]
pub(super) struct ClientTerminals {
    pub(super) client: Client,
    /// Told which call has which terminal, so that the client shows it there.
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
            let id = self.client.create_terminal(&command).await.map_err(failed)?;
            let mut terminal = Terminal { client: self.client.clone(), id: id.clone(), is_released: false };
            // Nobody shows it where the session is closed.
            let _ = self.shown.send((command.call.clone(), id));
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
