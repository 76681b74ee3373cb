//! Text that plugins add to the prompt: its places in each wire format, and that it stays the same.

use std::sync::{Arc, Mutex};

use flow::{AdditionId, Condition, ContextMatch, Position, PromptAddition, StateTest, StateValue, TagPattern};
use guard::Caller;
use guard::additions::Addition;
use serde_json::{Value, json};
use tidegate_gateway::{Added, Given, Memory, add};
use tidegate_kit::{KeptState, Plugin};
use wire::Wire;

use crate::plugins::caller;
use crate::script::WIRES;

const POSITIONS: [(Position, &str); 4] = [
    (Position::SystemPrefix, "P\"1"),
    (Position::SystemSuffix, "S\n1"),
    (Position::UserPrefix, "before"),
    (Position::UserSuffix, "after"),
];

fn addition(index: usize, position: Position, text: &str, when: Vec<Condition>) -> PromptAddition {
    let id = AdditionId { plugin: "notes".parse().unwrap(), index };
    PromptAddition { id, position, text: text.into(), when }
}

/// Returns the additions at these positions.
fn given(positions: &[Position]) -> Given {
    let all = POSITIONS.iter().enumerate().filter(|(_, (position, _))| positions.contains(position));
    of(&all.map(|(index, (position, text))| addition(index, *position, text, Vec::new())).collect::<Vec<_>>(), 1)
}

fn of(additions: &[PromptAddition], turn: u32) -> Given {
    let additions = Addition::in_order(additions).into();
    Given { additions, guide: None, agent: "main".into(), workspace: "/w/shop".into(), turn }
}

fn none() -> Arc<Caller> {
    caller(Vec::new(), false)
}

fn added(given: &Given, caller: &Caller, memory: &Mutex<Memory>, wire: Wire, body: &str) -> (String, Vec<String>) {
    let Added { body, notices, .. } = add(given, caller, memory, (wire, "m-1"), &body.to_owned().into());
    (String::from_utf8(body.to_vec()).unwrap(), notices)
}

/// A request of a client, and the one with all four additions.
struct Case {
    wire: Wire,
    body: &'static str,
    expected: &'static str,
}

const SYSTEM: [Position; 2] = [Position::SystemPrefix, Position::SystemSuffix];
const ALL: [Position; 4] = [Position::SystemPrefix, Position::SystemSuffix, Position::UserPrefix, Position::UserSuffix];

const AROUND_INSTRUCTIONS: &[Case] = &[
    Case {
        wire: Wire::Anthropic,
        body: r#"{ "messages":[{"role":"user","content":"Hi"}] }"#,
        expected: r#"{"system":"P\"1\n\nS\n1", "messages":[{"role":"user","content":"Hi"}] }"#,
    },
    Case {
        wire: Wire::Anthropic,
        body: r#"{"system" : "Be\u0020brief.","messages":[{"role":"user","content":"Hi"}]}"#,
        expected: r#"{"system" : "P\"1\n\nBe\u0020brief.\n\nS\n1","messages":[{"role":"user","content":"Hi"}]}"#,
    },
    Case {
        wire: Wire::Anthropic,
        body: r#"{"messages":[{"role":"user","content":"Hi"}],"system":[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}} , {"type":"text","text":"B","cache_control":{"type":"ephemeral"}}]}"#,
        expected: r#"{"messages":[{"role":"user","content":"Hi"}],"system":[{"type":"text","text":"P\"1"},{"type":"text","text":"A","cache_control":{"type":"ephemeral"}} , {"type":"text","text":"B","cache_control":{"type":"ephemeral"}},{"type":"text","text":"S\n1"}]}"#,
    },
    // The provider looks for these blocks at the start.
    Case {
        wire: Wire::Anthropic,
        body: r#"{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2"},{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."},{"type":"text","text":"Be brief."}],"messages":[]}"#,
        expected: r#"{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2"},{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."},{"type":"text","text":"P\"1"},{"type":"text","text":"Be brief."},{"type":"text","text":"S\n1"}],"messages":[]}"#,
    },
    Case {
        wire: Wire::Anthropic,
        body: r#"{"system":[{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."}],"messages":[]}"#,
        expected: r#"{"system":[{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."},{"type":"text","text":"P\"1"},{"type":"text","text":"S\n1"}],"messages":[]}"#,
    },
    Case {
        wire: Wire::Anthropic,
        body: r#"{"system":[],"messages":[]}"#,
        expected: r#"{"system":[{"type":"text","text":"P\"1"},{"type":"text","text":"S\n1"}],"messages":[]}"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        body: r#"{"messages":[{"role":"user","content":"Hi"}]}"#,
        expected: r#"{"messages":[{"content":"P\"1\n\nS\n1","role":"system"},{"role":"user","content":"Hi"}]}"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        body: r#"{"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hi"}]}"#,
        expected: r#"{"messages":[{"role":"developer","content":"P\"1\n\nBe brief.\n\nS\n1"},{"role":"user","content":"Hi"}]}"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        body: r#"{"messages":[{"role":"system","content":[{"type":"text","text":"A"}]},{"role":"system","content":""},{"role":"user","content":"Hi"}]}"#,
        expected: r#"{"messages":[{"role":"system","content":[{"text":"P\"1","type":"text"},{"type":"text","text":"A"}]},{"role":"system","content":"S\n1"},{"role":"user","content":"Hi"}]}"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        body: r#"{"messages":[{"role":"system","content":null},{"role":"user","content":"Hi"}]}"#,
        expected: r#"{"messages":[{"content":"P\"1\n\nS\n1","role":"system"},{"role":"system","content":null},{"role":"user","content":"Hi"}]}"#,
    },
    Case {
        wire: Wire::OpenAiResponses,
        body: r#"{"input":"Hi"}"#,
        expected: r#"{"instructions":"P\"1\n\nS\n1","input":"Hi"}"#,
    },
    Case {
        wire: Wire::OpenAiResponses,
        body: r#"{"input":"Hi","instructions": null}"#,
        expected: r#"{"input":"Hi","instructions": "P\"1\n\nS\n1"}"#,
    },
    Case {
        wire: Wire::OpenAiResponses,
        body: r#"{"previous_response_id":"r","instructions":"Be brief.","input":[]}"#,
        expected: r#"{"previous_response_id":"r","instructions":"P\"1\n\nBe brief.\n\nS\n1","input":[]}"#,
    },
];

const AROUND_INPUTS: &[Case] = &[
    Case {
        wire: Wire::Anthropic,
        body: r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"},{"role":"user","content":[{"type":"text","text":"Go","cache_control":{"type":"ephemeral"}}]}]}"#,
        expected: r#"{"messages":[{"role":"user","content":[{"text":"before","type":"text"},{"type":"text","text":"Hi"},{"text":"after","type":"text"}]},{"role":"assistant","content":"Yes?"},{"role":"user","content":[{"text":"before","type":"text"},{"type":"text","text":"Go","cache_control":{"type":"ephemeral"}},{"text":"after","type":"text"}]}]}"#,
    },
    // Results of calls continue a turn.
    Case {
        wire: Wire::Anthropic,
        body: r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"text","text":"y"}]}]}"#,
        expected: r#"{"messages":[{"role":"user","content":[{"text":"before","type":"text"},{"type":"text","text":"Hi"},{"text":"after","type":"text"}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"text","text":"y"}]}]}"#,
    },
    Case {
        wire: Wire::OpenAiChat,
        body: r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"two"}]}]}"#,
        expected: r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"before\n\none"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"two"},{"text":"after","type":"text"}]}]}"#,
    },
    Case { wire: Wire::OpenAiResponses, body: r#"{"input":"Hi"}"#, expected: r#"{"input":"before\n\nHi\n\nafter"}"# },
    Case {
        wire: Wire::OpenAiResponses,
        body: r#"{"input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}]}"#,
        expected: r#"{"input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"text":"before","type":"input_text"},{"type":"input_text","text":"Hi"},{"text":"after","type":"input_text"}]}]}"#,
    },
];

fn is_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn text_has_its_place_and_no_other_byte_changes() {
    let tables =
        [(AROUND_INSTRUCTIONS, &SYSTEM[..]), (AROUND_INPUTS, &[Position::UserPrefix, Position::UserSuffix][..])];
    for (cases, positions) in tables {
        for Case { wire, body, expected } in cases {
            let memory = Mutex::new(Memory::default());
            for time in ["first", "again", "without the memory"] {
                let memory = if time == "without the memory" { &Mutex::new(Memory::default()) } else { &memory };
                let (body, notices) = added(&given(positions), &none(), memory, *wire, body);
                is_json(&body);
                // The keys of inserted objects have no defined order.
                assert_eq!(in_order(&body), in_order(expected), "{time}");
                assert!(notices.is_empty(), "{notices:?}");
            }
            let (same, _) = added(&given(&[]), &none(), &memory, *wire, body);
            assert_eq!(same, *body, "nothing is inserted where no plugin has an addition");
        }
    }
}

/// Writes blocks that are inserted with their members in one order.
fn in_order(body: &str) -> String {
    let mut body = body.to_owned();
    for (kind, text) in ["text", "input_text"].iter().flat_map(|kind| POSITIONS.map(|(_, text)| (kind, text))) {
        let text = Value::from(text);
        body = body.replace(
            &format!("{{\"text\":{text},\"type\":\"{kind}\"}}"),
            &format!("{{\"type\":\"{kind}\",\"text\":{text}}}"),
        );
    }
    let system = Value::from("P\"1\n\nS\n1");
    body.replace(
        &format!("{{\"content\":{system},\"role\":\"system\"}}"),
        &format!("{{\"role\":\"system\",\"content\":{system}}}"),
    )
}

/// Returns a request with these messages in turn: of the user, the model, the user.
fn conversation(wire: Wire, said: &[&str]) -> String {
    let message =
        |(at, text): (usize, &&str)| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": text});
    let messages: Vec<Value> = said.iter().enumerate().map(message).collect();
    match wire {
        Wire::OpenAiResponses => json!({"instructions": "i", "input": messages}),
        Wire::OpenAiChat => {
            let system = json!({"role": "system", "content": "i"});
            json!({"messages": std::iter::once(system).chain(messages).collect::<Vec<_>>()})
        }
        Wire::Anthropic => json!({"system": "i", "messages": messages}),
    }
    .to_string()
}

/// Each request of a conversation begins with the bytes of the one before it, on one instance, on another one with its memory, and on one
/// without.
#[test]
fn a_conversation_has_the_same_bytes_in_each_request() {
    let said = ["a", "b", "a", "c", "d"];
    for wire in WIRES {
        let (given, memory) = (given(&ALL), Mutex::new(Memory::default()));
        let mut before: Option<String> = None;
        for number in [1, 3, 5] {
            let body = conversation(wire, &said[..number]);
            let (body, _) = added(&given, &none(), &memory, wire, &body);
            let stored = serde_json::to_string(&*memory.lock().unwrap()).unwrap();
            let other = Mutex::new(serde_json::from_str::<Memory>(&stored).unwrap());
            for memory in [other, Mutex::default()] {
                assert_eq!(added(&given, &none(), &memory, wire, &conversation(wire, &said[..number])).0, body);
            }
            if let Some(before) = before {
                // Up to the end of the list of messages.
                let end = before.rfind(']').unwrap();
                assert_eq!(body[..end], before[..end], "{wire:?}");
            }
            before = Some(body);
        }
    }
}

fn when_state(key: &str) -> Vec<Condition> {
    vec![Condition::StateValue { key: key.into(), test: StateTest::Equals(StateValue::Text("yes".into())) }]
}

fn with_state(state: &KeptState) -> Arc<Caller> {
    caller(vec![Plugin { id: "notes", state: Some(Arc::clone(state)), ..Plugin::default() }], false)
}

/// A condition is decided once: around the instructions for a turn, around an input for ever.
#[test]
fn what_a_condition_has_decided_stays() {
    let additions = [
        addition(0, Position::SystemSuffix, "SYSTEM", when_state("a")),
        addition(1, Position::UserSuffix, "USER", when_state("a")),
    ];
    for wire in WIRES {
        let state: KeptState = Arc::default();
        let (caller, memory) = (with_state(&state), Mutex::new(Memory::default()));
        let sent = |said: &[&str], turn| {
            let (body, notices) = added(&of(&additions, turn), &caller, &memory, wire, &conversation(wire, said));
            assert_eq!(notices, [""; 0]);
            (body.matches("SYSTEM").count(), body.matches("USER").count())
        };
        let set = |value: &[u8]| state.lock().unwrap().insert("a".into(), value.to_vec());
        assert_eq!(sent(&["one"], 1), (0, 0), "{wire:?}");
        set(b"\"yes\"");
        assert_eq!(sent(&["one"], 1), (0, 0), "{wire:?}: the turn goes on");
        assert_eq!(sent(&["one", "b", "two"], 2), (1, 1), "{wire:?}");
        set(b"\"no\"");
        assert_eq!(sent(&["one", "b", "two"], 2), (1, 1), "{wire:?}: the turn goes on");
        assert_eq!(sent(&["one", "b", "two", "c", "three"], 3), (0, 1), "{wire:?}: it stays around its input");
    }
}

/// One row for each kind of condition.
#[test]
fn conditions_get_what_the_conversation_has() {
    let context = |field: fn(&mut ContextMatch), _: ()| {
        let mut wanted = ContextMatch::default();
        field(&mut wanted);
        vec![Condition::ContextMatch(wanted)]
    };
    let tag = |name: &str| vec![Condition::TagPresent(TagPattern::Exact(name.into()))];
    for (name, when, expected) in [
        ("model", context(|one| one.model = Some("m-*".into()), ()), Ok(true)),
        ("another model", context(|one| one.model = Some("n-*".into()), ()), Ok(false)),
        ("agent", context(|one| one.agent = Some("main".into()), ()), Ok(true)),
        ("workspace", context(|one| one.workspace = Some("/w/**".into()), ()), Ok(true)),
        ("turn", context(|one| one.turn = "2..".parse().ok(), ()), Ok(true)),
        ("another turn", context(|one| one.turn = "1".parse().ok(), ()), Ok(false)),
        ("tag of the input", tag("plan"), Ok(true)),
        ("tag of the answer", tag("note"), Ok(true)),
        ("tag of an earlier input", tag("old"), Ok(false)),
        ("state that cannot be read", when_state("a"), Err("its state `a` cannot be read")),
    ] {
        for wire in WIRES {
            let body = conversation(wire, &["<old>x</old>", "<note>y</note>", "do <plan>z</plan>"]);
            let given = of(&[addition(0, Position::SystemPrefix, "ADDED", when.clone())], 2);
            let caller = caller(vec![Plugin { id: "notes", ..Plugin::default() }], false);
            let memory = Mutex::new(Memory::default());
            let (body, notices) = added(&given, &caller, &memory, wire, &body);
            assert_eq!(body.contains("ADDED"), expected == Ok(true), "{name}, {wire:?}: {body}");
            match expected {
                Ok(_) => assert!(notices.is_empty(), "{name}: {notices:?}"),
                Err(why) => {
                    let told = notices.first().map(String::as_str).unwrap_or_default();
                    assert!(told.starts_with("prompt addition 1 of plugin `notes` is left out") && told.contains(why));
                    let (_, again) = added(&given, &caller, &memory, wire, &body);
                    assert!(again.is_empty(), "{name}: it is reported once in a turn");
                }
            }
        }
    }
}

/// Another text of a plugin is in the instructions at once, and around inputs from the next one on; a plugin that is gone leaves nothing.
#[test]
fn a_changed_plugin_does_not_change_earlier_inputs() {
    let with = |text: &str| {
        of(
            &[
                addition(0, Position::SystemSuffix, &format!("system {text}"), Vec::new()),
                addition(1, Position::UserPrefix, &format!("user {text}"), Vec::new()),
            ],
            1,
        )
    };
    for wire in WIRES {
        let memory = Mutex::new(Memory::default());
        let sent = |given: &Given, said: &[&str]| added(given, &none(), &memory, wire, &conversation(wire, said)).0;
        let said = ["a", "b", "c"];
        assert!(sent(&with("old"), &said[..1]).contains("user old"));
        let body = sent(&with("new"), &said);
        for (text, times) in [("system old", 0), ("system new", 1), ("user old", 1), ("user new", 1)] {
            assert_eq!(body.matches(text).count(), times, "{wire:?}, {text}: {body}");
        }
        assert_eq!(sent(&of(&[], 1), &said), conversation(wire, &said));
    }
}

/// Guidance is about the tools that the request offers, behind the instructions and before what plugins put there.
#[test]
fn guidance_is_about_the_tools_of_the_client() {
    let tools = [
        (
            Wire::Anthropic,
            json!([{"name": "Bash", "input_schema": {}}, {"type": "web_search_20260101", "name": "web_search"}]),
        ),
        (
            Wire::OpenAiChat,
            json!([{"type": "function", "function": {"name": "Bash"}}, {"type": "custom", "custom": {"name": "web_search"}}]),
        ),
        (Wire::OpenAiResponses, json!([{"type": "function", "name": "Bash"}, {"type": "web_search"}])),
    ];
    for (wire, tools) in tools {
        let guide: tidegate_gateway::Guide =
            Arc::new(|names: &[String]| (!names.is_empty()).then(|| format!("Prefer {}.", names.join(" and "))));
        let given = Given { guide: Some(guide), ..given(&[Position::SystemSuffix]) };
        let memory = Mutex::new(Memory::default());
        let mut body: Value = is_json(&conversation(wire, &["Hi"]));
        let (without, _) = added(&given, &none(), &memory, wire, &body.to_string());
        assert!(!without.contains("Prefer"), "{without}");
        body["tools"] = tools;
        let (with, _) = added(&given, &none(), &memory, wire, &body.to_string());
        assert!(with.contains(r"i\n\nPrefer Bash and web_search.\n\nS\n1"), "{with}");
    }
}

/// What is no request with a conversation stays as it is.
#[test]
fn nothing_is_added_elsewhere() {
    for wire in WIRES {
        for body in ["", "{", "[]", "{}", "null", r#"{"messages":{},"input":7}"#] {
            let (sent, notices) = added(&given(&ALL), &none(), &Mutex::default(), wire, body);
            assert_eq!((sent.as_str(), notices.len()), (body, 0));
        }
    }
    let body = r#"{"system":7,"messages":[]}"#;
    let (sent, notices) = added(&given(&ALL), &none(), &Mutex::default(), Wire::Anthropic, body);
    assert_eq!((sent.as_str(), notices.len()), (body, 1));
}
