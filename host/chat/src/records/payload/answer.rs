//! Answers and their text as it streams.

use flow::{Annotation, AnswerBlock, CallId, EventKind, KeptText, Partial, Retained, StreamKind};
use serde::Deserialize;
use serde_json::Value;

use super::message::AuthorRecord;
use super::{Read, fields, plugin, read};

pub(super) fn delta(payload: Value) -> Read<EventKind> {
    fields!(payload {
        text: String,
        #[serde(default)]
        chunk_index: u32,
        #[serde(default)]
        is_final: bool
    });
    Ok(EventKind::CognitionOutDelta { text, index: chunk_index, is_final })
}

pub(super) fn reasoning_delta(payload: Value) -> Read<EventKind> {
    fields!(payload { text: String });
    Ok(EventKind::CognitionReasoningDelta { text })
}

pub(super) fn out(payload: Value) -> Read<EventKind> {
    read::<Out>(payload)?.kind()
}

#[derive(Deserialize)]
struct Out {
    text: String,
    #[serde(default)]
    author: AuthorRecord,
    shown: Option<String>,
    #[serde(default)]
    is_partial: bool,
    error: Option<String>,
    completion_percentage: Option<f64>,
    shown_bytes: Option<u64>,
    kept_bytes: Option<u64>,
    #[serde(default)]
    retained: String,
    retained_bytes: Option<u64>,
    #[serde(default)]
    blocks: Vec<BlockRecord>,
    #[serde(default)]
    annotations: Vec<NoteRecord>,
}

impl Out {
    fn kind(self) -> Read<EventKind> {
        let retained = match self.retained.as_str() {
            "answer" => Retained::Answer,
            "start" => Retained::Start { bytes: self.retained_bytes.ok_or("`retained_bytes` is missing")? },
            "marked" => Retained::Marked,
            _ => Retained::Nothing,
        };
        let partial = self.is_partial.then(|| {
            let shown = self.shown_bytes.unwrap_or(self.text.len() as u64);
            let partial = Partial::new(self.error.unwrap_or_default(), shown, self.kept_bytes.unwrap_or(0));
            partial.with_completion(self.completion_percentage)
        });
        let note =
            |note: NoteRecord| Ok((plugin(&note.extension_id)?, Annotation { key: note.key, value: note.value }));
        Ok(EventKind::CognitionOut {
            text: self.text,
            keep: KeptText::default(),
            model: None,
            author: self.author.origin()?,
            shown: self.shown,
            partial,
            retained,
            blocks: self.blocks.into_iter().map(BlockRecord::block).collect::<Read<_>>()?,
            annotations: self.annotations.into_iter().map(note).collect::<Read<_>>()?,
            rewrites: Vec::new(),
        })
    }
}

#[derive(Deserialize)]
struct BlockRecord {
    stream: String,
    bytes: Option<u64>,
    call_id: Option<String>,
    tool: Option<String>,
    arguments: Option<String>,
    shown: Option<String>,
    complete: bool,
}

impl BlockRecord {
    fn block(self) -> Read<AnswerBlock> {
        let call = || {
            let id = self.call_id.as_deref().ok_or("`call_id` is missing")?;
            Ok::<_, &str>((CallId::new(id), self.tool.clone().ok_or("`tool` is missing")?))
        };
        let kind = StreamKind::read(&self.stream, call).ok_or_else(|| format!("`{}` is no stream", self.stream))??;
        let mut block = AnswerBlock::prose(kind, self.bytes.unwrap_or_default());
        (block.arguments, block.shown, block.complete) = (self.arguments, self.shown, self.complete);
        Ok(block)
    }
}

#[derive(Deserialize)]
struct NoteRecord {
    extension_id: String,
    key: String,
    value: Value,
}
