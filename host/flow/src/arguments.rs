//! The arguments of a call as extensions get them: decoded as far as text allows.

use crate::Preview;

/// A JSON object that repeats no key, without white space, and with the escape sequences alone that JSON requires: order and numbers
/// are as they were. `None` for any other text.
pub fn plain_arguments(text: &str) -> Option<String> {
    let is_object = serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object());
    if !is_object || Preview::of_arguments(text).is_err() {
        return None;
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('"') {
        out.extend(rest[..start].chars().filter(|c| !c.is_ascii_whitespace()));
        let end = string_end(&rest[start..])?;
        let (literal, after) = rest[start..].split_at(end);
        let decoded: String = serde_json::from_str(literal).ok()?;
        out.push_str(&serde_json::to_string(&decoded).ok()?);
        rest = after;
    }
    out.extend(rest.chars().filter(|c| !c.is_ascii_whitespace()));
    Some(out)
}

/// The bytes of the string literal that the text begins with.
fn string_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.bytes().enumerate().skip(1).find(|(_, byte)| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::plain_arguments;

    #[test]
    fn strings_are_decoded_and_nothing_else_changes() {
        let of = |text: &str| plain_arguments(text);
        assert_eq!(
            of(" { \"b\" : \"s\\u006b-\\/1\", \"a\": [1, 12345678901234567890123 ] }\n").as_deref(),
            Some(r#"{"b":"sk-/1","a":[1,12345678901234567890123]}"#)
        );
        assert_eq!(of(r#"{"a b":"x \"y\\\" z","n":"a\nb"}"#).as_deref(), Some(r#"{"a b":"x \"y\\\" z","n":"a\nb"}"#));
        assert_eq!(of("{}").as_deref(), Some("{}"));
        assert_eq!(of(r#"{"s":"ä \u00e4 \ud83d\ude00"}"#).as_deref(), Some("{\"s\":\"ä ä 😀\"}"));
        for bad in ["", "[1]", "{\"a\":", "\"text\"", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#, "null"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
