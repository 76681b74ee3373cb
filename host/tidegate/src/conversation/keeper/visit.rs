//! One exchange in a conversation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::EventKind;
use flow::ports::StateError;
use gateway::{Answer, Asked, Given, Trail};
use guard::Caller;
use rules::{RuleMemory, RuleSession};

use super::entry::Visited;
use super::links::Link;
use super::{Conversation, Conversations};
use crate::HostError;
use crate::conversation::thread::Part;

/// How long the end of an answer waits for a store that did not answer when it was used last.
const AWAY: Duration = Duration::from_millis(250);

/// One exchange in a conversation, which stays in memory until this is dropped.
pub struct Visit {
    conversation: Conversation,
    trail: Trail,
    rules: RuleSession,
    began: RuleMemory,
    /// Its part in a turn of the transcript.
    part: Mutex<Part>,
    keeper: Arc<Conversations>,
    /// `None` if nothing of it is kept.
    kept: Option<Visited>,
    /// The conversation whose tokens are counted.
    owner: Option<Visited>,
}

impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visit").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

impl Visit {
    pub(super) fn new(keeper: Arc<Conversations>, visited: Visited, trail: Trail) -> Self {
        let conversation = visited.conversation.clone();
        let mut visit = Self::side_request(keeper, conversation, trail);
        visit.kept = Some(visited);
        visit
    }

    pub(super) fn side_request(keeper: Arc<Conversations>, conversation: Conversation, trail: Trail) -> Self {
        let rules = conversation.begin(trail.continues_turn());
        let began = rules.memory();
        Self { conversation, trail, rules, began, part: Mutex::default(), keeper, kept: None, owner: None }
    }

    pub(super) fn counting_for(mut self, owner: Option<Visited>) -> Self {
        self.owner = owner;
        self
    }

    /// Returns whether it is a side request, such as for a title or a count.
    pub fn is_side_request(&self) -> bool {
        self.kept.is_none()
    }

    /// Returns what plugins add to the request, and the caller whose state the conditions read.
    pub fn given(&self) -> (Given, Arc<Caller>) {
        match &self.owner {
            Some(owner) => (owner.conversation.given_next(self.trail.continues_turn()), owner.conversation.caller()),
            None => (self.conversation.given(), self.conversation.caller()),
        }
    }

    /// Returns the conversation that the request belongs to.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the rules of the exchange, with the memory of the conversation.
    pub fn rules(&self) -> RuleSession {
        self.rules.clone()
    }

    /// Starts the turn of the exchange in the transcript, unless the request continues a turn. Call it before `gateway::prepare`: the reports of
    /// callbacks on the request then belong to the turn.
    pub fn starts(&self, provider: &str, model: &str) {
        self.conversation.set_model(provider, model);
        if self.kept.is_some() {
            self.conversation.begin_part(&mut self.part(), (provider, model), self.trail.continues_turn());
        }
    }

    /// Notes that the request goes to the model. `asked`: the content of its body as sent, after extensions have changed it, so that masked
    /// text is recorded masked.
    pub fn asked(&self, asked: &Asked, provider: &str, model: &str) {
        self.starts(provider, model);
        if self.kept.is_some() {
            self.conversation.ask(&mut self.part(), asked);
        }
    }

    /// Notes that the request is not sent to the model. `why`: one sentence that quotes nothing of the request; it is recorded.
    pub fn refused(&self, why: &str) {
        self.part().refused(why);
    }

    /// Emits an event of the exchange, as `Filtered::take_events` returns it.
    pub fn happened(&self, events: impl IntoIterator<Item = EventKind>) {
        let part = self.part();
        events.into_iter().for_each(|event| self.conversation.happened(&part, event));
    }

    /// Ends the exchange, and stores the records of its rules and the memory of the embedder. `answer`: the complete answer as the client
    /// has received it; `None` if it broke off. Call this before the client gets the end of the answer: its next request can go to another
    /// host.
    ///
    /// While the store is away, this waits a quarter of a second for it; the data is stored in the background, or later.
    ///
    /// # Errors
    /// The data is not stored yet; a later exchange stores it.
    pub async fn end(&self, ended: &RuleSession, answer: Option<&Answer>) -> Result<(), HostError> {
        self.conversation.end(&self.began, ended);
        let point = answer.map(|answer| self.trail.answered(&answer.text(), answer.calls()));
        if let Some(point) = &point {
            self.conversation.reached(point);
        }
        if self.kept.is_none() {
            // In a store of its own, in memory: unsettled state of plugins would be reported as lost when it is dropped.
            let settled = self.conversation.settle().await;
            if let Some(point) = point {
                self.keeper.remember_side_request(point, self.conversation.heritage()).await;
            }
            return settled;
        }
        self.conversation.answered(&mut self.part(), answer);
        let names = point.zip(answer).map(|(point, answer)| self.names(point, answer)).unwrap_or_default();
        self.store(names).await
    }

    /// Returns the names by which the conversation is found after this answer: the point behind it first.
    fn names(&self, point: String, answer: &Answer) -> Vec<String> {
        let response = answer.id.as_deref().map(|id| self.trail.response(id));
        std::iter::once(point).chain(response).chain(self.trail.answered_without_ids(answer)).collect()
    }

    async fn store(&self, names: Vec<String>) -> Result<(), HostError> {
        let (keeper, conversation) = (Arc::clone(&self.keeper), self.conversation.clone());
        // The next request can come before all is stored.
        let line = keeper.link(&conversation, &names);
        if !keeper.is_store_away() {
            let settled = settle(&conversation).await;
            keeper.name(&conversation, names, line).await?;
            return settled;
        }
        let mut pending = match conversation.begin_to_store() {
            Ok(pending) => pending,
            Err(mut ended) => {
                // A task for each answer would be any number of them where the store hangs.
                names.into_iter().for_each(|name| conversation.name_later(name, line.clone()));
                drop(tokio::time::timeout(AWAY, ended.changed()).await);
                return Ok(());
            }
        };
        let task = tokio::spawn(async move {
            let settled = settle(&conversation).await;
            let named = keeper.name(&conversation, names, line).await;
            warn(named.map_err(HostError::from).and(settled));
            while pending.has_more() {
                let settled = settle(&conversation).await;
                warn(keeper.name_late(&conversation).await.and(settled));
            }
        });
        // Until then the conversation counts as not stored.
        drop(tokio::time::timeout(AWAY, task).await);
        Ok(())
    }

    /// The data is valid after every statement, so a panic elsewhere does not matter.
    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visit {
    /// Ends a part that [`Visit::end`] has not ended: the turn does not wait for it.
    fn drop(&mut self) {
        if self.kept.is_some() {
            self.conversation.answered(&mut self.part(), None);
        }
    }
}

/// Stores the data of a conversation, and its events.
async fn settle(conversation: &Conversation) -> Result<(), HostError> {
    let settled = conversation.settle().await;
    if let Err(error) = conversation.durable().await {
        tracing::warn!("{}", error.in_one_line());
    }
    settled
}

/// Logs that data is not stored, unless the store is away: then a later exchange stores it.
fn warn(stored: Result<(), HostError>) {
    match stored {
        Ok(()) | Err(HostError::State(StateError::Unavailable { .. })) => {}
        Err(error) => tracing::warn!("what an exchange has changed is not stored: {}", error.in_one_line()),
    }
}

impl Conversations {
    /// Links names to the conversation in memory: the point behind its answer, and other names of the answer. Returns the line of the link.
    fn link(&self, conversation: &Conversation, names: &[String]) -> String {
        let point = names.first().cloned().unwrap_or_default();
        let link = Link { id: conversation.id().clone(), completed: conversation.completed_turns(), point };
        names.iter().for_each(|name| self.links().insert(name, link.clone()));
        link.line()
    }

    /// Records the names in the store.
    async fn name(&self, conversation: &Conversation, names: Vec<String>, line: String) -> Result<(), StateError> {
        let store = self.host.live.shared().basis.stored.sessions.clone();
        let mut first = None;
        for name in names {
            // Without the store, the client does not wait for each of them.
            if !matches!(first, Some(StateError::Unavailable { .. })) {
                match self.noted(store.name(&name, &line).await) {
                    Ok(_) => continue,
                    Err(error) => first = first.or(Some(error)),
                }
            }
            conversation.name_later(name, line.clone());
        }
        match first.filter(|error| !self.is_local(error) && !conversation.is_local()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Records the names in the store that could not be recorded before, or were added meanwhile.
    async fn name_late(&self, conversation: &Conversation) -> Result<(), HostError> {
        let named = conversation.name().await;
        if let Err(HostError::State(error)) = &named {
            self.note(Some(error));
        }
        named
    }
}
