//! A page as an independent parser of HTML reads it.

use html5ever::tendril::TendrilSink as _;
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// An element with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A page that was read.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// What the parser reports as errors.
    pub(crate) errors: Vec<String>,
    /// All elements, in order.
    pub(crate) elements: Vec<Element>,
    /// The text without styles, with a line for each element that has a meaning of its own.
    pub(crate) outline: String,
    /// All text, styles excluded, as it is.
    pub(crate) text: String,
}

pub(crate) fn read(html: &str) -> Page {
    let dom =
        html5ever::parse_document(RcDom::default(), html5ever::ParseOpts::default()).from_utf8().one(html.as_bytes());
    let errors = dom.errors.borrow().iter().map(ToString::to_string).collect();
    let mut page = Page { errors, ..Page::default() };
    page.walk(&dom.document);
    page
}

/// Elements that are a line of the outline.
const LINES: [&str; 22] = [
    "title",
    "header",
    "nav",
    "main",
    "section",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "li",
    "p",
    "dt",
    "dd",
    "figure",
    "figcaption",
    "svg",
    "summary",
    "tr",
    "pre",
    "caption",
    "details",
];

impl Page {
    fn walk(&mut self, node: &Handle) {
        match &node.data {
            NodeData::Text { contents } => {
                self.text.push_str(&contents.borrow());
                self.outline.push_str(&contents.borrow());
            }
            NodeData::Element { name, attrs, .. } => {
                let attributes = attrs.borrow();
                let attributes = attributes.iter().map(|one| (one.name.local.to_string(), one.value.to_string()));
                let element = Element { name: name.local.to_string(), attributes: attributes.collect() };
                if element.name == "style" {
                    self.elements.push(element);
                    return;
                }
                self.line(&element);
                let name = element.name.clone();
                self.elements.push(element);
                node.children.borrow().iter().for_each(|child| self.walk(child));
                match name.as_str() {
                    "mark" | "ins" | "del" | "span" => self.outline.push('›'),
                    "td" | "th" => self.outline.push_str(" | "),
                    _ => {}
                }
                return;
            }
            _ => {}
        }
        node.children.borrow().iter().for_each(|child| self.walk(child));
    }

    fn line(&mut self, element: &Element) {
        match element.name.as_str() {
            "mark" | "ins" | "del" | "span" => self.outline.push_str(&format!("‹{} ", element.name)),
            name if LINES.contains(&name) => {
                let more = ["class", "aria-label", "role"].iter().filter_map(|key| element.attribute(key));
                let more: Vec<&str> = more.collect();
                let more = if more.is_empty() { String::new() } else { format!(" {}", more.join(", ")) };
                self.outline.push_str(&format!("\n<{name}{more}> "));
            }
            _ => {}
        }
    }

    /// The outline without empty lines and blanks at the ends of lines.
    pub(crate) fn lines(&self) -> String {
        let lines = self.outline.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.map(|line| format!("{line}\n")).collect()
    }
}
