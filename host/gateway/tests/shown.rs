//! The conversation and the tools that plugins with the power to read them are shown.

use std::sync::{Arc, Mutex};

use flow::{InputAnswer, Message, Part};
use serde_json::{Value, json};
use tidegate_gateway::{Memory, Prepared, Shown, prepare};
use tidegate_kit::{Plugin, ready};
use wire::Wire;

use crate::plugins::{caller, mask};
use crate::script::WIRES;

/// Returns a request with a call, its result, and these inputs around them; each has the word that is masked.
fn request(wire: Wire, last: Option<&str>) -> String {
    let user = |text: &str| json!({"role": "user", "content": text});
    let mut messages = vec![user("key one")];
    match wire {
        Wire::Anthropic => messages.extend([
            json!({"role": "assistant", "content": [{"type": "text", "text": "Yes."}, {"type": "tool_use", "id": "1", "name": "a", "input": {"x": "y"}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "a key"}]}),
        ]),
        Wire::OpenAiChat => messages.extend([
            json!({"role": "assistant", "content": "Yes.", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "a", "arguments": "{\"x\":\"y\"}"}}]}),
            json!({"role": "tool", "tool_call_id": "1", "content": "a key"}),
        ]),
        Wire::OpenAiResponses => messages.extend([
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}),
            json!({"type": "function_call", "call_id": "1", "name": "a", "arguments": "{\"x\":\"y\"}"}),
            json!({"type": "function_call_output", "call_id": "1", "output": "a key"}),
        ]),
    }
    if let Some(last) = last {
        messages.extend([json!({"role": "assistant", "content": "Done."}), user(last)]);
    }
    let (about, schema) = ("about a key", json!({"type": "object", "title": "t"}));
    let (list, instructions, tool) = match wire {
        Wire::Anthropic => ("messages", "system", json!({"name": "a", "description": about, "input_schema": schema})),
        Wire::OpenAiChat => {
            let function = json!({"name": "a", "description": about, "parameters": schema});
            messages.insert(0, json!({"role": "system", "content": "a key"}));
            ("messages", "user", json!({"type": "function", "function": function}))
        }
        Wire::OpenAiResponses => {
            let tool = json!({"type": "function", "name": "a", "description": about, "parameters": schema});
            ("input", "instructions", tool)
        }
    };
    json!({instructions: "a key", list: messages, "tools": [tool]}).to_string()
}

/// Writes a message in one line: its role and its parts.
fn line(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::ToolCall(call) => format!("{}({})", call.name, call.arguments),
        Part::ToolResult(result) => format!("= {}", result.content.join("|")),
        other => format!("{other:?}"),
    };
    format!("{}: {}", message.role.as_str(), message.parts.iter().map(part).collect::<Vec<_>>().join(" "))
}

const BEFORE: [&str; 3] = ["user: MASK one", "assistant: Yes. a({\"x\":\"y\"})", "tool: = a MASK"];

/// A plugin finds what precedes its input, and then all of it, masked also where the gateway sees it for the first time.
#[test]
fn plugins_are_shown_what_the_model_gets() {
    for wire in WIRES {
        for is_known in [true, false] {
            let seen: Arc<Mutex<Vec<Shown>>> = Arc::default();
            let at_input: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
            let (own, inputs) = (Arc::clone(&seen), Arc::clone(&at_input));
            let reader = Plugin {
                id: "reader",
                callbacks: vec![(flow::Callback::InputMessages, 90)],
                input: Some(Box::new(move |messages: Vec<Message>| {
                    if messages[0].plain_text().contains("two") {
                        let shown = own.lock().unwrap().last().cloned().unwrap_or_default();
                        inputs.lock().unwrap().push(shown.messages.iter().map(line).collect());
                    }
                    Ok(InputAnswer::Pass)
                })),
                ..Plugin::default()
            };
            let caller = caller(vec![reader, mask(&Arc::default())], true);
            let memory = Mutex::new(Memory::default());
            let show = |shown| seen.lock().unwrap().push(shown);
            let sent = |body: String| match ready(prepare(&caller, &memory, wire, &body.into(), Some(&show))) {
                Prepared::Ask(body) => body,
                other => panic!("{other:?}"),
            };
            if is_known {
                sent(request(wire, None));
            }
            let body = sent(request(wire, Some("key two")));
            assert!(!String::from_utf8_lossy(&body).replace("\"key\"", "").contains("key "), "{body:?}");
            let done = "assistant: Done.";
            let before: Vec<&str> = BEFORE.iter().copied().chain([done]).collect();
            let at_input = at_input.lock().unwrap();
            assert_eq!(at_input.last().map(Vec::as_slice).unwrap_or_default(), before, "{wire:?}, {is_known}");
            let last = seen.lock().unwrap().pop().unwrap();
            let all: Vec<&str> = before.iter().copied().chain(["user: MASK two"]).collect();
            assert_eq!(last.messages.iter().map(line).collect::<Vec<_>>(), all, "{wire:?}");
            let tools: Vec<(String, String, Value)> =
                last.tools.into_iter().map(|tool| (tool.name, tool.description, tool.parameters)).collect();
            let schema = json!({"type": "object", "title": "t"});
            assert_eq!(tools, [("a".to_owned(), "about a MASK".to_owned(), schema)], "{wire:?}");
        }
    }
}

/// Without callbacks on requests, plugins are shown them as they are; what is no conversation shows nothing.
#[test]
fn plugins_without_callbacks_are_shown_the_same() {
    let caller = caller(Vec::new(), false);
    for wire in WIRES {
        let seen: Mutex<Vec<Shown>> = Mutex::default();
        let show = |shown| seen.lock().unwrap().push(shown);
        for body in [request(wire, None), "{}".to_owned(), "no JSON".to_owned()] {
            let prepared = ready(prepare(&caller, &Mutex::default(), wire, &body.clone().into(), Some(&show)));
            assert_eq!(prepared, Prepared::Ask(body.into()));
        }
        let seen = seen.into_inner().unwrap();
        let counts: Vec<(usize, usize)> = seen.iter().map(|one| (one.messages.len(), one.tools.len())).collect();
        assert_eq!(counts, [(3, 1), (0, 0), (0, 0)], "{wire:?}");
    }
}
