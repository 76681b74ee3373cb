//! What the parts of a text are given to, and how they are described.
//!
//! The types are this crate's own, so that the SDK, which splits answers in the tests of authors, depends on nothing else of the
//! host.

use std::future::Future;

/// The units of text that a handler is called with. Joined, the units are the text, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A line with its line end (`\n`); the last may have none.
    Line,
    /// A paragraph with the blank line after it.
    Paragraph,
    /// All text up to the next handled tag or the end of the message.
    Whole,
}

/// The tags that a handler is called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The tag of this name.
    Exact(String),
    /// Every tag whose name starts so.
    Prefix(String),
}

impl Pattern {
    /// Whether a tag of this name fits.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

/// A tag section: `<name a="1">content</name>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The tag's name, as written.
    pub name: String,
    /// Its attributes in order, values decoded (the five entities of XML); a bare attribute has an empty value.
    pub attributes: Vec<(String, String)>,
    /// The opening tag, byte for byte.
    pub open: String,
    /// What is inside.
    pub content: String,
    /// The closing tag, byte for byte; empty where an outer close ended it or the tag closed itself.
    pub close: String,
}

/// The handlers of the tags and of the text of one message.
pub trait Handlers {
    /// Why the turn ends instead of showing anything more.
    type Failure;

    /// The units of the handlers of the text (of reasoning, where `thinking`), in the order in which it passes through them.
    fn units(&self, thinking: bool) -> Vec<Unit>;

    /// The tags that have a handler.
    fn tags(&self) -> Vec<Pattern>;

    /// The tags that have a handler which fails closed.
    fn closed_tags(&self) -> Vec<Pattern>;

    /// Has the handler at position `stage` of [`Handlers::units`] handle one whole unit, which is its number `number`, inside these
    /// tags.
    ///
    /// # Errors
    /// The turn ends.
    fn unit(
        &self,
        stage: usize,
        unit: &str,
        place: UnitPlace,
    ) -> impl Future<Output = Result<UnitAnswer, Self::Failure>> + Send;

    /// Has the handlers of a tag handle one complete section, inside these tags; a section is shown as its three parts.
    ///
    /// # Errors
    /// The turn ends.
    fn section(
        &self,
        section: Section,
        inside: Vec<String>,
    ) -> impl Future<Output = Result<SectionAnswer, Self::Failure>> + Send;

    /// The first handler of the tag of this name that fails closed.
    fn closed_handler(&self, name: &str) -> Option<usize>;

    /// Called where a section is withheld before the handlers of its tag were called.
    fn skipped(&self, name: &str, why: &str);

    /// Returns the marker that replaces `bytes` bytes of a section, of which `handler` is the [`Handlers::closed_handler`].
    fn withhold(&self, handler: usize, bytes: usize, why: String) -> String;

    /// Called where a section is shown without having been handled.
    fn notice(&self, message: String);
}

/// The position of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPlace {
    /// Whether it is reasoning.
    pub thinking: bool,
    /// Its number among the units of its handler, from 0.
    pub number: u32,
    /// Names of the handled tags around it, outermost first.
    pub inside: Vec<String>,
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

/// What becomes of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionAnswer {
    /// It is shown as its tag and its content.
    Keep(Section),
    /// This replaces it.
    Replace(String),
}
