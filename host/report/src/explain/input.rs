//! Changes of the input: what the user wrote against what joined the conversation.

use record::Author;

use super::{By, Change, ChangeKind, Explained};
use crate::report::{Sent, What};

impl Explained<'_> {
    /// Compares the inputs of the turn with the messages that joined the conversation before its first step. Messages that are the same
    /// are pairs; the others are paired in order.
    pub(super) fn input(&mut self) {
        let (mut inputs, mut others) = (Vec::new(), Vec::new());
        for entry in &self.turn.log.entries {
            match &entry.what {
                What::Input(input) => inputs.push(input.text.as_str()),
                What::Sent(sent) if sent.unchanged => {
                    if let Some(at) = inputs.iter().position(|input| *input == sent.message.text) {
                        inputs.remove(at);
                    }
                }
                What::Sent(sent) if sent.message.role != "system" => others.push(sent),
                _ => {}
            }
        }
        let mut inputs = inputs.into_iter();
        for sent in others {
            match &sent.message.author {
                Some(Author::Addition { .. }) => self.joined((0, 0), sent),
                author => match inputs.next() {
                    Some(input) => {
                        let by = self.author(author.as_ref());
                        let change = Change::new((0, 0), ChangeKind::InputChanged, by);
                        self.changes.push(change.texts(Some(input), Some(&sent.message.text)));
                    }
                    None => self.joined((0, 0), sent),
                },
            }
        }
        inputs.for_each(|input| self.lost(input));
        if let By::OneOf { candidates } = self.author(None)
            && candidates.len() > 1
        {
            let ids: Vec<&str> = candidates.iter().map(|one| one.extension.as_str()).collect();
            self.notes.push(format!(
                "Several extensions changed the input ({}): the records contain what the user wrote and the result, not what each made of it.",
                ids.join(", ")
            ));
        }
    }

    /// A message joined the conversation that nobody wrote as input.
    pub(super) fn joined(&mut self, place: (u32, u32), sent: &Sent) {
        if sent.unchanged || sent.message.role == "system" {
            return;
        }
        let by = self.author(sent.message.author.as_ref());
        let hidden = if sent.message.hidden { "hidden from the user" } else { "" };
        let change = Change::new(place, ChangeKind::InputAdded, by).because(hidden);
        self.changes.push(change.texts(None, Some(&sent.message.text)));
    }

    /// An input did not join the conversation.
    fn lost(&mut self, input: &str) {
        let finish = self.turn.finish.as_ref();
        let change = match finish.and_then(|finish| Some((finish, finish.extension_id.clone()?))) {
            Some((finish, id)) => {
                let reason = finish.reason.as_deref().unwrap_or_default();
                Change::new((0, 0), ChangeKind::InputRejected, By::Extension { id }).because(reason)
            }
            None => Change::new((0, 0), ChangeKind::InputRemoved, self.author(None)),
        };
        self.changes.push(change.texts(Some(input), None));
    }

    /// The author that a message names; else the callbacks of the input that changed something.
    fn author(&self, author: Option<&Author>) -> By {
        match author {
            Some(author @ (Author::Extension(_) | Author::Addition { .. } | Author::Host)) => By::author(author),
            Some(Author::User | Author::Model) | None => {
                By::candidates(&self.turn.log, &["on_input_messages"], !self.dropped)
            }
        }
    }
}
