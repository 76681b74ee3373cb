//! Callbacks of extensions on what a client sends and receives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{EventSink, ExtensionHost as _, Extensions};
use flow::{
    CallAnswer, Callback, EventKind, InputAnswer, Message, OutputAnswer, OutputMode, Part, Registration, ResultAnswer,
    RunPosition, TagAnswer, TagPattern, TextAnswer, TextOptions, TextUnit,
};
use guard::{Caller, Events};
use rules::{RuleSession, RuleSet};
use serde_json::{Value, json};
use tidegate_gateway::{Exchange, Filtered, Memory, Next, Prepared, Then, prepare};
use tidegate_kit::{Plugin, Plugins, ready, rule_set};
use wire::Wire;

use crate::script::{CUTS, Said, WIRES, read, stream, whole};

#[derive(Default)]
struct Ears(Mutex<Vec<EventKind>>);

impl EventSink for Ears {
    fn emit(&self, kind: EventKind) {
        self.0.lock().unwrap().push(kind);
    }
}

impl Events for Ears {
    fn place(&self) -> RunPosition {
        RunPosition { turn: 1, step: 1, attempt: 1 }
    }
}

pub(crate) fn caller(plugins: Vec<Plugin>, whole: bool) -> Arc<Caller> {
    let plugins = Plugins::new(plugins);
    let mut registered: Vec<Registration> = plugins.registrations().to_vec();
    for one in registered.iter_mut().flat_map(|one| &mut one.callbacks) {
        one.whole_requests = whole && one.callback == Callback::InputMessages;
    }
    Arc::new(Caller::new(registered.into(), plugins as Arc<dyn Extensions>, Arc::new(Ears::default())))
}

/// `key` becomes `MASK` on the way up, and the other way round on the way down.
pub(crate) fn mask(asked: &Arc<Mutex<Vec<String>>>) -> Plugin {
    let (inputs, results) = (Arc::clone(asked), Arc::clone(asked));
    Plugin {
        id: "mask",
        callbacks: vec![
            (Callback::InputMessages, 50),
            (Callback::PlainText(TextUnit::Line.into()), 50),
            (Callback::ToolCall, 50),
            (Callback::ToolResult, 50),
        ],
        closed: true,
        input: Some(Box::new(move |messages: Vec<Message>| {
            let mut messages = messages;
            for message in &mut messages {
                inputs.lock().unwrap().push(format!("{} {}", message.role.as_str(), message.plain_text()));
                for part in &mut message.parts {
                    if let Part::Text(text) = part {
                        *text = text.replace("key", "MASK");
                    }
                }
            }
            Ok(InputAnswer::Replace(messages))
        })),
        text: Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.replace("MASK", "key"))))),
        call: Some(Box::new(|asked| Ok(CallAnswer::Replace(asked.call.arguments.replace("MASK", "key"))))),
        result: Some(Box::new(move |given| {
            results.lock().unwrap().push(format!("result of {} {}", given.call.name, given.content.join("|")));
            let content = given.content.iter().map(|text| text.replace("key", "MASK")).collect();
            Ok(ResultAnswer { replace: Some((content, None)), ..ResultAnswer::default() })
        })),
        ..Plugin::default()
    }
}

pub(crate) fn sent(caller: &Caller, memory: &Mutex<Memory>, wire: Wire, body: &str) -> String {
    match ready(prepare(caller, memory, wire, &body.to_owned().into(), None)) {
        Prepared::Ask(body) => String::from_utf8(body.to_vec()).unwrap(),
        other => panic!("{body}: {other:?}"),
    }
}

pub(crate) fn none() -> Arc<RuleSet> {
    rule_set(&[], |_| ())
}

/// Plays an exchange in which each request gets the next of `answers`. Returns what the client received, and the bodies that went upstream.
pub(crate) fn play(
    caller: &Arc<Caller>,
    memory: &Arc<Mutex<Memory>>,
    (wire, set): (Wire, &Arc<RuleSet>),
    body: &str,
    answers: &[Vec<u8>],
    (is_stream, cut): (bool, usize),
) -> (Vec<u8>, Vec<String>) {
    let exchange = Exchange::new(wire, body.to_owned().into(), "m", RuleSession::new(Arc::clone(set)));
    let mut own = Filtered::new(exchange, "m", Some(Arc::clone(caller)), Arc::clone(memory));
    let (mut got, mut requests) = (Vec::new(), Vec::new());
    for answer in answers {
        requests.push(String::from_utf8(own.request().unwrap().to_vec()).unwrap());
        own.begin(is_stream);
        let mut then = Then::More;
        for bytes in answer.chunks(cut) {
            let next = ready(own.receive(bytes, Duration::ZERO));
            got.extend(next.send);
            then = next.then;
            if then != Then::More {
                break;
            }
        }
        if then == Then::More {
            let Next { send, then: end } = ready(own.end(Duration::ZERO));
            got.extend(send);
            then = end;
        }
        if then == Then::End {
            own.finish();
            return (got, requests);
        }
        assert_eq!(then, Then::Ask);
    }
    panic!("more was asked than there are answers");
}

fn list(wire: Wire) -> &'static str {
    if wire == Wire::OpenAiResponses { "input" } else { "messages" }
}

/// Returns a conversation of a client: its first message, and the messages of which it consists after the answer `said`.
pub(crate) fn first(wire: Wire) -> String {
    format!(
        "{{\"model\":\"m\", \"stream\" : true, \"{}\": [ {{\"role\":\"user\",\"content\":\"My key, 1.0\"}} ],\"n\":1.0}}",
        list(wire)
    )
}

fn second(wire: Wire) -> String {
    let messages = match wire {
        Wire::Anthropic => {
            r#"[ {"role":"user","content":"My key, 1.0"} ,{"role":"assistant","content":[{"type":"text","text":"Your key\nis a key."},{"type":"tool_use","id":"toolu_1_1","name":"write","input":{"k":"key"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_1","content":[{"type":"text","text":"has key"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"key="}}]},{"type":"text","text":"key too","cache_control":{"type":"ephemeral"}}]}]"#
        }
        Wire::OpenAiChat => {
            r#"[ {"role":"user","content":"My key, 1.0"} ,{"role":"assistant","content":"Your key\nis a key.","tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"write","arguments":"{\"k\": \"key\"}"}}]},
            {"role":"tool","tool_call_id":"call_1_0","content":"has key"},{"role":"user","content":[{"type":"text","text":"key too"},{"type":"image_url","image_url":{"url":"data:image/png;base64,key="}}]}]"#
        }
        Wire::OpenAiResponses => {
            r#"[ {"role":"user","content":"My key, 1.0"} ,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Your key\nis a key."}]},{"type":"function_call","call_id":"call_1_1","name":"write","arguments":"{\"k\":\"key\"}"},
            {"type":"function_call_output","call_id":"call_1_1","output":"has key"},{"role":"user","content":[{"type":"input_text","text":"key too"}]}]"#
        }
    };
    format!("{{\"model\":\"m\", \"stream\" : true, \"{}\": {messages},\"n\":1.0}}", list(wire))
}

const SAID: [Said<'static>; 2] = [Said::Text("Your MASK\nis a MASK."), Said::Call("{\"k\":\"MASK\"}")];

#[test]
fn what_is_masked_goes_up_masked_and_comes_down_whole() {
    for wire in WIRES {
        for step in [1, 4, 100] {
            for cut in CUTS {
                let asked = Arc::new(Mutex::new(Vec::new()));
                let (caller, memory) = (caller(vec![mask(&asked)], true), Arc::new(Mutex::new(Memory::default())));
                let up = sent(&caller, &memory, wire, &first(wire));
                assert_eq!(up, first(wire).replace("key", "MASK"));
                let answer = stream(wire, 1, &SAID, step);
                let (got, _) = play(&caller, &memory, (wire, &none()), &up, &[answer], (true, cut));
                let text = String::from_utf8_lossy(&got);
                assert_eq!(
                    read(wire, &got),
                    ("Your key\nis a key.".to_owned(), vec!["{\"k\":\"key\"}".to_owned()]),
                    "{text}"
                );
                assert!(!text.contains("MASK"), "{text}");
                let up = sent(&caller, &memory, wire, &second(wire));
                // What is no text, and the data of pictures, is as it was; so is the call as the model has written it.
                let expected = second(wire)
                    .replace("key", "MASK")
                    .replace("base64,MASK", "base64,key")
                    .replace("\"MASK=\"", "\"key=\"");
                let expected = expected.replace("\\\"k\\\": \\\"", "\\\"k\\\":\\\"");
                assert_eq!(up, expected);
                let asked = std::mem::take(&mut *asked.lock().unwrap());
                assert_eq!(asked, ["user My key, 1.0", "user key too", "result of write has key"]);
                assert_eq!(sent(&caller, &memory, wire, &second(wire)), up);
            }
        }
    }
}

#[test]
fn a_whole_body_is_changed_in_its_strings_alone() {
    for wire in WIRES {
        let asked = Arc::default();
        let (caller, memory) = (caller(vec![mask(&asked)], true), Arc::default());
        let answer = whole(wire, &SAID);
        let (got, _) = play(&caller, &memory, (wire, &none()), &first(wire), std::slice::from_ref(&answer), (false, 7));
        assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(answer).unwrap().replace("MASK", "key"));
    }
}

/// Without its memory, what a client has is masked all the same before it leaves, in the same places.
#[test]
fn what_the_memory_does_not_know_is_masked_too() {
    for wire in WIRES {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let caller = caller(vec![mask(&asked)], true);
        let system = match wire {
            Wire::Anthropic => "\"system\":[{\"type\":\"text\",\"text\":\"A key\\n\"}],",
            Wire::OpenAiChat => "",
            Wire::OpenAiResponses => "\"instructions\":\"A key\\n\",",
        };
        let tools = "\"tools\":[{\"name\":\"key\",\"description\":\"with key\",\"input_schema\":{\"properties\":{\"a\":{\"enum\":[\"the key\"]}}}}],";
        let body = second(wire).replacen('{', &format!("{{{system}{tools}\"metadata\":{{\"user_id\":\"key\"}},"), 1);
        let up = sent(&caller, &Mutex::default(), wire, &body);
        let expected =
            body.replace("key", "MASK").replace("base64,MASK", "base64,key").replace("\"MASK=\"", "\"key=\"");
        let expected = expected
            .replace("\"name\":\"MASK\"", "\"name\":\"key\"")
            .replace("\"user_id\":\"MASK\"", "\"user_id\":\"key\"");
        assert_eq!(up, expected);
        assert!(asked.lock().unwrap().iter().any(|one| one.starts_with("assistant Your key")), "{asked:?}");
    }
}

#[test]
fn what_no_callback_changes_keeps_its_bytes() {
    for wire in WIRES {
        let asked = Arc::default();
        let (caller, memory) = (caller(vec![mask(&asked)], true), Arc::default());
        let body = second(wire).replace("key", "x");
        assert_eq!(sent(&caller, &memory, wire, &body), body);
        for cut in CUTS {
            let answer = stream(wire, 1, &[Said::Thinking("Hm."), Said::Text("One.\nTwo"), Said::Call("{\"a\":1}")], 3);
            let (got, _) = play(&caller, &memory, (wire, &none()), &body, std::slice::from_ref(&answer), (true, cut));
            assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(answer).unwrap());
        }
    }
}

#[test]
fn a_stop_between_the_parts_of_a_text_changes_nothing_about_it() {
    let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever say it.")], |_| ());
    for wire in WIRES {
        for cut in CUTS {
            let asked = Arc::default();
            let (caller, memory) = (caller(vec![mask(&asked)], true), Arc::default());
            let answers =
                [stream(wire, 1, &[Said::Text("A MA forbidden")], 3), stream(wire, 2, &[Said::Text("SK here.")], 3)];
            let (got, requests) = play(&caller, &memory, (wire, &set), &first(wire), &answers, (true, cut));
            let (text, _) = read(wire, &got);
            assert!(!text.contains("forb") && text.ends_with("here."), "{text}");
            assert!(requests[1].contains("A MA"), "{}", requests[1]);
        }
    }
}

/// Returns a plugin with one callback.
pub(crate) fn plugin(callback: Callback) -> Plugin {
    Plugin { id: "p", callbacks: vec![(callback, 50)], ..Plugin::default() }
}

#[test]
fn a_call_that_is_denied_is_made_again() {
    for wire in WIRES {
        for (is_stream, cut) in [(true, 3), (true, 1 << 20), (false, 9)] {
            let mut own = plugin(Callback::ToolCall);
            own.call = Some(Box::new(|asked| {
                let deny = || CallAnswer::Deny { reason: "no writing to a".to_owned(), shown: None };
                Ok(if asked.call.arguments.contains("\"a\"") { deny() } else { CallAnswer::Pass })
            }));
            let caller = caller(vec![own], false);
            let make =
                |said: &[Said<'_>], number| if is_stream { stream(wire, number, said, 4) } else { whole(wire, said) };
            let answers = [
                make(&[Said::Text("I write."), Said::Call("{\"p\":\"a\"}")], 1),
                make(&[Said::Text("Then b."), Said::Call("{\"p\":\"b\"}")], 2),
            ];
            let (got, requests) =
                play(&caller, &Arc::default(), (wire, &none()), &first(wire), &answers, (is_stream, cut));
            let text = String::from_utf8_lossy(&got);
            assert!(!text.contains("\"a\"") && !text.contains("\\\"a\\\""), "{text}");
            assert_eq!(requests.len(), 2);
            assert!(requests[1].contains("no writing to a") && !requests[0].contains("no writing"), "{}", requests[1]);
            if is_stream {
                assert_eq!(read(wire, &got), ("I write.Then b.".to_owned(), vec!["{\"p\":\"b\"}".to_owned()]));
            }
        }
    }
}

#[test]
fn a_text_of_which_nothing_is_left_leaves_no_empty_block() {
    for wire in WIRES {
        for cut in CUTS {
            let mut own = plugin(Callback::Tag(vec![TagPattern::Exact("note".into())]));
            own.tag = Some(Box::new(|_| Ok(TagAnswer::Replace(String::new()))));
            let caller = caller(vec![own], false);
            let said = [Said::Text("<note>x</note>"), Said::Call("{}"), Said::Text("Done.")];
            let answer = stream(wire, 1, &said, 3);
            let (got, _) = play(&caller, &Arc::default(), (wire, &none()), &first(wire), &[answer], (true, cut));
            let text = String::from_utf8_lossy(&got);
            assert_eq!(read(wire, &got), ("Done.".to_owned(), vec!["{}".to_owned()]), "{text}");
            if wire == Wire::Anthropic {
                let starts = text.lines().filter(|line| line.contains("\"type\":\"content_block_start\""));
                let indexes: Vec<bool> =
                    starts.enumerate().map(|(at, line)| line.contains(&format!("\"index\":{at}"))).collect();
                assert_eq!(indexes, [true, true], "{text}");
            }
        }
    }
}

#[test]
fn a_rewriter_gets_the_whole_answer_before_the_client_gets_any() {
    for wire in WIRES {
        for (is_stream, cut) in [(true, 1), (true, 64), (false, 64)] {
            let mut own = plugin(Callback::LlmOutput(OutputMode::Rewrite));
            own.output = Some(Box::new(|output| {
                assert_eq!(output.text, "One.\nTwo.");
                Ok(OutputAnswer { replace: Some("Three.".to_owned()), ..OutputAnswer::default() })
            }));
            let caller = caller(vec![own], false);
            let said = [Said::Text("One.\nTwo.")];
            let answer = if is_stream { stream(wire, 1, &said, 2) } else { whole(wire, &said) };
            let memory: Arc<Mutex<Memory>> = Arc::default();
            let (got, _) = play(&caller, &memory, (wire, &none()), &first(wire), &[answer], (is_stream, cut));
            let text = String::from_utf8_lossy(&got);
            assert!(text.contains("Three.") && !text.contains("One.") && !text.contains("Two."), "{text}");
            // What the model wrote is what it gets again.
            let next = format!(
                "{{\"{}\":[{{\"role\":\"user\",\"content\":\"a\"}},{{\"role\":\"assistant\",\"content\":\"Three.\"}}]}}",
                list(wire)
            );
            let up = sent(&caller, &memory, wire, &next);
            assert_eq!(up, next.replace("Three.", "One.\\nTwo."), "{wire:?}");
        }
    }
}

#[test]
fn what_the_client_was_shown_stays_where_that_is_kept() {
    for wire in WIRES {
        let mut own = plugin(Callback::PlainText(TextUnit::Line.into()));
        own.keeps_shown = true;
        own.text = Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.replace("secret", "***")))));
        let (caller, memory) = (caller(vec![own], false), Arc::<Mutex<Memory>>::default());
        let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever say it.")], |_| ());
        let answers =
            [stream(wire, 1, &[Said::Text("A secret.\nNow forbidden")], 3), stream(wire, 2, &[Said::Text("Fine.")], 3)];
        let (got, requests) = play(&caller, &memory, (wire, &set), &first(wire), &answers, (true, 5));
        assert_eq!(read(wire, &got).0, "A ***.\nFine.");
        assert!(requests[1].contains("A ***.") && !requests[1].contains("secret"), "{}", requests[1]);
        let next = format!("{{\"{}\":[{{\"role\":\"assistant\",\"content\":\"A ***.\\nFine.\"}}]}}", list(wire));
        assert_eq!(sent(&caller, &memory, wire, &next), next);
    }
}

#[test]
fn an_extension_replies_and_rejects_in_the_protocol_of_the_client() {
    for wire in WIRES {
        for is_stream in [true, false] {
            let mut own = plugin(Callback::InputMessages);
            own.callbacks.push((Callback::PlainText(TextUnit::Line.into()), 50));
            own.text = Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.to_uppercase()))));
            own.input = Some(Box::new(|messages: Vec<Message>| {
                let said = messages[0].plain_text();
                Ok(if said.contains("reply") {
                    InputAnswer::Reply("Hello.".into())
                } else {
                    InputAnswer::Reject("Not that.".into())
                })
            }));
            let caller = caller(vec![own], false);
            for word in ["reply", "reject"] {
                let body = format!("{{\"{}\":[{{\"role\":\"user\",\"content\":\"{word}\"}}]}}", list(wire));
                let exchange = Exchange::new(wire, body.clone().into(), "m", RuleSession::new(none()));
                let mut own = Filtered::new(exchange, "m", Some(Arc::clone(&caller)), Arc::default());
                let next = match ready(prepare(&caller, &Mutex::default(), wire, &body.into(), None)) {
                    Prepared::Reply(words) => ready(own.reply(&words, is_stream)),
                    Prepared::Refused { words, notice } => {
                        assert!(
                            notice.contains("`p` rejected it in `on_input_messages`") && !notice.contains("Not that")
                        );
                        own.refuse(&words, notice, is_stream)
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!(next.then, Then::End);
                let text = String::from_utf8_lossy(&next.send);
                let expected =
                    if word == "reply" { "HELLO." } else { "because the extension `p` rejected it: Not that." };
                assert!(text.contains(expected), "{text}");
                if is_stream {
                    assert!(read(wire, &next.send).0.contains(expected));
                } else {
                    serde_json::from_str::<Value>(&text).unwrap();
                }
            }
        }
    }
}

/// A guard that fails: nothing leaves, and nothing that it did not check is shown.
#[test]
fn a_guard_that_fails_fails_closed() {
    for wire in WIRES {
        for callback in [Callback::InputMessages, Callback::ToolResult] {
            for required in [false, true] {
                let mut own = plugin(callback.clone());
                (own.required, own.closed) = (required, !required);
                own.input = Some(Box::new(|_| Err("it trapped".to_owned())));
                own.result = Some(Box::new(|_| Err("it trapped".to_owned())));
                let caller = caller(vec![own], false);
                let Prepared::Refused { words, notice } =
                    ready(prepare(&caller, &Mutex::default(), wire, &second(wire).into(), None))
                else {
                    panic!("{callback:?} {required}");
                };
                assert!(
                    words.contains("[Tidegate: this request was not sent, because") && words.contains("`p`"),
                    "{words}"
                );
                assert!(notice.contains("`p`") && !notice.contains("trapped"), "{notice}");
            }
            let mut own = plugin(callback.clone());
            own.closed = true;
            let caller = caller(vec![own], false);
            let refused = ready(prepare(&caller, &Mutex::default(), wire, &"no JSON".to_owned().into(), None));
            assert!(
                matches!(&refused, Prepared::Refused { words, .. } if words.contains("it is no JSON")),
                "{refused:?}"
            );
        }
        for (is_stream, cut) in [(true, 1), (true, 1 << 20), (false, 7)] {
            let mut own = plugin(Callback::PlainText(TextUnit::Line.into()));
            own.required = true;
            own.text =
                Some(Box::new(
                    |(text, _)| if text.contains("bad") { Err("it trapped".to_owned()) } else { Ok(TextAnswer::Pass) },
                ));
            let caller = caller(vec![own], false);
            let said = [Said::Text("Fine.\nbad\n"), Said::Call("{}")];
            let answer = if is_stream { stream(wire, 1, &said, 2) } else { whole(wire, &said) };
            let (got, _) = play(&caller, &Arc::default(), (wire, &none()), &first(wire), &[answer], (is_stream, cut));
            let text = String::from_utf8_lossy(&got);
            assert!(!text.contains("bad") && !text.contains("write\""), "{text}");
            assert!(text.contains("because the extension `p` is required and failed"), "{text}");
            if is_stream {
                assert!(read(wire, &got).0.starts_with("Fine.\n"));
            }
        }
    }
}

#[test]
fn reasoning_is_changed_for_the_client_and_goes_back_as_it_was() {
    for wire in WIRES {
        for cut in CUTS {
            let mut own =
                plugin(Callback::PlainText(TextOptions { unit: TextUnit::Line, answer: false, thinking: true }));
            own.text = Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.replace("secret", "***")))));
            let (caller, memory) = (caller(vec![own], false), Arc::<Mutex<Memory>>::default());
            let answer = stream(wire, 1, &[Said::Thinking("A secret\nthought"), Said::Text("A secret.")], 3);
            let (got, _) = play(&caller, &memory, (wire, &none()), &first(wire), &[answer], (true, cut));
            let text = String::from_utf8_lossy(&got);
            assert_eq!(read(wire, &got).0, "A secret.");
            assert!(!text.contains("A secret\\n"), "{text}");
            if wire == Wire::Anthropic {
                let thinking = |words: &str| {
                    json!({"messages": [{"role": "assistant", "content": [
                    {"type": "thinking", "thinking": words, "signature": "sig"}]}]})
                    .to_string()
                };
                assert_eq!(sent(&caller, &memory, wire, &thinking("A ***\nthought")), thinking("A secret\nthought"));
            }
        }
    }
}
