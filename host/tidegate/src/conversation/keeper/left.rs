//! Conversations that were closed by a change of settings while their data could not be stored: they continue with that data.

use std::collections::HashMap;

use flow::SessionId;

use super::Conversation;
use super::side_requests::Counted;

/// Conversations by their ids, until they are opened again or stored.
#[derive(Default)]
pub(super) struct Left(HashMap<SessionId, (Conversation, Counted)>);

impl Left {
    pub(super) fn insert(&mut self, conversation: Conversation, size: Counted) {
        self.0.insert(conversation.id().clone(), (conversation, size));
    }

    pub(super) fn take(&mut self, id: &SessionId) -> Option<Conversation> {
        self.0.remove(id).map(|(conversation, _)| conversation)
    }

    pub(super) fn all(&self) -> Vec<Conversation> {
        self.0.values().map(|(conversation, _)| conversation.clone()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
