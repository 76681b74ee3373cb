//! What a person is shown of a call before it runs.

use std::collections::BTreeSet;
use std::fmt;

/// What a call contains and would change, as the tool that would run it has decoded it.
///
/// The strings are exact: they contain whatever the model wrote, invisible characters included. A front end must escape
/// what its surface would hide or act on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The decoded arguments, each whole.
    pub arguments: Vec<Argument>,
    /// The change to a file as a unified diff, whole; `None` where there is no file or nothing to compare with.
    pub diff: Option<String>,
    /// Facts that neither the arguments nor the diff show, one sentence each: where a path really leads, that a file is
    /// created.
    pub notes: Vec<String>,
}

/// One decoded argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The argument's key in the JSON object.
    pub name: String,
    /// A string as it is, anything else as JSON exactly as the model wrote it.
    pub value: String,
}

/// The arguments of a call cannot be shown as what every reader would take them for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ambiguous {
    /// A key occurs twice in one object, and readers differ in which of its values counts.
    RepeatedKey(String),
}

impl fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RepeatedKey(key) => write!(f, "the key {key:?} occurs twice in one object"),
        }
    }
}

impl Preview {
    /// The preview of arguments that nothing more is known about: each member of the object, decoded. Arguments that
    /// are not ant an JSON object become one argument without a name, exactly as they are.
    ///
    /// # Errors
    /// A key occurs twice in one object.
    pub fn of_arguments(arguments: &str) -> Result<Self, Ambiguous> {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(arguments) else {
            return Ok(Self::raw(arguments));
        };
        let mut reader = Reader { text: arguments, at: 0 };
        let members = reader.value()?;
        if !value.is_object() {
            return Ok(Self::raw(arguments));
        }
        let argument = |(name, value): (String, &str)| Argument { name, value: decoded(value) };
        Ok(Self { arguments: members.into_iter().map(argument).collect(), ..Self::default() })
    }

    /// The arguments exactly as they are, undecoded.
    fn raw(arguments: &str) -> Self {
        let whole = Argument { name: String::new(), value: arguments.to_owned() };
        Self { arguments: vec![whole], ..Self::default() }
    }
}

/// A string without its quotes and escapes, anything else as it is.
fn decoded(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
}

/// Walks JSON that is known to be valid, and of bounded depth, to find the members of its objects.
///
/// `serde_json::Value` would keep only the last of two members with one key, and would round large numbers.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads one value; gives the members where it is an object.
    fn value(&mut self) -> Result<Vec<(String, &'t str)>, Ambiguous> {
        match self.peek() {
            Some(b'{') => return self.object(),
            Some(b'[') => {
                self.at += 1;
                while !matches!(self.peek(), Some(b']') | None) {
                    self.value()?;
                    self.skip(b',');
                }
                self.skip(b']');
            }
            Some(b'"') => {
                self.string();
            }
            _ => {
                let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.at += rest.iter().take_while(|byte| !ends(byte)).count();
            }
        }
        Ok(Vec::new())
    }

    fn object(&mut self) -> Result<Vec<(String, &'t str)>, Ambiguous> {
        self.at += 1;
        let (mut members, mut seen) = (Vec::new(), BTreeSet::new());
        while self.peek() == Some(b'"') {
            let key = decoded(self.string());
            if !seen.insert(key.clone()) {
                return Err(Ambiguous::RepeatedKey(key));
            }
            self.skip(b':');
            self.peek();
            let start = self.at;
            self.value()?;
            members.push((key, &self.text[start..self.at]));
            self.skip(b',');
        }
        self.skip(b'}');
        Ok(members)
    }

    /// Reads a string; gives it with its quotes.
    fn string(&mut self) -> &'t str {
        let start = self.at;
        let mut escaped = true;
        for byte in &self.text.as_bytes()[start..] {
            self.at += 1;
            match byte {
                b'"' if !escaped => break,
                b'\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
        &self.text[start..self.at]
    }

    fn skip(&mut self, wanted: u8) {
        if self.peek() == Some(wanted) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn members(arguments: &str) -> Vec<(String, String)> {
        let preview = Preview::of_arguments(arguments).unwrap();
        preview.arguments.into_iter().map(|one| (one.name, one.value)).collect()
    }

    #[test]
    fn members_are_decoded_in_their_order_and_exactly() {
        let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(
            members(
                r#" { "z" : "a\rb\u202e\"}", "a":[1, {"x": "y\\"}] ,"n": 12345678901234567890123,"e":{}, "t":true } "#
            ),
            of(&[
                ("z", "a\rb\u{202e}\"}"),
                ("a", r#"[1, {"x": "y\\"}]"#),
                ("n", "12345678901234567890123"),
                ("e", "{}"),
                ("t", "true"),
            ])
        );
        assert_eq!(members("{}"), of(&[]));
        assert_eq!(members(r#"{"a":""}"#), of(&[("a", "")]));
        for raw in ["", "[1]", "{\"a\":", "plain", "\"text\""] {
            assert_eq!(members(raw), of(&[("", raw)]), "{raw}");
        }
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_however_it_is_spelled_and_nested() {
        for (arguments, key) in [
            (r#"{"command":"ls","command":"rm"}"#, "command"),
            (r#"{"command":"ls","comm\u0061nd":"rm"}"#, "command"),
            (r#"{"a":{"b":[{"c":1,"c":1}]}}"#, "c"),
            (r#"[{"c":1,"c":1}]"#, "c"),
            (r#"{"":1,"":2}"#, ""),
        ] {
            assert_eq!(Preview::of_arguments(arguments), Err(Ambiguous::RepeatedKey(key.to_owned())), "{arguments}");
        }
        assert!(Preview::of_arguments(r#"{"a":{"c":1},"b":{"c":"\"c\":"},"c":[]}"#).is_ok());
    }
}
