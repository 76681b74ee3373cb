//! An open session: its handle, what its client has set, and the task that sends its events.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use tidegate::{Event, EventKind, Host, HostError, Session, SessionId, SessionOptions, Subscription};
use tokio::sync::{mpsc, watch};

use super::ask::{self, Asker};
use super::client::{Abilities, Client};
use super::commands;
use super::files::ClientFiles;
use super::names;
use super::options::{self, Settings};
use super::sdk::{Connection, v1};
use super::terminals::{ClientTerminals, Shown};
use super::updates::Updates;

/// A session of the client.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) host: Host,
    pub(super) client: Client,
    pub(super) settings: Settings,
    /// The last turn of which all updates were sent.
    sent: watch::Receiver<u32>,
}

/// What a session is opened with.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) id: SessionId,
    pub(super) workspace: PathBuf,
    pub(super) connection: Connection,
    pub(super) can: Arc<Abilities>,
}

impl Open {
    /// Opens a session, which continues if it is recorded.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) async fn new(host: Host, wanted: Wanted) -> Result<Self, HostError> {
        let Wanted { id, workspace, connection, can } = wanted;
        let client = Client::new(connection, v1::SessionId::new(id.as_str()), Arc::clone(&can));
        let (settings, (announce, announced)) = (Settings::default(), watch::channel(BTreeSet::new()));
        let asker =
            Asker { client: client.clone(), settings: settings.clone(), workspace: workspace.clone(), announced };
        let mut wanted = SessionOptions::new(&workspace).id(id).confirm(Arc::new(asker));
        if can.read_file || can.write_file {
            wanted = wanted.files(Arc::new(ClientFiles(client.clone())));
        }
        let (shown, terminals) = mpsc::unbounded_channel();
        if can.terminals {
            wanted = wanted.terminals(Arc::new(ClientTerminals { client: client.clone(), shown }));
        }
        let session = host.session(wanted).await?;
        let updates = Updates::new(workspace, can, session.context_tokens());
        let (sending, sent) = watch::channel(0);
        let sender = Sender { client: client.clone(), session: session.clone(), updates, announce, sending };
        tokio::spawn(sender.run(session.subscribe(), terminals));
        Ok(Self { session, host, client, settings, sent })
    }

    /// Sends what the client can know about the session when it has its id. `mcp_servers`: how many it has asked for.
    pub(super) fn introduce(&self, mcp_servers: usize) {
        self.client.update(commands::available());
        if mcp_servers > 0 {
            let title =
                format!("The MCP servers of the editor are not used ({mcp_servers}): this host has no MCP client");
            self.client.notice(v1::NoticeSeverity::Warning, &title, None);
            tracing::warn!(session = %self.session.id(), "{title}");
        }
        for problem in self.session.loaded().rule_problem_lines() {
            self.client.notice(v1::NoticeSeverity::Warning, &problem, None);
        }
    }

    /// Returns when all updates of a turn were sent, or none is sent any more.
    pub(super) async fn sent(&self, turn: u32) {
        let _closed = self.sent.clone().wait_for(|sent| *sent >= turn).await.is_err();
    }

    /// The options of the session, all of them.
    pub(super) fn options(&self) -> Vec<v1::SessionConfigOption> {
        options::all(&self.host, &self.settings, self.client.can.boolean_options)
    }

    /// The modes, for clients that do not know options.
    pub(super) fn modes(&self) -> v1::SessionModeState {
        options::modes(self.settings.mode())
    }

    /// Cancels what runs, and closes the session. Returns when its state is saved and its transcript released.
    pub(super) async fn close(&self) {
        self.session.cancel_by(&self.client.can.name);
        self.session.close();
        self.session.closed().await;
    }
}

/// Sends the events of a session to its client.
struct Sender {
    client: Client,
    session: Session,
    updates: Updates,
    announce: watch::Sender<BTreeSet<String>>,
    sending: watch::Sender<u32>,
}

impl Sender {
    async fn run(mut self, mut events: Subscription, mut terminals: mpsc::UnboundedReceiver<Shown>) {
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.send(&event),
                    None => return,
                },
                // The end of a call is an event that follows the events of its start, and comes after its terminal.
                Some((call, terminal)) = terminals.recv() => {
                    while let Some(event) = events.try_next() {
                        self.send(&event);
                    }
                    self.updates.terminal(&call, terminal).into_iter().for_each(|update| self.client.update(update));
                }
            }
        }
    }

    fn send(&mut self, event: &Event) {
        for update in self.updates.take(event) {
            self.client.update(update);
        }
        match &event.kind {
            EventKind::ToolConfirmationRequested { call, .. } => {
                let id = names::call(event.place, call).0.to_string();
                self.announce.send_modify(|ids| ids.extend([id]));
            }
            EventKind::LimitEscalationRequested(request) => {
                drop(tokio::spawn(ask::limit(self.client.clone(), self.session.clone(), request.clone())));
            }
            EventKind::TurnFinish { .. } => {
                self.announce.send_modify(BTreeSet::clear);
                self.sending.send_replace(event.place.turn);
            }
            _ => {}
        }
    }
}
