//! What was refused with its request stays away from the model when the client repeats it, and no shape of a request makes history of what
//! is new.

use std::sync::{Arc, Mutex};

use flow::{Callback, InputAnswer, Message};
use serde_json::{Value, json};
use tidegate_gateway::{Asked, Memory, Prepared, prepare};
use tidegate_kit::{Plugin, ready};
use wire::Wire;

use crate::plugins::{caller, plugin, sent};
use crate::script::WIRES;

fn body(wire: Wire, messages: &[(&str, &str)]) -> String {
    let messages: Vec<Value> = messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    json!({ if wire == Wire::OpenAiResponses { "input" } else { "messages" }: messages }).to_string()
}

/// Does `with` about every input that has `secret`.
fn refuses(with: fn() -> Result<InputAnswer, String>) -> Plugin {
    let mut own = plugin(Callback::InputMessages);
    own.input = Some(Box::new(move |messages: Vec<Message>| {
        let is_secret = messages.iter().any(|one| one.plain_text().contains("secret"));
        if is_secret { with() } else { Ok(InputAnswer::Pass) }
    }));
    own
}

fn all() -> Vec<(&'static str, Plugin)> {
    let (mut closed, mut required) =
        (refuses(|| Err("it trapped".to_owned())), refuses(|| Err("it trapped".to_owned())));
    (closed.closed, required.required) = (true, true);
    vec![
        ("rejected", refuses(|| Ok(InputAnswer::Reject("not that".into())))),
        ("dropped", refuses(|| Ok(InputAnswer::Replace(Vec::new())))),
        ("fails closed", closed),
        ("required", required),
    ]
}

#[test]
fn a_refused_input_does_not_leave_with_the_next_request() {
    for wire in WIRES {
        for (name, own) in all() {
            let (caller, memory) = (caller(vec![own], false), Mutex::default());
            let asked = [("user", "Hello."), ("assistant", "Hi."), ("user", "a secret")];
            for _ in 0..2 {
                // Asked again, it is refused again.
                let refused = ready(prepare(&caller, &memory, wire, &body(wire, &asked).into(), None));
                assert!(matches!(refused, Prepared::Refused { .. }), "{name}: {refused:?}");
            }
            let mut next = asked.to_vec();
            next.extend([("assistant", "Refused."), ("user", "Go on.")]);
            let up = sent(&caller, &memory, wire, &body(wire, &next));
            next[2].1 = "[Tidegate: this message was refused, and not sent.]";
            assert_eq!(up, body(wire, &next), "{name}");
        }
    }
}

/// Such as after a restart.
#[test]
fn an_input_that_the_memory_does_not_know_is_asked_about_wherever_it_is() {
    for wire in WIRES {
        let asked =
            [("user", "One."), ("assistant", "Hi."), ("user", "a secret"), ("assistant", "Ok."), ("user", "Two.")];
        for (name, own) in all() {
            let caller = caller(vec![own], false);
            let prepared = ready(prepare(&caller, &Mutex::default(), wire, &body(wire, &asked).into(), None));
            match prepared {
                Prepared::Ask(up) => {
                    let up = String::from_utf8(up.to_vec()).unwrap();
                    let expected =
                        body(wire, &asked).replace("a secret", "[Tidegate: this message was refused, and not sent.]");
                    assert_eq!(up, expected, "{name}");
                }
                Prepared::Refused { words, .. } => {
                    assert!(name == "required" && words.contains("failed"), "{name}: {words}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_follows_the_input_makes_no_history_of_it() {
    let user = json!({"role": "user", "content": "a secret"});
    let before = json!({"role": "assistant", "content": "Hi."});
    let ends = [
        (Wire::Anthropic, vec![json!({"role": "assistant", "content": "I"})]),
        (Wire::OpenAiChat, vec![json!({"role": "assistant", "content": "I"})]),
        (Wire::OpenAiResponses, vec![json!({"type": "item_reference", "id": "msg_1"})]),
        (Wire::OpenAiResponses, vec![json!({"type": "reasoning", "id": "rs_1", "summary": []})]),
        (Wire::OpenAiResponses, vec![json!({"type": "compaction_trigger"})]),
        (
            Wire::OpenAiResponses,
            vec![json!({"role": "assistant", "content": "I"}), json!({"type": "item_reference", "id": "a"})],
        ),
    ];
    for (wire, end) in ends {
        let list = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
        let mut messages = vec![before.clone(), user.clone()];
        messages.extend(end);
        let body = json!({ list: messages }).to_string();
        for (name, own) in all() {
            let refused =
                ready(prepare(&caller(vec![own], false), &Mutex::default(), wire, &body.clone().into(), None));
            assert!(matches!(refused, Prepared::Refused { .. }), "{name} {body}: {refused:?}");
        }
        assert_eq!(Asked::of(wire, body.as_bytes()).messages[0].plain_text(), "a secret", "{body}");
    }
    // Without a role.
    for (wire, list) in
        [(Wire::Anthropic, "messages"), (Wire::OpenAiChat, "messages"), (Wire::OpenAiResponses, "input")]
    {
        let body = json!({ list: [{"content": "a secret"}] }).to_string();
        let (_, own) = all().swap_remove(0);
        let refused = ready(prepare(&caller(vec![own], false), &Mutex::default(), wire, &body.into(), None));
        assert!(matches!(refused, Prepared::Refused { .. }), "{refused:?}");
    }
}

/// Each input of a history is its own, as when it was new.
#[test]
fn a_history_is_given_input_by_input() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut own = plugin(Callback::InputMessages);
    let seen = Arc::clone(&asked);
    own.input = Some(Box::new(move |messages: Vec<Message>| {
        seen.lock().unwrap().push(messages.iter().map(Message::plain_text).collect::<Vec<_>>().join("|"));
        Ok(InputAnswer::Pass)
    }));
    let (caller, memory) = (caller(vec![own], false), Mutex::<Memory>::default());
    let said = [("user", "a"), ("user", "b"), ("assistant", "1"), ("user", "c"), ("assistant", "2"), ("user", "d")];
    for _ in 0..2 {
        sent(&caller, &memory, Wire::OpenAiChat, &body(Wire::OpenAiChat, &said));
        assert_eq!(*asked.lock().unwrap(), ["a|b", "c", "d"]);
    }
}

/// What an extension says about an input can repeat it.
#[test]
fn the_words_of_a_refusal_do_not_leave_either() {
    for wire in WIRES {
        let (caller, memory) =
            (caller(vec![refuses(|| Ok(InputAnswer::Reject("not a secret".into())))], false), Mutex::default());
        let Prepared::Refused { words, .. } =
            ready(prepare(&caller, &memory, wire, &body(wire, &[("user", "a secret")]).into(), None))
        else {
            panic!("{wire:?}");
        };
        assert!(words.contains("not a secret"), "{words}");
        let up =
            sent(&caller, &memory, wire, &body(wire, &[("user", "a secret"), ("assistant", &words), ("user", "b")]));
        assert!(!up.contains("secret") && up.contains("[Tidegate: this request was not sent.]"), "{up}");
    }
}
