//! What is kept of an answer that a rule stopped under `rewind`, and where the next attempt begins.
//!
//! A model that can continue from the start of an answer gets it as the last part of its request, and answers with the rest:
//! the two are one message, for the conversation, for rules and for extensions. For any other model the prompt states what
//! was kept; its next answer is a message of its own, and only for the user the two are one.

use std::sync::Arc;

use flow::CallFailure;

use crate::attempt::Prefix;
use crate::chain::Caller;
use crate::segments::Segments;

/// Where the next attempt begins.
#[derive(Default)]
pub(crate) enum Beginning {
    /// Nothing is kept of an earlier attempt.
    #[default]
    None,
    /// The kept text is a message of the conversation, after which the next answer is another one.
    Kept {
        /// What the user has seen of it.
        shown: String,
    },
    /// The model is sent the kept text as the start of its answer.
    Prefilled(Box<Prefilled>),
}

/// Text that the model continues from.
pub(crate) struct Prefilled {
    text: String,
    /// Bytes of `text` that the segments have had.
    released: usize,
    /// Bytes of `text` that no match in progress can include.
    decided: usize,
    /// What the user has seen of it.
    shown: String,
    /// Segments that have had `released` bytes of `text`, until an attempt takes them.
    segments: Option<Segments>,
}

impl Beginning {
    /// What the user has seen and keeps of earlier attempts.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::None => "",
            Self::Kept { shown } => shown,
            Self::Prefilled(prefilled) => &prefilled.shown,
        }
    }

    /// Bytes of what was shown that belong to an earlier message.
    pub(crate) fn earlier_bytes(&self) -> usize {
        match self {
            Self::Kept { shown } => shown.len(),
            Self::None | Self::Prefilled(_) => 0,
        }
    }

    /// The text that the model is sent as the start of its answer.
    pub(crate) fn prefill(&self) -> Option<&str> {
        match self {
            Self::Prefilled(prefilled) => Some(&prefilled.text),
            Self::None | Self::Kept { .. } => None,
        }
    }

    /// What an attempt continues from.
    pub(crate) fn prefix(&self) -> Prefix {
        match self {
            Self::Prefilled(prefilled) => Prefix { text: prefilled.text.clone(), released: prefilled.released },
            Self::None | Self::Kept { .. } => Prefix::default(),
        }
    }

    /// The segments of the next attempt.
    ///
    /// # Errors
    /// The failure of a required extension.
    pub(crate) async fn segments(&mut self, caller: &Arc<Caller>, live: bool) -> Result<Segments, CallFailure> {
        match self {
            Self::Prefilled(prefilled) if live => match prefilled.segments.take() {
                Some(segments) => Ok(segments),
                None => Ok(prefilled.handled(caller).await?.0),
            },
            Self::None | Self::Kept { .. } | Self::Prefilled(_) => Ok(Segments::new(Arc::clone(caller))),
        }
    }
}

impl Prefilled {
    /// The model continues from `text`, of which the first attempt released `released` bytes and no match in progress can
    /// include the first `decided`. Nothing of it is seen where outputs are rewritten whole (`live` is false).
    ///
    /// # Errors
    /// The failure of a required extension, which handles the beginning once more.
    pub(crate) async fn new(
        text: String,
        (released, decided): (usize, usize),
        caller: &Arc<Caller>,
        live: bool,
    ) -> Result<Self, CallFailure> {
        let released = released.min(text.len());
        let mut own = Self { text, released, decided, shown: String::new(), segments: None };
        if live {
            let (segments, shown) = own.handled(caller).await?;
            (own.segments, own.shown) = (Some(segments), shown);
        }
        Ok(own)
    }

    /// The kept text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What the user has seen of it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The text up to the first byte that a match in progress can include.
    pub(crate) fn decided_text(&self) -> &str {
        &self.text[..self.text.floor_char_boundary(self.decided)]
    }

    async fn handled(&self, caller: &Arc<Caller>) -> Result<(Segments, String), CallFailure> {
        let mut segments = Segments::new(Arc::clone(caller));
        let had = &self.text[..self.released];
        let shown = if segments.is_idle() { had.to_owned() } else { segments.push(had).await? };
        Ok((segments, shown))
    }
}
