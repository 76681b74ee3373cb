//! Callbacks that an extension of any kind answers with what it was given: for a plugin values of the host, for contenders JSON.

use std::hint::black_box;

use flow::ports::Extensions;
use flow::{InputAnswer, Message, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace};

use super::ready;

/// The input of one callback.
pub(crate) enum Echo {
    Text(String),
    Tag(Tag),
    Messages(Vec<Message>),
}

impl Echo {
    /// The cases that are measured, by name.
    pub(crate) fn cases() -> [(&'static str, Self); 5] {
        let tag = Tag {
            name: "note".into(),
            attributes: vec![("kind".into(), "todo".into())],
            open: r#"<note kind="todo">"#.into(),
            content: "look at the port".into(),
            close: "</note>".into(),
        };
        let message = Message::user(&"sixteen letters ".repeat(32)[..500]);
        [
            ("an empty text", Self::Text(String::new())),
            ("20 B", Self::Text("twenty bytes of text".into())),
            ("1 KB", Self::Text("sixteen letters ".repeat(64))),
            ("a tag", Self::Tag(tag)),
            ("10 messages of 500 B", Self::Messages(vec![message; 10])),
        ]
    }

    pub(crate) fn callback(&self) -> &'static str {
        match self {
            Self::Text(_) => "on_plain_text",
            Self::Tag(_) => "on_tag",
            Self::Messages(_) => "on_input_messages",
        }
    }

    /// Calls the first plugin.
    pub(crate) fn call(&self, extensions: &dyn Extensions) {
        match self {
            Self::Text(text) => {
                black_box(ready(extensions.plain_text(0, text, &TextPlace::default())).unwrap());
            }
            Self::Tag(tag) => {
                black_box(ready(extensions.tag(0, tag, &TagPlace::default())).unwrap());
            }
            Self::Messages(messages) => {
                black_box(ready(extensions.input_messages(0, messages)).unwrap());
            }
        }
    }

    /// Fails unless the first plugin answers with what it is given: another answer would be another amount of work.
    pub(crate) fn check(&self, extensions: &dyn Extensions) {
        match self {
            Self::Text(text) => {
                let answer = ready(extensions.plain_text(0, text, &TextPlace::default()));
                assert_eq!(answer, Ok(TextAnswer::Replace(text.clone())));
            }
            Self::Tag(tag) => {
                let answer = ready(extensions.tag(0, tag, &TagPlace::default()));
                assert_eq!(answer, Ok(TagAnswer::Content(tag.content.clone())));
            }
            Self::Messages(messages) => {
                let answer = ready(extensions.input_messages(0, messages));
                assert_eq!(answer, Ok(InputAnswer::Replace(messages.clone())));
            }
        }
    }

    /// Returns the input and the answer as JSON, with the same fields as the contract and without its reserved ones. The keys
    /// of the answer are in the order in which the guest for Extism writes them.
    pub(crate) fn json(&self) -> (String, String) {
        let at = r#"{"turn":1,"step":1,"attempt":1}"#;
        match self {
            Self::Text(text) => {
                let text = quoted(text);
                let place = format!(r#"{{"at":{at},"stream":"answer","unit":0,"inside":[]}}"#);
                (format!(r#"{{"text":{text},"place":{place}}}"#), format!(r#"{{"replace":{text}}}"#))
            }
            Self::Tag(tag) => {
                let (name, content) = (quoted(&tag.name), quoted(&tag.content));
                let pair = |(name, value): &(String, String)| {
                    format!(r#"{{"name":{},"value":{}}}"#, quoted(name), quoted(value))
                };
                let pairs = tag.attributes.iter().map(pair).collect::<Vec<_>>().join(",");
                let place = format!(r#"{{"at":{at},"inside":[]}}"#);
                let input = format!(r#"{{"name":{name},"pairs":[{pairs}],"content":{content},"place":{place}}}"#);
                (input, format!(r#"{{"content":{content}}}"#))
            }
            Self::Messages(messages) => {
                let one = |message: &Message| {
                    format!(r#"{{"id":"","role":"user","parts":[{{"text":{}}}]}}"#, quoted(&message.plain_text()))
                };
                let all = messages.iter().map(one).collect::<Vec<_>>().join(",");
                (format!(r#"{{"messages":[{all}]}}"#), format!(r#"{{"replace":[{all}]}}"#))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
