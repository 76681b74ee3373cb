//! The event of an answer, with its blocks and what extensions noted.

use flow::{Annotation, AnswerBlock, CallId, EventKind, KeptText, Partial, PluginId, Retained, StreamKind};

use super::Read;
use crate::{Block, CognitionOut, Note};

impl CognitionOut {
    pub(super) fn kind(&self) -> Read<EventKind> {
        let note = |note: &Note| {
            let by = note.extension_id.parse::<PluginId>().map_err(|_| "annotations")?;
            Ok((by, Annotation { key: note.key.clone(), value: note.value.clone() }))
        };
        Ok(EventKind::CognitionOut {
            text: self.text.clone(),
            keep: if self.keep.as_deref() == Some(KeptText::Shown.as_str()) {
                KeptText::Shown
            } else {
                KeptText::default()
            },
            model: self.model.clone(),
            author: self.author.origin()?,
            shown: self.shown.clone(),
            partial: self.is_partial.then(|| self.partial()),
            retained: self.retained()?,
            blocks: self.blocks.iter().flatten().map(Block::block).collect::<Read<_>>()?,
            annotations: self.annotations.iter().flatten().map(note).collect::<Read<_>>()?,
            rewrites: Vec::new(),
        })
    }

    fn partial(&self) -> Partial {
        let shown = self.shown_bytes.unwrap_or(self.text.len() as u64);
        let partial = Partial::new(self.error.clone().unwrap_or_default(), shown, self.kept_bytes.unwrap_or(0));
        partial.with_completion(self.completion_percentage)
    }

    /// What a later version keeps in another way is not in the conversation of this one.
    fn retained(&self) -> Read<Retained> {
        Ok(match self.retained.as_str() {
            "answer" => Retained::Answer,
            "start" => Retained::Start { bytes: self.retained_bytes.ok_or("retained_bytes")? },
            "marked" => Retained::Marked,
            _ => Retained::Nothing,
        })
    }
}

impl Block {
    /// The block of an answer that it is. A field that does not match the others is the error.
    ///
    /// # Errors
    /// The name of the field.
    pub fn block(&self) -> Read<AnswerBlock> {
        let call = || {
            let id = self.call_id.as_deref().ok_or("call_id")?;
            Ok::<_, &'static str>((CallId::new(id), self.tool.clone().ok_or("tool")?))
        };
        let kind = StreamKind::read(&self.stream, call).ok_or("stream")??;
        let mut block = AnswerBlock::prose(kind, self.bytes.unwrap_or_default());
        (block.text_before, block.prefix_bytes) =
            (self.text_before.unwrap_or_default(), self.prefix_bytes.unwrap_or_default());
        (block.signature, block.redacted) = (self.signature.clone(), self.redacted.unwrap_or_default());
        block.arguments.clone_from(&self.arguments);
        block.shown.clone_from(&self.shown);
        (block.changed, block.complete) = (self.changed.unwrap_or_default(), self.complete);
        Ok(block)
    }
}
