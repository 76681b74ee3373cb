//! Secrets in recordings: masked wherever a model, a server or the network cuts them, in every wire format; all else is
//! recorded and decodes as it came.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use flow::{BlockId, Delta, ErrorClass};
use serde_json::{Value, json};
use tidegate_providers::{Expect, RecordedEnd, RecordingWriter};
use wire::{AnswerDecoder, Wire};

use crate::classes::class_of;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];
const SECRET: &str = "tide-\"k\\ey\"/9";
/// A byte on the wire for a byte on the wire: three of its characters are escaped there.
const STARS: &str = "****************";

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// The chunks as they were written: time and bytes.
    fn chunks(&self) -> Vec<(u64, Vec<u8>)> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let chunk = |line: Value| {
            let bytes = match (line["text"].as_str(), line["base64"].as_str()) {
                (Some(text), _) => text.as_bytes().to_vec(),
                (_, Some(text)) => base64::engine::general_purpose::STANDARD.decode(text).unwrap(),
                _ => return None,
            };
            Some((line["at_ms"].as_u64().unwrap(), bytes))
        };
        lines.filter_map(chunk).collect()
    }

    fn body(&self) -> Vec<u8> {
        self.chunks().into_iter().flat_map(|(_, bytes)| bytes).collect()
    }
}

fn writer(wire: Wire, secret: &str) -> (RecordingWriter, Lines) {
    let lines = Lines::default();
    let mut writer = RecordingWriter::new(lines.clone(), wire, "m").unwrap();
    writer.hide(secret);
    (writer, lines)
}

/// Records these chunks and gives what was written; boundaries and times are as they came.
fn recorded(wire: Wire, secret: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let (mut writer, lines) = writer(wire, secret);
    let request = writer.request(&json!({}), &Expect::default()).unwrap();
    writer.response(request, 1, 200, [("content-type", "text/event-stream")]).unwrap();
    for (at, chunk) in chunks.iter().enumerate() {
        writer.chunk(request, at as u64, chunk).unwrap();
    }
    writer.end(request, 1000, &RecordedEnd::Complete).unwrap();
    let written = lines.chunks();
    let shape = |chunks: &[(u64, usize)]| chunks.to_vec();
    let came: Vec<_> = chunks.iter().enumerate().map(|(at, chunk)| (at as u64, chunk.len())).collect();
    let got: Vec<_> = written.iter().map(|(at, chunk)| (*at, chunk.len())).collect();
    assert_eq!(shape(&got), shape(&came), "boundaries and times stay");
    lines.body()
}

/// All that is decoded: the text of each block, and everything else in order.
fn decoded(wire: Wire, bytes: &[u8]) -> (BTreeMap<BlockId, String>, Vec<Delta>) {
    let mut decoder = AnswerDecoder::new(wire);
    decoder.push(bytes).unwrap();
    decoder.finish().unwrap();
    let (mut texts, mut rest) = (BTreeMap::<_, String>::new(), Vec::new());
    for delta in std::iter::from_fn(|| decoder.next_delta()) {
        match delta {
            Delta::Piece { block, text } => texts.entry(block).or_default().push_str(&text),
            other => rest.push(other),
        }
    }
    (texts, rest)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

/// How a string is spelled on the wire.
#[derive(Clone, Copy, Debug)]
enum Spelled {
    Usual,
    /// Every character as `\u….`
    Escaped,
}

fn string(text: &str, spelled: Spelled) -> String {
    match spelled {
        Spelled::Usual => serde_json::to_string(text).unwrap(),
        Spelled::Escaped => {
            let mut escaped = text.encode_utf16().fold("\"".to_owned(), |mut all, unit| {
                write!(all, "\\u{unit:04X}").unwrap();
                all
            });
            escaped.push('"');
            escaped
        }
    }
}

fn event(data: &str) -> String {
    format!("event: e\ndata: {data}\n\n")
}

/// The events of an answer with two blocks of interleaved chunks.
fn answer(wire: Wire, kind: Kind, pieces: &[&str], spelled: Spelled) -> Vec<String> {
    let begin = |at: usize| match (wire, kind) {
        (Wire::Anthropic, Kind::Text) => {
            format!(r#"{{"type":"content_block_start","index":{at},"content_block":{{"type":"text","text":""}}}}"#)
        }
        (Wire::Anthropic, Kind::Thinking) => {
            format!(r#"{{"type":"content_block_start","index":{at},"content_block":{{"type":"thinking"}}}}"#)
        }
        (Wire::Anthropic, Kind::Call) => format!(
            r#"{{"type":"content_block_start","index":{at},"content_block":{{"type":"tool_use","id":"c{at}","name":"t","input":{{}}}}}}"#
        ),
        (Wire::OpenAiChat, Kind::Call) => format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{at},"id":"c{at}","type":"function","function":{{"name":"t","arguments":""}}}}]}}}}]}}"#
        ),
        (Wire::OpenAiChat, _) => r#"{"model":"m","choices":[]}"#.to_owned(),
        (Wire::OpenAiResponses, Kind::Call) => format!(
            r#"{{"type":"response.output_item.added","output_index":{at},"item":{{"type":"function_call","id":"i{at}","call_id":"c{at}","name":"t"}}}}"#
        ),
        (Wire::OpenAiResponses, Kind::Text) => format!(
            r#"{{"type":"response.output_item.added","output_index":{at},"item":{{"type":"message","id":"i{at}"}}}}"#
        ),
        (Wire::OpenAiResponses, Kind::Thinking) => format!(
            r#"{{"type":"response.output_item.added","output_index":{at},"item":{{"type":"reasoning","id":"i{at}"}}}}"#
        ),
    };
    let piece = |at: usize, text: &str| {
        let text = string(text, spelled);
        match (wire, kind) {
            // The block is identified after the text, too.
            (Wire::Anthropic, Kind::Text) => format!(
                r#"{{"delta":{{"text":{text},"type":"text_delta"}},"index":{at},"type":"content_block_delta"}}"#
            ),
            (Wire::Anthropic, Kind::Thinking) => format!(
                r#"{{"type":"content_block_delta","index":{at},"delta":{{"type":"thinking_delta","thinking":{text}}}}}"#
            ),
            (Wire::Anthropic, Kind::Call) => format!(
                r#"{{"type":"content_block_delta","index":{at},"delta":{{"type":"input_json_delta","partial_json":{text}}}}}"#
            ),
            (Wire::OpenAiChat, Kind::Text) => {
                format!(r#"{{"choices":[{{"index":{at},"delta":{{"content":{text}}}}}]}}"#)
            }
            (Wire::OpenAiChat, Kind::Thinking) => {
                format!(r#"{{"choices":[{{"index":{at},"delta":{{"reasoning":{text},"reasoning_content":{text}}}}}]}}"#)
            }
            (Wire::OpenAiChat, Kind::Call) => format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"function":{{"arguments":{text}}},"index":{at}}}]}}}}]}}"#
            ),
            (Wire::OpenAiResponses, Kind::Text) => format!(
                r#"{{"type":"response.output_text.delta","item_id":"i{at}","output_index":{at},"content_index":0,"delta":{text}}}"#
            ),
            (Wire::OpenAiResponses, Kind::Thinking) => format!(
                r#"{{"type":"response.reasoning_summary_text.delta","output_index":{at},"summary_index":0,"delta":{text}}}"#
            ),
            (Wire::OpenAiResponses, Kind::Call) => format!(
                r#"{{"type":"response.function_call_arguments.delta","item_id":"i{at}","output_index":{at},"delta":{text}}}"#
            ),
        }
    };
    let end: &[&str] = match wire {
        Wire::Anthropic => {
            &[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, r#"{"type":"message_stop"}"#]
        }
        Wire::OpenAiChat => &[r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"],
        Wire::OpenAiResponses => &[r#"{"type":"response.completed","response":{"model":"m"}}"#],
    };
    let mut events = vec![event(&begin(0)), event(&begin(1))];
    if wire == Wire::Anthropic {
        events.insert(0, event(r#"{"type":"message_start","message":{"model":"m"}}"#));
    }
    for text in pieces {
        events.push(event(&piece(0, text)));
        events.push(": keep-alive\n\n".to_owned());
        events.push(event(&piece(1, "tide other ")));
    }
    events.extend(end.iter().map(|data| event(data)));
    events
}

/// Records an answer; gives the text of the block that is not the other.
fn own_block(wire: Wire, secret: &str, events: &[String]) -> String {
    let body = events.concat();
    let by_event: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    let written = recorded(wire, secret, &by_event);
    let (texts, rest) = decoded(wire, &written);
    let (texts_before, rest_before) = decoded(wire, body.as_bytes());
    assert_eq!(rest, rest_before);
    let others = |texts: &BTreeMap<BlockId, String>| {
        texts.values().filter(|text| text.starts_with("tide other")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(others(&texts), others(&texts_before), "another block is left alone");
    let own = texts.into_values().filter(|text| !text.starts_with("tide other")).collect::<Vec<_>>();
    assert_eq!(own.len(), 1, "{own:?}");
    own.concat()
}

/// The same, and the network's cuts change nothing: whole, and in chunks of three bytes.
fn own_block_at_any_cut(wire: Wire, secret: &str, events: &[String]) -> String {
    let body = events.concat();
    let by_event: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    let written = recorded(wire, secret, &by_event);
    for chunks in [vec![body.as_bytes()], body.as_bytes().chunks(3).collect()] {
        assert_eq!(recorded(wire, secret, &chunks), written);
    }
    own_block(wire, secret, events)
}

#[test]
fn a_secret_is_masked_wherever_the_model_cuts_it() {
    let text = format!("Äh: {SECRET}{SECRET} tide-\"k ");
    let wanted = text.replace(SECRET, STARS);
    for wire in WIRES {
        for kind in [Kind::Text, Kind::Thinking, Kind::Call] {
            for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                for second in [cut, cut + 1, cut + 5] {
                    let second = second.min(text.len());
                    let second = if text.is_char_boundary(second) { second } else { cut };
                    let pieces = [&text[..cut], &text[cut..second], &text[second..]];
                    let got = own_block(wire, SECRET, &answer(wire, kind, &pieces, Spelled::Usual));
                    assert_eq!(got, wanted, "{wire:?} {kind:?} cut at {cut} and {second}");
                }
            }
        }
    }
}

#[test]
fn a_secret_in_pieces_of_one_character_is_masked_escaped_or_not() {
    let text = format!("ab {SECRET} tide-");
    let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    for wire in WIRES {
        for kind in [Kind::Text, Kind::Thinking, Kind::Call] {
            let got = own_block_at_any_cut(wire, SECRET, &answer(wire, kind, &pieces, Spelled::Usual));
            assert_eq!(got, format!("ab {STARS} tide-"), "{wire:?} {kind:?}");
            // What was spelled by six bytes is masked by six.
            let got = own_block_at_any_cut(wire, SECRET, &answer(wire, kind, &pieces, Spelled::Escaped));
            assert_eq!(got, format!("ab {} tide-", "*".repeat(6 * SECRET.len())), "{wire:?} {kind:?}");
        }
    }
}

/// The arguments of a call are JSON inside of JSON: there the secret has escapes that are cut, too.
#[test]
fn a_secret_inside_of_arguments_is_masked_wherever_it_is_cut() {
    for inner in [string(SECRET, Spelled::Usual), string(SECRET, Spelled::Escaped)] {
        let arguments = format!("{{\"a\":\"x\\n\\\\\",\"key\":{inner},\"b\":\"\\u00e4\"}}");
        for wire in WIRES {
            for cut in 0..=arguments.len() {
                let pieces = [&arguments[..cut], &arguments[cut..]];
                let got = own_block(wire, SECRET, &answer(wire, Kind::Call, &pieces, Spelled::Usual));
                let value: Value = serde_json::from_str(&got).unwrap();
                let stars = value["key"].as_str().unwrap();
                assert!(!stars.is_empty() && stars.bytes().all(|byte| byte == b'*'), "{wire:?} at {cut}: {got}");
                assert_eq!((&value["a"], &value["b"]), (&json!("x\n\\"), &json!("ä")));
            }
        }
    }
}

#[test]
fn known_shapes_are_masked_and_keep_their_shape() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow0BAAKCAQEA7bq1\nZx9cQmVyZXR0YS0xMjM0NTY3ODk=\n-----END RSA PRIVATE KEY-----";
    let pem_masked = "-----BEGIN RSA PRIVATE KEY-----\nXXXXxx0XXXXXXXXX0xx0\nXx0xXxXxXXX0XX0xXxX0XXX0XXx=\n-----END RSA PRIVATE KEY-----";
    for (key, masked) in [
        ("sk-ant-api03-aB3dE6gH9jK2mN5", "sk-ant-xxx00-xX0xX0xX0xX0xX0"),
        (&["AKIA", "IOSFODNN7EVENING"].concat(), "AKIAXXXXXXXX0XXXXXXX"),
        // What only its name tells, and what its place tells.
        ("{\"password\": \"hunter2!\"}", "{\"password\": \"xxxxxx0!\"}"),
        ("DB_PASSWORD=Tr0ub4dor", "DB_PASSWORD=Xx0xx0xxx"),
        ("postgres://bob:hunter22@db/x", "postgres://bob:xxxxxx00@db/x"),
        // An example of documentation stays one.
        ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_0000000000xxxxxxxxxxXXXXXXXXXX000000"),
        (pem, pem_masked),
        // None of these is a key.
        ("task-force-0123456789-abcdefgh", "task-force-0123456789-abcdefgh"),
        ("sk-estimator-doc-link-rendered", "sk-estimator-doc-link-rendered"),
        ("sk-0123456789", "sk-0123456789"),
        (
            "-----BEGIN PUBLIC KEY-----\nMIIEow0BAAKCAQEA7bq1MIIEow0BAAKCAQEA7bq1",
            "-----BEGIN PUBLIC KEY-----\nMIIEow0BAAKCAQEA7bq1MIIEow0BAAKCAQEA7bq1",
        ),
    ] {
        let (text, wanted) = (format!("it's {key}, is"), format!("it's {masked}, is"));
        for wire in WIRES {
            for cut in 0..text.len() {
                let kind = [Kind::Text, Kind::Call][cut % 2];
                let pieces = [&text[..cut], &text[cut..]];
                let got = own_block(wire, SECRET, &answer(wire, kind, &pieces, Spelled::Usual));
                assert_eq!(got, wanted, "{wire:?} {kind:?} cut at {cut}");
            }
            let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
            let got = own_block_at_any_cut(wire, SECRET, &answer(wire, Kind::Thinking, &pieces, Spelled::Usual));
            assert_eq!(got, wanted, "{wire:?}");
        }
    }
}

/// An escape ends in a letter, and no key follows a letter: which it is, is known also where they are cut apart. A backslash and a letter that are
/// written out are the escape of somebody.
#[test]
fn a_key_after_an_escape_is_one_wherever_it_is_cut() {
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let masked = "ghp_0000000000xxxxxxxxxxXXXXXXXXXX000000";
    for (before, wanted) in [("\\n", masked), ("\\f", masked), ("\\u0020", masked), ("\\\\n", masked)] {
        let arguments = format!("{{\"a\":\"x{before}{key}\"}}");
        for cut in 0..arguments.len() {
            let pieces = [&arguments[..cut], &arguments[cut..]];
            let got = own_block(Wire::Anthropic, SECRET, &answer(Wire::Anthropic, Kind::Call, &pieces, Spelled::Usual));
            assert_eq!(got, arguments.replace(key, wanted), "cut at {cut}");
        }
    }
}

/// Without a secret in it, a recording holds the very bytes: each stream of the corpus, at every kind of cut.
#[test]
fn what_is_no_secret_is_recorded_as_it_came() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/providers/streams");
    let mut count = 0;
    for wire in WIRES {
        for entry in std::fs::read_dir(format!("{root}/{}", wire.as_str())).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "sse") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            // A header's value may be an ordinary word, even one that the wire format itself is written in.
            for secret in ["no-such-secret", "content_block_delta", "response.completed", "tool_calls", "message"] {
                for size in [13, bytes.len().max(1)] {
                    let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
                    let written = recorded(wire, secret, &chunks);
                    if secret == "no-such-secret" {
                        assert_eq!(written, bytes, "{}", path.display());
                    }
                    let deltas = |bytes: &[u8]| {
                        let mut decoder = AnswerDecoder::new(wire);
                        let error = decoder.push(bytes).and_then(|()| decoder.finish()).err();
                        let kinds =
                            std::iter::from_fn(|| decoder.next_delta()).map(|delta| std::mem::discriminant(&delta));
                        (kinds.collect::<Vec<_>>(), error.map(|error| class_of(&error)))
                    };
                    assert_eq!(deltas(&written), deltas(&bytes), "{} without {secret}", path.display());
                }
            }
            count += 1;
        }
    }
    assert!(count >= 47, "only {count} streams were read");
}

#[test]
fn an_answer_that_is_no_stream_is_masked_as_it_comes() {
    let body = json!({"error": {"message": format!("bad key {SECRET}"), "hint": "tide-\"k"}}).to_string();
    let escaped = body.replace("tide", "\\u0074ide");
    for body in [body.as_str(), escaped.as_str(), &format!("<p>bad key {SECRET}</p>")] {
        for cut in (0..body.len()).filter(|cut| body.is_char_boundary(*cut)) {
            let (mut writer, lines) = writer(Wire::Anthropic, SECRET);
            let request = writer.request(&json!({}), &Expect::default()).unwrap();
            writer.response(request, 1, 401, [("content-type", "application/json")]).unwrap();
            writer.chunk(request, 2, &body.as_bytes()[..cut]).unwrap();
            writer.chunk(request, 3, &body.as_bytes()[cut..]).unwrap();
            let message = format!("refused: bad key {SECRET}");
            writer
                .end(request, 4, &RecordedEnd::Failed { class: Some(ErrorClass::Permanent), kind: None, message })
                .unwrap();
            let written = String::from_utf8(lines.body()).unwrap();
            assert!(written.contains("bad key *******"), "{written}");
            if let Ok(value) = serde_json::from_str::<Value>(&written) {
                assert_eq!(value["error"]["hint"], "tide-\"k");
            }
            let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            assert!(told.contains("refused: bad key *************"), "{told}");
            assert!(!told.contains("ey\\\"") && !told.contains("k\\\\\\\\ey"), "{told}");
        }
    }
}

/// Only what may hold a part of a secret waits; the rest is written when it came.
#[test]
fn little_waits() {
    for wire in WIRES {
        let (mut writer, lines) = writer(wire, "tide-secret");
        let request = writer.request(&json!({}), &Expect::default()).unwrap();
        writer.response(request, 1, 200, [("content-type", "text/event-stream")]).unwrap();
        let events = answer(wire, Kind::Call, &["a", "tide-", "x", "tide-sec"], Spelled::Usual);
        let mut most = 0;
        for (at, event) in events.iter().enumerate() {
            writer.chunk(request, at as u64, event.as_bytes()).unwrap();
            most = most.max(at + 1 - lines.chunks().len());
        }
        assert!((1..=6).contains(&most), "{wire:?}: {most} chunks waited");
        // What is too far apart is masked in parts: the wait is bounded.
        let pause = ": keep-alive\n\n".repeat(100);
        for _ in 0..80 {
            writer.chunk(request, 100, pause.as_bytes()).unwrap();
        }
        let before = lines.chunks().len();
        assert!(before > events.len() + 20, "{wire:?}: {before}");
        writer.end(request, 1000, &RecordedEnd::Cut).unwrap();
        let body = String::from_utf8(lines.body()).unwrap();
        assert!(
            !body.contains("tide-sec") && body.contains("********") && body.contains("tide-\""),
            "{wire:?}: {body}"
        );
    }
}

#[test]
fn a_cut_answer_keeps_no_part_of_a_key() {
    for wire in WIRES {
        let events = answer(wire, Kind::Text, &["the key is tide-se", "cre"], Spelled::Usual);
        let upto: String = events[..events.len() - 2].concat();
        let written = String::from_utf8(recorded(wire, "tide-secret", &[upto.as_bytes()])).unwrap();
        assert!(!written.contains("tide-se") && !written.contains("\"cre\""), "{wire:?}: {written}");
    }
}
