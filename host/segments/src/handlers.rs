//! What the split parts of a text are given to.

use std::future::Future;

use flow::{Place, Segment, Tag, TagPattern, TagPlace, TextPlace, TextStream, TextUnit};

/// The handlers of the tags and of the text of one message.
pub trait Handlers {
    /// Why the turn ends instead of showing anything more.
    type Failure;

    /// The position of the attempt.
    fn at(&self) -> Place;

    /// The units of the handlers of a stream's text, in the order in which the text passes through them.
    fn units(&self, stream: TextStream) -> Vec<TextUnit>;

    /// The tags that have a handler.
    fn tags(&self) -> Vec<TagPattern>;

    /// The tags that have a handler which fails closed.
    fn closed_tags(&self) -> Vec<TagPattern>;

    /// Has the handler at position `stage` of [`Handlers::units`] handle one whole unit.
    ///
    /// # Errors
    /// The turn ends.
    fn unit(
        &self,
        stage: usize,
        unit: &str,
        place: TextPlace,
    ) -> impl Future<Output = Result<UnitAnswer, Self::Failure>> + Send;

    /// Has the handlers of a tag handle one complete section; a tag is shown as its three parts.
    ///
    /// # Errors
    /// The turn ends.
    fn section(&self, tag: Tag, place: TagPlace) -> impl Future<Output = Result<Segment, Self::Failure>> + Send;

    /// The first handler of the tag of this name that fails closed.
    fn closed_handler(&self, name: &str) -> Option<usize>;

    /// Called where a section is withheld before the handlers of its tag were called.
    fn skipped(&self, name: &str, why: &str);

    /// Returns the marker that replaces `bytes` bytes of a section, of which `handler` is the [`Handlers::closed_handler`].
    fn withhold(&self, handler: usize, bytes: usize, why: String) -> String;

    /// Called where a section is shown without having been handled.
    fn notice(&self, message: String);
}

/// What becomes of a unit of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitAnswer {
    /// It remains as it is.
    Pass,
    /// This replaces it.
    Replace(String),
    /// This marker replaces it, and no further handler is called with it.
    Withheld(String),
}
