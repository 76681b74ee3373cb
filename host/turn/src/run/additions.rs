//! Which additions to the prompt the next request and the next input have.

use flow::{EventKind, Message};

use super::Turn;
use crate::session::SessionParts;
use flow::ports::EventSink;
use guard::Caller;
use guard::additions::{Facts, Texts};

impl Turn<'_> {
    /// Decides which additions the system prompt has in this step.
    pub(super) fn choose_additions(&mut self) {
        let session = &mut *self.session;
        let texts = if session.frame.looks_at_texts() {
            Texts::of(&session.handles.history.messages())
        } else {
            Texts::default()
        };
        let agent = session.rules.agent();
        let facts = facts((&session.parts, &session.caller, agent), self.place.turn, texts);
        let reported = session.frame.choose(&facts);
        self.report_additions(reported);
    }

    /// The input joins the conversation, with the additions around it.
    pub(super) fn remember_input(&mut self, mut messages: Vec<Message>) {
        let session = &mut *self.session;
        let texts = if session.frame.looks_at_texts() {
            Texts::with_input(&session.handles.history.messages(), &messages)
        } else {
            Texts::default()
        };
        let agent = session.rules.agent();
        let facts = facts((&session.parts, &session.caller, agent), self.place.turn, texts);
        let reported = session.frame.around_input(&mut messages, &facts);
        self.report_additions(reported);
        for message in messages {
            self.session.add_message(message);
        }
    }

    fn report_additions(&self, reported: Vec<String>) {
        reported.into_iter().for_each(|message| self.session.handles.hub.emit(EventKind::Notice { message }));
    }
}

fn facts<'a>((parts, caller, agent): (&'a SessionParts, &'a Caller, &'a str), turn: u32, texts: Texts) -> Facts<'a> {
    let (model, workspace) = (parts.model.name(), parts.settings.workspace.as_str());
    Facts { model, agent, workspace, turn, texts, state: caller }
}
