//! The client, as one session uses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tidegate::tool::TerminalCommand;

use super::environment;
use super::names::{self, meta};
use super::outgoing::{Outgoing, Place};
use super::sdk::{Connection, Error, Explicit, v1};
use super::tail::Tail;
use super::updates::chunk;

/// What a client can do, from `initialize`. Without that, nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Abilities {
    pub(super) read_file: bool,
    pub(super) write_file: bool,
    pub(super) terminals: bool,
    pub(super) notices: bool,
    pub(super) compaction: bool,
    pub(super) boolean_options: bool,
    /// It keeps messages apart by their ids, and takes retracted text from them.
    pub(super) retractions: bool,
    /// The name that decisions of its user are recorded under.
    pub(super) name: String,
}

impl Abilities {
    pub(super) fn of(request: &v1::InitializeRequest) -> Self {
        let can = &request.client_capabilities;
        let session = can.session.as_ref();
        let options = session.and_then(|session| session.config_options.as_ref());
        Self {
            read_file: can.fs.read_text_file,
            write_file: can.fs.write_text_file,
            terminals: can.terminal,
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            retractions: can.meta.as_ref().is_some_and(|meta| meta.get(names::RETRACTED) == Some(&true.into())),
            boolean_options: options.is_some_and(|options| options.boolean.is_some()),
            name: request.client_info.as_ref().map_or_else(|| "the editor".to_owned(), |info| info.name.clone()),
        }
    }
}

/// The client of one session. A request to it must not be awaited in a handler of the connection.
#[derive(Clone, Debug)]
pub(super) struct Client {
    connection: Connection,
    outgoing: Outgoing,
    pub(super) session: v1::SessionId,
    pub(super) can: Arc<Abilities>,
    folder: Folder,
    pub(super) tail: Tail,
}

/// The folder of a session. Editors know their buffers by the path that the user has opened, which can lead through a link; tools use the
/// path without links.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    given: PathBuf,
    real: PathBuf,
}

impl Folder {
    /// `given`: the path as the client has it.
    pub(super) fn new(given: &Path) -> Self {
        // One that does not exist is refused when the session is opened.
        let real = given.canonicalize().unwrap_or_else(|_| given.to_owned());
        Self { given: given.to_owned(), real }
    }

    /// A path of a tool as the client has it.
    fn of_client(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.real) {
            Ok(rest) if rest.as_os_str().is_empty() => self.given.clone(),
            Ok(rest) => self.given.join(rest),
            Err(_) => path.to_owned(),
        }
    }
}

impl Client {
    /// The connection comes with the updates that it is sending.
    pub(super) fn new(
        (connection, outgoing): (Connection, Outgoing),
        session: v1::SessionId,
        can: Arc<Abilities>,
        folder: Folder,
    ) -> Self {
        let tail = Tail::new(&can);
        Self { connection, outgoing, session, can, folder, tail }
    }

    /// Waits until the client has read enough for another update, whose place is kept until the result is dropped. An update that is not
    /// waited for is sent all the same.
    pub(super) async fn ready(&self) -> Place<'_> {
        self.outgoing.ready().await
    }

    /// Shows the user a text that is not the model's.
    pub(super) fn say(&self, text: &str) {
        let id = v1::MessageId::new(tidegate::new_session_id().as_str());
        self.tail.end().into_iter().for_each(|end| self.send(end));
        self.send(v1::SessionUpdate::AgentMessageChunk(chunk(text, id)));
        self.tail.part();
    }

    /// Sends an update. If the connection is gone, nobody waits for it.
    pub(super) fn update(&self, mut update: v1::SessionUpdate) {
        // A notice is not of the text that it interrupts.
        let end = if is_shown_notice(&update) { self.tail.end() } else { self.tail.before(&mut update) };
        end.into_iter().for_each(|end| self.send(end));
        self.send(update);
    }

    fn send(&self, update: v1::SessionUpdate) {
        self.tail.sent(&update);
        let notification = Explicit(v1::SessionNotification::new(self.session.clone(), update));
        self.outgoing.add();
        if let Err(error) = self.connection.send_notification(notification) {
            self.outgoing.remove();
            tracing::debug!(session = %self.session, "an update was not sent: {error}");
        }
    }

    /// Sends a notice to the user.
    pub(super) fn notice(&self, severity: v1::NoticeSeverity, title: &str, description: Option<&str>) {
        self.update(notice(self.can.notices, severity, title, description));
    }

    /// Asks the user about a tool call. Dropping the future tells the client that there is no question any more.
    pub(super) async fn ask(
        &self,
        call: v1::ToolCallUpdate,
        options: Vec<v1::PermissionOption>,
        about: Option<v1::Meta>,
    ) -> Result<v1::RequestPermissionOutcome, Error> {
        let request = Explicit(v1::RequestPermissionRequest::new(self.session.clone(), call, options).meta(about));
        Ok(self.connection.send_request(request).block_task().await?.outcome)
    }

    /// The content of a file as the client has it, changes that are not saved included.
    pub(super) async fn read(&self, path: &Path) -> Result<String, Error> {
        let request = v1::ReadTextFileRequest::new(self.session.clone(), self.folder.of_client(path));
        Ok(self.connection.send_request(request).block_task().await?.content)
    }

    /// Returns the request for a terminal of the client that runs a command.
    pub(super) fn terminal_request(&self, command: &TerminalCommand<'_>) -> v1::CreateTerminalRequest {
        let (arguments, variable) = environment::arguments(command);
        v1::CreateTerminalRequest::new(self.session.clone(), "sh")
            .args(arguments)
            .env(vec![variable])
            .cwd(self.folder.of_client(command.folder))
            .output_byte_limit(command.output_bytes as u64)
    }

    /// Starts a command in a terminal of the client.
    pub(super) async fn create_terminal(&self, request: v1::CreateTerminalRequest) -> Result<v1::TerminalId, Error> {
        Ok(self.connection.send_request(request).block_task().await?.terminal_id)
    }

    /// Waits for the end of a terminal's command.
    pub(super) async fn terminal_exit(&self, id: &v1::TerminalId) -> Result<v1::TerminalExitStatus, Error> {
        let request = v1::WaitForTerminalExitRequest::new(self.session.clone(), id.clone());
        Ok(self.connection.send_request(request).block_task().await?.exit_status)
    }

    /// The output of a terminal so far.
    pub(super) async fn terminal_output(&self, id: &v1::TerminalId) -> Result<v1::TerminalOutputResponse, Error> {
        let request = v1::TerminalOutputRequest::new(self.session.clone(), id.clone());
        self.connection.send_request(request).block_task().await
    }

    /// Stops the command of a terminal, which can still be asked for its output.
    pub(super) async fn kill_terminal(&self, id: &v1::TerminalId) -> Result<(), Error> {
        let request = v1::KillTerminalRequest::new(self.session.clone(), id.clone());
        self.connection.send_request(request).block_task().await.map(drop)
    }

    /// Gives a terminal back to the client.
    pub(super) async fn release_terminal(&self, id: &v1::TerminalId) -> Result<(), Error> {
        let request = v1::ReleaseTerminalRequest::new(self.session.clone(), id.clone());
        self.connection.send_request(request).block_task().await.map(drop)
    }

    /// Has the client write a file.
    pub(super) async fn write(&self, path: &Path, content: &str) -> Result<(), Error> {
        let request = v1::WriteTextFileRequest::new(self.session.clone(), self.folder.of_client(path), content);
        self.connection.send_request(request).block_task().await.map(drop)
    }
}

/// Whether an update is a notice in the form of a text.
fn is_shown_notice(update: &v1::SessionUpdate) -> bool {
    let v1::SessionUpdate::AgentThoughtChunk(chunk) = update else { return false };
    chunk.meta.as_ref().is_some_and(|meta| meta.contains_key(names::NOTICE))
}

/// A notice as an update. A client without the capability has no place for it: its user gets warnings and errors as a thought, and all others
/// are a field that the client can show.
pub(super) fn notice(
    can: bool,
    severity: v1::NoticeSeverity,
    title: &str,
    description: Option<&str>,
) -> v1::SessionUpdate {
    if can {
        let notice = v1::Notice::new(severity, title).description(description.map(str::to_owned));
        return v1::SessionUpdate::Notice(notice);
    }
    let word = match severity {
        v1::NoticeSeverity::Info => "info",
        v1::NoticeSeverity::Error => "error",
        _ => "warning",
    };
    let about = meta(names::NOTICE, json!({"severity": word, "title": title, "description": description}));
    if severity == v1::NoticeSeverity::Info {
        return v1::SessionUpdate::SessionInfoUpdate(v1::SessionInfoUpdate::new().meta(about));
    }
    let text = description.map_or_else(|| title.to_owned(), |description| format!("{title}\n{description}"));
    let id = v1::MessageId::new(tidegate::new_session_id().as_str());
    v1::SessionUpdate::AgentThoughtChunk(chunk(&format!("{word}: {text}\n"), id).meta(about))
}
