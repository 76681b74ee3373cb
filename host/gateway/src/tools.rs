//! The tools that a request offers to the model.

use flow::ToolSpec;
use serde_json::{Value, json};

use crate::json::{Doc, Node};

/// Returns the tools of a request, in their order. A tool that the provider runs has its type as its name and no parameters.
pub(crate) fn specs(doc: Doc<'_>, root: &Node) -> Vec<ToolSpec> {
    let value = |node: &Node| serde_json::from_slice::<Value>(&doc.bytes[node.at.clone()]).ok();
    offered(doc, root)
        .map(|(name, tool)| ToolSpec {
            name,
            description: doc.text_of(tool, "description").unwrap_or_default(),
            parameters: ["input_schema", "parameters"]
                .iter()
                .find_map(|key| tool.get(key))
                .and_then(value)
                .unwrap_or_else(|| json!({"type": "object"})),
        })
        .collect()
}

/// Returns the names of the tools of a request.
pub(crate) fn names(doc: Doc<'_>, root: &Node) -> Vec<String> {
    offered(doc, root).map(|(name, _)| name).collect()
}

/// Returns the tools with their names. Chat Completions has the declaration of a tool in a member that its type names.
fn offered<'d>(doc: Doc<'d>, root: &'d Node) -> impl Iterator<Item = (String, &'d Node)> {
    let tools = root.get("tools").map(Node::items).unwrap_or_default();
    tools.iter().filter_map(move |tool| {
        let kind = doc.text_of(tool, "type");
        let own = kind.as_deref().and_then(|kind| tool.get(kind)).filter(|own| own.get("name").is_some());
        let own = own.unwrap_or(tool);
        Some((doc.text_of(own, "name").or(kind)?, own))
    })
}
