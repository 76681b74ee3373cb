//! How much of the model's context the next request of a session fills.

use flow::{EventKind, Message, Role, Usage};

use super::Session;
use crate::context::{Capacity, Conversation, Count, Estimate, Gauge, of_frame, of_message};
use flow::ports::EventSink;

impl Session {
    /// The next request, estimated.
    pub(crate) fn request_estimate(&self) -> Estimate {
        self.estimate(&self.handles.history.messages())
    }

    /// A request with these messages, estimated.
    pub(crate) fn estimate(&self, messages: &[std::sync::Arc<Message>]) -> Estimate {
        let model = &*self.parts.model;
        let frame = of_frame(self.frame.system_texts(), &self.parts.tools.specs());
        frame.plus(messages.iter().map(|message| of_message(model, message)).sum())
    }

    /// Tokens of the system prompt and the definitions of tools.
    pub(crate) fn frame_tokens(&self) -> u64 {
        self.thread.gauge.scaled(self.estimate(&[]))
    }

    /// Tokens of messages that are not in the conversation.
    pub(crate) fn message_tokens(&self, messages: &[Message]) -> u64 {
        let model = &*self.parts.model;
        self.thread.gauge.scaled(messages.iter().map(|message| of_message(model, message)).sum())
    }

    /// Tokens of the next prompt without what the model has not read yet.
    pub(crate) fn read_prompt(&self) -> u64 {
        let (messages, turns) = self.handles.history.with_turns();
        let conversation = Conversation { model: &*self.parts.model, messages: &messages, turns: &turns };
        self.thread.gauge.tokens(self.estimate(&messages[..conversation.unread()]))
    }

    /// Tokens of the next prompt, by what the provider has counted and an estimate of the rest.
    pub(crate) fn next_prompt(&self) -> u64 {
        self.thread.gauge.tokens(self.request_estimate())
    }

    /// The capacity of a prompt in the context of the model; `None` where its size is not known, or does not matter.
    pub(crate) fn capacity(&self) -> Option<Capacity> {
        let settings = self.parts.settings.compaction?;
        let context = self.thread.gauge.context(settings.context_tokens)?;
        Some(Capacity::new(context, settings.at, self.answer_tokens()))
    }

    /// The most tokens of an answer, as requests say it.
    pub(crate) fn answer_tokens(&self) -> Option<u64> {
        self.parts.model.answer_tokens(self.parts.settings.max_tokens)
    }

    /// The most tokens of the answer to a request that would not leave it what it asks for; `None`: the request can ask for all of it.
    pub(crate) fn lowered_answer(&self, request: Estimate) -> Option<u32> {
        let left = self.capacity()?.answer(self.thread.gauge.tokens(request), self.answer_tokens())?;
        Some(u32::try_from(left).unwrap_or(u32::MAX).max(1))
    }

    /// Takes up what the provider has counted of a request that is over: its prompt was estimated as `sent`, and `answer` is what it was
    /// answered.
    pub(crate) fn count_request(&mut self, usage: Usage, sent: Estimate, answer: Option<&Message>) {
        let model = &*self.parts.model;
        let (prompt, whole) = (model.context_tokens(Usage { output: None, ..usage }), model.context_tokens(usage));
        // An attempt that broke off before anybody counted says nothing about the conversation.
        let (Some(prompt), Some(whole)) = (prompt, whole) else { return };
        self.thread.context = Some(whole);
        let answer = answer.map(|message| of_message(model, message)).unwrap_or_default();
        let count = Count { prompt, whole, prompt_estimate: sent, whole_estimate: sent.plus(answer) };
        let expected = self.thread.gauge.tokens(sent);
        if self.thread.gauge.count(count) && !std::mem::replace(&mut self.thread.is_cut_reported, true) {
            let message = format!(
                "the server has counted {prompt} tokens of a prompt that has about {expected}: it has probably cut off the start of it, the \
                 system prompt included. Raise the context that the server gives the model (`num_ctx`, `--ctx-size` and the like), and set \
                 `context_tokens` under `[compaction]` to it"
            );
            self.handles.hub.emit(EventKind::Notice { message });
        }
    }

    /// Takes up what an earlier process has counted, of the conversation up to the last answer. What a refusal taught it can be about another
    /// model or server, and is learnt again.
    pub(super) fn resume_gauge(&mut self, counted: Option<u64>) {
        let messages = self.handles.history.messages();
        let end = messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
        let whole = self.estimate(&messages[..end]);
        self.thread.gauge = Gauge::resumed(counted.map(|tokens| (tokens, whole)));
    }
}
