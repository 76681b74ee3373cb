//! The streaming JSON decoder against `serde_json`: the same strings at the same places, for every split.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use proptest::prelude::*;
use serde_json::Value;
use tidegate_rules::json::{Decoder, MAX_DEPTH, Place, Sink};

#[derive(Debug, Default, PartialEq, Eq)]
struct Strings {
    done: Vec<(String, String, String)>,
    open: Option<(String, String, String)>,
}

impl Sink for Strings {
    fn begin(&mut self, place: &Place) {
        assert!(self.open.is_none());
        self.open = Some((place.exact(), place.field(), String::new()));
    }

    fn text(&mut self, text: &str) {
        assert!(!text.is_empty());
        self.open.as_mut().unwrap().2.push_str(text);
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }
}

fn expected(value: &Value, exact: &str, field: &str, out: &mut Vec<(String, String, String)>) {
    let dot = |at: &str, key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match value {
        Value::String(text) => out.push((exact.into(), field.into(), text.clone())),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                expected(item, &format!("{exact}[{number}]"), &format!("{field}[]"), out);
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                expected(item, &dot(exact, key), &dot(field, key), out);
            }
        }
        _ => {}
    }
}

fn decode(pieces: &[&str]) -> (Strings, Option<String>) {
    let (mut decoder, mut sink) = (Decoder::default(), Strings::default());
    for piece in pieces {
        decoder.feed(piece, &mut sink);
    }
    (sink, decoder.error().map(str::to_owned))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(|n| serde_json::json!(f64::from(n) / 1024.0)),
        any::<i64>().prop_map(|n| serde_json::json!(n)),
        "(?s).{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec(("[a-zé\"\\\\ ]{1,5}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Writes every character beyond ASCII, and some within, as `\uXXXX`.
fn escape_all(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        }
    }
    out
}

proptest! {
    #[test]
    fn gives_what_serde_json_gives(value in value(), pretty in any::<bool>(), escaped in any::<bool>(), seed in any::<u64>()) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let text = if escaped { escape_all(&text) } else { text };
        let mut strings = Vec::new();
        // `serde_json` sorts keys, so read back what was written, in its order.
        let read: Value = serde_json::from_str(&text).unwrap();
        expected(&read, "", "", &mut strings);
        let single: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
        let (mut random, mut from, mut state) = (Vec::new(), 0, seed);
        for (at, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 62 == 0 || at == text.len() {
                random.push(&text[from..at]);
                from = at;
            }
        }
        for pieces in [vec![text.as_str()], single, random] {
            let (found, error) = decode(&pieces);
            prop_assert_eq!(error, None);
            prop_assert_eq!(found.open, None);
            prop_assert_eq!(&found.done, &strings);
        }
    }

    /// Whatever comes, nothing panics, and any split gives the same.
    #[test]
    fn any_text_any_split(text in r#"[\[\]{}",:\\u0-9a-f tné]{0,40}"#) {
        let single: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
        prop_assert_eq!(decode(&[&text]), decode(&single));
    }
}

#[test]
fn half_of_a_pair_is_replaced() {
    let (found, error) = decode(&[r#"["\ud83d","\ude00x","\ud83d\u0041","\ud83d\n\ud83d\ude00"]"#]);
    assert_eq!(error, None);
    let texts: Vec<&str> = found.done.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!(texts, ["\u{fffd}", "\u{fffd}x", "\u{fffd}A", "\u{fffd}\n😀"]);
}

#[test]
fn depth_and_nonsense_stop_it_with_a_reason() {
    let deep = "[".repeat(MAX_DEPTH + 1);
    assert_eq!(decode(&[&deep]).1.unwrap(), "nested deeper than 64");
    assert_eq!(decode(&[r#"{"a" "b"}"#]).1.unwrap(), "unexpected '\"'");
    assert_eq!(decode(&[r#"{"a":"\x"}"#]).1.unwrap(), "unknown escape `\\x`");
    assert_eq!(decode(&["[1]]"]).1.unwrap(), "unexpected ']'");
    let long_key = format!("{{\"{}\":1}}", "k".repeat(2000));
    assert_eq!(decode(&[&long_key]).1.unwrap(), "a key of more than 1024 bytes");
}
