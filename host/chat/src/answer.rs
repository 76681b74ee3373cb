//! What the end of an attempt means for what was shown of it.

use flow::{Partial, Retained};

/// What becomes of the shown text of an answer whose record has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End<'e> {
    /// The answer is accepted.
    Accepted,
    /// The next attempt continues the first `kept` bytes of what was shown; the rest is void.
    Continues { kept: usize, why: &'e str },
    /// What was shown stays, as a message of its own that did not come to its end. The next attempt is another one, whose shown text
    /// begins with the first `carried` bytes of this one.
    Stays { carried: usize, why: &'e str },
}

/// Reads the end of an answer. `before` is the number of shown bytes that attempts before this one have left.
///
/// A rule's context mode is not in the event; it follows from what is retained: `discard` and `rewind` retain nothing or a start that
/// the next attempt continues, and then `kept_bytes` has grown; `keep` retains a start, and `kept_bytes` is what it was.
pub(crate) fn end(partial: Option<&Partial>, retained: Retained, before: usize) -> End<'_> {
    let Some(partial) = partial else { return End::Accepted };
    let (kept, why) = (usize::try_from(partial.kept_bytes).unwrap_or(usize::MAX), partial.error.as_str());
    match retained {
        Retained::Nothing => End::Continues { kept, why },
        Retained::Start { .. } if kept > before => End::Continues { kept, why },
        Retained::Start { .. } => End::Stays { carried: kept, why },
        Retained::Marked | Retained::Answer => End::Stays { carried: 0, why },
    }
}

/// What the user has seen of an answer: never the original where an extension changed what was shown. `None`: what the deltas gave. An event of
/// the shown stream has no text, and where there is none no deltas were lost.
pub(crate) fn seen<'e>(text: &'e str, shown: Option<&'e str>, partial: Option<&Partial>) -> Option<&'e str> {
    match (shown, partial) {
        (Some(shown), _) => Some(shown),
        (None, _) if text.is_empty() => None,
        (None, None) => Some(text),
        (None, Some(partial)) => {
            let bytes = usize::try_from(partial.shown_bytes).unwrap_or(usize::MAX);
            Some(&text[..text.floor_char_boundary(bytes)])
        }
    }
}
