//! What is kept of an answer that a rule stopped under `rewind`, and where the next attempt begins.
//!
//! A model that can continue from the start of an answer gets it as the last part of its request, and answers with the rest:
//! the two are one message, for the conversation, for rules and for extensions. For any other model the prompt states what
//! was kept; its next answer is a message of its own, and only for the user the two are one.

use std::sync::Arc;

use flow::CallFailure;
use rules::RuleSession;

use crate::attempt::{Answer, Attempt, Effect, Prefix};
use crate::chain::Caller;
use crate::segments::Segments;
use crate::shown::shown;

/// Where the next attempt begins.
#[derive(Debug, Default)]
pub enum Beginning {
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
pub struct Prefilled {
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

impl std::fmt::Debug for Prefilled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prefilled").field("text", &self.text).field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl Beginning {
    /// What the user has seen and keeps of earlier attempts.
    pub fn shown(&self) -> &str {
        match self {
            Self::None => "",
            Self::Kept { shown } => shown,
            Self::Prefilled(prefilled) => &prefilled.shown,
        }
    }

    /// Bytes of what was shown that belong to an earlier message.
    pub fn earlier_bytes(&self) -> usize {
        match self {
            Self::Kept { shown } => shown.len(),
            Self::None | Self::Prefilled(_) => 0,
        }
    }

    /// The text that the model is sent as the start of its answer.
    pub fn prefill(&self) -> Option<&str> {
        match self {
            Self::Prefilled(prefilled) => Some(&prefilled.text),
            Self::None | Self::Kept { .. } => None,
        }
    }

    /// What an attempt continues from.
    fn prefix(&self) -> Prefix {
        match self {
            Self::Prefilled(prefilled) => Prefix { text: prefilled.text.clone(), released: prefilled.released },
            Self::None | Self::Kept { .. } => Prefix::default(),
        }
    }

    /// The attempt that begins here. `most_tokens`: the most tokens that its answer can have. `effects` gets what is to be done at once.
    pub fn attempt(
        &self,
        rules: &RuleSession,
        caller: &Caller,
        most_tokens: Option<u64>,
        effects: &mut Vec<Effect>,
    ) -> Attempt {
        let mut attempt = Attempt::new(rules, self.prefix(), effects);
        let answer = &mut attempt.answer;
        answer.begin_shown(self.shown(), self.earlier_bytes());
        (answer.keeping, answer.hides_calls) = (caller.chains.keeping, caller.call_guard().is_some());
        answer.most_tokens = most_tokens;
        attempt
    }

    /// What the user keeps of an answer of which `text` is kept as a message. What was not shown of it yet is shown; where what the user
    /// saw is kept, the units that are complete.
    ///
    /// # Errors
    /// The failure of a required extension.
    pub async fn show_kept(
        &self,
        caller: &Arc<Caller>,
        answer: &mut Answer,
        text: &str,
    ) -> Result<String, CallFailure> {
        let mut segments = Segments::new(Arc::clone(caller));
        let whole = if segments.is_idle() {
            text.to_owned()
        } else {
            let mut whole = segments.push(text).await?;
            if !caller.chains.keeping.answer {
                whole.push_str(&segments.finish().await?);
            }
            whole
        };
        let earlier = self.earlier_bytes();
        let seen = answer.shown.get(earlier..).unwrap_or_default();
        if let Some(rest) = whole.strip_prefix(seen) {
            let rest = rest.to_owned();
            shown(&*caller.events, answer, rest);
            return Ok(answer.shown.clone());
        }
        let same = whole.char_indices().zip(seen.chars()).find(|((_, a), b)| a != b);
        let same = same.map_or(whole.len().min(seen.len()), |((at, _), _)| at);
        Ok(answer.shown[..earlier + same].to_owned())
    }

    /// The segments of the next attempt.
    ///
    /// # Errors
    /// The failure of a required extension.
    pub async fn segments(&mut self, caller: &Arc<Caller>, live: bool) -> Result<Segments, CallFailure> {
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
    pub async fn new(
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
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the user has seen of it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The text up to the first byte that a match in progress can include.
    pub fn decided_text(&self) -> &str {
        &self.text[..self.text.floor_char_boundary(self.decided)]
    }

    async fn handled(&self, caller: &Arc<Caller>) -> Result<(Segments, String), CallFailure> {
        let mut segments = Segments::new(Arc::clone(caller));
        let had = &self.text[..self.released];
        let shown = if segments.is_idle() { had.to_owned() } else { segments.push(had).await? };
        Ok((segments, shown))
    }
}
