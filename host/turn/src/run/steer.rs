//! Steering messages: input that arrives while a turn runs.

use std::sync::Arc;

use flow::EventKind;

use super::{Stop, Turn};
use crate::input::{self, Input};
use crate::ports::EventSink;

impl Turn<'_> {
    /// Delivers the steering messages, through extensions as any input. Returns whether the model has to be asked about them.
    ///
    /// They stay with the session until extensions have seen them: a turn that is cancelled before that loses none.
    pub(super) async fn steer(&mut self) -> Result<bool, Stop> {
        let waiting = self.session.take_steering().to_vec();
        if waiting.is_empty() {
            return Ok(false);
        }
        let caller = Arc::clone(&self.session.caller);
        let taken = input::run(&caller, waiting).await;
        // Also where an extension that is required failed: the turn ends, and the next one must not fail for the same message.
        for message in self.session.steering.drain(..) {
            self.session.hub.emit(EventKind::SteeringMessage { role: message.role, text: message.plain_text() });
        }
        match taken? {
            Input::Reject { by, reason } => {
                let message = format!("extension `{by}` rejected a steering message: {reason}");
                self.session.hub.emit(EventKind::Notice { message });
                Ok(false)
            }
            Input::Reply { messages, by, text } => {
                self.remember_input(messages);
                self.reply(by, text).await?;
                Ok(false)
            }
            Input::Ask(messages) => {
                let any = !messages.is_empty();
                self.remember_input(messages);
                Ok(any)
            }
        }
    }
}
