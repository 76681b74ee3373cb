//! Answers whose events come in another order than clients show them, and texts that only an event has that usually repeats.

use serde_json::{Value, json};
use tidegate_gateway::Then;
use wire::Wire;

use crate::evasions::{anthropic, forbidden_in, responses};
use crate::script::{Said, play, read, stream};

/// A client puts parts in the order of their numbers, and takes a text from whichever event has it.
#[test]
fn no_order_and_no_repeat_gets_past() {
    let at = |kind: &str, item: u64, part: u64, more: Value| {
        let mut event = json!({"type": kind, "output_index": item, "content_index": part, "summary_index": part});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let streamed = |kind: &str, pieces: &[(u64, u64, &str)]| {
        let deltas = pieces.iter().map(|&(item, part, text)| at(kind, item, part, json!({"delta": text})));
        responses(&deltas.collect::<Vec<_>>())
    };
    let ends = |kind: &str, more: Value| responses(&[at(kind, 0, 0, more)]);
    let contradicted = |kind: &str, done: &str, more: Value| {
        responses(&[at(kind, 0, 0, json!({"delta": "Fine."})), at(done, 0, 0, more)])
    };
    let (text, refusal) = ("response.output_text.delta", "response.refusal.delta");
    let (summary, thought) = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta");
    let part = |kind: &str, key: &str| json!({"part": {"type": kind, key: "forbidden"}});
    let reasoning = |key: &str| json!({"type": "reasoning", "id": "i", key: [{"type": "text", "text": "forbidden"}]});
    let returns = [(0, 0, "forb"), (0, 1, "Fine."), (0, 0, "idden")];
    let items = [(0, 0, "forb"), (1, 0, "Fine."), (0, 0, "idden")];
    let backwards = [(1, 0, "idden"), (0, 0, "forb")];
    let blocks = |kind: &str, key: &str, order: [(u64, &str); 3]| {
        let block = |index: u64| json!({"type": "content_block_start", "index": index, "content_block": {"type": key, key: ""}});
        let delta = |(index, text): (u64, &str)| json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: text}});
        anthropic(&[&[block(0), block(1)][..], &order.map(delta)].concat())
    };
    let message =
        |id: &str, text: &str| json!({"type": "message", "id": id, "content": [{"type": "output_text", "text": text}]});
    let call = |id: &str, text: &str| json!({"type": "function_call", "id": id, "call_id": "c", "name": "write", "arguments": text});
    let thinking = |id: &str, text: &str| json!({"type": "reasoning", "id": id, "content": [{"type": "reasoning_text", "text": text}]});
    let done = |index: u64, item: Value| at("response.output_item.done", index, 0, json!({"item": item}));
    let after = |item: Value, then: Value| responses(&[done(0, item), then]);
    let cases: Vec<(&str, Wire, Vec<u8>)> = vec![
        (
            "another message with an id that has ended",
            Wire::OpenAiResponses,
            after(message("i", "Fine."), done(1, message("i", "forbidden"))),
        ),
        (
            "another call with an id that has ended",
            Wire::OpenAiResponses,
            after(call("i", "{}"), done(1, call("i", "{\"a\":\"forbidden\"}"))),
        ),
        (
            "other reasoning with an id that has ended",
            Wire::OpenAiResponses,
            after(thinking("i", "Fine."), done(1, thinking("i", "forbidden"))),
        ),
        (
            "a message that ends twice",
            Wire::OpenAiResponses,
            after(message("i", "Fine."), done(0, message("j", "forbidden"))),
        ),
        (
            "a call that ends twice",
            Wire::OpenAiResponses,
            after(call("i", "{}"), done(0, call("i", "{\"a\":\"forbidden\"}"))),
        ),
        (
            "a text after the end of its item",
            Wire::OpenAiResponses,
            after(message("i", "Fine."), at("response.output_text.done", 0, 1, json!({"text": "forbidden"}))),
        ),
        (
            "a part after the end of its item",
            Wire::OpenAiResponses,
            after(message("i", "Fine."), at("response.content_part.done", 0, 1, part("output_text", "text"))),
        ),
        (
            "a delta after the end of its item",
            Wire::OpenAiResponses,
            after(message("i", "Fine."), at(text, 0, 1, json!({"delta": "forbidden"}))),
        ),
        (
            "arguments after the end of their call",
            Wire::OpenAiResponses,
            after(
                call("i", "{}"),
                at("response.function_call_arguments.done", 0, 0, json!({"arguments": "{\"a\":\"forbidden\"}"})),
            ),
        ),
        (
            "reasoning after the end of its item",
            Wire::OpenAiResponses,
            after(thinking("i", "Fine."), at("response.reasoning_text.done", 0, 1, json!({"text": "forbidden"}))),
        ),
        (
            "a delta of reasoning after the end of its item",
            Wire::OpenAiResponses,
            after(thinking("i", "Fine."), at(thought, 0, 1, json!({"delta": "forbidden"}))),
        ),
        (
            "a part that only ends",
            Wire::OpenAiResponses,
            ends("response.content_part.done", part("output_text", "text")),
        ),
        (
            "a refusal that only ends",
            Wire::OpenAiResponses,
            ends("response.content_part.done", part("refusal", "refusal")),
        ),
        (
            "reasoning that only ends",
            Wire::OpenAiResponses,
            ends("response.content_part.done", part("reasoning_text", "text")),
        ),
        (
            "a summary that only ends",
            Wire::OpenAiResponses,
            ends("response.reasoning_summary_part.done", part("summary_text", "text")),
        ),
        (
            "a summary whose text only ends",
            Wire::OpenAiResponses,
            ends("response.reasoning_summary_text.done", json!({"text": "forbidden"})),
        ),
        (
            "an item of reasoning that only ends",
            Wire::OpenAiResponses,
            ends("response.output_item.done", json!({"item": reasoning("content")})),
        ),
        (
            "a summary that begins with text",
            Wire::OpenAiResponses,
            ends("response.reasoning_summary_part.added", part("summary_text", "text")),
        ),
        (
            "a part that ends otherwise",
            Wire::OpenAiResponses,
            contradicted(text, "response.content_part.done", part("output_text", "text")),
        ),
        (
            "reasoning that ends otherwise",
            Wire::OpenAiResponses,
            contradicted(thought, "response.reasoning_text.done", json!({"text": "forbidden"})),
        ),
        (
            "a part of reasoning that ends otherwise",
            Wire::OpenAiResponses,
            contradicted(thought, "response.content_part.done", part("reasoning_text", "text")),
        ),
        (
            "a summary that ends otherwise",
            Wire::OpenAiResponses,
            contradicted(summary, "response.reasoning_summary_part.done", part("summary_text", "text")),
        ),
        (
            "an item of reasoning that ends otherwise",
            Wire::OpenAiResponses,
            contradicted(summary, "response.output_item.done", json!({"item": reasoning("summary")})),
        ),
        (
            "an end with other reasoning",
            Wire::OpenAiResponses,
            contradicted(
                summary,
                "response.completed",
                json!({"response": {"id": "r", "output": [reasoning("summary")]}}),
            ),
        ),
        ("a part that continues after another", Wire::OpenAiResponses, streamed(text, &returns)),
        ("a refusal that continues after another", Wire::OpenAiResponses, streamed(refusal, &returns)),
        ("reasoning that continues after another part", Wire::OpenAiResponses, streamed(thought, &returns)),
        ("a summary that continues after another part", Wire::OpenAiResponses, streamed(summary, &returns)),
        ("an item that continues after another", Wire::OpenAiResponses, streamed(text, &items)),
        ("items in another order", Wire::OpenAiResponses, streamed(text, &backwards)),
        (
            "a block that continues after another",
            Wire::Anthropic,
            blocks("text_delta", "text", [(0, "forb"), (1, "Fine."), (0, "idden")]),
        ),
        (
            "blocks in another order",
            Wire::Anthropic,
            blocks("text_delta", "text", [(1, "idden"), (0, "forb"), (0, "")]),
        ),
        (
            "thinking that continues after another block",
            Wire::Anthropic,
            blocks("thinking_delta", "thinking", [(0, "forb"), (1, "Fine."), (0, "idden")]),
        ),
    ];
    let set = forbidden_in("\"text\", \"thinking\", \"tool\"", "");
    for (case, wire, answer) in cases {
        let fine = stream(wire, 2, &[Said::Text("Good.")], 100);
        for cut in [1, 1 << 20] {
            let seen = play(wire, &set, &[answer.clone(), fine.clone()], true, cut);
            let text = String::from_utf8_lossy(&seen.bytes);
            assert!(!(text.contains("forb") && text.contains("idden")) && seen.then == Then::End, "{case}: {text}");
            let (shown, _) = read(wire, &seen.bytes);
            assert!(shown.contains("Good.") || shown.contains("[Tidegate:"), "{case}: {text}");
        }
    }
}
