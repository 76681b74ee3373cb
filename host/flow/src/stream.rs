//! The streams of an answer.

use crate::CallId;

/// The stream that a block of an answer belongs to: the text blocks of one answer are one stream, its thinking blocks
/// another, and each tool call is a stream of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// The answer's text, which the user reads.
    Text,
    /// The model's reasoning.
    Thinking,
    /// The arguments of one tool call. Deltas carry chunks of their JSON; rules are matched on the decoded values.
    Tool {
        /// The id of the call.
        call: CallId,
        /// The name of the tool that is called.
        name: String,
    },
}

impl StreamKind {
    /// Whether the stream is the arguments of a tool call.
    pub fn is_tool(&self) -> bool {
        matches!(self, Self::Tool { .. })
    }

    /// The word for the kind of stream in records and output: `text`, `thinking` or `tool`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Tool { .. } => "tool",
        }
    }

    /// Reads the word that [`as_str`](Self::as_str) returned. `call` is asked for the id and the tool of a call, which are
    /// written next to the word. `None`: it is not the word of a stream.
    ///
    /// # Errors
    /// Those of `call`.
    pub fn read<E>(word: &str, call: impl FnOnce() -> Result<(CallId, String), E>) -> Option<Result<Self, E>> {
        Some(match word {
            "text" => Ok(Self::Text),
            "thinking" => Ok(Self::Thinking),
            "tool" => call().map(|(call, name)| Self::Tool { call, name }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CallId, StreamKind};

    #[test]
    fn each_word_is_read_as_the_stream_it_was_written_for() {
        let tool = StreamKind::Tool { call: CallId::new("c1"), name: "shell".into() };
        for stream in [StreamKind::Text, StreamKind::Thinking, tool] {
            let read = StreamKind::read(stream.as_str(), || Ok::<_, ()>((CallId::new("c1"), "shell".into())));
            assert_eq!(read, Some(Ok(stream)));
        }
        assert_eq!(StreamKind::read("tool", || Err("no id")), Some(Err("no id")));
        assert_eq!(StreamKind::read("reasoning", || Err(())), None);
    }
}
