//! What accepted output is split into before it is shown.

/// One complete chunk of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Text for the handlers of `on_plain_text`, if there are any.
    Text(String),
    /// A section whose tag has a handler.
    Tag(Tag),
}

/// A tag section: `<name a="1">content</name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
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
