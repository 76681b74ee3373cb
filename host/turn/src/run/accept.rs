//! An answer that is complete: callbacks have it whole, and it joins the conversation.

use std::sync::Arc;

use flow::{EventKind, Message, Origin, PluginId, Role, StopReason};

use super::{Phase, Stop, Turn};
use flow::ports::EventSink;
use guard::attempt::Answer;
use guard::{Beginning, Completed, Segments};

impl Turn<'_> {
    /// The answer of the model is complete.
    pub(super) async fn accept(&mut self, segments: Segments) -> Result<(), Stop> {
        let live = !self.session.caller.has_rewriter();
        let calls = self.check_calls(&self.attempt.answer.calls()).await?;
        if self.session.caller.gets_calls() {
            self.attempt.answer.show_calls(calls.iter().map(|one| one.shown.as_str()));
        }
        let is_empty = self.attempt.answer.own_message().is_none();
        let caller = Arc::clone(&self.session.caller);
        let completed = Completed::new(&caller, &mut self.attempt.answer, segments, live).await?;
        let message = self.attempt.answer.message(&completed.text);
        let reasoning = self.attempt.answer.reasoning_event(false, message.is_some());
        reasoning.into_iter().for_each(|event| self.session.handles.hub.emit(event));
        self.session.handles.hub.emit(completed.event(&self.attempt.answer, Origin::Model, message.is_some()));
        self.accept_attempt();
        if is_empty {
            self.report_empty();
        } else if calls.is_empty() {
            self.report_cut();
        }
        self.report.text.push_str(self.attempt.answer.shown());
        self.beginning = Beginning::None;
        self.phase = match message {
            Some(answer) => Phase::Calling { answer, calls, results: Vec::new() },
            None => Phase::Between,
        };
        Ok(())
    }

    /// The answer has neither text nor calls: the turn ends with it, and the user has to know why nothing was said.
    fn report_empty(&self) {
        let answer = &self.attempt.answer;
        let what = if answer.has_begun() { "has nothing but reasoning" } else { "is empty" };
        let why = match answer.stop() {
            Some(StopReason::MaxTokens | StopReason::ContextFull) => {
                "; it has reached its limit of tokens: raise `max_tokens` under `[provider]`, or lower the effort"
            }
            Some(StopReason::Refusal) => "; the model has refused to answer",
            // It is asked again.
            Some(StopReason::Pause) => return,
            _ => "",
        };
        self.session.handles.hub.emit(EventKind::Notice { message: format!("the answer of the model {what}{why}") });
    }

    /// The turn ends with an answer that the model did not end. Without a word, its last line would look like its end.
    fn report_cut(&self) {
        let why = match self.attempt.answer.stop() {
            Some(StopReason::MaxTokens) => {
                "was cut off at its limit of tokens: raise `max_tokens` under `[provider]`, or ask the model to continue"
            }
            Some(StopReason::ContextFull) => "was cut off: the context of the model is full",
            Some(StopReason::Refusal) => "ended because the model has refused to continue",
            _ => return,
        };
        self.session.handles.hub.emit(EventKind::Notice { message: format!("the answer of the model {why}") });
    }

    /// An extension's own answer is processed like a model's, without the gate.
    pub(super) async fn one_reply(&mut self, by: PluginId, text: String) -> Result<(), Stop> {
        self.place.step += 1;
        self.place.attempt = 0;
        self.session.set_place(self.place);
        self.attempt.answer = Answer::of_text(&text, self.session.caller.keeping());
        self.phase = Phase::Answering;
        let caller = Arc::clone(&self.session.caller);
        let segments = Segments::new(Arc::clone(&caller));
        let completed = Completed::new(&caller, &mut self.attempt.answer, segments, false).await?;
        let text = completed.text.clone();
        let is_blank = text.trim().is_empty();
        self.session.handles.hub.emit(completed.event(&self.attempt.answer, Origin::Plugin(by.clone()), !is_blank));
        if !is_blank {
            self.session.remember(Message::text(Role::Assistant, Origin::Plugin(by), text));
        }
        self.phase = Phase::Between;
        let answer = std::mem::take(&mut self.attempt).answer;
        self.report.text.push_str(answer.shown());
        Ok(())
    }
}
