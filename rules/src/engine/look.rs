//! Assertions (`^`, `$`, `\b`, …): whether one holds between two bytes.

use regex_syntax::hir::Look;

/// The context of a position: the class of the byte before it, as far as assertions distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Context {
    /// No byte: the start of the stream.
    Start,
    /// A line feed, `\n`.
    Lf,
    /// A carriage return, `\r`.
    Cr,
    /// An ASCII letter, digit or `_`.
    Word,
    /// Any other byte.
    Other,
}

impl Context {
    /// All contexts; the position of each is its number.
    pub(crate) const ALL: [Self; 5] = [Self::Start, Self::Lf, Self::Cr, Self::Word, Self::Other];

    /// The context after `byte`.
    pub(crate) fn after(byte: u8) -> Self {
        match byte {
            b'\n' => Self::Lf,
            b'\r' => Self::Cr,
            _ if is_word(byte) => Self::Word,
            _ => Self::Other,
        }
    }
}

/// The contexts that some assertions distinguish; the others are treated as `Other`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contexts {
    start: bool,
    line: bool,
    crlf: bool,
    pub(crate) word: bool,
}

impl Contexts {
    /// Those of `looks`.
    pub(crate) fn of(looks: impl Iterator<Item = Look>) -> Self {
        let mut out = Self::default();
        for look in looks {
            match look {
                Look::Start => out.start = true,
                Look::StartLF => (out.start, out.line) = (true, true),
                Look::StartCRLF => (out.start, out.line, out.crlf) = (true, true, true),
                Look::EndCRLF => out.crlf = true,
                Look::End | Look::EndLF => {}
                _ => out.word = true,
            }
        }
        out
    }

    /// The context as far as it is distinguished.
    pub(crate) fn reduce(self, context: Context) -> Context {
        let kept = match context {
            Context::Start => self.start,
            Context::Lf => self.line,
            Context::Cr => self.crlf,
            Context::Word => self.word,
            Context::Other => true,
        };
        if kept { context } else { Context::Other }
    }
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether `byte` is a continuation byte of UTF-8: the position before it is inside a character.
pub(crate) fn is_inside(byte: u8) -> bool {
    matches!(byte, 0x80..=0xbf)
}

/// Whether `look` can be evaluated without the next byte.
pub(crate) fn looks_behind_only(look: Look) -> bool {
    matches!(look, Look::Start | Look::StartLF)
}

/// Whether `look` holds after `before` and before `next`; no `next` = the end of the stream. The dialect has already
/// converted Unicode word assertions to ASCII ones. Inside a character no assertion holds: its bytes are not word
/// bytes, so `\B` and the half boundaries would otherwise match between them.
pub(crate) fn holds(look: Look, before: Context, next: Option<u8>) -> bool {
    let word_before = before == Context::Word;
    let word_next = next.is_some_and(is_word);
    let inside = next.is_some_and(is_inside);
    match look {
        Look::Start => before == Context::Start,
        Look::End => next.is_none(),
        Look::StartLF => matches!(before, Context::Start | Context::Lf),
        Look::EndLF => matches!(next, None | Some(b'\n')),
        Look::StartCRLF => match before {
            Context::Start | Context::Lf => true,
            Context::Cr => next != Some(b'\n'),
            _ => false,
        },
        Look::EndCRLF => match next {
            None | Some(b'\r') => true,
            Some(b'\n') => before != Context::Cr,
            _ => false,
        },
        Look::WordAscii | Look::WordUnicode => word_before != word_next,
        Look::WordAsciiNegate | Look::WordUnicodeNegate => word_before == word_next && !inside,
        Look::WordStartAscii | Look::WordStartUnicode => !word_before && word_next,
        Look::WordEndAscii | Look::WordEndUnicode => word_before && !word_next,
        Look::WordStartHalfAscii | Look::WordStartHalfUnicode => !word_before && !inside,
        Look::WordEndHalfAscii | Look::WordEndHalfUnicode => !word_next && !inside,
    }
}
