//! An answer as it may have come, from its blocks: in pieces as small as a token, but for what came with a match that
//! stopped it. All matches of one piece go together, so where that piece began matters; a transcript does not say it.

use flow::{BlockId, BlockKind, Delta};

use super::attempt::{PastFire, stream_of};

/// The most bytes of a piece, about a token.
const PIECE: usize = 4;

/// A block of an answer.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) kind: BlockKind,
    pub(super) text: String,
    /// Bytes of it that an earlier attempt left.
    pub(super) stood: usize,
    pub(super) complete: bool,
}

/// The deltas of an answer, and which of them stood when the attempt began. `last` is what fired with its last piece and
/// stopped it; empty where nothing did.
pub(super) fn deltas(blocks: Vec<Piece>, last: &[&PastFire]) -> (Vec<Delta>, Option<usize>) {
    let (mut deltas, mut stood) = (Vec::new(), None);
    for (block, Piece { kind, text, stood: before, complete }) in (0..).zip(blocks) {
        let stream = stream_of(&kind);
        let ends = || last.iter().filter(|fire| fire.stream == stream).map(|fire| fire.end);
        // Where the arguments of a call had come to cannot be told from a place in one of them.
        let begin = match (complete || ends().next().is_none(), kind.is_tool()) {
            (true, _) => text.len(),
            (false, true) => 0,
            (false, false) => ends().flatten().min().map_or(0, |end| end.saturating_sub(1) as usize).min(text.len()),
        };
        // A match that needs the end of its block to be one ends with it.
        let at_end = !kind.is_tool() && ends().any(|end| end == Some(text.len() as u64));
        deltas.push(Delta::BlockStart { block, kind });
        let (old, new) = text.split_at_checked(before).unwrap_or(("", &text));
        if !old.is_empty() {
            stood = Some(deltas.len());
            deltas.push(Delta::Piece { block, text: old.to_owned() });
        }
        let small = new.floor_char_boundary(begin.saturating_sub(old.len()));
        cut(block, &new[..small], &mut deltas);
        if small < new.len() {
            deltas.push(Delta::Piece { block, text: new[small..].to_owned() });
        }
        if complete || at_end {
            deltas.push(Delta::BlockEnd { block });
        }
    }
    (deltas, stood)
}

fn cut(block: BlockId, mut text: &str, deltas: &mut Vec<Delta>) {
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.ceil_char_boundary(PIECE));
        deltas.push(Delta::Piece { block, text: piece.to_owned() });
        text = rest;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::StreamKind;

    use super::*;

    fn pieces(text: &str, stood: usize, complete: bool, ends: &[u64]) -> (Vec<String>, Option<usize>, bool) {
        let fire = |end: &u64| PastFire {
            rule: "r".into(),
            stream: StreamKind::Text,
            action: "interrupt".into(),
            end: Some(*end),
            tokens: None,
        };
        let fires: Vec<PastFire> = ends.iter().map(fire).collect();
        let block = Piece { kind: BlockKind::Text, text: text.into(), stood, complete };
        let (deltas, stood) = deltas(vec![block], &fires.iter().collect::<Vec<_>>());
        let ended = matches!(deltas.last(), Some(Delta::BlockEnd { .. }));
        let texts = deltas.into_iter().filter_map(|delta| match delta {
            Delta::Piece { text, .. } => Some(text),
            _ => None,
        });
        (texts.collect(), stood, ended)
    }

    #[test]
    fn what_came_with_the_match_is_one_piece_and_the_rest_is_cut_small() {
        assert_eq!(pieces("onetwoäx", 0, true, &[]), (vec!["onet".into(), "woä".into(), "x".into()], None, true));
        // Two rules, the first of them known at byte 6: both came with the piece that begins at its last byte.
        let (texts, _, ended) = pieces("onetwo three", 0, false, &[9, 6]);
        assert_eq!((texts, ended), (vec!["onet".into(), "w".into(), "o three".into()], false));
        // What stood is one piece that is judged no more; a match at the end may have needed the end.
        let (texts, stood, ended) = pieces("stood|new", 6, false, &[9]);
        assert_eq!((texts, stood, ended), (vec!["stood|".into(), "ne".into(), "w".into()], Some(1), true));
        let (texts, _, _) = pieces("ää", 0, false, &[2]);
        assert_eq!(texts.concat(), "ää");
    }
}
