//! An answer that comes as one body: the rules read all of it before the client gets any.

use flow::{BlockId, Delta, StopReason, StreamKind};

/// The blocks of an answer as the deltas of a stream.
pub(crate) fn deltas(blocks: Vec<(StreamKind, String)>) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for (block, (kind, text)) in blocks.into_iter().enumerate() {
        let block = BlockId::try_from(block).unwrap_or(BlockId::MAX);
        deltas.push(Delta::BlockStart { block, kind });
        if !text.is_empty() {
            deltas.push(Delta::Piece { block, text });
        }
        deltas.push(Delta::BlockEnd { block });
    }
    deltas.push(Delta::Stop { reason: StopReason::EndTurn });
    deltas
}
