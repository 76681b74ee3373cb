//! Random conversations of the items of the corpus.

use std::sync::Arc;

use flow::{CallId, Message, Origin, Part, Role, ToolCall, ToolResult, ToolSpec};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::corpus::ITEMS;

pub(crate) fn texts() -> impl Strategy<Value = String> {
    select(ITEMS.texts.as_slice())
}

fn names() -> impl Strategy<Value = String> {
    select(ITEMS.names.as_slice())
}

fn ids() -> impl Strategy<Value = String> {
    select(ITEMS.ids.as_slice())
}

fn arguments() -> impl Strategy<Value = String> {
    select(ITEMS.arguments.as_slice())
}

fn signatures() -> impl Strategy<Value = Option<String>> {
    proptest::option::weighted(0.8, select(ITEMS.signatures.as_slice()))
}

fn image() -> impl Strategy<Value = Part> {
    select(ITEMS.images()).prop_map(Part::Image)
}

fn parts() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => texts().prop_map(Part::Text),
        1 => image(),
        2 => (texts(), signatures(), any::<bool>())
            .prop_map(|(text, signature, redacted)| Part::Thinking { text, signature, redacted, shown: None }),
        4 => (ids(), names(), arguments())
            .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall { id: CallId::new(id), name, arguments })),
        3 => (ids(), vec(texts(), 0..3), any::<bool>()).prop_map(|(id, content, is_error)| {
            Part::ToolResult(ToolResult { call: CallId::new(id), content, is_error })
        }),
    ]
}

pub(crate) fn messages() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let role = select(vec![Role::System, Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let message = (role, vec(parts(), 0..5), any::<bool>())
        .prop_map(|(role, parts, hidden)| Arc::new(Message { role, origin: Origin::Host, parts, hidden }));
    vec(message, 0..10)
}

pub(crate) fn tools() -> impl Strategy<Value = Vec<ToolSpec>> {
    let schema = select(ITEMS.schemas.as_slice());
    // Names of tools are unique in a session.
    vec((names(), texts(), schema), 0..4).prop_map(|tools| {
        let mut specs: Vec<ToolSpec> = Vec::new();
        for (name, description, parameters) in tools {
            if !specs.iter().any(|spec| spec.name == name) {
                specs.push(ToolSpec { name, description, parameters });
            }
        }
        specs
    })
}
