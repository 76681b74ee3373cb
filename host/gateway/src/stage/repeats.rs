//! Repeated text at the ends of blocks: a text that was changed in the stream is changed there, too.

use std::collections::{BTreeMap, BTreeSet};

use flow::TextStream;
use serde_json::Value;
use wire::Wire;

use super::Both;
use super::pieces::{Found, Piece, ended};
use crate::frame::Frame;

/// A block of a message: whether it is reasoning, the index of its item, and its number in the item.
type Block = (bool, (u64, u64));

/// The texts of a message, block by block.
#[derive(Debug, Default)]
pub(crate) struct Repeats(BTreeMap<Block, Both>);

impl Repeats {
    /// Adds a text that was received.
    pub(super) fn begin(&mut self, piece: &Piece) {
        self.0.entry((piece.stream == TextStream::Thinking, piece.block)).or_default();
    }

    /// Adds the text that was sent for it.
    pub(super) fn end(&mut self, piece: &Piece, shown: &str) {
        let both = self.0.entry((piece.stream == TextStream::Thinking, piece.block)).or_default();
        both.original.push_str(&piece.text);
        both.shown.push_str(shown);
    }

    pub(super) fn has(&self, stream: TextStream, block: (u64, u64)) -> bool {
        self.0.contains_key(&(stream == TextStream::Thinking, block))
    }

    /// Returns the blocks of a stream.
    pub(crate) fn blocks(&self, stream: TextStream) -> impl Iterator<Item = &Both> {
        let is_thinking = stream == TextStream::Thinking;
        self.0.iter().filter(move |((thinking, _), _)| *thinking == is_thinking).map(|(_, both)| both)
    }

    /// Changes a frame that repeats texts. Returns whether it does.
    pub(super) fn apply(&self, wire: Wire, frame: &mut Frame) -> bool {
        if wire != Wire::OpenAiResponses || self.0.values().all(|both| both.original == both.shown) {
            return false;
        }
        let Some(data) = &mut frame.data else { return false };
        let (repeated, mut is_changed) = (self.repeated(data), self.apply_all(data));
        for (path, shown) in repeated {
            if data.pointer(&path).and_then(Value::as_str) != Some(shown) {
                replace(data, &path, shown);
                is_changed = true;
            }
        }
        is_changed
    }

    /// Returns the places at which a frame repeats texts, each with the text that the client has of it. Servers can leave out items at the end,
    /// so that the others have other indexes there: then each text is that of the next block with this text.
    fn repeated(&self, data: &Value) -> Vec<(String, &str)> {
        let text_at = |(stream, path, block): Found| {
            let block = (stream == TextStream::Thinking, block);
            // A block that is empty so far has its text in this frame.
            let is_new = self.0.get(&block).is_some_and(|both| both.original.is_empty());
            let text = data.pointer(&path).and_then(Value::as_str).filter(|_| !is_new)?;
            Some((path, block, text))
        };
        let texts: Vec<(String, Block, &str)> = ended(data).into_iter().filter_map(text_at).collect();
        let is_own =
            |(_, block, text): &(String, Block, &str)| self.0.get(block).is_some_and(|both| both.original == *text);
        let is_exact = texts.iter().all(is_own);
        let (mut found, mut assigned) = (Vec::new(), BTreeSet::new());
        for (path, block, text) in texts {
            let is_next = |(own, both): &(&Block, &Both)| {
                if is_exact {
                    **own == block
                } else {
                    own.0 == block.0 && both.original == text && !assigned.contains(*own)
                }
            };
            if let Some((own, both)) = self.0.iter().find(is_next) {
                assigned.insert(*own);
                found.push((path, both.shown.as_str()));
            }
        }
        found
    }

    /// Changes the text of all of the answer, which some servers add to its end.
    fn apply_all(&self, data: &mut Value) -> bool {
        const PATH: &str = "/response/output_text";
        let Some(text) = data.pointer(PATH).and_then(Value::as_str) else { return false };
        let all = |of: fn(&Both) -> &str| self.blocks(TextStream::Answer).map(of).collect::<String>();
        let shown = all(|both| &both.shown);
        let is_changed = text == all(|both| &both.original) && text != shown;
        if is_changed {
            replace(data, PATH, &shown);
        }
        is_changed
    }
}

/// Replaces a text. A member that repeats it token by token is emptied.
fn replace(data: &mut Value, path: &str, text: &str) {
    if let Some(value) = data.pointer_mut(path) {
        *value = Value::from(text);
    }
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    if let Some(logprobs) = data.pointer_mut(parent).and_then(|parent| parent.get_mut("logprobs")) {
        *logprobs = Value::Array(Vec::new());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stage::pieces::REASONING;

    /// The texts of a message: of two items with one text each is changed in another way, and so is a third with its second part only.
    fn repeats() -> Repeats {
        let mut own = Repeats::default();
        for (stream, block, original, shown) in [
            (TextStream::Thinking, (0, 0), "yes", "so"),
            (TextStream::Thinking, (0, REASONING), "why", "because"),
            (TextStream::Answer, (1, 0), "yes", "yes 1"),
            (TextStream::Answer, (2, 0), "yes", "yes 2"),
            (TextStream::Answer, (3, 0), "no", "no"),
            (TextStream::Answer, (3, 1), "no", "NO"),
        ] {
            let piece = Piece { stream, text: original.to_owned(), path: String::new(), block };
            own.begin(&piece);
            own.end(&piece, shown);
        }
        own
    }

    /// Returns a frame as the client gets it.
    fn applied(data: &Value) -> Value {
        let mut frame = Frame::of("", data.clone());
        let is_changed = repeats().apply(Wire::OpenAiResponses, &mut frame);
        let after = frame.data.unwrap();
        assert_eq!(is_changed, after != *data, "{data}");
        after
    }

    #[test]
    fn a_text_is_replaced_at_its_place() {
        let at = |kind: &str, more: Value| {
            let mut data = json!({"type": format!("response.{kind}")});
            data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            data
        };
        let text =
            |index: u64, part: u64, text: &str| json!({"output_index": index, "content_index": part, "text": text});
        for (kind, before, after) in [
            ("output_text.done", text(1, 0, "yes"), text(1, 0, "yes 1")),
            ("output_text.done", text(2, 0, "yes"), text(2, 0, "yes 2")),
            ("output_text.done", text(3, 0, "no"), text(3, 0, "no")),
            ("output_text.done", text(3, 1, "no"), text(3, 1, "NO")),
            ("output_text.done", text(1, 0, "other"), text(1, 0, "other")),
            // A server that counts in another way.
            ("output_text.done", text(9, 0, "yes"), text(9, 0, "yes 1")),
            ("output_text.delta", text(1, 0, "yes"), text(1, 0, "yes")),
            ("reasoning_text.done", text(0, 0, "why"), text(0, 0, "because")),
            ("reasoning_summary_text.done", text(0, 0, "yes"), text(0, 0, "so")),
            (
                "refusal.done",
                json!({"output_index": 2, "refusal": "yes"}),
                json!({"output_index": 2, "refusal": "yes 2"}),
            ),
            (
                "content_part.done",
                json!({"output_index": 2, "part": {"type": "output_text", "text": "yes", "logprobs": [1]}}),
                json!({"output_index": 2, "part": {"type": "output_text", "text": "yes 2", "logprobs": []}}),
            ),
            // Strings that no text was streamed for.
            ("image.done", json!({"output_index": 1, "text": "yes"}), json!({"output_index": 1, "text": "yes"})),
            (
                "output_item.done",
                json!({"output_index": 1, "item": {"type": "file_search_call", "results": [{"text": "yes"}], "content": [{"text": "yes"}]}}),
                json!({"output_index": 1, "item": {"type": "file_search_call", "results": [{"text": "yes"}], "content": [{"text": "yes"}]}}),
            ),
            (
                "output_item.done",
                json!({"output_index": 2, "item": {"type": "message", "status": "yes", "content": [{"text": "yes", "annotations": [{"text": "yes"}]}]}}),
                json!({"output_index": 2, "item": {"type": "message", "status": "yes", "content": [{"text": "yes 2", "annotations": [{"text": "yes"}]}]}}),
            ),
        ] {
            assert_eq!(applied(&at(kind, before)), at(kind, after), "{kind}");
        }
    }

    #[test]
    fn the_end_repeats_all_texts() {
        let item = |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        let reasoning = |summary: &str, content: &str| json!({"type": "reasoning", "summary": [{"text": summary}], "content": [{"text": content}]});
        let two = |one: &str, other: &str| json!({"type": "message", "content": [{"text": one}, {"text": other}]});
        let call = json!({"type": "function_call", "arguments": "yes", "text": "yes"});
        for (before, after) in [
            (
                json!([reasoning("yes", "why"), item("yes"), item("yes"), two("no", "no")]),
                json!([reasoning("so", "because"), item("yes 1"), item("yes 2"), two("no", "NO")]),
            ),
            // Without the reasoning, the indexes are lower.
            (
                json!([item("yes"), item("yes"), two("no", "no")]),
                json!([item("yes 1"), item("yes 2"), two("no", "NO")]),
            ),
            (json!([call, item("yes"), item("other")]), json!([call, item("yes 1"), item("other")])),
        ] {
            let end = |output: Value| json!({"type": "response.completed", "response": {"output": output, "output_text": "no"}});
            assert_eq!(applied(&end(before)), end(after));
        }
        let all = |text: &str| json!({"type": "response.completed", "response": {"output_text": text}});
        assert_eq!(applied(&all("yesyesnono")), all("yes 1yes 2noNO"));
        assert_eq!(applied(&all("yes")), all("yes"));
    }
}
