//! What a rule is tried on: words, reasoning, or a tool call.

use flow::{CallId, StreamKind};

/// What a rule is tried on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Words for the user.
    Text(String),
    /// A reasoning stream with this content.
    Thinking(String),
    /// A call of a tool.
    Call {
        /// The name of the called tool.
        tool: String,
        /// Its arguments, as JSON text.
        arguments: String,
    },
}

/// Arguments of a call that are not valid; the string gives the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(String);

impl Input {
    /// A call with arguments that are texts, each `KEY=VALUE`.
    ///
    /// # Errors
    /// An argument without `=`, or a key that comes twice.
    pub fn call(tool: &str, arguments: &[String]) -> Result<Self, BadInput> {
        let mut object = serde_json::Map::new();
        for argument in arguments {
            let Some((key, value)) = argument.split_once('=') else {
                return Err(BadInput(format!("the argument `{argument}` is not KEY=VALUE")));
            };
            if object.insert(key.to_owned(), value.into()).is_some() {
                return Err(BadInput(format!("the argument `{key}` is given twice")));
            }
        }
        Ok(Self::Call { tool: tool.to_owned(), arguments: serde_json::Value::Object(object).to_string() })
    }

    /// A call with arguments in JSON.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn json_call(tool: &str, arguments: &str) -> Result<Self, BadInput> {
        match serde_json::from_str::<serde_json::Value>(arguments) {
            Ok(serde_json::Value::Object(_)) => {
                Ok(Self::Call { tool: tool.to_owned(), arguments: arguments.to_owned() })
            }
            Ok(_) => Err(BadInput("the arguments of a call are a JSON object, such as {\"command\": \"ls\"}".into())),
            Err(error) => Err(BadInput(format!("the arguments are not valid JSON: {error}"))),
        }
    }

    /// The calls by which the model would write this text to this path: `write_file` and `edit_file`.
    pub fn written(path: &str, text: &str) -> Vec<Self> {
        let call = |tool: &str, arguments: serde_json::Value| Self::Call {
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        vec![
            call("write_file", serde_json::json!({"path": path, "content": text})),
            call("edit_file", serde_json::json!({"path": path, "old_text": "", "new_text": text})),
        ]
    }

    /// The stream in the fence of an example: `text`, `thinking`, or `tool:NAME KEY=VALUE … FIELD`.
    pub(super) fn of_example(example: &rules::Example) -> Self {
        let mut words = example.stream.split_whitespace();
        match words.next() {
            Some("thinking") => Self::Thinking(example.text.clone()),
            Some(word) if word.starts_with("tool:") => {
                let one = |word: &str| match word.split_once('=') {
                    Some((key, value)) => (key.to_owned(), value.into()),
                    None => (word.to_owned(), example.text.as_str().into()),
                };
                let arguments: serde_json::Map<String, serde_json::Value> = words.map(one).collect();
                let arguments = serde_json::Value::Object(arguments).to_string();
                Self::Call { tool: word["tool:".len()..].to_owned(), arguments }
            }
            _ => Self::Text(example.text.clone()),
        }
    }

    /// The block that it comes in.
    pub(super) fn kind(&self) -> StreamKind {
        match self {
            Self::Text(_) => StreamKind::Text,
            Self::Thinking(_) => StreamKind::Thinking,
            Self::Call { tool, .. } => StreamKind::Tool { call: CallId::new("trial"), name: tool.clone() },
        }
    }

    /// What is fed.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking(text) | Self::Call { arguments: text, .. } => text,
        }
    }

    /// The stream, in words.
    pub fn stream(&self) -> String {
        match self {
            Self::Text(_) => "text".into(),
            Self::Thinking(_) => "thinking".into(),
            Self::Call { tool, .. } => format!("tool:{tool}"),
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// A stream, human-readable.
pub(super) fn stream_words(stream: &StreamKind) -> String {
    match stream {
        StreamKind::Tool { name, .. } => format!("tool:{name}"),
        other => other.as_str().to_owned(),
    }
}
