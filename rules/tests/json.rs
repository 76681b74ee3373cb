//! The streaming JSON decoder against `serde_json`: the same values at the same places, for every split.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use proptest::prelude::*;
use serde_json::Value;
use tidegate_rules::json::{JsonDecoder, JsonPath, MAX_BYTES, MAX_DEPTH, MAX_KEY_BYTES, Sink};

#[derive(Debug, Default, PartialEq, Eq)]
struct Strings {
    done: Vec<(String, String, String)>,
    open: Option<(String, String, String)>,
}

impl Sink for Strings {
    fn begin(&mut self, place: &JsonPath) {
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
        // At the top a number has no end of its own.
        Value::Number(_) | Value::Bool(_) if exact.is_empty() => {}
        Value::Number(number) => out.push((exact.into(), field.into(), number.to_string())),
        Value::Bool(yes) => out.push((exact.into(), field.into(), yes.to_string())),
        Value::Null => {}
    }
}

fn decode(pieces: &[&str]) -> (Strings, Option<String>) {
    let (mut decoder, mut sink) = (JsonDecoder::default(), Strings::default());
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
        // Keys are sorted in the value as they are in the text; reading a number back could change its last digit.
        expected(&value, "", "", &mut strings);
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
            prop_assert_eq!(found.open.is_some(), matches!(value, Value::Number(_) | Value::Bool(_)));
            prop_assert_eq!(&found.done, &strings);
        }
    }

    /// Cut in three at every two places, within escapes, pairs, numbers and words.
    #[test]
    fn every_two_cuts(value in value(), escaped in any::<bool>()) {
        let text = value.to_string();
        let mut text = if escaped { escape_all(&text) } else { text };
        text.truncate(text.floor_char_boundary(60));
        let whole = decode(&[&text]);
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for (number, first) in places.iter().enumerate() {
            for second in &places[number..] {
                prop_assert_eq!(&decode(&[&text[..*first], &text[*first..*second], &text[*second..]]), &whole);
            }
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

#[test]
fn what_is_within_the_bounds_is_read() {
    let deep = format!("{}\"x\"{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let (found, error) = decode(&[&deep]);
    assert_eq!((found.done.len(), error), (1, None));
    let key = "k".repeat(MAX_KEY_BYTES);
    let (found, error) = decode(&[&format!("{{\"{key}\":\"x\"}}")]);
    assert_eq!((found.done[0].0.as_str(), error), (key.as_str(), None));
}

#[test]
fn a_text_beyond_the_bound_is_the_same_however_it_is_cut() {
    let mut text = String::from("[\"");
    text.push_str(&"é".repeat(MAX_BYTES as usize / 2));
    let whole = decode(&[&text]);
    let half = text.floor_char_boundary(text.len() / 2 + 1);
    assert_eq!(whole.1.as_deref(), Some("more than 67108864 bytes"));
    assert_eq!(whole.0.open.as_ref().map(|(_, _, text)| text.len()), Some(MAX_BYTES as usize - 2));
    assert!(whole == decode(&[&text[..half], &text[half..]]));
    let last = text.floor_char_boundary(MAX_BYTES as usize);
    assert!(whole == decode(&[&text[..last], &text[last..]]));
}

#[test]
fn what_comes_after_the_end_or_beside_a_value_stops_it() {
    for (text, error) in [
        (r#"{"a":"x"} {"#, "unexpected '{'"),
        (r#"["x"]""#, "unexpected '\"'"),
        (r#"["x" "y"]"#, "unexpected '\"'"),
        (r#"[1"y"]"#, "unexpected '\"'"),
        (r#"{"a":tr"y"}"#, "unexpected '\"'"),
        (r#"["x",}"#, "unexpected '}'"),
        (r#"{"a","b"}"#, "unexpected ','"),
        (r#""x",""#, "unexpected ','"),
        (r#"["\u12g4"]"#, "'g' is not a hexadecimal digit"),
    ] {
        let single: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
        assert_eq!(decode(&[text]).1.as_deref(), Some(error), "{text}");
        assert_eq!(decode(&[text]), decode(&single), "{text}");
    }
    assert_eq!(decode(&["{\"a\":1} \n\t"]).1, None);
}

#[test]
fn values_that_are_no_strings_are_given_as_written() {
    let text = r#"{"mode":0777,"n":[-1.5e+3 ,true, false,null],"t":{"u":12}}"#;
    let single: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    let (found, error) = decode(&[text]);
    assert_eq!(error, None);
    assert_eq!((&found, &error), (&decode(&single).0, &decode(&single).1));
    let values: Vec<(&str, &str)> = found.done.iter().map(|(exact, _, text)| (exact.as_str(), text.as_str())).collect();
    assert_eq!(values, [("mode", "0777"), ("n[0]", "-1.5e+3"), ("n[1]", "true"), ("n[2]", "false"), ("t.u", "12")]);
}

/// Each escape, also where a delta ends within it or between the halves of a pair.
#[test]
fn every_escape_is_decoded_at_every_cut() {
    let text = r#"{"a":"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"}"#;
    for at in text.char_indices().map(|(at, _)| at) {
        let (found, error) = decode(&[&text[..at], &text[at..]]);
        assert_eq!(error, None, "{at}");
        assert_eq!(found.done[0].2, "\"\\/\u{8}\u{c}\n\r\tA\u{e9}\u{1f600}", "{at}");
    }
}

#[test]
fn places_within_lists_and_keys_given_twice() {
    let (found, error) = decode(&[r#"{"edits":[{"new":"a"},[["b"]],{"new":"c"}],"k":"1","k":"2","":{"":"e"}}"#]);
    assert_eq!(error, None);
    let places: Vec<(&str, &str)> =
        found.done.iter().map(|(exact, field, _)| (exact.as_str(), field.as_str())).collect();
    let expected = [
        ("edits[0].new", "edits[].new"),
        ("edits[1][0][0]", "edits[][][]"),
        ("edits[2].new", "edits[].new"),
        ("k", "k"),
        ("k", "k"),
        ("", ""),
    ];
    assert_eq!(places, expected);
}
