//! Access for the benches to the stages that split text and put together the prompt. Not a stable API.

use std::sync::Arc;

use flow::{CallFailure, Message, Prompt, PromptAddition, Registration, SystemBlock, TagPattern};

use crate::chain::Caller;
use crate::events::Hub;
use crate::prompt::{Facts, Frame, Texts};
use crate::segments::{Segments, pattern};
use flow::ports::{Clock, Extensions};

/// The stage that splits the model's text for `on_tag` and `on_plain_text`, without a turn around it.
pub struct Splitter(Segments);

impl Splitter {
    /// A stage at the start of a message, without subscribers.
    pub fn new(registrations: Arc<[Registration]>, extensions: Arc<dyn Extensions>, clock: Arc<dyn Clock>) -> Self {
        Self(Segments::new(Arc::new(Caller::new(registrations, extensions, Arc::new(Hub::new(clock))))))
    }

    /// Takes the next chunk and returns what can be shown now.
    ///
    /// # Errors
    /// The failure of a required extension.
    pub async fn push(&mut self, piece: &str) -> Result<String, CallFailure> {
        self.0.push(piece).await
    }

    /// The message is complete: gives the rest.
    ///
    /// # Errors
    /// The failure of a required extension.
    pub async fn finish(&mut self) -> Result<String, CallFailure> {
        self.0.finish().await
    }
}

impl std::fmt::Debug for Splitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Splitter").finish_non_exhaustive()
    }
}

/// The search for tags alone.
#[derive(Debug)]
pub struct TagFinder(tidegate_segments::TagFinder);

impl TagFinder {
    /// Creates a search at the start of a message.
    pub fn new(patterns: Vec<TagPattern>) -> Self {
        Self(tidegate_segments::TagFinder::new(patterns.into_iter().map(pattern).collect()))
    }

    /// Takes the next chunk; returns how many bytes it decided to be text, and how many tags it completed.
    pub fn push(&mut self, chunk: &str) -> (usize, usize) {
        self.0.push(chunk)
    }
}

/// The stage that puts together what is sent to the model.
pub struct Assembly {
    frame: Frame,
    caller: Caller,
}

impl Assembly {
    /// A prompt with these additions, whose conditions read the state of the extensions.
    pub fn new(
        system: &[SystemBlock],
        additions: &[PromptAddition],
        registrations: Arc<[Registration]>,
        extensions: Arc<dyn Extensions>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let caller = Caller::new(registrations, extensions, Arc::new(Hub::new(clock)));
        Self { frame: Frame::new(system, additions, None), caller }
    }

    /// Evaluates the conditions and puts together a request, as at the start of a step. Returns what is to be reported too.
    pub fn assemble(&mut self, history: &[Arc<Message>]) -> (Prompt, Vec<String>) {
        let texts = if self.frame.looks_at_texts() { Texts::of(history) } else { Texts::default() };
        let (model, agent, workspace) = ("bench", "main", "/work/shop");
        let facts = Facts { model, agent, workspace, turn: 2, texts, state: &self.caller };
        let reported = self.frame.choose(&facts);
        (self.frame.prompt(history.to_vec(), Vec::new()), reported)
    }
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly").finish_non_exhaustive()
    }
}
