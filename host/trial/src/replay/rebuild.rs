//! An answer from its blocks, in deltas about the size of a token. How it was cut when it was received does not matter:
//! the verdict on it is reached at the byte.

use flow::{BlockId, Delta, StopReason, StreamKind};

use super::attempt::PastFire;

/// The most bytes of a delta, about a token.
const PIECE: usize = 4;

/// A block of an answer.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) kind: StreamKind,
    pub(super) text: String,
    /// Bytes of it that an earlier attempt left.
    pub(super) kept: usize,
    pub(super) complete: bool,
}

/// The deltas of an answer, and the text that an earlier attempt left of it. `complete`: the answer was accepted. `last` is
/// what stopped it; empty where nothing did.
pub(super) fn deltas(blocks: Vec<Piece>, complete: bool, last: &[&PastFire]) -> (Vec<Delta>, String) {
    let (mut deltas, mut prefix, mut length) = (Vec::new(), String::new(), [0_u64; 2]);
    for (block, Piece { kind, text, kept, complete }) in (0..).zip(blocks) {
        let (old, new) = text.split_at_checked(kept).unwrap_or(("", &text));
        prefix.push_str(old);
        length[usize::from(kind == StreamKind::Thinking)] += if kind.is_tool() { 0 } else { text.len() as u64 };
        if new.is_empty() && !old.is_empty() {
            continue;
        }
        deltas.push(Delta::BlockStart { block, kind });
        cut(block, new, &mut deltas);
        if complete {
            deltas.push(Delta::BlockEnd { block });
        }
    }
    // A match that ends with its stream may have needed the end of the answer to be one.
    let at_end = last.iter().any(|fire| match fire.stream {
        StreamKind::Text => fire.end == Some(length[0]),
        StreamKind::Thinking => fire.end == Some(length[1]),
        StreamKind::Tool { .. } => false,
    });
    if complete || at_end {
        deltas.push(Delta::Stop { reason: StopReason::EndTurn });
    }
    (deltas, prefix)
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

    fn pieces(text: &str, kept: usize, complete: bool, ends: &[u64]) -> (Vec<String>, String, bool) {
        let fire = |end: &u64| PastFire {
            rule: "r".into(),
            stream: StreamKind::Text,
            action: "interrupt".into(),
            end: Some(*end),
            tokens: None,
            hidden: None,
        };
        let fires: Vec<PastFire> = ends.iter().map(fire).collect();
        let block = Piece { kind: StreamKind::Text, text: text.into(), kept, complete };
        let (deltas, prefix) = deltas(vec![block], complete, &fires.iter().collect::<Vec<_>>());
        let ended = matches!(deltas.last(), Some(Delta::Stop { .. }));
        let texts = deltas.into_iter().filter_map(|delta| match delta {
            Delta::Piece { text, .. } => Some(text),
            _ => None,
        });
        (texts.collect(), prefix, ended)
    }

    #[test]
    fn an_answer_is_cut_small_and_ends_where_a_match_may_have_needed_its_end() {
        assert_eq!(
            pieces("onetwoäx", 0, true, &[]),
            (vec!["onet".into(), "woä".into(), "x".into()], String::new(), true)
        );
        let (texts, _, ended) = pieces("onetwo three", 0, false, &[9, 6]);
        assert_eq!((texts, ended), (vec!["onet".into(), "wo t".into(), "hree".into()], false));
        let (texts, prefix, ended) = pieces("kept|new", 5, false, &[8]);
        assert_eq!((texts, prefix, ended), (vec!["new".into()], "kept|".into(), true));
        let (texts, prefix, _) = pieces("kept|", 5, true, &[]);
        assert_eq!((texts, prefix), (Vec::new(), "kept|".into()));
        assert_eq!(pieces("ää", 0, false, &[2]).0.concat(), "ää");
    }
}
