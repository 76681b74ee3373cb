//! Here-documents that nothing is expanded in: a line that is too long for the parser is parsed without their text.
//!
//! Where they begin is guessed from the text and confirmed by the parser: up to the end of a document's first line both texts are the
//! same, so if the shorter one has a document there, empty and with the same delimiter, then so has the longer one, and its text ends where it
//! was cut.

use std::collections::BTreeSet;

/// A command line as it is parsed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) text: String,
    /// Where the text of a here-document was cut out.
    pub(crate) cuts: BTreeSet<usize>,
}

/// What begins a here-document.
struct Opening<'a> {
    delimiter: &'a str,
    is_quoted: bool,
    strips_tabs: bool,
}

impl Source {
    pub(crate) fn whole(text: &str) -> Self {
        Self { text: text.to_owned(), cuts: BTreeSet::new() }
    }

    pub(crate) fn without_documents(text: &str) -> Self {
        let mut source = Self::default();
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            source.text.push_str(line);
            source.text.push('\n');
            rest = after;
            let Some(opening) = Opening::of(line) else { continue };
            let Some(length) = opening.length(rest) else { break };
            let (body, end) = rest.split_at(length);
            if opening.is_quoted || !body.contains(['$', '`', '\\']) {
                source.cuts.insert(source.text.len());
            } else {
                source.text.push_str(body);
            }
            rest = end;
        }
        source.text.push_str(rest);
        source
    }
}

impl<'a> Opening<'a> {
    /// The only one of a line.
    fn of(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once("<<").filter(|(_, rest)| !rest.contains("<<") && !rest.starts_with('<'))?;
        let (rest, strips_tabs) = rest.strip_prefix('-').map_or((rest, false), |rest| (rest, true));
        let rest = rest.trim_start_matches([' ', '\t']);
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let rest = quote.map_or(rest, |_| &rest[1..]);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let length = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        let (delimiter, after) = rest.split_at(length);
        let is_closed = quote.is_none_or(|quote| after.starts_with(quote));
        (length > 0 && is_closed).then_some(Self { delimiter, is_quoted: quote.is_some(), strips_tabs })
    }

    /// How long the text before the line with the delimiter is.
    fn length(&self, text: &str) -> Option<usize> {
        let mut length = 0;
        for line in text.split_inclusive('\n') {
            let bare = line.strip_suffix('\n').unwrap_or(line);
            let bare = if self.strips_tabs { bare.trim_start_matches('\t') } else { bare };
            if bare == self.delimiter {
                return Some(length);
            }
            length += line.len();
        }
        None
    }
}
