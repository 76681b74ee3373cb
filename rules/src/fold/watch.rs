//! A stream under watch for rules that see it folded.

use std::collections::VecDeque;

use super::{Decided, Fold, Folder, Map};
use crate::group::FoldedGroup;
use crate::tail::{TAIL_BYTES, Tail, is_continuation};
use crate::watch::{Fired, Held, Watch};

/// The most bytes of invisible characters in what may be the beginning of a match of a bounded length.
const MAX_PADDING: u64 = 4096;

/// The watch over the folded text, and what leads from there to the original.
#[derive(Debug)]
pub(crate) struct FoldedWatch {
    fold: Fold,
    folder: Folder,
    watch: Watch,
    /// By position in its group: the position in the group of the stream.
    locals: Vec<u32>,
    /// Whether bytes are held back for one of its rules.
    holds: bool,
    /// The beginning of a character whose other bytes have not come.
    begun: Vec<u8>,
}

impl FoldedWatch {
    /// A stream begins; `None` where no rule of the group may fire in it.
    pub(crate) fn new(of: &FoldedGroup, live: &[bool], held: &Held) -> Option<Self> {
        let own = |flags: &[bool]| -> Vec<bool> { of.locals.iter().map(|local| flags[*local as usize]).collect() };
        let live = own(live);
        if !live.contains(&true) {
            return None;
        }
        let held = Held { stops: own(&held.stops), holds: own(&held.holds), is_unlimited: own(&held.is_unlimited) };
        let holds = held.holds.iter().zip(&live).any(|(holds, live)| *holds && *live);
        let watch = Watch::new(&of.group, live, held);
        Some(Self {
            fold: of.fold,
            folder: Folder::new(of.fold),
            watch,
            locals: of.locals.clone(),
            holds,
            begun: Vec::new(),
        })
    }

    /// Takes the next bytes, which are the last ones of `original`. Adds the rules that fired.
    pub(crate) fn feed(&mut self, bytes: &[u8], original: &Tail, fired: &mut VecDeque<Fired>) {
        self.begun.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.begun);
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => {
                let (whole, begun) = bytes.split_at(error.valid_up_to());
                self.begun = begun.to_vec();
                std::str::from_utf8(whole).unwrap_or_default()
            }
        };
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (watch, locals) = (&mut self.watch, &self.locals);
            rest = self.folder.push(text, &mut |map, folded, decided| {
                watch.feed(folded.as_bytes());
                fired.extend(watch.drain().map(|one| in_original(one, map, decided, locals, original)));
            });
            if rest.is_some() {
                self.stop_padding(original, fired);
            }
        }
        // As in text that is not folded, the start of a match is looked for so far back and no further.
        self.folder.map.forget(self.watch.taken().saturating_sub(TAIL_BYTES as u64));
    }

    /// Invisible characters could keep a match in progress, and the text before them held back, for as long as the model writes them. After
    /// [`MAX_PADDING`] bytes of them this counts as a match: no text needs as many, and none of it may be shown.
    fn stop_padding(&mut self, original: &Tail, fired: &mut VecDeque<Fired>) {
        self.give_up(original, fired);
        let (watch, locals) = (&mut self.watch, &self.locals);
        self.folder.settle_after(MAX_PADDING, &mut |map, folded, decided| {
            watch.feed(folded.as_bytes());
            fired.extend(watch.drain().map(|one| in_original(one, map, decided, locals, original)));
        });
        self.give_up(original, fired);
    }

    fn give_up(&mut self, original: &Tail, fired: &mut VecDeque<Fired>) {
        let (taken, folded) = (self.folder.taken(), self.watch.taken());
        let map = &self.folder.map;
        // A character of up to four bytes is folded to one or more.
        let is_padded = |from: u64| {
            let held = map.start(from).map_or(u64::MAX, |start| taken - start);
            held > MAX_PADDING + 4 * (folded - from)
        };
        for mut one in self.watch.give_up(is_padded) {
            let start = map.start(one.evidence.start).unwrap_or(0);
            let (_, window) = original.window(taken);
            one.evidence.start = start;
            one.evidence.end = taken;
            // The window can begin within a character.
            let kept = &window[window.len().saturating_sub((taken - start) as usize)..];
            let begun = kept.iter().take_while(|byte| is_continuation(**byte)).count();
            one.evidence.text = crate::watch::bounded_text(&kept[begun..]);
            one.evidence.line = original.line(start);
            one.local = self.locals[one.local as usize];
            fired.push_back(one.moved(taken, |place| map.start(place).unwrap_or(0)));
        }
    }

    /// The stream is complete. Adds the rules that fired with that.
    pub(crate) fn finish(&mut self, original: &Tail, fired: &mut VecDeque<Fired>) {
        let (watch, locals) = (&mut self.watch, &self.locals);
        self.folder.finish(&mut |map, folded, decided| {
            watch.feed(folded.as_bytes());
            fired.extend(watch.drain().map(|one| in_original(one, map, decided, locals, original)));
        });
        self.watch.finish();
        let (map, end) = (&self.folder.map, Decided::At(original.end()));
        fired.extend(self.watch.drain().map(|one| in_original(one, map, end, locals, original)));
    }

    /// Bytes of the original that no match in progress can include; `None`: they are no longer known.
    pub(crate) fn free(&self) -> Option<u64> {
        self.in_original(self.watch.free())
    }

    /// The same, but without matches in progress of patterns that have reached a limit.
    pub(crate) fn free_at_limit(&self) -> Option<u64> {
        self.in_original(self.watch.free_at_limit())
    }

    fn in_original(&self, free: Option<u64>) -> Option<u64> {
        if !self.holds {
            return Some(u64::MAX);
        }
        let free = free?;
        let settled = self.folder.settled();
        if free < self.watch.taken() {
            self.folder.map.start(free).map(|start| start.min(settled))
        } else {
            Some(settled)
        }
    }

    /// Whether a match of a rule about secrets is in progress at the end of these bytes of the original.
    pub(crate) fn is_in_secret(&self, window: &[u8]) -> bool {
        self.watch.is_in_secret(self.fold.text(&String::from_utf8_lossy(window)).as_bytes())
    }

    pub(crate) fn is_unbounded(&self) -> bool {
        self.watch.is_unbounded()
    }

    /// The rules for which bytes are held back, by position in the group of the stream.
    pub(crate) fn holding(&self) -> impl Iterator<Item = u32> {
        self.watch.holding().into_iter().map(|local| self.locals[local as usize])
    }
}

/// A rule that fired in folded text, with the places and the text of the original.
fn in_original(mut fired: Fired, map: &Map, decided: Decided, locals: &[u32], original: &Tail) -> Fired {
    let seen = match decided {
        Decided::At(place) => place,
        Decided::After(bytes) => map.end(fired.seen()) + bytes,
    };
    let evidence = &mut fired.evidence;
    evidence.end = map.end(evidence.end);
    // An empty match behind what is left out would begin after its end.
    evidence.start = map.start(evidence.start).unwrap_or(0).min(evidence.end);
    let (_, before) = original.window(evidence.end);
    let length = usize::try_from(evidence.end - evidence.start).unwrap_or(before.len()).min(before.len());
    evidence.start = evidence.end - length as u64;
    evidence.text = crate::watch::bounded_text(&before[before.len() - length..]);
    evidence.line = original.line(evidence.start);
    fired.local = locals[fired.local as usize];
    fired.moved(seen, |place| map.start(place).unwrap_or(0))
}
