//! A stream of text on its way through the callbacks: maps the parts of their output to the parts of their input.

use std::collections::BTreeMap;

use flow::CallFailure;
use guard::Segments;

use super::{Both, shares};

/// The number of a frame, and of a text in it.
pub(super) type Place = (u64, usize);

/// The index of a block, and that of the part in it.
type Block = (u64, u64);

/// A stream of text.
#[derive(Debug)]
pub(super) struct Lane {
    segments: Segments,
    /// Whether all of it waits for the end of the answer.
    is_held: bool,
    /// The texts that were pushed and not returned yet.
    pending: Vec<Pending>,
    /// The output of callbacks for the pending texts so far.
    returned: String,
    /// The output for each text that was resolved.
    resolved: BTreeMap<Place, String>,
    both: Both,
    bytes: u64,
}

/// A text that waits for the output of callbacks.
#[derive(Debug)]
struct Pending {
    place: Place,
    block: Block,
    text: String,
}

impl Lane {
    pub(super) fn new(segments: Segments, is_held: bool) -> Self {
        let (pending, returned) = (Vec::new(), String::new());
        Self { segments, is_held, pending, returned, resolved: BTreeMap::new(), both: Both::default(), bytes: 0 }
    }

    /// Returns whether text passes as it is.
    pub(super) fn is_idle(&self) -> bool {
        self.segments.is_idle() && !self.is_held
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn both(&self) -> &Both {
        &self.both
    }

    /// Takes a text of a block.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(super) async fn push(&mut self, place: Place, block: Block, text: &str) -> Result<(), CallFailure> {
        let pending = |text: &str| Pending { place, block, text: text.to_owned() };
        self.bytes += text.len() as u64;
        self.both.original.push_str(text);
        if self.is_idle() || text.is_empty() {
            self.resolve_one(place, text);
            return Ok(());
        }
        if self.is_held {
            self.pending.push(pending(text));
            return Ok(());
        }
        // Units end with lines: the text behind the last line end waits alone.
        for line in text.split_inclusive('\n') {
            self.pending.push(pending(line));
            self.returned.push_str(&self.segments.push(line).await?);
            if self.segments.is_clear() {
                self.resolve();
            }
        }
        Ok(())
    }

    /// Ends the text, or a block of it.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(super) async fn finish(&mut self) -> Result<(), CallFailure> {
        if !self.is_idle() && !self.is_held {
            self.returned.push_str(&self.segments.finish().await?);
        }
        if self.is_held {
            self.returned = self.pending.iter().map(|one| one.text.as_str()).collect();
        }
        self.resolve();
        Ok(())
    }

    /// Replaces all of the text by this one.
    pub(super) fn replace(&mut self, text: &str) {
        text.clone_into(&mut self.returned);
        self.resolve();
    }

    /// Drops the waiting text.
    pub(super) fn void(&mut self, segments: Segments) {
        self.segments = segments;
        let void: usize = self.pending.iter().map(|one| one.text.len()).sum();
        self.both.original.truncate(self.both.original.len() - void);
        self.returned.clear();
        self.resolve();
    }

    /// Takes the text that the client has; it is not counted any more.
    pub(super) fn take_shown(&mut self) -> String {
        std::mem::take(&mut self.both).shown
    }

    /// Resolves the pending texts by the output so far, of which each block gets its share. If that is another text than before, the first text
    /// of the block gets all of it.
    fn resolve(&mut self) {
        let (pending, returned) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.returned));
        let blocks: Vec<&[Pending]> = pending.chunk_by(|one, other| one.block == other.block).collect();
        let texts: Vec<String> =
            blocks.iter().map(|block| block.iter().map(|one| one.text.as_str()).collect()).collect();
        for ((block, text), share) in blocks.iter().zip(&texts).zip(shares::divide(&texts, &returned)) {
            let (is_same, mut rest) = (share == *text, Some(share));
            for Pending { place, text, .. } in *block {
                let shown = if is_same { text.clone() } else { rest.take().unwrap_or_default() };
                self.resolve_one(*place, &shown);
            }
        }
    }

    fn resolve_one(&mut self, place: Place, shown: &str) {
        self.resolved.entry(place).or_default().push_str(shown);
        self.both.shown.push_str(shown);
    }

    /// Returns whether all of a text is resolved.
    pub(super) fn is_resolved(&self, place: Place) -> bool {
        self.resolved(place).is_some()
    }

    /// Returns the output for a text.
    pub(super) fn resolved(&self, place: Place) -> Option<&str> {
        let waits = self.pending.iter().any(|one| one.place == place);
        self.resolved.get(&place).filter(|_| !waits).map(String::as_str)
    }

    pub(super) fn take(&mut self, place: Place) -> Option<String> {
        self.resolved.remove(&place)
    }
}
