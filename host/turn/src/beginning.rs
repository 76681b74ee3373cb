//! What stands of an answer that a rule stopped under `rewind`, and where the next attempt begins.
//!
//! A model that can continue from the start of an answer gets it as the last part of its request, and answers with the rest:
//! the two are one message, for the conversation, for rules and for extensions. For any other model the prompt states what
//! was kept; its next answer is a message of its own, and only for the user the two are one.

use std::sync::Arc;

use flow::CallFailure;

use crate::attempt::Prefix;
use crate::chain::Caller;
use crate::segments::Segments;

/// What stands of a stopped answer.
#[derive(Default)]
pub(crate) struct Beginning {
    /// The model's words, to go on from; empty where nothing stands, or the model is told of it.
    pub(crate) text: String,
    /// Bytes of `text` that the segments have had.
    pub(crate) released: usize,
    /// Bytes of `text` that no match in progress can include.
    pub(crate) decided: usize,
    /// What the user has seen and keeps.
    pub(crate) shown: String,
    /// Segments that have had `released` bytes of `text`.
    segments: Option<Segments>,
}

impl Beginning {
    /// The prompt states what was kept; `shown` is what the user has seen of it.
    pub(crate) fn told(shown: String) -> Self {
        Self { shown, ..Self::default() }
    }

    /// The model goes on from `text`, of which the first attempt let `released` bytes through. Nothing of it is seen
    /// where outputs are rewritten whole (`live` is false).
    ///
    /// # Errors
    /// The failure of a required extension, which handles the beginning once more.
    pub(crate) async fn sent(
        text: String,
        released: usize,
        caller: &Arc<Caller>,
        live: bool,
    ) -> Result<Self, CallFailure> {
        let mut own = Self { released: released.min(text.len()), text, ..Self::default() };
        if live {
            let (segments, shown) = own.handled(caller).await?;
            (own.segments, own.shown) = (Some(segments), shown);
        }
        Ok(own)
    }

    /// The segments of the next attempt.
    ///
    /// # Errors
    /// The failure of a required extension.
    pub(crate) async fn segments(&mut self, caller: &Arc<Caller>, live: bool) -> Result<Segments, CallFailure> {
        match self.segments.take() {
            Some(segments) => Ok(segments),
            None if live => Ok(self.handled(caller).await?.0),
            None => Ok(Segments::new(Arc::clone(caller))),
        }
    }

    async fn handled(&self, caller: &Arc<Caller>) -> Result<(Segments, String), CallFailure> {
        let mut segments = Segments::new(Arc::clone(caller));
        let had = &self.text[..self.released];
        let shown = if segments.is_idle() { had.to_owned() } else { segments.push(had).await? };
        Ok((segments, shown))
    }

    /// What an attempt continues from.
    pub(crate) fn prefix(&self) -> Prefix {
        Prefix { text: self.text.clone(), released: self.released }
    }
}
