//! Access for the benches to the stage that splits text. Not a stable API.

use std::sync::Arc;

use flow::{CallFailure, Registration, TagPattern};

use crate::chain::Caller;
use crate::events::Hub;
use crate::ports::{Clock, Extensions};
use crate::segments::{Segments, pattern};

/// The stage that splits the model's text for `on_tag` and `on_plain_text`, without a turn around it.
pub struct Splitter(Segments);

impl Splitter {
    /// A stage at the start of a message, without subscribers.
    pub fn new(registrations: Vec<Registration>, extensions: Arc<dyn Extensions>, clock: Arc<dyn Clock>) -> Self {
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
