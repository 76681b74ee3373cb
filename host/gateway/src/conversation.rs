//! The conversation in a request: the author of each text, and its place in the bytes.

use std::ops::Range;

use serde_json::Value;
use wire::Wire;

use crate::calls::MEMBERS;
use crate::json::{Doc, Edits, Kind, Node};

/// The messages of a request, in order; in the Responses API its items.
#[derive(Debug)]
pub(crate) struct Conversation<'d> {
    wire: Wire,
    doc: Doc<'d>,
    /// The value that contains the messages.
    input: &'d Node,
    /// The list of messages; `None` if the input is one text.
    list: Option<&'d Node>,
    pub(crate) messages: Vec<Message<'d>>,
}

/// A message of a client or its model.
#[derive(Debug)]
pub(crate) struct Message<'d> {
    pub(crate) author: Author,
    pub(crate) parts: Vec<Part<'d>>,
    /// The list of its parts; `None` if it is one text, or has none.
    pub(crate) content: Option<&'d Node>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    User,
    Model,
    Tool,
    /// Instructions of the client's program.
    System,
    /// An item without text, such as a reference to another one.
    Nobody,
}

/// A part of a message.
#[derive(Debug)]
pub(crate) enum Part<'d> {
    /// A text, and the number of its block among those of the message.
    Text {
        at: &'d Node,
        block: usize,
    },
    /// Reasoning. `is_signed`: its provider has signed it, and gets it back as it was.
    Thinking {
        at: &'d Node,
        is_signed: bool,
    },
    Call(Call<'d>),
    Result(ToolOutput<'d>),
}

/// A call that the model made.
#[derive(Debug)]
pub(crate) struct Call<'d> {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) given: Given<'d>,
}

/// The input of a call, as written.
#[derive(Clone, Debug)]
pub(crate) enum Given<'d> {
    /// A value of any kind.
    Value(&'d Node),
    /// JSON in a string.
    Written(&'d Node),
    /// A string that is not JSON: the argument `input`.
    Input(&'d Node),
    /// Members of the item, or a list, each as the argument of its name.
    Members(Vec<(&'static str, &'d Node)>),
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct ToolOutput<'d> {
    pub(crate) call: String,
    pub(crate) texts: Vec<&'d Node>,
    pub(crate) is_error: bool,
}

impl Call<'_> {
    /// Returns its arguments as JSON.
    pub(crate) fn arguments(&self, doc: Doc<'_>) -> String {
        let raw = |node: &Node| String::from_utf8_lossy(&doc.bytes[node.at.clone()]).into_owned();
        match &self.given {
            Given::Members(members) => {
                let members = members.iter().map(|(name, node)| format!("\"{name}\":{}", raw(node)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Given::Value(node) => raw(node),
            Given::Written(node) => doc.text(node).unwrap_or_default(),
            Given::Input(node) => serde_json::json!({"input": doc.text(node)}).to_string(),
        }
    }
}

impl<'d> Conversation<'d> {
    /// Returns the conversation of a request; `None`: it has none.
    pub(crate) fn of(wire: Wire, doc: Doc<'d>, root: &'d Node) -> Option<Self> {
        let node = root.get(if wire == Wire::OpenAiResponses { "input" } else { "messages" })?;
        let list = node.is_array().then_some(node);
        let messages = match list {
            Some(list) => list.items().iter().map(|one| message(wire, doc, one)).collect(),
            None if node.is_string() => {
                let parts = vec![Part::Text { at: node, block: 0 }];
                vec![Message { author: Author::User, parts, content: None }]
            }
            None => return None,
        };
        Some(Self { wire, doc, input: node, list, messages })
    }

    /// Returns the document that it was read from.
    pub(crate) fn doc(&self) -> Doc<'d> {
        self.doc
    }

    /// Returns the list of messages; `None`: the input is one text.
    pub(crate) fn list(&self) -> Option<&'d Node> {
        self.list
    }

    /// Returns the bytes of the messages from this number on.
    pub(crate) fn at_from(&self, number: usize) -> Range<usize> {
        let first = self.list.map(Node::items).unwrap_or_default().get(number);
        match (self.list, first) {
            (Some(_), None) => 0..0,
            (_, first) => first.unwrap_or(self.input).at.start..self.input.at.end,
        }
    }

    /// Returns the number of the first message behind the last answer of the model. A message at the end of the request that the model is
    /// to continue is not an answer.
    pub(crate) fn first_new(&self) -> usize {
        let is_said = |one: &Message<'_>| !matches!(one.author, Author::Model | Author::Nobody);
        let end = self.messages.iter().rposition(is_said).unwrap_or(0);
        self.messages[..end].iter().rposition(|one| one.author == Author::Model).map_or(0, |last| last + 1)
    }

    /// Returns the messages of the model, each with the number of its answer, and the number of the next answer. Adjacent messages are one
    /// answer.
    pub(crate) fn answers(&self) -> (Vec<(usize, &Message<'d>)>, usize) {
        let (mut found, mut number, mut is_open) = (Vec::new(), 0, false);
        for one in &self.messages {
            match one.author {
                Author::Model => {
                    is_open = true;
                    found.push((number, one));
                }
                Author::Nobody => {}
                Author::User | Author::Tool | Author::System => number += usize::from(std::mem::take(&mut is_open)),
            }
        }
        (found, number)
    }

    /// Inserts a text of the host behind the model's message with this number: behind the results of its calls, and before the next text of
    /// the user. Nothing before it changes. Returns whether there is such a place.
    pub(crate) fn remind(&self, after: Option<usize>, words: &str, edits: &mut Edits) -> bool {
        let first = after.map_or(0, |after| after + 1);
        let results = |one: &&Message<'_>| one.author == Author::Tool;
        let next = first + self.messages[first.min(self.messages.len())..].iter().take_while(results).count();
        if first >= self.messages.len() {
            return false;
        }
        let Some(list) = self.list else {
            let said = self.said(words);
            edits.raw(self.input.at.start..self.input.at.start, format!("[{said},{{\"role\":\"user\",\"content\":"));
            edits.raw(self.input.at.end..self.input.at.end, "}]".to_owned());
            return true;
        };
        if self.wire != Wire::Anthropic {
            edits.insert(list, next, &self.said(words).to_string());
            return true;
        }
        let message = &self.messages[first];
        let block = serde_json::json!({"type": "text", "text": words});
        match (message.content, list.items()[first].get("content")) {
            (Some(content), _) => {
                let is_result = |block: &Node| self.doc.text_of(block, "type").as_deref() == Some("tool_result");
                let behind = content.items().iter().rposition(is_result).map_or(0, |last| last + 1);
                edits.insert(content, behind, &block.to_string());
            }
            (None, Some(text)) if text.is_string() => {
                edits.raw(text.at.start..text.at.start, format!("[{block},{{\"type\":\"text\",\"text\":"));
                edits.raw(text.at.end..text.at.end, "}]".to_owned());
            }
            _ => return false,
        }
        message.author == Author::User || message.author == Author::Tool
    }

    fn said(&self, words: &str) -> Value {
        match self.wire {
            Wire::OpenAiResponses => {
                let content = serde_json::json!([{"type": "input_text", "text": words}]);
                serde_json::json!({"type": "message", "role": "user", "content": content})
            }
            Wire::Anthropic | Wire::OpenAiChat => serde_json::json!({"role": "user", "content": words}),
        }
    }
}

/// Reads a message; in the case of an answer, the message itself.
pub(crate) fn message<'d>(wire: Wire, doc: Doc<'d>, node: &'d Node) -> Message<'d> {
    let kind = doc.text_of(node, "type").unwrap_or_default();
    let content = node.get("content");
    let author = match doc.text_of(node, "role").as_deref() {
        Some("assistant") => Author::Model,
        Some("user") => Author::User,
        Some("tool" | "function") => Author::Tool,
        Some(_) => Author::System,
        None if kind.ends_with("_output") => Author::Tool,
        None if kind == "reasoning" || kind.ends_with("_call") => Author::Model,
        None if content.is_some() => Author::User,
        None => Author::Nobody,
    };
    let mut own = Message { author, parts: Vec::new(), content: content.filter(|content| content.is_array()) };
    match wire {
        Wire::Anthropic => anthropic(doc, content, &mut own),
        Wire::OpenAiChat => chat(doc, node, content, &mut own),
        Wire::OpenAiResponses => responses(doc, node, &kind, &mut own),
    }
    own
}

/// Returns the texts of a content that is a text or a list of parts.
fn texts<'d>(doc: Doc<'_>, content: Option<&'d Node>) -> Vec<(usize, &'d Node)> {
    let Some(content) = content else { return Vec::new() };
    if content.is_string() {
        return vec![(0, content)];
    }
    let of_part = |part: &'d Node| match &part.kind {
        Kind::Object(_) => ["text", "refusal"].iter().find_map(|key| part.get(key)).filter(|text| text.is_string()),
        _ => None,
    };
    let is_prose =
        |part: &Node| doc.text_of(part, "type").is_none_or(|kind| kind.contains("text") || kind == "refusal");
    let parts = content.items().iter().enumerate().filter(|(_, part)| is_prose(part));
    parts.filter_map(|(block, part)| Some((block, of_part(part)?))).collect()
}

/// Members of a result whose strings are names, ids, and the data of pictures and files.
const NO_TEXTS: [&str; 13] = [
    "type",
    "id",
    "status",
    "media_type",
    "mime_type",
    "format",
    "detail",
    "file_id",
    "image_url",
    "file_data",
    "cache_control",
    "encrypted_content",
    "tool_name",
];

/// All strings of a result, in any shape.
fn strings<'d>(doc: Doc<'_>, node: &'d Node, found: &mut Vec<&'d Node>) {
    match &node.kind {
        Kind::String => found.push(node),
        Kind::Array(items) => items.iter().for_each(|item| strings(doc, item, found)),
        Kind::Object(members) => {
            let is_text = doc.text_of(node, "type").as_deref() == Some("text");
            let is_given = |name: &str| if name == "data" { is_text } else { !NO_TEXTS.contains(&name) };
            members.iter().filter(|one| is_given(&one.name)).for_each(|one| strings(doc, &one.value, found));
        }
        Kind::Other => {}
    }
}

fn result<'d>(doc: Doc<'_>, content: Option<&'d Node>) -> Vec<&'d Node> {
    let mut found = Vec::new();
    content.into_iter().for_each(|content| strings(doc, content, &mut found));
    found
}

fn anthropic<'d>(doc: Doc<'d>, content: Option<&'d Node>, own: &mut Message<'d>) {
    let Some(list) = own.content else {
        own.parts.extend(content.filter(|text| text.is_string()).map(|at| Part::Text { at, block: 0 }));
        return;
    };
    for (block, part) in list.items().iter().enumerate() {
        let of = |name: &str| doc.text_of(part, name).unwrap_or_default();
        match (of("type").as_str(), part) {
            ("text", part) => own.parts.extend(part.get("text").map(|at| Part::Text { at, block })),
            ("thinking", part) => {
                let is_signed = !of("signature").is_empty();
                own.parts.extend(part.get("thinking").map(|at| Part::Thinking { at, is_signed }));
            }
            ("tool_use", part) => {
                let given = part.get("input").map(Given::Value);
                own.parts.extend(given.map(|given| Part::Call(Call { id: of("id"), name: of("name"), given })));
            }
            ("tool_result", part) => {
                let texts = result(doc, part.get("content"));
                let is_error = part.get("is_error").is_some_and(|node| &doc.bytes[node.at.clone()] == b"true");
                own.parts.push(Part::Result(ToolOutput { call: of("tool_use_id"), texts, is_error }));
            }
            _ => {}
        }
    }
}

fn chat<'d>(doc: Doc<'d>, node: &'d Node, content: Option<&'d Node>, own: &mut Message<'d>) {
    let of = |node: &Node, name: &str| doc.text_of(node, name).unwrap_or_default();
    let thinking = ["reasoning_content", "reasoning"].iter().filter_map(|key| node.get(key));
    own.parts.extend(thinking.filter(|text| text.is_string()).map(|at| Part::Thinking { at, is_signed: false }));
    if own.author == Author::Tool {
        let texts = result(doc, content);
        own.parts.push(Part::Result(ToolOutput { call: of(node, "tool_call_id"), texts, is_error: false }));
        return;
    }
    own.parts.extend(texts(doc, content).into_iter().map(|(block, at)| Part::Text { at, block }));
    for call in node.get("tool_calls").map(Node::items).unwrap_or_default() {
        let custom = call.get("custom").filter(|custom| matches!(custom.kind, Kind::Object(_)));
        let (function, given) = match custom {
            Some(custom) => (custom, custom.get("input").map(Given::Input)),
            None => match call.get("function") {
                Some(function) => (function, function.get("arguments").map(Given::Written)),
                None => continue,
            },
        };
        let (id, name) = (of(call, "id"), of(function, "name"));
        own.parts.extend(given.map(|given| Part::Call(Call { id, name, given })));
    }
    // The legacy form: one call, without an id.
    if let Some((old, given)) = node.get("function_call").and_then(|old| Some((old, old.get("arguments")?))) {
        let (id, name, given) = (String::new(), of(old, "name"), Given::Written(given));
        own.parts.push(Part::Call(Call { id, name, given }));
    }
}

/// Returns the arguments of an item that is a call.
fn arguments<'d>(doc: Doc<'_>, node: &'d Node) -> Option<Given<'d>> {
    let is_any = |value: &&Node| match &value.kind {
        Kind::Array(items) => !items.is_empty(),
        Kind::Other => &doc.bytes[value.at.clone()] != b"null",
        _ => true,
    };
    let members = MEMBERS.iter().filter_map(|name| Some((*name, node.get(name).filter(is_any)?)));
    let members: Vec<(&'static str, &Node)> = members.collect();
    Some(match members.as_slice() {
        [] => return None,
        [(_, one)] if one.is_string() => Given::Written(one),
        [(_, one)] if !one.is_array() => Given::Value(one),
        _ => Given::Members(members),
    })
}

fn responses<'d>(doc: Doc<'d>, node: &'d Node, kind: &str, own: &mut Message<'d>) {
    let of = |name: &str| doc.text_of(node, name).unwrap_or_default();
    if own.author == Author::Tool {
        let texts = result(doc, node.get("output"));
        own.parts.push(Part::Result(ToolOutput { call: of("call_id"), texts, is_error: false }));
        return;
    }
    if !matches!(own.author, Author::Model | Author::Nobody)
        || kind == "message"
        || (kind.is_empty() && node.get("content").is_some())
    {
        let texts = texts(doc, node.get("content"));
        own.parts.extend(texts.into_iter().map(|(block, at)| Part::Text { at, block }));
        return;
    }
    if kind == "reasoning" {
        let said = ["summary", "content"].iter().flat_map(|key| texts(doc, node.get(key)));
        let is_signed = !of("encrypted_content").is_empty();
        own.parts.extend(said.map(|(_, at)| Part::Thinking { at, is_signed }));
        return;
    }
    let given = arguments(doc, node).or_else(|| node.get("input").map(Given::Input));
    let name = if node.get("name").is_some() { of("name") } else { kind.to_owned() };
    own.parts.extend(given.map(|given| Part::Call(Call { id: of("call_id"), name, given })));
}
