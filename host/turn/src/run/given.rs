//! The input that starts a turn: delivered, processed by extensions, and put into the conversation.

use std::sync::Arc;

use flow::{EventKind, Message, TurnStatus};

use super::{Stop, Turn};
use crate::input::Input;
use crate::inputs::{Claim, Delivery};
use crate::ports::EventSink;
use crate::session::Given;

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
            let Some(why) = self.session.continue_history() else { return self.all_steps().await };
            // What waits is what follows a complete conversation.
            let Some(first) = self.session.inputs.claim_first() else { return Ok(TurnStatus::failed(why)) };
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
                self.session.hub.emit(EventKind::Notice { message });
                return Ok(TurnStatus::Completed);
            }
            Input::Ask(messages) => self.remember_input(messages),
        }
        self.all_steps().await
    }

    /// Reports the input that is the turn's whatever becomes of it; any other is with its claim.
    fn receive(&self, input: Given) -> Option<(Vec<Message>, Option<Claim>)> {
        match input {
            Given::Nothing => None,
            Given::Messages(messages) => {
                for message in &messages {
                    let message = Arc::new(message.clone());
                    self.session.hub.emit(EventKind::InputReceived { id: None, message });
                }
                Some((messages, None))
            }
            Given::Claimed(claim) => Some((claim.messages(), Some(claim))),
        }
    }
}
