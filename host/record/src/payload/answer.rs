//! The payloads of answers, and of their text and reasoning as they stream.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Absent;
use crate::message::Author;

payloads! {
    /// The payload of `cognition_out`.
    CognitionOut {
        /// The text as the model wrote it, as far as it was received; with `keep` as the user saw it, and as the conversation has it.
        text: String,
        /// `shown`: an extension has what the user saw kept, and what the model wrote is not recorded; absent: it is what the model
        /// wrote.
        keep: Option<String>,
        /// The model's name.
        model: Option<String>,
        /// Who wrote it: the model, or an extension in its place.
        #[serde(default)]
        author: Author,
        /// What the user has seen of it, where that is neither the text nor its start.
        shown: Option<String>,
        /// It did not come to its end.
        #[serde(default)]
        is_partial: bool,
        /// Its text was cut off.
        #[serde(default)]
        truncated: bool,
        /// Of a partial answer: the cause.
        error: Option<String>,
        /// Of a partial answer: how much of it was received, in percent of the most tokens that it could have; absent where no most is known.
        completion_percentage: Option<f64>,
        /// `completion_percentage` is an estimate, and too low for an answer that would have ended before its limit.
        completion_estimated: Option<bool>,
        /// Of a partial answer: the bytes that had been shown.
        shown_bytes: Option<u64>,
        /// Of a partial answer: the shown bytes that remain for the next attempt, which continues them.
        kept_bytes: Option<u64>,
        /// What stays in the conversation: `nothing`, `answer`, `start` or `marked`; empty in records of other programs.
        #[serde(default)]
        retained: String,
        /// Of `start`: the number of bytes of the text.
        retained_bytes: Option<u64>,
        /// How the text, the reasoning before this record and the calls follow each other.
        blocks: Option<Vec<Block>>,
        /// What extensions noted.
        annotations: Option<Vec<Note>>,
        /// What extensions made of the text, in order; the last is the text of the answer in the conversation.
        rewrites: Option<Vec<Rewrite>>,
    }

    /// A block of an answer.
    Block {
        /// `text`, `thinking` or `tool`.
        stream: String,
        /// Of text and thinking: its length. The text blocks joined are the answer's text, the thinking blocks its reasoning.
        bytes: Option<u64>,
        /// Of thinking: the bytes of the answer's text that come before it.
        text_before: Option<u64>,
        /// Of thinking: opaque data that the provider requires back. Absent where the words are not those that the model wrote.
        signature: Option<String>,
        /// Of thinking: the provider gave the signature instead of words.
        redacted: Option<bool>,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
        /// Of a tool call: the JSON of the arguments, as far as it was received; or, where that is kept, as it was shown.
        arguments: Option<String>,
        /// Of a tool call: what was shown of the arguments, where that is another text.
        shown: Option<String>,
        /// Of a tool call: the arguments are not those that the model wrote, which are not recorded.
        changed: Option<bool>,
        /// Whether the block is complete.
        complete: bool,
        /// The number of its bytes, from the start, that an earlier attempt wrote.
        prefix_bytes: Option<u64>,
    }

    /// What an extension noted about an answer or a result.
    Note {
        /// The id of the extension.
        extension_id: String,
        /// The key of the note.
        key: String,
        /// The value of the note.
        value: Value,
    }

    /// What an extension made of the text of an answer.
    Rewrite {
        /// The id of the extension.
        extension_id: String,
        /// The new text.
        text: String,
    }

    /// The payload of `cognition_out_delta`.
    CognitionOutDelta {
        /// The text that was shown.
        text: String,
        /// Its number within the attempt, from 0.
        chunk_index: u32,
        /// The answer is complete: no delta of it follows. Absent otherwise.
        is_final: Option<bool>,
    }

    /// The payload of `cognition_reasoning`.
    CognitionReasoning {
        /// The reasoning of the answer that follows, its blocks joined.
        text: String,
        /// `shown`: it is what the user saw, and what the model wrote is not recorded.
        keep: Option<String>,
        /// It did not come to its end.
        #[serde(default)]
        is_partial: bool,
        /// The stream was interrupted before it came to its end.
        #[serde(default)]
        was_interrupted: bool,
        /// It stays in the conversation with its answer, also the part of an answer that broke off.
        #[serde(default)]
        retained: bool,
    }

    /// The payload of `cognition_reasoning_delta`.
    CognitionReasoningDelta {
        /// The text that was shown.
        text: String,
    }
}

impl CognitionOut {
    /// What the user has seen of the answer, as far as it goes.
    pub fn seen(&self) -> &str {
        match (&self.shown, self.shown_bytes) {
            (Some(shown), _) => shown,
            (None, Some(bytes)) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.text.len());
                &self.text[..self.text.floor_char_boundary(bytes)]
            }
            (None, None) => &self.text,
        }
    }
}
