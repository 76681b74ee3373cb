//! The traits an author implements: [`Extension`] for the type itself, and one trait for each callback it wants.
//!
//! Name the implemented callbacks in [`export!`](crate::export); that is all the registration there is. Consts say how a
//! callback is registered; where it depends on settings, override the method of the same name instead.

use crate::{
    InputAnswer, LlmOutput, Message, OutputAnswer, Result, Settings, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace,
    TtsrEvent,
};

/// Priority of a callback that names none. 0 to 100, higher runs first, so the lowest has the last word.
pub const DEFAULT_PRIORITY: u8 = 50;

/// A type that can be an extension: it can be made from its settings.
///
/// Every type with [`Default`] is one. One instance serves one session. Its memory is a cache: the host may drop it
/// between any two calls and make another, so what must last belongs into [`state`](crate::state).
pub trait Extension: Sized + 'static {
    /// Makes an instance. Called before the first callback, and once more to register: it must have no effect, and the
    /// powers refuse their work while registering.
    ///
    /// # Errors
    /// Settings that make no sense; the extension is then refused when it is loaded, with this message.
    fn new(settings: &Settings) -> Result<Self>;
}

impl<T: Default + 'static> Extension for T {
    fn new(_settings: &Settings) -> Result<Self> {
        Ok(Self::default())
    }
}

/// The pieces of text that [`OnPlainText`] is called with. Joined, the units are the text, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextUnit {
    /// A line with its line end (`\n`); the last may have none.
    Line,
    /// A paragraph with the blank line after it.
    Paragraph,
    /// All text up to the next handled tag or the end of the message. The user sees none of it before it is complete.
    Whole,
}

/// What [`OnLlmOutput`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputMode {
    /// It only looks: the answer streams live and the callback gets the whole at the end.
    Observe,
    /// It may replace the output: the host holds every answer until it is complete.
    Rewrite,
}

/// What happens when a callback did not do its work: it failed, it was skipped (a circuit breaker is open, the turn's time is
/// used up), or what it returned cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// What `on_failure` in `plugin.toml` says, else [`OnFailure::Skip`].
    #[default]
    Unspecified,
    /// The chain continues with the value that the callback was given.
    Skip,
    /// [`OnPlainText`], [`OnTag`] and a rewriting [`OnLlmOutput`]: nothing that was not checked is shown. The marker
    /// `[withheld: ID did not check this]` replaces it.
    Withhold,
    /// [`OnInputMessages`]: the turn ends before the model is asked.
    Reject,
}

/// The messages of one input, before the prompt is assembled.
pub trait OnInputMessages: Extension {
    /// Place in the chain, 0 to 100.
    const PRIORITY: u8 = DEFAULT_PRIORITY;

    /// What happens when the callback did not do its work. To fail closed: [`OnFailure::Reject`].
    const ON_FAILURE: OnFailure = OnFailure::Unspecified;

    /// Place in the chain, where it depends on settings.
    fn priority(&self) -> u8 {
        Self::PRIORITY
    }

    /// What happens when the callback did not do its work, where it depends on settings.
    fn on_failure(&self) -> OnFailure {
        Self::ON_FAILURE
    }

    /// Gets the messages of one input (not the history), in order.
    ///
    /// # Errors
    /// As `ON_FAILURE` says: the next extension gets the messages unchanged, or the turn is rejected.
    fn on_input_messages(&mut self, messages: Vec<Message>) -> Result<InputAnswer>;
}

/// Text of the model's answer, after the stream rules.
pub trait OnPlainText: Extension {
    /// What it is called with.
    const UNIT: TextUnit = TextUnit::Line;

    /// Place in the chain, 0 to 100.
    const PRIORITY: u8 = DEFAULT_PRIORITY;

    /// What happens when the callback did not do its work. To fail closed: [`OnFailure::Withhold`].
    const ON_FAILURE: OnFailure = OnFailure::Unspecified;

    /// What it is called with, where it depends on settings.
    fn unit(&self) -> TextUnit {
        Self::UNIT
    }

    /// Place in the chain, where it depends on settings.
    fn priority(&self) -> u8 {
        Self::PRIORITY
    }

    /// What happens when the callback did not do its work, where it depends on settings.
    fn on_failure(&self) -> OnFailure {
        Self::ON_FAILURE
    }

    /// Gets one whole unit, never a network chunk. Code, fenced or inline, and tags without a handler are plain text.
    ///
    /// # Errors
    /// As `ON_FAILURE` says: the unit stays as it is, or is withheld.
    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer>;
}

/// Sections of the model's answer in a registered tag.
pub trait OnTag: Extension {
    /// The tags: a name (`note`), or a prefix with a star at its end (`note-*`). At most 64.
    const TAGS: &'static [&'static str];

    /// Place in the chain, 0 to 100.
    const PRIORITY: u8 = DEFAULT_PRIORITY;

    /// What happens when the callback did not do its work. To fail closed: [`OnFailure::Withhold`].
    const ON_FAILURE: OnFailure = OnFailure::Unspecified;

    /// The tags, where they depend on settings.
    fn tags(&self) -> Vec<String> {
        Self::TAGS.iter().map(ToString::to_string).collect()
    }

    /// Place in the chain, where it depends on settings.
    fn priority(&self) -> u8 {
        Self::PRIORITY
    }

    /// What happens when the callback did not do its work, where it depends on settings.
    fn on_failure(&self) -> OnFailure {
        Self::ON_FAILURE
    }

    /// Gets one complete section, innermost first.
    ///
    /// # Errors
    /// As `ON_FAILURE` says: the section stays as it is, or is withheld.
    fn on_tag(&mut self, tag: &Tag, place: &TagPlace) -> Result<TagAnswer>;
}

/// The model's accepted answer, whole.
pub trait OnLlmOutput: Extension {
    /// Whether it may replace the output. Rewriting costs the user the live stream.
    const MODE: OutputMode = OutputMode::Observe;

    /// Place in the chain, 0 to 100.
    const PRIORITY: u8 = DEFAULT_PRIORITY;

    /// What happens when the callback did not do its work. To fail closed: [`OnFailure::Withhold`], with [`OutputMode::Rewrite`].
    const ON_FAILURE: OnFailure = OnFailure::Unspecified;

    /// Whether it may replace the output, where it depends on settings.
    fn mode(&self) -> OutputMode {
        Self::MODE
    }

    /// Place in the chain, where it depends on settings.
    fn priority(&self) -> u8 {
        Self::PRIORITY
    }

    /// What happens when the callback did not do its work, where it depends on settings.
    fn on_failure(&self) -> OnFailure {
        Self::ON_FAILURE
    }

    /// Gets each accepted answer once, before it is split into segments.
    ///
    /// # Errors
    /// As `ON_FAILURE` says: the output stays as it is, or is withheld.
    fn on_llm_output(&mut self, output: &LlmOutput) -> Result<OutputAnswer>;
}

/// News of stream rules. It is called on an instance of its own, so that it never delays the other callbacks: the two
/// instances share [`state`](crate::state) and nothing else.
pub trait TtsrTriggered: Extension {
    /// Place in the order of those told, 0 to 100.
    const PRIORITY: u8 = DEFAULT_PRIORITY;

    /// Place in the order of those told, where it depends on settings.
    fn priority(&self) -> u8 {
        Self::PRIORITY
    }

    /// Called after the abort, which never waits for it. Once per stream and rule and turn.
    ///
    /// # Errors
    /// Writes to state are undone and the failure is reported.
    fn ttsr_triggered(&mut self, event: &TtsrEvent) -> Result<()>;
}
