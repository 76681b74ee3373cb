//! The traits an author implements: one for each callback, and [`Extension`] for a type that is made from settings.
//!
//! Name the implemented callbacks in [`export!`](crate::export); that is all the registration there is. The method
//! `*_options` of a trait sets how its callback is registered; it can depend on settings, through the extension's
//! fields.

use crate::{
    InputAnswer, InputOptions, LlmOutput, Message, OutputAnswer, OutputOptions, Result, Settings, Tag, TagAnswer,
    TagOptions, TagPlace, TextAnswer, TextOptions, TextPlace, TtsrEvent, TtsrOptions,
};

/// A type that is made from its settings. A type with [`Default`] does not need to implement this; where it has both, this
/// is used.
///
/// One instance serves one session. Its memory is a cache: the host may drop it between any two calls and make another, so
/// data that must persist belongs in [`state`](crate::state).
pub trait Extension: Sized + 'static {
    /// Makes an instance. Called before the first callback, and to register: it must have no effect, and the powers refuse
    /// their work while registering.
    ///
    /// # Errors
    /// The settings are not valid; the extension is then rejected when it is loaded, with this message.
    fn new(settings: &Settings) -> Result<Self>;
}

/// Handles the messages of one input, before the prompt is assembled.
pub trait OnInputMessages: Sized + 'static {
    /// How the callback is registered.
    fn input_options(&self) -> InputOptions {
        InputOptions::default()
    }

    /// Handles the messages of one input (not the history), in order.
    ///
    /// # Errors
    /// According to its failure policy: the next extension gets the messages unchanged, or the turn is rejected.
    fn on_input_messages(&mut self, messages: Vec<Message>) -> Result<InputAnswer>;
}

/// Handles text that the model writes, after the stream rules.
pub trait OnPlainText: Sized + 'static {
    /// How the callback is registered: by default for the lines of the answer.
    fn text_options(&self) -> TextOptions {
        TextOptions::default()
    }

    /// Handles one whole unit, never a network chunk. Code, fenced or inline, and tags without a handler are plain text.
    ///
    /// # Errors
    /// According to its failure policy: the unit remains unchanged, or is withheld.
    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer>;
}

/// Handles sections of the model's answer in a registered tag.
pub trait OnTag: Sized + 'static {
    /// How the callback is registered: `TagOptions::new(["note", "note-*"])`.
    fn tag_options(&self) -> TagOptions;

    /// Handles one complete section, innermost first.
    ///
    /// # Errors
    /// According to its failure policy: the section remains unchanged, or is withheld.
    fn on_tag(&mut self, tag: &Tag, place: &TagPlace) -> Result<TagAnswer>;
}

/// Handles the model's accepted answer as a whole.
pub trait OnLlmOutput: Sized + 'static {
    /// How the callback is registered: by default as an observer. A rewriter costs the user the live stream.
    fn output_options(&self) -> OutputOptions {
        OutputOptions::default()
    }

    /// Handles each accepted answer once, before it is split into segments.
    ///
    /// # Errors
    /// According to its failure policy: the output remains unchanged, or is withheld.
    fn on_llm_output(&mut self, output: &LlmOutput) -> Result<OutputAnswer>;
}

/// Is notified of matches of stream rules. Each call is on an instance of its own, so that it never delays the other
/// callbacks: it shares [`state`](crate::state) with them and nothing else, and nothing else of it is kept.
pub trait TtsrTriggered: Sized + 'static {
    /// How the callback is registered.
    fn ttsr_options(&self) -> TtsrOptions {
        TtsrOptions::default()
    }

    /// Called after the abort, which never waits for it, once per stream, rule and turn.
    ///
    /// # Errors
    /// Writes to state are undone and the failure is reported.
    fn ttsr_triggered(&mut self, event: &TtsrEvent) -> Result<()>;
}
