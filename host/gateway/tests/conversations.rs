//! Requests of one conversation, which know nothing of each other.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_gateway::{Conversations, Then};
use tidegate_kit::rule_set;
use wire::Wire;

use crate::script::{Said, WIRES, stream};

/// Plays one request whose first answer breaks the rule. Returns how often the model was asked.
fn ask(conversations: &Conversations, wire: Wire, request: &Value, session: Option<&'static str>) -> u32 {
    let header = |name: &str| session.filter(|_| name == "session-id");
    let (place, mut exchange) = conversations.begin(wire, request.to_string().into(), header);
    let mut asked = 0;
    for text in ["forbidden", "Fine."] {
        asked += 1;
        exchange.begin(true);
        if exchange.receive(&stream(wire, 1, &[Said::Text(text)], 100), Duration::ZERO).then != Then::Ask {
            break;
        }
    }
    conversations.end(&place, &exchange);
    asked
}

fn request(wire: Wire, said: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> = said.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    let key = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
    json!({key: messages})
}

#[test]
fn a_rule_that_acts_once_acts_once_in_a_conversation() {
    for wire in WIRES {
        let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever.")], |_| ());
        let conversations = Conversations::new(set);
        let first = request(wire, &[("system", "Be kind."), ("user", "Hi")]);
        let later = request(wire, &[("system", "Be kind."), ("user", "Hi"), ("assistant", "Fine."), ("user", "Go on")]);
        let other = request(wire, &[("user", "Other")]);
        assert_eq!(ask(&conversations, wire, &first, None), 2);
        assert_eq!(ask(&conversations, wire, &later, None), 1, "it has acted in this conversation");
        assert_eq!(ask(&conversations, wire, &other, None), 2);
        // Another conversation that begins with the same words.
        assert_eq!(ask(&conversations, wire, &first, None), 2);
        // A client that names its conversation may send any of it.
        assert_eq!(ask(&conversations, wire, &first, Some("a")), 2);
        assert_eq!(ask(&conversations, wire, &first, Some("a")), 1);
        assert_eq!(ask(&conversations, wire, &first, Some("b")), 2);
    }
}

#[test]
fn without_a_rule_nothing_is_watched() {
    let watched = |specs: &[(&str, &str)]| Conversations::new(rule_set(specs, |_| ())).are_watched();
    assert!(!watched(&[]) && watched(&[("no", "+++\ncondition = \"x\"\n+++\nNever.")]));
}
