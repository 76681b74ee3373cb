//! The reasoning on its way to the user: split into units for `on_plain_text` where an extension asked for it.
//!
//! A unit also ends where a block of reasoning ends. The gate can release the last bytes of a block after the block has
//! ended, because a match may span two blocks; therefore the ends are counted in bytes and not taken from the order of
//! deltas, and a unit is the same at every chunking.

use std::collections::VecDeque;
use std::sync::Arc;

use flow::{BlockId, CallFailure, Delta, StreamKind};

use crate::chain::Caller;
use crate::segments::Segments;

/// The reasoning of one attempt.
pub(crate) struct Reasoning {
    segments: Segments,
    /// No extension handles it: it is passed on as it is, and nothing is counted.
    idle: bool,
    /// The blocks of reasoning that have not ended.
    open: Vec<BlockId>,
    /// Bytes of reasoning that were received in this attempt.
    received: usize,
    /// Bytes that the gate released.
    released: usize,
    /// Where blocks ended, in bytes received, as far as the units do not end there yet.
    ends: VecDeque<usize>,
    /// The number of the block, from 0, that the next unit is of.
    block: usize,
}

/// What is shown now of a block of reasoning.
pub(crate) struct Seen {
    /// The number of the block among the thinking blocks of the answer, in the order in which they ended.
    pub(crate) block: usize,
    pub(crate) text: String,
}

impl Reasoning {
    pub(crate) fn new(caller: Arc<Caller>) -> Self {
        let segments = Segments::of_thinking(caller);
        let idle = segments.is_idle();
        Self { segments, idle, open: Vec::new(), received: 0, released: 0, ends: VecDeque::new(), block: 0 }
    }

    /// The provider restarted its answer. What was not shown yet is dropped.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(Arc::clone(self.segments.handlers()));
    }

    /// Takes note of the blocks in a delta that the gate is about to get.
    pub(crate) fn watch(&mut self, delta: &Delta) {
        if self.idle {
            return;
        }
        match delta {
            Delta::BlockStart { block, kind: StreamKind::Thinking } => self.open.push(*block),
            Delta::Piece { block, text } if self.open.contains(block) => self.received += text.len(),
            Delta::BlockEnd { block } if self.open.contains(block) => {
                self.open.retain(|open| open != block);
                self.ends.push_back(self.received);
            }
            _ => {}
        }
    }

    /// Takes released bytes and returns what is shown of them now.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn push(&mut self, text: String) -> Result<Vec<Seen>, CallFailure> {
        if self.idle {
            return Ok(vec![Seen { block: self.block, text }]);
        }
        let (mut rest, mut seen) = (text.as_str(), Vec::new());
        while let Some(end) = self.ends.front() {
            let Some((before, after)) = rest.split_at_checked(end.saturating_sub(self.released)) else { break };
            seen.push(self.take(before).await?);
            seen.push(self.flush().await?);
            rest = after;
        }
        seen.push(self.take(rest).await?);
        Ok(seen)
    }

    async fn take(&mut self, text: &str) -> Result<Seen, CallFailure> {
        self.released += text.len();
        Ok(Seen { block: self.block, text: self.segments.push(text).await? })
    }

    /// Whether everything up to the end of a block has been released.
    pub(crate) fn is_due(&self) -> bool {
        self.ends.front() == Some(&self.released)
    }

    /// A block or the answer ended: returns what waited for the end of its unit.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn flush(&mut self) -> Result<Seen, CallFailure> {
        let (block, text) = (self.block, self.segments.finish().await?);
        if self.ends.pop_front().is_some() {
            self.block += 1;
        }
        Ok(Seen { block, text })
    }
}
