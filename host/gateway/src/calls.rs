//! The shapes of calls in the Responses API: which items are calls, and which of their members are the arguments.

use serde_json::Value;

/// Items that a client runs.
pub(crate) const CALLS: [&str; 7] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "tool_search_call",
];

/// The members that can be arguments. Several of them, and lists, are given to rules and callbacks as one object.
pub(crate) const MEMBERS: [&str; 4] = ["action", "actions", "operation", "arguments"];

/// Returns the members that are the arguments of an item.
pub(crate) fn members(item: &Value) -> Vec<&'static str> {
    let said = |key: &&str| !item[*key].is_null() && item[*key].as_array().is_none_or(|list| !list.is_empty());
    MEMBERS.into_iter().filter(said).collect()
}
