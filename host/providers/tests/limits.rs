//! An answer has an end: every limit holds in every wire format at every cut, and the error says which and how much.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use flow::{Delta, ErrorClass, ModelError};
use serde_json::json;
use wire::{AnswerDecoder, AnswerLimits, Wire};

use crate::classes::class_of;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn small() -> AnswerLimits {
    AnswerLimits { block_bytes: 100, answer_bytes: 250, blocks: 6, calls: 4, wire_bytes: 20_000 }
}

fn event(value: &serde_json::Value) -> String {
    format!("data: {value}\n\n")
}

/// A block begins: text, or a call; where the format has no such event, the first chunk does it.
fn begin(wire: Wire, at: usize, call: bool) -> String {
    match wire {
        Wire::Anthropic if call => event(&json!({"type": "content_block_start", "index": at,
            "content_block": {"type": "tool_use", "id": format!("c{at}"), "name": "t", "input": {}}})),
        Wire::Anthropic => {
            event(&json!({"type": "content_block_start", "index": at, "content_block": {"type": "text"}}))
        }
        Wire::OpenAiChat if call => event(&json!({"choices": [{"delta": {"tool_calls":
            [{"index": at, "id": format!("c{at}"), "function": {"name": "t"}}]}}]})),
        // Text and thinking by turns are blocks of their own.
        Wire::OpenAiChat if at.is_multiple_of(2) => event(&json!({"choices": [{"delta": {"content": "a"}}]})),
        Wire::OpenAiChat => event(&json!({"choices": [{"delta": {"reasoning": "a"}}]})),
        Wire::OpenAiResponses => {
            let kind = if call { "function_call" } else { "reasoning" };
            event(&json!({"type": "response.output_item.added", "output_index": at,
                "item": {"type": kind, "id": format!("i{at}"), "call_id": format!("c{at}"), "name": "t"}}))
        }
    }
}

fn more(wire: Wire, at: usize, call: bool, text: &str) -> String {
    event(&match wire {
        Wire::Anthropic if call => json!({"type": "content_block_delta", "index": at,
            "delta": {"type": "input_json_delta", "partial_json": text}}),
        Wire::Anthropic => json!({"type": "content_block_delta", "index": at,
            "delta": {"type": "text_delta", "text": text}}),
        Wire::OpenAiChat if call => json!({"choices": [{"delta": {"tool_calls":
            [{"index": at, "function": {"arguments": text}}]}}]}),
        Wire::OpenAiChat => json!({"choices": [{"delta": {"content": text}}]}),
        Wire::OpenAiResponses if call => json!({"type": "response.function_call_arguments.delta",
            "output_index": at, "delta": text}),
        Wire::OpenAiResponses => json!({"type": "response.reasoning_text.delta", "output_index": at, "delta": text}),
    })
}

fn decode(wire: Wire, bytes: &[u8], cut: usize) -> (usize, Option<ModelError>) {
    let mut decoder = AnswerDecoder::with_limits(wire, small());
    let error = bytes.chunks(cut).find_map(|chunk| decoder.push(chunk).err());
    let pieces = std::iter::from_fn(|| decoder.next_delta());
    let given = pieces.map(|delta| if let Delta::Piece { text, .. } = delta { text.len() } else { 0 }).sum();
    (given, error)
}

/// The same error at every cut; gives it and the bytes that came before it.
fn refused(wire: Wire, stream: &str) -> (usize, String) {
    let whole = decode(wire, stream.as_bytes(), stream.len());
    for cut in [1, 7] {
        assert_eq!(decode(wire, stream.as_bytes(), cut), whole, "{wire:?}");
    }
    let error = whole.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Permanent);
    (whole.0, error.message)
}

#[test]
fn a_block_without_end_is_ended() {
    for wire in WIRES {
        for call in [false, true] {
            let piece = "0123456789";
            let stream = begin(wire, 0, call) + &more(wire, 0, call, piece).repeat(12);
            let (given, message) = refused(wire, &stream);
            assert!(message.contains("bytes in one block, the limit is 100 (`block_bytes`"), "{wire:?}: {message}");
            assert!((91..=100).contains(&given), "{wire:?}: {given}");
        }
    }
}

#[test]
fn blocks_without_end_are_ended() {
    for wire in WIRES {
        let many: String = (0..8).map(|at| begin(wire, at, false)).collect();
        let (_, message) = refused(wire, &many);
        assert!(message.contains("7 blocks, the limit is 6 (`blocks`"), "{wire:?}: {message}");
        let calls: String = (0..8).map(|at| begin(wire, at, true)).collect();
        let (_, message) = refused(wire, &calls);
        assert!(message.contains("5 tool calls, the limit is 4 (`calls`"), "{wire:?}: {message}");
        let large: String = (0..4).map(|at| begin(wire, at, true) + &more(wire, at, true, &"x".repeat(90))).collect();
        let (given, message) = refused(wire, &large);
        assert!(message.contains(" bytes in all blocks, the limit is 250 (`answer_bytes`"), "{message}");
        assert_eq!(given, 180, "{wire:?}");
    }
}

#[test]
fn a_body_without_end_is_ended() {
    for wire in WIRES {
        let (given, message) = refused(wire, &": keep-alive\n\n".repeat(2000));
        assert!(message.contains("the limit is 20000 (`wire_bytes`"), "{wire:?}: {message}");
        assert_eq!(given, 0);
    }
    // An answer that restarts repeatedly.
    let anew = event(&json!({"type": "message_start", "message": {}})) + &begin(Wire::Anthropic, 0, false);
    assert!(refused(Wire::Anthropic, &anew.repeat(9)).1.contains("`blocks`"));
}

#[test]
fn what_is_kept_back_has_the_same_limits() {
    // Calls whose names do not come, and arguments before their name.
    let nameless = |at: usize, text: &str| more(Wire::OpenAiChat, at, true, text);
    let calls: String = (0..9).map(|at| nameless(at, "")).collect();
    assert!(refused(Wire::OpenAiChat, &calls).1.contains("`blocks`"));
    assert!(refused(Wire::OpenAiChat, &nameless(0, "0123456789").repeat(26)).1.contains("`answer_bytes`"));
    // A name in parts without end.
    let named = |text: &str| {
        event(&json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": text}}]}}]}))
    };
    let parts: String = (0..40).map(|at| named(&format!("{at:09}-"))).collect();
    assert!(refused(Wire::OpenAiChat, &parts).1.contains("`answer_bytes`"));
    // Arguments of an item that is never announced, and such items without end.
    let unannounced = |at: usize, text: &str| {
        event(&json!({"type": "response.function_call_arguments.delta", "item_id": format!("f{at}"), "delta": text}))
    };
    assert!(refused(Wire::OpenAiResponses, &unannounced(0, "0123456789").repeat(26)).1.contains("`answer_bytes`"));
    let many: String = (0..9).map(|at| unannounced(at, "x")).collect();
    assert!(refused(Wire::OpenAiResponses, &many).1.contains("`blocks`"));
    // Items that we do not know are remembered and not given.
    let unknown = event(&json!({"type": "response.output_item.added", "item": {"type": "smoke"}}));
    assert!(refused(Wire::OpenAiResponses, &unknown.repeat(9)).1.contains("`blocks`"));
    // Arguments that come whole with the beginning of their call wait for its end.
    let whole = |at: usize| {
        event(&json!({"type": "content_block_start", "index": at, "content_block":
            {"type": "tool_use", "id": "c", "name": "t", "input": {"a": "x".repeat(80)}}}))
    };
    let many: String = (0..4).map(whole).collect();
    assert!(refused(Wire::Anthropic, &many).1.contains("`answer_bytes`"));
    // Names are as long as the server likes.
    let named = json!({"type": "content_block_start", "content_block":
        {"type": "tool_use", "id": "c", "name": "t".repeat(250)}});
    assert!(refused(Wire::Anthropic, &event(&named)).1.contains("251 bytes in all blocks"));
}

#[test]
fn what_lies_within_the_limits_is_whole() {
    for wire in WIRES {
        let stream = begin(wire, 1, true) + &more(wire, 1, true, &"x".repeat(100));
        assert_eq!(decode(wire, stream.as_bytes(), 5), (100, None), "{wire:?}");
    }
}
