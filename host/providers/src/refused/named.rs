//! The part of a request that an error names by its path in the body: `messages.3.content.1`, `messages[9].tool_calls[0]`,
//! `input[95].call_id`, `tools[4].function.parameters`.
//!
//! Which part of the conversation a path is about is found out by writing bodies: it is the last part of which a change changes the item
//! there. So it holds in every wire format, however that merges messages and reorders parts. The shortest beginning of the conversation
//! that has the item says where to look.

use std::sync::Arc;

use flow::{Message, Part, Prompt, ToolResult};
use serde_json::Value;

/// The lists that errors name; the last one is how servers in front of Gemini name tools.
const LISTS: [&str; 4] = ["messages", "input", "tools", "function_declarations"];

/// How many parts are tried, from the last one that a beginning needs: an answer and its results can have many.
const MAX_TRIED: usize = 64;

/// Keys that are not about what the conversation says.
const NOT_CONTENT: [&str; 2] = ["cache_control", "role"];

/// Keys of the id of a call, which its result has, too.
const IDS: [&str; 3] = ["tool_use_id", "tool_call_id", "call_id"];

/// What an error is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    Part { message: usize, part: usize },
    Tool(usize),
}

/// Whether the words of an error name an element of a list.
pub(super) fn names(said: &str) -> bool {
    path(said).is_some()
}

/// What the words of an error name. `can_be`: whether it can be this part of this message. `body`: the request of a prompt.
pub(super) fn find(
    said: &str,
    prompt: &Prompt,
    can_be: &dyn Fn(usize, usize) -> bool,
    body: &dyn Fn(&Prompt) -> Option<Value>,
) -> Option<Named> {
    let (list, steps) = path(said)?;
    if steps.iter().any(|step| NOT_CONTENT.contains(step)) {
        return None;
    }
    let index: usize = steps.first()?.parse().ok()?;
    if list != "messages" && list != "input" {
        return (index < prompt.tools.len()).then_some(Named::Tool(index));
    }
    let whole = body(prompt)?;
    let pointer = item(&whole, list, &steps)?;
    let wanted = comparable(whole.pointer(&pointer)?);
    let has = |prompt: &Prompt| {
        body(prompt).is_some_and(|body| body.pointer(&pointer).is_some_and(|found| comparable(found) == wanted))
    };
    let beginning = |count: usize| Prompt { messages: prompt.messages[..count].to_vec(), ..prompt.clone() };
    let counts: Vec<usize> = (0..=prompt.messages.len()).collect();
    let needed = counts.partition_point(|count| !has(&beginning(*count))).min(prompt.messages.len());
    let places =
        (0..needed).rev().flat_map(|at| (0..prompt.messages[at].parts.len()).rev().map(move |part| (at, part)));
    let is_id = steps.last().is_some_and(|last| IDS.contains(last));
    let is_it = |(message, part): &(usize, usize)| !has(&changed(prompt, *message, *part));
    let blamed = |(message, part): (usize, usize)| match &prompt.messages[message].parts[part] {
        // The id is that of the call, and a placeholder is not what the provider refuses.
        Part::ToolResult(result) if is_id || !can_be(message, part) => call_of(prompt, result),
        _ => Some((message, part)).filter(|_| can_be(message, part)),
    };
    let (message, part) = places.take(MAX_TRIED).filter(is_it).find_map(blamed)?;
    Some(Named::Part { message, part })
}

fn call_of(prompt: &Prompt, result: &ToolResult) -> Option<(usize, usize)> {
    let is_call = |part: &Part| matches!(part, Part::ToolCall(call) if call.id == result.call);
    let of_message = |(at, message): (usize, &Arc<Message>)| Some((at, message.parts.iter().rposition(is_call)?));
    prompt.messages.iter().enumerate().rev().find_map(of_message)
}

/// The prompt with another content of a part.
fn changed(prompt: &Prompt, message: usize, part: usize) -> Prompt {
    let mut changed = prompt.clone();
    let mut of = Message::clone(&changed.messages[message]);
    let change = |text: &mut String| text.insert_str(0, "changed ");
    match &mut of.parts[part] {
        Part::Text(text) | Part::Thinking { text, signature: None, .. } => change(text),
        Part::Thinking { signature: Some(signature), .. } => change(signature),
        // In another format an image would not be the same.
        image @ Part::Image(_) => *image = Part::Text("changed".to_owned()),
        Part::ToolCall(call) => call.arguments = r#"{"changed": true}"#.to_owned(),
        Part::ToolResult(result) => result.content = vec!["changed".to_owned()],
    }
    changed.messages[message] = of.into();
    changed
}

/// The list and the steps of the last path that is named.
fn path(said: &str) -> Option<(&'static str, Vec<&str>)> {
    let of_list =
        |list: &'static str| said.rmatch_indices(list).find_map(|(at, _)| Some((at, list, steps(said, at, list)?)));
    LISTS.into_iter().filter_map(of_list).max_by_key(|(at, ..)| *at).map(|(_, list, steps)| (list, steps))
}

fn steps<'s>(said: &'s str, at: usize, list: &str) -> Option<Vec<&'s str>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if said[..at].ends_with(is_word) {
        return None;
    }
    let (mut rest, mut steps) = (&said[at + list.len()..], Vec::new());
    while let Some(next) = after_separator(rest) {
        let word = &next[..next.find(|c| !is_word(c)).unwrap_or(next.len())];
        if word.is_empty() {
            break;
        }
        steps.push(word);
        rest = &next[word.len()..];
    }
    steps.first()?.bytes().all(|byte| byte.is_ascii_digit()).then_some(steps)
}

/// The text after what separates two steps: `.`, `/`, `[`, `'][`, and in a list of quoted keys `', '`. A blank alone separates words.
fn after_separator(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(['\'', '"', ']']);
    let rest = match rest.strip_prefix(['.', '/', '[']) {
        Some(rest) => rest,
        None if rest.len() < text.len() => rest.strip_prefix([',', '.'])?.trim_start(),
        // Between two numbers of such a list there are no quotes.
        None => rest.strip_prefix(',')?.trim_start().strip_prefix(['\'', '"'])?,
    };
    Some(rest.trim_start_matches(['\'', '"']))
}

/// The item that a path is in, as a JSON pointer: the last element of a list, or the content of a message. `None` where it is a message of
/// several parts, of which none is named.
fn item(body: &Value, list: &str, steps: &[&str]) -> Option<String> {
    let message = format!("/{list}/{}", steps.first()?);
    let (mut pointer, mut item) = (message.clone(), message.clone());
    for step in &steps[1..] {
        pointer = format!("{pointer}/{step}");
        // Some errors name the type of a block between its number and its keys.
        if body.pointer(&pointer).is_none() {
            break;
        }
        if *step == "content" || step.bytes().all(|byte| byte.is_ascii_digit()) {
            item.clone_from(&pointer);
        }
    }
    let is_exact = item != message || parts(body.pointer(&message)?) <= 1;
    let is_one = body.pointer(&item).is_none_or(|value| value.as_array().is_none_or(|list| list.len() <= 1));
    (is_exact && is_one).then_some(item)
}

fn parts(message: &Value) -> usize {
    let count = |key: &str| match &message[key] {
        Value::Array(list) => list.len(),
        Value::Null => 0,
        _ => 1,
    };
    count("content") + count("tool_calls")
}

/// A value without what depends on where the conversation ends: the marks of a prompt cache, and white space before the end.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(kept.map(|(key, value)| (key.clone(), comparable(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(comparable).collect()),
        Value::String(text) => Value::String(text.trim_end().to_owned()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn paths_are_read_in_the_spellings_in_use() {
        for (said, expected) in [
            ("messages.3.content.1: Input should be", Some(("messages", "3/content/1"))),
            (
                "messages.2.content.1.image.source.base64.data: no",
                Some(("messages", "2/content/1/image/source/base64/data")),
            ),
            (
                "Invalid 'messages[9].tool_calls[0].function.name': empty",
                Some(("messages", "9/tool_calls/0/function/name")),
            ),
            ("Invalid 'input[95].call_id': string too long.", Some(("input", "95/call_id"))),
            ("[{'loc': ('body', 'messages', 4, 'content'), 'msg': 'x'}]", Some(("messages", "4/content"))),
            (r#"{"detail":[{"loc":["body","messages",4,"content"]}]}"#, Some(("messages", "4/content"))),
            (
                "invalid JSON schema for tool a, tools[2].function.parameters: x",
                Some(("tools", "2/function/parameters")),
            ),
            (
                "* GenerateContentRequest.tools[0].function_declarations[5].name: x",
                Some(("function_declarations", "5/name")),
            ),
            ("Invalid 'tools[13].function.description': string too long.", Some(("tools", "13/function/description"))),
            ("3 messages, 2 were invalid", None),
            ("3 messages (2 were invalid)", None),
            ("messages 2 and 3", None),
            ("your messages resulted in 204308 tokens", None),
            ("input: 200000 tokens", None),
            ("max_input[3]", None),
            ("messages", None),
            ("messages.", None),
        ] {
            let found = path(said).map(|(list, steps)| (list, steps.join("/")));
            assert_eq!(found.as_ref().map(|(list, steps)| (*list, steps.as_str())), expected, "{said}");
        }
    }
}
