//! The task that sends the events of a session to its client.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidegate::{Event, EventKind, Session, Subscription, TurnStatus};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::client::Client;
use super::sdk::v1;
use super::session::Prompts;
use super::terminals::Shown;
use super::updates::{Updates, why};
use super::{ask, history, names};

/// Sends the events of a session to its client.
pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) session: Session,
    pub(super) workspace: PathBuf,
    pub(super) updates: Updates,
    /// The entries of the calls that a question's update was sent about, by the place and the id of the call.
    pub(super) announce: watch::Sender<BTreeMap<String, v1::ToolCallId>>,
    pub(super) sending: watch::Sender<u32>,
    /// The dialogs about limits that are open, by request.
    pub(super) limits: BTreeMap<String, AbortHandle>,
    pub(super) prompts: Prompts,
    /// A prompt of the client is answered with the end of the turn.
    pub(super) is_prompted: bool,
}

impl Sender {
    /// Sends until the session is closed. `replays`: requests for the history, each of which is answered when that was sent.
    pub(super) async fn run(
        mut self,
        mut events: Subscription,
        mut terminals: mpsc::UnboundedReceiver<Shown>,
        mut replays: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    ) {
        // Waits until the client has read enough. What happens meanwhile waits in the subscription, which joins adjacent chunks of text.
        let client = self.client.clone();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => {
                        let _place = client.ready().await;
                        self.send(&event);
                    }
                    None => return,
                },
                // The end of a call is an event that follows the events of its start, and comes after its terminal.
                Some((call, terminal)) = terminals.recv() => {
                    let _place = client.ready().await;
                    while let Some(event) = events.try_next() {
                        self.send(&event);
                    }
                    self.updates.calls.terminal(&call, terminal).into_iter().for_each(|update| self.client.update(update));
                }
                Some(done) = replays.recv() => {
                    let _place = client.ready().await;
                    events = self.replay(events);
                    // The client can be gone.
                    let _ = done.send(());
                }
            }
        }
    }

    /// Sends the history. Returns the subscription to the events after it.
    fn replay(&mut self, mut events: Subscription) -> Subscription {
        let Ok(again) = self.session.subscribe_from(0) else { return events };
        // Nothing has happened yet.
        let Some(snapshot) = again.snapshot else { return again.events };
        while let Some(event) = events.try_next().filter(|event| event.seq < snapshot.chat.next_seq()) {
            self.send(&event);
        }
        let updates = history::updates(snapshot.chat, &self.workspace, self.updates.loaded());
        updates.into_iter().for_each(|update| self.client.update(update));
        again.events
    }

    fn send(&mut self, event: &Event) {
        for update in self.updates.take(event) {
            self.client.update(update);
        }
        match &event.kind {
            EventKind::TurnStart => self.is_prompted = false,
            EventKind::InputReceived { id: Some(id), .. } => self.is_prompted |= self.prompts.contains(id),
            EventKind::ToolConfirmationRequested { call, .. } => {
                let entry = self.updates.calls.id(event.place, call);
                let call = names::call(event.place, call).0.to_string();
                self.announce.send_modify(|entries| entries.extend([(call, entry)]));
            }
            EventKind::LimitEscalationRequested(request) => {
                let asking = ask::limit(self.client.clone(), self.session.clone(), request.clone());
                let asking = tokio::spawn(asking).abort_handle();
                // The same request again has other amounts: its dialog takes the place of the one before.
                if let Some(before) = self.limits.insert(request.id.clone(), asking) {
                    before.abort();
                }
            }
            EventKind::LimitEscalationResolved { request, limit, decision, by } => {
                // The client closes the dialog where the decision is not its user's.
                if let Some(asking) = self.limits.remove(request) {
                    asking.abort();
                    let call = ask::limit_id(&self.session, request);
                    self.client.update(ask::limit_decided(call, *limit, decision, by));
                }
            }
            EventKind::TurnFinish { status } => self.finish(event.place.turn, status),
            _ => {}
        }
    }

    fn finish(&mut self, turn: u32, status: &TurnStatus) {
        // Nobody waits for the response to a prompt that could say it.
        if let Some(why) = why(status).filter(|_| !self.is_prompted) {
            self.client.say(&why);
            self.prompts.report(turn);
        }
        for (request, asking) in std::mem::take(&mut self.limits) {
            asking.abort();
            let id = ask::limit_id(&self.session, &request);
            let text = "The turn ended before the limit was decided about.";
            self.client.update(ask::limit_ended(id, v1::ToolCallStatus::Failed, text));
        }
        self.announce.send_modify(BTreeMap::clear);
        self.sending.send_replace(turn);
    }
}
