//! The places of added text in each wire format. Bytes of the client stay as they are and in their order; blocks have no `cache_control`,
//! so that the client's own marks are the only ones, each behind the same bytes in every request.

use serde_json::{Value, json};
use wire::Wire;

use crate::conversation::{Author, Conversation, Message, Part};
use crate::json::{Doc, Edits, Kind, Node};

/// Inserts texts before and after the instructions of the client. Returns false if there is no place for them.
pub(super) fn instructions(
    (wire, doc, root): (Wire, Doc<'_>, &Node),
    conversation: &Conversation<'_>,
    (before, after): (&[String], &[String]),
    edits: &mut Edits,
) -> bool {
    if before.is_empty() && after.is_empty() {
        return true;
    }
    let name = match wire {
        Wire::OpenAiChat => return first_messages(doc, conversation, (before, after), edits),
        Wire::Anthropic => "system",
        Wire::OpenAiResponses => "instructions",
    };
    match root.get(name) {
        None => {
            let member = format!("\"{name}\":{},", Value::from(joined(before, after)));
            edits.raw(root.at.start + 1..root.at.start + 1, member);
        }
        Some(node) if &doc.bytes[node.at.clone()] == b"null" => edits.text(&node.at, &joined(before, after)),
        Some(node) if node.is_string() => in_string(doc, node, (before, after), edits),
        Some(node) if node.is_array() && wire == Wire::Anthropic => {
            in_list(wire, node, identity(doc, node), (before, after), edits);
        }
        Some(_) => return false,
    }
    true
}

/// Inserts texts around an input, whose first and last message with text are given.
pub(super) fn around(
    wire: Wire,
    conversation: &Conversation<'_>,
    (first, last): (usize, usize),
    (before, after): (&[String], &[String]),
    edits: &mut Edits,
) {
    let (Some(first), Some(last)) = (conversation.messages.get(first), conversation.messages.get(last)) else { return };
    if std::ptr::eq(first, last) {
        return in_message(wire, conversation.doc(), first, (before, after), edits);
    }
    in_message(wire, conversation.doc(), first, (before, &[]), edits);
    in_message(wire, conversation.doc(), last, (&[], after), edits);
}

/// Chat Completions: texts go into the first messages of the system, because servers refuse several of them, or one that is not the first.
fn first_messages(
    doc: Doc<'_>,
    conversation: &Conversation<'_>,
    (before, after): (&[String], &[String]),
    edits: &mut Edits,
) -> bool {
    let Some(list) = conversation.list() else { return false };
    let has_text = |one: &&Message<'_>| one.content.is_some() || !one.parts.is_empty();
    let leading = conversation.messages.iter().take_while(|one| one.author == Author::System).filter(has_text);
    let leading: Vec<&Message<'_>> = leading.collect();
    match leading.as_slice() {
        [only] => in_message(Wire::OpenAiChat, doc, only, (before, after), edits),
        [first, .., last] => {
            in_message(Wire::OpenAiChat, doc, first, (before, &[]), edits);
            in_message(Wire::OpenAiChat, doc, last, (&[], after), edits);
        }
        [] => {
            let message = json!({"role": "system", "content": joined(before, after)});
            edits.insert(list, 0, &message.to_string());
        }
    }
    true
}

/// Inserts texts before and after the text of a message.
fn in_message(wire: Wire, doc: Doc<'_>, message: &Message<'_>, texts: (&[String], &[String]), edits: &mut Edits) {
    let (before, after) = texts;
    if before.is_empty() && after.is_empty() {
        return;
    }
    let text = message.parts.iter().find_map(|part| if let Part::Text { at, .. } = part { Some(*at) } else { None });
    match (message.content, text) {
        (Some(list), _) => in_list(wire, list, 0, texts, edits),
        // A client sends one text as a string in one request and as a block in the next: both become the same blocks.
        (None, Some(text)) if wire == Wire::Anthropic => {
            let before: String = before.iter().map(|text| block(wire, text) + ",").collect();
            let after: String = after.iter().map(|text| format!(",{}", block(wire, text))).collect();
            edits.raw(text.at.start..text.at.start, format!("[{before}{{\"type\":\"text\",\"text\":"));
            edits.raw(text.at.end..text.at.end, format!("}}{after}]"));
        }
        (None, Some(text)) => in_string(doc, text, texts, edits),
        (None, None) => {}
    }
}

/// Inserts texts as blocks: the first ones before the block with this number, the others at the end.
fn in_list(wire: Wire, list: &Node, number: usize, (before, after): (&[String], &[String]), edits: &mut Edits) {
    let blocks = |texts: &[String]| texts.iter().map(|text| block(wire, text)).collect::<Vec<_>>().join(",");
    if list.items().is_empty() {
        return edits.insert(list, 0, &blocks(&[before, after].concat()));
    }
    for (number, texts) in [(number, before), (list.items().len(), after)] {
        if !texts.is_empty() {
            edits.insert(list, number, &blocks(texts));
        }
    }
}

/// Inserts texts as paragraphs of a string.
fn in_string(doc: Doc<'_>, node: &Node, (before, after): (&[String], &[String]), edits: &mut Edits) {
    if doc.text(node).is_none_or(|text| text.is_empty()) {
        return edits.text(&node.at, &joined(before, after));
    }
    let (start, end) = (node.at.start + 1, node.at.end - 1);
    if !before.is_empty() {
        edits.raw(start..start, escaped(&format!("{}\n\n", before.join("\n\n"))));
    }
    if !after.is_empty() {
        edits.raw(end..end, escaped(&format!("\n\n{}", after.join("\n\n"))));
    }
}

/// Returns the number of leading blocks by which a client identifies itself to its provider, which looks for them at the start: those of
/// Claude Code.
fn identity(doc: Doc<'_>, system: &Node) -> usize {
    let is_identity = |block: &&Node| {
        let text = if let Kind::Object(_) = block.kind { doc.text_of(block, "text") } else { None };
        text.is_some_and(|text| {
            text.starts_with("x-anthropic-")
                || (text.len() < 200 && text.starts_with("You are ") && text.contains("Anthropic's "))
        })
    };
    system.items().iter().take_while(is_identity).count()
}

fn block(wire: Wire, text: &str) -> String {
    let kind = if wire == Wire::OpenAiResponses { "input_text" } else { "text" };
    json!({"type": kind, "text": text}).to_string()
}

fn joined(before: &[String], after: &[String]) -> String {
    [before, after].concat().join("\n\n")
}

/// Returns a text as the inside of a string literal.
fn escaped(text: &str) -> String {
    let literal = Value::from(text).to_string();
    literal[1..literal.len() - 1].to_owned()
}
