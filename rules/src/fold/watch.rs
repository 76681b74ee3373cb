//! A stream under watch for rules that see it folded.

use std::collections::VecDeque;

use super::{Decided, Fold, Folder, Map};
use crate::group::FoldedGroup;
use crate::tail::{TAIL_BYTES, Tail};
use crate::watch::{Fired, Held, Watch};

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
        let (watch, locals) = (&mut self.watch, &self.locals);
        self.folder.push(text, &mut |map, folded, decided| {
            watch.feed(folded.as_bytes());
            fired.extend(watch.drain().map(|one| in_original(one, map, decided, locals, original)));
        });
        let past = self.watch.taken().saturating_sub(TAIL_BYTES as u64).min(self.watch.free().unwrap_or(0));
        self.folder.map.forget(past);
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
        Some(if free < self.watch.taken() { self.folder.map.start(free).min(settled) } else { settled })
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
    evidence.start = map.start(evidence.start).min(evidence.end);
    let (_, before) = original.window(evidence.end);
    let length = usize::try_from(evidence.end - evidence.start).unwrap_or(before.len()).min(before.len());
    evidence.start = evidence.end - length as u64;
    evidence.text = crate::watch::bounded_text(&before[before.len() - length..]);
    evidence.line = original.line(evidence.start);
    fired.local = locals[fired.local as usize];
    fired.moved(seen, |place| map.start(place))
}
