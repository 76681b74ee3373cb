//! Steering messages: input that joins the turn while it runs.

use std::sync::Arc;

use flow::{EventKind, Message, ModelError, PluginId};

use super::{Stop, Turn};
use crate::inputs::{Claim, Delivery};
use flow::ports::EventSink;
use guard::input::{self, Input};

/// What the turn does about the messages that have joined it.
pub(super) enum Steered {
    /// The model is asked about them.
    Ask,
    /// Nothing: there were none, or an extension has dropped or answered them.
    Done,
    /// An extension has refused them.
    Rejected { by: PluginId, reason: String },
    /// They can never fit the context of the model.
    TooLarge(ModelError),
}

impl Turn<'_> {
    /// Delivers the inputs that join the turn, through extensions as any input.
    pub(super) async fn steer(&mut self) -> Result<Steered, Stop> {
        let later = self.session.handles.inputs.claim_steering();
        let claim = match (self.halted.take(), later) {
            (Some(mut claim), Some(later)) => {
                claim.join(later);
                claim
            }
            (Some(claim), None) | (None, Some(claim)) => claim,
            (None, None) => return Ok(Steered::Done),
        };
        match self.process_input(claim.messages(), Some(claim), Delivery::Joining).await? {
            Input::Reject { by, reason } => {
                let message = format!("extension `{by}` rejected a steering message: {reason}");
                self.session.handles.hub.emit(EventKind::Notice { message });
                Ok(Steered::Rejected { by, reason })
            }
            Input::Reply { messages, by, text } => {
                self.remember_input(messages);
                self.reply(by, text).await?;
                Ok(Steered::Done)
            }
            Input::Ask(messages) if messages.is_empty() => Ok(Steered::Done),
            Input::Ask(messages) => {
                if let Err(error) = self.refuse_too_large(&messages) {
                    self.session.handles.hub.emit(EventKind::Notice { message: error.message.clone() });
                    return Ok(Steered::TooLarge(error));
                }
                self.repeats.reset();
                self.remember_input(messages);
                Ok(Steered::Ask)
            }
        }
    }

    /// Has extensions process an input, and delivers it then. A turn that ends before leaves it as it was.
    pub(super) async fn process_input(
        &mut self,
        messages: Vec<Message>,
        claim: Option<Claim>,
        delivery: Delivery,
    ) -> Result<Input, Stop> {
        let caller = Arc::clone(&self.session.caller);
        let processed = input::run(&caller, messages).await;
        // Also where an extension that is required failed: the turn ends, and the next one must not fail for the same input.
        if let Some(claim) = claim {
            claim.deliver(delivery);
        }
        Ok(processed?)
    }
}
