//! Assertions at the far end of a look-around, rewritten as the character that they require or the end of the text.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};

use super::product::{Edge, Side, steps};

/// The look-around's inside with its last assertions (its first, where it looks back) spelled out: `const\b` is `const`
/// with no word character after it, or at the end. Others remain unchanged.
pub(super) fn spelled_out(hir: &Hir, side: Side) -> Hir {
    match hir.kind() {
        HirKind::Look(look) => instead(*look, None, side).unwrap_or_else(|| hir.clone()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(|part| spelled_out(part, side)).collect()),
        HirKind::Concat(parts) => {
            let mut parts = parts.clone();
            let far = if side == Side::After { parts.len() - 1 } else { 0 };
            let before = match side {
                Side::After => Hir::concat(parts[..far].to_vec()),
                Side::Before => Hir::concat(parts[1..].to_vec()),
            };
            let new = match parts[far].kind() {
                HirKind::Look(look) => instead(*look, Some(&before), side),
                _ => Some(spelled_out(&parts[far], side)),
            };
            if let Some(new) = new {
                parts[far] = new;
            }
            Hir::concat(parts)
        }
        _ => hir.clone(),
    }
}

/// The assertion of the text's end on this side.
pub(super) fn edge(side: Side) -> Look {
    if side == Side::After { Look::End } else { Look::Start }
}

/// Whether the rest of a look-around holds at the end of the text.
pub(super) fn holds_at_end(hir: &Hir, side: Side) -> bool {
    let Ok((edges, empty)) = steps(hir, side) else { return false };
    empty
        || edges
            .iter()
            .any(|(way, rest)| matches!(way, Edge::Look(look) if *look == edge(side)) && holds_at_end(rest, side))
}

/// What an assertion after `before` requires.
fn instead(look: Look, before: Option<&Hir>, side: Side) -> Option<Hir> {
    let after_word = || before.is_some_and(|before| ends_in_word(before, side));
    let class = match (look, side) {
        (Look::WordAscii, _) if after_word() => no_word(),
        (Look::WordEndAscii, Side::After) | (Look::WordStartAscii, Side::Before) if after_word() => no_word(),
        (Look::WordEndHalfAscii, Side::After) | (Look::WordStartHalfAscii, Side::Before) => no_word(),
        (Look::EndLF, Side::After) | (Look::StartLF, Side::Before) => {
            ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')])
        }
        _ => return None,
    };
    Some(Hir::alternation(vec![Hir::class(Class::Unicode(class)), Hir::look(edge(side))]))
}

fn word() -> ClassUnicode {
    ClassUnicode::new(
        [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')].map(|(low, high)| ClassUnicodeRange::new(low, high)),
    )
}

fn no_word() -> ClassUnicode {
    let mut class = word();
    class.negate();
    class
}

/// Whether the far character is a word character in every match.
fn ends_in_word(hir: &Hir, side: Side) -> bool {
    let back = if side == Side::After { Side::Before } else { Side::After };
    let inside = |chars: &ClassUnicode| {
        let mut rest = chars.clone();
        rest.difference(&word());
        rest.ranges().is_empty()
    };
    let all_words = |edges: &[(Edge, Hir)]| edges.iter().all(|(edge, _)| matches!(edge, Edge::Chars(c) if inside(c)));
    matches!(steps(hir, back), Ok((edges, false)) if all_words(&edges))
}
