//! Writes HTML. Markup is a `&'static str`, so that nothing of a session can become markup; everything else is escaped.

use std::ops::Range;

use crate::diff::Chunk;
use crate::visible::{Part, escape, parts};

/// A page in the making.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn finish(self) -> String {
        self.0
    }

    /// Markup of ours.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// A number in markup.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.0.push_str(&number.to_string());
        self
    }

    /// Text of others in an element; what is invisible is written out in an element of its own.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for part in parts(text) {
            match part {
                Part::Plain(plain) => self.escaped(plain),
                Part::Odd(c) => {
                    self.0.push_str("<span class=\"odd\">");
                    self.0.push_str(&escape(c));
                    self.0.push_str("</span>");
                }
            }
        }
        self
    }

    /// A text of several lines, with parts of it highlighted.
    pub(crate) fn block(&mut self, text: &str, marks: &[Range<usize>]) -> &mut Self {
        // A parser drops the first line end.
        self.raw("<pre dir=\"auto\">\n");
        let mut at = 0;
        for mark in marks {
            let (Some(before), Some(marked)) = (text.get(at..mark.start), text.get(mark.clone())) else { continue };
            self.text(before).raw("<mark>").text(marked).raw("</mark>");
            at = mark.end;
        }
        self.text(text.get(at..).unwrap_or_default()).raw("</pre>\n")
    }

    /// A comparison. The words are there for who does not see the marks.
    pub(crate) fn comparison(&mut self, chunks: &[Chunk]) -> &mut Self {
        self.raw("<pre dir=\"auto\">\n");
        for chunk in chunks {
            match chunk {
                Chunk::Same(text) => self.text(text),
                Chunk::Removed(text) => self.raw("<del>").text(text).raw("</del>"),
                Chunk::Added(text) => self.raw("<ins>").text(text).raw("</ins>"),
            };
        }
        self.raw("</pre>\n")
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
    }
}
