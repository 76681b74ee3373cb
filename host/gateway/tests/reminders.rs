//! Reminders that stop nothing: they are in the next request, and in the same place of every later one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rules::{RuleSession, RuleSet};
use serde_json::{Value, json};
use tidegate_gateway::{Exchange, Memory, Then};
use tidegate_kit::rule_set;
use wire::Wire;

use crate::script::{Said, WIRES, stream, whole};

const RULE: &str = "+++\ncondition = \"bad\"\ninterrupt = \"never\"\nscope = [\"text\", \"tool\"]\n+++\nNever say it.";

/// A conversation that a client keeps, with what it sends next after each answer: where `§` is, the reminder is expected.
struct Case {
    wire: Wire,
    /// What the model says first.
    said: &'static [Said<'static>],
    /// The client's messages, and where the reminder is in what goes upstream.
    messages: &'static str,
}

/// What the client sends after an answer with the call `toolu_1_1`, `call_1_0` or `item_1_1`, or with text alone.
const CASES: &[Case] = &[
    Case {
        wire: Wire::Anthropic,
        said: &[Said::Text("A bad word."), Said::Call("{}")],
        messages: r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"A bad word."},{"type":"tool_use","id":"toolu_1_1","name":"write","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_1","content":"done"}§,{"type":"text","text":"And?","cache_control":{"type":"ephemeral"}}]}]"#,
    },
    Case {
        wire: Wire::Anthropic,
        said: &[Said::Call("{\"x\":\"bad\"}")],
        messages: r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1_0","name":"write","input":{"x":"bad"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_0","content":[{"type":"text","text":"done"}]}§]}]"#,
    },
    Case {
        wire: Wire::Anthropic,
        said: &[Said::Text("A bad word.")],
        messages: r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"A bad word."},{"role":"user","content":[§,{"type":"text","text":"Go on."}]}]"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        said: &[Said::Text("A bad word."), Said::Call("{}")],
        messages: r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"A bad word.","tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"write","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"call_1_0","content":"done"}§,{"role":"user","content":"And?"}]"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        said: &[Said::Text("A bad word.\n")],
        messages: r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"A bad word."}§,{"role":"user","content":[{"type":"text","text":"Go on."}]}]"#,
    },
    Case {
        wire: Wire::OpenAiResponses,
        said: &[Said::Text("A bad word."), Said::Call("{}")],
        messages: r#"[{"role":"user","content":"Hi"},{"type":"reasoning","summary":[],"encrypted_content":"x"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A bad word."}]},
            {"type":"function_call","call_id":"call_1_1","name":"write","arguments":"{}"},{"type":"function_call_output","call_id":"call_1_1","output":"done"}§,{"role":"user","content":"And?"}]"#,
    },
    Case {
        wire: Wire::OpenAiResponses,
        said: &[Said::Text("A bad word.")],
        messages: r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"A bad word."}§,{"role":"user","content":"Go on."}]"#,
    },
];

fn list(wire: Wire) -> &'static str {
    if wire == Wire::OpenAiResponses { "input" } else { "messages" }
}

/// Returns the request with these messages, and what stands for the reminder taken out.
fn request(wire: Wire, messages: &str) -> String {
    let messages = messages.replace("[§,{\"type\":\"text\",\"text\":\"Go on.\"}]", "\"Go on.\"").replace('§', "");
    format!("{{\"model\" : \"m\", \"{}\":{messages}, \"temperature\":1.0}}", list(wire))
}

/// Returns the messages that go upstream, with `§` for the reminder.
fn upstream(wire: Wire, messages: &str) -> Value {
    let words = json!("§");
    let marker = match wire {
        Wire::Anthropic => json!({"type": "text", "text": words}),
        Wire::OpenAiChat => json!({"role": "user", "content": words}),
        Wire::OpenAiResponses => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]})
        }
    };
    let marker = marker.to_string();
    let separated = if messages.contains("[§") { marker } else { format!(",{marker}") };
    serde_json::from_str(&messages.replacen('§', &separated, 1)).unwrap()
}

/// What a server keeps of a conversation.
struct Kept {
    rules: RuleSession,
    memory: Memory,
}

impl Kept {
    fn new(set: Arc<RuleSet>) -> Self {
        Self { rules: RuleSession::new(set), memory: Memory::default() }
    }

    fn begin(&self, wire: Wire, body: &str) -> Exchange {
        let body = self.memory.remind(wire, Bytes::copy_from_slice(body.as_bytes()));
        Exchange::new(wire, body, "m", self.rules.clone())
    }

    fn end(&mut self, exchange: &Exchange) {
        self.rules = exchange.rules().clone();
        exchange.remember(&mut self.memory);
    }
}

/// Plays an exchange. Returns what went upstream.
fn exchange(conversation: &mut Kept, wire: Wire, body: &str, answer: &[u8], is_stream: bool) -> String {
    let mut exchange = conversation.begin(wire, body);
    let sent = exchange.request().unwrap();
    exchange.begin(is_stream);
    let next = exchange.receive(answer, Duration::ZERO);
    assert!(next.then == Then::End || (!is_stream && exchange.end(Duration::ZERO).then == Then::End));
    conversation.end(&exchange);
    String::from_utf8(sent.to_vec()).unwrap()
}

fn marked(wire: Wire, body: &str) -> Value {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let mut messages = body[list(wire)].take();
    mark(&mut messages);
    messages
}

fn mark(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("Never say it.") => *text = "§".to_owned(),
        Value::Array(items) => items.iter_mut().for_each(mark),
        Value::Object(members) => members.values_mut().for_each(mark),
        _ => {}
    }
}

#[test]
fn the_model_is_reminded_in_the_next_request_and_in_every_later_one() {
    for Case { wire, said, messages } in CASES {
        let wire = *wire;
        let mut conversation = Kept::new(rule_set(&[("no", RULE)], |_| ()));
        let first = format!("{{\"{}\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}", list(wire));
        let sent = exchange(&mut conversation, wire, &first, &stream(wire, 1, said, 3), true);
        assert_eq!(sent, first);
        let fine = stream(wire, 2, &[Said::Text("Fine.")], 3);
        let next = request(wire, messages);
        let sent = exchange(&mut conversation, wire, &next, &fine, true);
        assert_eq!(marked(wire, &sent), upstream(wire, messages), "{sent}");
        assert!(sent.starts_with("{\"model\" : \"m\", ") && sent.ends_with(", \"temperature\":1.0}"), "{sent}");
        // The same again: a client that asks once more, and one that has gone on, with its marks of caches elsewhere.
        assert_eq!(exchange(&mut conversation, wire, &next, &fine, true), sent);
        let more = r#",{"role":"assistant","content":"Fine."},{"role":"user","content":"More"}]"#;
        let later =
            messages.trim_end_matches(']').to_owned() + &messages[messages.trim_end_matches(']').len() + 1..] + more;
        let later = later.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        let sent = exchange(&mut conversation, wire, &request(wire, &later), &fine, true);
        assert_eq!(marked(wire, &sent), upstream(wire, &later), "{sent}");
        // Another request of the client, about something else.
        let side = format!("{{\"{}\":[{{\"role\":\"user\",\"content\":\"A title for: A bad word.\"}}]}}", list(wire));
        assert_eq!(exchange(&mut conversation, wire, &side, &fine, true), side);
    }
}

#[test]
fn an_answer_that_came_as_one_body_is_followed_by_its_reminder() {
    for wire in WIRES {
        let mut conversation = Kept::new(rule_set(&[("no", RULE)], |_| ()));
        let first = format!("{{\"{}\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}", list(wire));
        let answer = whole(wire, &[Said::Text("A bad word.")]);
        exchange(&mut conversation, wire, &first, &answer, false);
        let next = format!(
            "{{\"{}\":[{{\"role\":\"user\",\"content\":\"Hi\"}},{{\"role\":\"assistant\",\"content\":\"A bad word.\"}},{{\"role\":\"user\",\"content\":\"x\"}}]}}",
            list(wire)
        );
        let sent = exchange(&mut conversation, wire, &next, &answer, false);
        assert_eq!(sent.matches("Never say it.").count(), 1, "{sent}");
    }
}

/// A conversation that its server keeps has the reminder once: what follows an answer by its id is all that is sent.
#[test]
fn what_follows_an_answer_by_its_id_begins_with_the_reminder() {
    let wire = Wire::OpenAiResponses;
    for (input, place) in [("\"Go on.\"", 0), (r#"[{"type":"function_call_output","call_id":"c","output":"x"}]"#, 1)] {
        let mut conversation = Kept::new(rule_set(&[("no", RULE)], |_| ()));
        exchange(
            &mut conversation,
            wire,
            "{\"input\":\"Hi\"}",
            &stream(wire, 1, &[Said::Text("A bad word.")], 3),
            true,
        );
        let next = format!("{{\"previous_response_id\":\"resp_1\",\"input\":{input}}}");
        let fine = stream(wire, 2, &[Said::Text("Fine.")], 3);
        let sent = exchange(&mut conversation, wire, &next, &fine, true);
        assert_eq!(marked(wire, &sent)[place]["content"][0]["text"], "§", "{sent}");
        let later = "{\"previous_response_id\":\"resp_2\",\"input\":\"More\"}";
        assert_eq!(exchange(&mut conversation, wire, later, &fine, true), later);
    }
}

/// The client has the id of the attempt that was stopped; the server may not know it.
#[test]
fn what_follows_a_stopped_answer_names_the_one_that_was_accepted() {
    let wire = Wire::OpenAiResponses;
    let rule = "+++\ncondition = \"forbidden\"\n+++\nNever say it.";
    let mut conversation = Kept::new(rule_set(&[("no", rule)], |_| ()));
    let mut own = conversation.begin(wire, "{\"input\":\"Hi\"}");
    own.begin(true);
    let stopped = own.receive(&stream(wire, 1, &[Said::Text("forbidden")], 3), Duration::ZERO);
    assert_eq!(stopped.then, Then::Ask);
    own.begin(true);
    assert_eq!(own.receive(&stream(wire, 2, &[Said::Text("Fine.")], 3), Duration::ZERO).then, Then::End);
    conversation.end(&own);
    let next = |id: u32| format!("{{\"previous_response_id\" :\"resp_{id}\",\"input\":\"More\"}}");
    let fine = stream(wire, 3, &[Said::Text("Fine.")], 3);
    assert_eq!(exchange(&mut conversation, wire, &next(1), &fine, true), next(2));
    assert_eq!(exchange(&mut conversation, wire, &next(3), &fine, true), next(3));
}

#[test]
fn a_memory_is_kept_as_json_and_merged_by_its_notes() {
    let conversation = Kept::new(rule_set(&[("no", RULE)], |_| ()));
    let mut one = conversation.begin(Wire::Anthropic, r#"{"messages":[]}"#);
    one.begin(true);
    let end = one.receive(&stream(Wire::Anthropic, 1, &[Said::Text("A bad word.")], 3), Duration::ZERO);
    assert_eq!(end.then, Then::End);
    let mut memory = Memory::default();
    one.remember(&mut memory);
    let kept = serde_json::to_value(&memory).unwrap();
    assert_eq!(kept.as_object().unwrap().len(), 1, "{kept}");
    let mut other: Memory = serde_json::from_value(json!({"reminder:0": "x"})).unwrap();
    other.merge(serde_json::from_value(kept).unwrap());
    other.merge(serde_json::from_value(json!({"reminder:0": "y"})).unwrap());
    let merged = serde_json::to_value(&other).unwrap();
    assert_eq!((merged.as_object().unwrap().len(), &merged["reminder:0"]), (2, &json!("x")));
}
