//! The chunks of one body on their way to the disk: those that can contain a part of a secret wait, and are masked in
//! place.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::events::{Events, Name, Piece, PieceKind};
use super::secrets::Masks;
use super::watch::{Patch, Unescaped, Watch};

/// A chunk waits at most until so many bytes have come after it, for a secret to be completed: 64 KiB. What of a secret
/// is there by then is masked where it has 6 bytes or more, and the rest when it comes.
const LONGEST_WAIT: usize = 64 << 10;

/// The most bytes of an event that wait for its end: as many as the decoder takes.
const LARGEST_EVENT: usize = wire::MAX_EVENT_BYTES;

/// The most texts of one body that are watched at a time.
const MOST_TEXTS: usize = 1024;

/// A chunk: its time in milliseconds, its bytes.
pub(super) type Chunk = (u64, Vec<u8>);

/// The chunks of one body that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Each with its place in the body.
    chunks: VecDeque<(usize, Chunk)>,
    /// How long the body is.
    end: usize,
    /// It is not a stream of events.
    plain: bool,
    events: Events,
    /// A body that is not a stream of events, as one text.
    rest: Watch,
    texts: HashMap<Name, Watch>,
    /// The last id that each kind of text was known by.
    ids: HashMap<Vec<u8>, Vec<u8>>,
}

impl Held {
    /// The body is not a stream of events: it is searched as it arrives.
    pub(super) fn is_plain(&mut self) {
        self.plain = true;
    }

    /// Takes a chunk; gives those that can be written.
    pub(super) fn push(&mut self, masks: &Masks, at_ms: u64, bytes: &[u8]) -> Vec<Chunk> {
        let place = self.end;
        self.chunks.push_back((place, (at_ms, bytes.to_vec())));
        self.end += bytes.len();
        let mut patches = Vec::new();
        if self.plain {
            bytes.iter().zip(place..).for_each(|(byte, at)| self.rest.push(*byte, at..at + 1));
            self.rest.look(masks, false, &mut patches);
        } else {
            let mut events = std::mem::take(&mut self.events);
            events.push(bytes, &mut |piece| self.piece(masks, &piece, &mut patches));
            self.events = events;
        }
        self.write_over(patches);
        let until = self.hold(masks);
        self.give(until)
    }

    /// The body has ended: gives all that is left.
    pub(super) fn finish(mut self, masks: &Masks) -> Vec<Chunk> {
        let mut patches = Vec::new();
        std::mem::take(&mut self.events).finish(&mut |piece| self.piece(masks, &piece, &mut patches));
        self.texts.values_mut().chain([&mut self.rest]).for_each(|text| text.give_up(masks, &mut patches));
        self.write_over(patches);
        self.give(self.end)
    }

    fn piece(&mut self, masks: &Masks, piece: &Piece<'_>, patches: &mut Vec<Patch>) {
        let read = match piece.kind {
            PieceKind::Line => Unescaped::none(piece.bytes),
            PieceKind::Part | PieceKind::Whole => Unescaped::of(piece.bytes),
        };
        let bytes = read.bytes.iter().zip(read.places);
        let bytes = bytes.map(|(byte, place)| (*byte, piece.place + place.start..piece.place + place.end));
        if piece.kind != PieceKind::Part {
            let mut whole = Watch::default();
            bytes.for_each(|(byte, place)| whole.push(byte, place));
            whole.look(masks, true, patches);
            return;
        }
        if self.texts.len() >= MOST_TEXTS {
            self.texts.values_mut().for_each(|text| text.give_up(masks, patches));
            self.texts.clear();
            self.ids.clear();
        }
        let mut name = piece.name.clone();
        if name.id.is_empty() {
            name.id = self.ids.get(&name.base).cloned().unwrap_or_default();
        } else {
            self.ids.insert(name.base.clone(), name.id.clone());
        }
        let text = self.texts.entry(name).or_default();
        bytes.for_each(|(byte, place)| text.push(byte, place));
        text.look(masks, false, patches);
    }

    /// The place up to which the chunks can be written.
    fn hold(&mut self, masks: &Masks) -> usize {
        let mut until = self.events.hold().map_or(self.end, |place| place.max(self.end.saturating_sub(LARGEST_EVENT)));
        let longest = self.end.saturating_sub(LONGEST_WAIT);
        let mut patches = Vec::new();
        for text in self.texts.values_mut().chain([&mut self.rest]) {
            match text.hold {
                Some(place) if place < longest => {
                    text.give_up(masks, &mut patches);
                    text.hold = None;
                }
                Some(place) => until = until.min(place),
                None => {}
            }
        }
        self.write_over(patches);
        until
    }

    fn write_over(&mut self, patches: Vec<Patch>) {
        for Patch { place, fill } in patches {
            let Range { mut start, end } = place;
            while start < end {
                let after = self.chunks.partition_point(|(begin, _)| *begin <= start);
                let Some((begin, (_, bytes))) = after.checked_sub(1).and_then(|at| self.chunks.get_mut(at)) else {
                    break;
                };
                let Some(byte) = bytes.get_mut(start - *begin) else { break };
                Patch::apply(fill, byte);
                start += 1;
            }
        }
    }

    fn give(&mut self, until: usize) -> Vec<Chunk> {
        let mut given = Vec::new();
        while let Some((place, (_, bytes))) = self.chunks.front() {
            // A chunk is a line of the recording: it waits whole.
            if place + bytes.len() > until {
                break;
            }
            given.extend(self.chunks.pop_front().map(|(_, chunk)| chunk));
        }
        given
    }
}

/// Masks the secrets of a text that is whole.
pub(super) fn mask_text(masks: &Masks, text: &mut String) {
    let mut watch = Watch::default();
    text.bytes().enumerate().for_each(|(at, byte)| watch.push(byte, at..at + 1));
    let mut patches = Vec::new();
    watch.look(masks, true, &mut patches);
    if !patches.is_empty() {
        let mut bytes = std::mem::take(text).into_bytes();
        for Patch { place, fill } in patches {
            bytes[place].iter_mut().for_each(|byte| Patch::apply(fill, byte));
        }
        *text = String::from_utf8_lossy(&bytes).into_owned();
    }
}
