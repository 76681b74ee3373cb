//! The input that starts a turn: delivered, processed by extensions, and put into the conversation, unless it can never fit.

use std::sync::Arc;

use flow::{ErrorClass, EventKind, Message, ModelError, Part, TurnStatus, grouped};

use super::{Stop, Turn};
use crate::inputs::{Claim, Delivery};
use crate::session::Given;
use flow::ports::EventSink;
use guard::input::Input;

impl Turn<'_> {
    /// Takes the input of the turn, and runs its steps.
    pub(super) async fn steps(&mut self, input: Given) -> Result<TurnStatus, Stop> {
        let input = self.receive(input);
        self.session.renew_rules().await.map_err(Stop::Model)?;
        self.settled().await?;
        let Some((messages, claim)) = input else {
            if self.reopen().await? {
                return self.all_steps().await;
            }
            // A request for a higher limit that was announced is made before the first step.
            if self.session.thread.open_request.is_none() {
                self.session.handles.questions.expect_no_more();
            }
            let Some(why) = self.session.continue_history() else { return self.all_steps().await };
            // What waits is what follows a complete conversation.
            let Some(first) = self.session.handles.inputs.claim_first() else { return Ok(TurnStatus::failed(why)) };
            return self.begin(first.messages(), Some(first)).await;
        };
        self.begin(messages, claim).await
    }

    /// Has extensions process the input, and the model answer it.
    async fn begin(&mut self, messages: Vec<Message>, claim: Option<Claim>) -> Result<TurnStatus, Stop> {
        match self.process_input(messages, claim, Delivery::Start).await? {
            Input::Reject { by, reason } => return Ok(TurnStatus::Rejected { by, reason }),
            Input::Reply { messages, by, text } => {
                self.remember_input(messages);
                self.reply(by, text).await?;
                return Ok(TurnStatus::Completed);
            }
            Input::Ask(messages) if messages.is_empty() => {
                let message = "extensions dropped the whole input: the model was not asked".into();
                self.session.handles.hub.emit(EventKind::Notice { message });
                return Ok(TurnStatus::Completed);
            }
            Input::Ask(messages) => {
                self.refuse_too_large(&messages).map_err(Stop::Model)?;
                self.remember_input(messages);
            }
        }
        self.all_steps().await
    }

    /// Refuses an input that can never fit the context of the model, before it joins the conversation.
    ///
    /// # Errors
    /// Its size, and what the model takes.
    pub(super) fn refuse_too_large(&self, messages: &[Message]) -> Result<(), ModelError> {
        let Some(capacity) = self.session.capacity() else { return Ok(()) };
        let (frame, input) = (self.session.frame_tokens(), self.session.message_tokens(messages));
        if frame.saturating_add(input) <= capacity.most() {
            return Ok(());
        }
        let bytes: u64 = messages.iter().map(bytes).sum();
        let images =
            messages.iter().flat_map(|message| &message.parts).filter(|part| matches!(part, Part::Image(_))).count();
        let images = if images == 0 { String::new() } else { format!(", images: {images}") };
        let (most, context) = (grouped(capacity.most().saturating_sub(frame)), grouped(capacity.context));
        let message = if frame > capacity.most() / 4 * 3 {
            format!(
                "the system prompt and the definitions of the tools have about {} tokens; the model takes {context} with the conversation and \
                 the answer. Switch off plugins, MCP servers or tools, shorten the system prompt and the rules that always apply, or use a model with a larger context",
                grouped(frame),
            )
        } else {
            format!(
                "the input is too large: it has about {} tokens ({} bytes{images}), and at most {most} fit the context of the model, which \
                 takes {context} with the system prompt, the tools and the answer. It was not sent. Send less, for example the path of a file that \
                 the model reads in parts",
                grouped(input),
                grouped(bytes),
            )
        };
        Err(ModelError::new(ErrorClass::ContextOverflow, message))
    }

    /// Reports the input that is the turn's whatever becomes of it; any other is with its claim.
    fn receive(&self, input: Given) -> Option<(Vec<Message>, Option<Claim>)> {
        match input {
            Given::Nothing => None,
            Given::Messages(messages) => {
                for message in &messages {
                    let message = Arc::new(message.clone());
                    self.session.handles.hub.emit(EventKind::InputReceived { id: None, message });
                }
                Some((messages, None))
            }
            Given::Claimed(claim) => Some((claim.messages(), Some(claim))),
        }
    }
}

/// The bytes of a message's texts and files.
fn bytes(message: &Message) -> u64 {
    let part = |part: &Part| match part {
        Part::Image(image) => image.bytes(),
        Part::Text(text) => text.len(),
        Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => 0,
    };
    message.parts.iter().map(part).sum::<usize>() as u64
}
