//! Finds registered tags in a text that arrives in chunks; the result does not depend on the chunking.
//!
//! Bytes are held back only while they can still become a registered tag. Whatever turns out not to be one is text, byte
//! for byte: unknown tags, malformed tags, and everything in comments, CDATA and fenced or inline code. Names match
//! exactly, case included. Attributes are `a="v"`, `a='v'` or bare; the five entities of XML are decoded in values.

use crate::Pattern;
use crate::code::Code;

/// A tag longer than this (name, attributes and all) is text.
const MAX_TAG: usize = 4096;

/// What the parser found in one push: the text, and the tags between its bytes.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// All text, in order. Whole characters only.
    pub(crate) text: String,
    /// The tags, each with its place: the number of bytes of `text` before it.
    pub(crate) marks: Vec<(usize, Mark)>,
}

/// A registered tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `<name …>`, or `<name …/>` where `closed`.
    Open { name: String, attributes: Vec<(String, String)>, closed: bool, raw: String },
    /// A closing tag, `</name>`.
    Close { name: String, raw: String },
    /// The opening of a tag that fails closed, up to where it stops being one: too long, or not well-formed. What follows is
    /// text again.
    Broken { name: String, raw: String },
}

/// The parser of one message.
#[derive(Debug)]
pub(crate) struct TagParser {
    patterns: Vec<Pattern>,
    /// Tags whose opening must not be read as text.
    closed: Vec<Pattern>,
    /// Bytes from a `<` on that may still become a tag; empty in plain text.
    held: Vec<u8>,
    syntax: Syntax,
    code: Code,
    /// In a comment or CDATA: what ends it, and how much of that the last bytes are.
    region: Option<(&'static [u8], usize)>,
}

/// What opens text that is never a tag, and what ends it.
const REGIONS: [(&[u8], &[u8]); 2] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>")];

/// Where the held bytes end in `<name a="v" …>` or `</name >`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    /// Directly behind `<`: a name, `/` or `!` decides what it is.
    Begin,
    /// In the opening of a comment or CDATA.
    Region,
    /// In a name that begins at this byte.
    Name(usize),
    /// Between or in attributes.
    Attributes,
    /// After the `=` of an attribute.
    Equals,
    /// In a value with this quote.
    Quoted(u8),
    /// After a `/` that must be followed by `>`.
    Slash,
    /// After the name of a closing tag.
    CloseEnd,
}

/// What the held bytes are.
enum Verdict {
    Undecided(Syntax),
    Tag,
    NoTag,
    Region(&'static [u8]),
}

impl TagParser {
    pub(crate) fn new(patterns: Vec<Pattern>) -> Self {
        let (closed, held) = (Vec::new(), Vec::new());
        Self { patterns, closed, held, syntax: Syntax::Begin, code: Code::new(), region: None }
    }

    /// The opening of a tag that matches one of these patterns and that cannot be read is [`Mark::Broken`] instead of
    /// text.
    pub(crate) fn failing_closed(mut self, closed: Vec<Pattern>) -> Self {
        self.closed = closed;
        self
    }

    /// Takes the next chunk; what is now decided is appended to `found`.
    pub(crate) fn push(&mut self, piece: &str, found: &mut Found) {
        // Most deltas: all of it is text, and stays a string.
        if self.is_plain() && !piece.bytes().any(begins) {
            found.text.push_str(piece);
            return;
        }
        let mut text = std::mem::take(&mut found.text).into_bytes();
        let mut rest = piece.as_bytes();
        while !rest.is_empty() {
            if self.is_plain() {
                let plain = rest.iter().position(|byte| begins(*byte)).unwrap_or(rest.len());
                text.extend_from_slice(&rest[..plain]);
                rest = &rest[plain..];
            }
            let Some((&byte, tail)) = rest.split_first() else { break };
            rest = tail;
            self.byte(byte, &mut text, &mut found.marks);
        }
        found.text = whole(text);
    }

    /// Whether a byte is text unless it [`begins`] something.
    fn is_plain(&self) -> bool {
        self.held.is_empty() && self.region.is_none() && self.code.is_settled()
    }

    /// Returns whether no text is held back.
    pub(crate) fn is_clear(&self) -> bool {
        self.held.is_empty()
    }

    /// The message is complete: what is held is text.
    pub(crate) fn finish(&mut self, found: &mut Found) {
        let mut text = std::mem::take(&mut found.text).into_bytes();
        while !self.held.is_empty() {
            self.reject(&mut text, &mut found.marks, true);
        }
        found.text = whole(text);
    }

    fn byte(&mut self, byte: u8, text: &mut Vec<u8>, marks: &mut Vec<(usize, Mark)>) {
        if self.held.is_empty() {
            if let Some((end, seen)) = self.region {
                self.region = in_region(end, seen, byte);
                self.code.step(byte);
                text.push(byte);
            } else if byte == b'<' && !self.code.is_code() {
                self.held.push(byte);
                self.syntax = Syntax::Begin;
            } else {
                self.code.step(byte);
                text.push(byte);
            }
            return;
        }
        self.held.push(byte);
        match self.judge(byte) {
            Verdict::Undecided(syntax) if self.held.len() < MAX_TAG => self.syntax = syntax,
            Verdict::Tag => {
                let raw = whole(std::mem::take(&mut self.held));
                self.code.step(b'<');
                marks.push((text.len(), read(raw)));
            }
            Verdict::Region(end) => {
                for byte in std::mem::take(&mut self.held) {
                    self.code.step(byte);
                    text.push(byte);
                }
                self.region = Some((end, 0));
            }
            Verdict::Undecided(_) | Verdict::NoTag => self.reject(text, marks, false),
        }
    }

    /// The held bytes begin no tag: their `<` is text and the rest is read again. `ended`: nothing follows them.
    fn reject(&mut self, text: &mut Vec<u8>, marks: &mut Vec<(usize, Mark)>, ended: bool) {
        let mut held = std::mem::take(&mut self.held);
        self.code.step(b'<');
        if let Some(name) = self.broken(&held) {
            // The character that cannot be in a tag may begin another one.
            let start = |byte: &u8| byte & 0xC0 != 0x80;
            let last = if ended { held.len() } else { held.iter().rposition(start).unwrap_or(held.len()) };
            let last = held.split_off(last);
            marks.push((text.len(), Mark::Broken { name, raw: whole(held) }));
            for byte in last {
                self.byte(byte, text, marks);
            }
            return;
        }
        text.push(b'<');
        for &byte in &held[1..] {
            self.byte(byte, text, marks);
        }
    }

    /// Judges the held bytes by the last of them.
    fn judge(&self, byte: u8) -> Verdict {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.syntax {
            Syntax::Begin if byte == b'/' && self.held.len() == 2 => Verdict::Undecided(Syntax::Begin),
            Syntax::Begin if byte == b'!' && self.held.len() == 2 => Verdict::Undecided(Syntax::Region),
            Syntax::Begin => self.judge_name(self.held.len() - 1),
            Syntax::Region => self.judge_region(),
            Syntax::Name(at) if is_name_byte(byte) => self.judge_name(at),
            Syntax::Name(at) if !self.is_registered(&self.held[at..self.held.len() - 1]) => Verdict::NoTag,
            Syntax::Name(_) if byte == b'>' => Verdict::Tag,
            Syntax::Name(2) if blank => Verdict::Undecided(Syntax::CloseEnd),
            Syntax::Name(1) if blank => Verdict::Undecided(Syntax::Attributes),
            Syntax::Name(1) | Syntax::Attributes if byte == b'/' => Verdict::Undecided(Syntax::Slash),
            Syntax::Name(_) => Verdict::NoTag,
            Syntax::CloseEnd if byte == b'>' => Verdict::Tag,
            Syntax::CloseEnd if blank => Verdict::Undecided(Syntax::CloseEnd),
            Syntax::Attributes if byte == b'>' => Verdict::Tag,
            Syntax::Attributes if byte == b'=' => Verdict::Undecided(Syntax::Equals),
            Syntax::Attributes if blank || is_name_byte(byte) => Verdict::Undecided(Syntax::Attributes),
            Syntax::Equals if blank => Verdict::Undecided(Syntax::Equals),
            Syntax::Equals if matches!(byte, b'"' | b'\'') => Verdict::Undecided(Syntax::Quoted(byte)),
            Syntax::Quoted(quote) if byte == quote => Verdict::Undecided(Syntax::Attributes),
            Syntax::Quoted(quote) => Verdict::Undecided(Syntax::Quoted(quote)),
            Syntax::Slash if byte == b'>' => Verdict::Tag,
            Syntax::CloseEnd | Syntax::Attributes | Syntax::Equals | Syntax::Slash => Verdict::NoTag,
        }
    }

    /// The name in held bytes that are the opening of a tag that fails closed, and more than its name.
    fn broken(&self, held: &[u8]) -> Option<String> {
        let rest = held.get(1..).filter(|_| !self.closed.is_empty())?;
        let end = rest.iter().position(|byte| !is_name_byte(*byte))?;
        let name = std::str::from_utf8(&rest[..end]).ok()?;
        self.closed.iter().any(|pattern| pattern.matches(name)).then(|| name.to_owned())
    }

    fn judge_region(&self) -> Verdict {
        match REGIONS.iter().find(|(open, _)| open.starts_with(&self.held)) {
            Some((open, end)) if open.len() == self.held.len() => Verdict::Region(end),
            Some(_) => Verdict::Undecided(Syntax::Region),
            None => Verdict::NoTag,
        }
    }

    fn judge_name(&self, at: usize) -> Verdict {
        let name = &self.held[at..];
        let may = name[0].is_ascii_alphabetic() && name.len() <= 64 && self.may_become(name);
        if may { Verdict::Undecided(Syntax::Name(at)) } else { Verdict::NoTag }
    }

    fn may_become(&self, start: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| match pattern {
            Pattern::Exact(name) => name.as_bytes().starts_with(start),
            Pattern::Prefix(prefix) => start.starts_with(prefix.as_bytes()) || prefix.as_bytes().starts_with(start),
        })
    }

    fn is_registered(&self, name: &[u8]) -> bool {
        std::str::from_utf8(name).is_ok_and(|name| self.patterns.iter().any(|pattern| pattern.matches(name)))
    }
}

/// Returns the names of all tags that open in the text, in order. The rules are those by which sections are found: what is in code, in a
/// comment or in CDATA is text, and so is a tag that is not well-formed; the value of an attribute is no place for another tag. Whether a
/// tag is closed does not matter.
///
/// ```
/// use tidegate_segments::opened_tags;
/// assert_eq!(opened_tags("First: <plan steps='2'> and <b>"), ["plan", "b"]);
/// assert!(opened_tags("Write `<plan>` around it. </plan>").is_empty());
/// ```
pub fn opened_tags(text: &str) -> Vec<String> {
    let mut parser = TagParser::new(vec![Pattern::Prefix(String::new())]);
    let mut found = Found::default();
    parser.push(text, &mut found);
    parser.finish(&mut found);
    let name = |(_, mark)| if let Mark::Open { name, .. } = mark { Some(name) } else { None };
    found.marks.into_iter().filter_map(name).collect()
}

/// The search for tags alone, for benches.
#[derive(Debug)]
pub struct TagFinder {
    parser: TagParser,
    found: Found,
}

impl TagFinder {
    /// Creates a search at the start of a message.
    pub fn new(patterns: Vec<Pattern>) -> Self {
        Self { parser: TagParser::new(patterns), found: Found::default() }
    }

    /// Takes the next chunk; returns how many bytes it decided to be text, and how many tags it completed.
    pub fn push(&mut self, chunk: &str) -> (usize, usize) {
        self.parser.push(chunk, &mut self.found);
        let decided = (self.found.text.len(), self.found.marks.len());
        self.found.text.clear();
        self.found.marks.clear();
        decided
    }
}

/// Whether this byte can begin a tag or code, or a line, which can begin code.
fn begins(byte: u8) -> bool {
    matches!(byte, b'<' | b'`' | b'\n')
}

/// The region after one more byte, or `None` where that byte ended it. Both ends are of the form `xx>`.
fn in_region(end: &'static [u8], seen: usize, byte: u8) -> Option<(&'static [u8], usize)> {
    if seen == 2 && byte == b'>' {
        return None;
    }
    Some((end, if byte == end[0] { (seen + 1).min(2) } else { 0 }))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':')
}

/// Bytes that are cut at ASCII characters only, as text.
fn whole(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Reads a complete tag that [`TagParser::judge`] has accepted.
fn read(raw: String) -> Mark {
    if let Some(rest) = raw.strip_prefix("</") {
        return Mark::Close { name: rest.trim_end_matches('>').trim_end().to_owned(), raw };
    }
    let inner = raw.strip_prefix('<').unwrap_or(&raw);
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    let closed = inner.ends_with('/');
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let end = inner.bytes().position(|b| !is_name_byte(b)).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    Mark::Open { name: name.to_owned(), attributes: attributes(rest), closed, raw: raw.clone() }
}

fn attributes(mut rest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start();
        let end = rest.bytes().position(|b| !is_name_byte(b)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        let quoted = value.and_then(|v| {
            let quote = v.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            v[1..].split_once(quote)
        });
        match quoted {
            Some((value, tail)) => {
                found.push((name.to_owned(), decode(value)));
                rest = tail;
            }
            None if name.is_empty() => return found,
            None => {
                found.push((name.to_owned(), String::new()));
                rest = after;
            }
        }
    }
}

/// Decodes the five entities of XML; anything else stays as written.
fn decode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&apos;", '\'')];
        match known.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some((entity, plain)) => {
                out.push(*plain);
                rest = &rest[entity.len()..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, cut: usize) -> String {
        let mut parser =
            TagParser::new(vec![Pattern::Exact("a".into()), Pattern::Exact("b".into()), Pattern::Prefix("n-".into())]);
        let mut out = String::new();
        let mut found = Found::default();
        let mut show = |found: &mut Found| {
            let mut from = 0;
            for (at, mark) in found.marks.drain(..) {
                out.push_str(&found.text[from..at]);
                from = at;
                match mark {
                    Mark::Open { name, attributes, closed, .. } => {
                        out.push_str(&format!(
                            "[{name}{}{}]",
                            if closed { "/" } else { "" },
                            attributes.iter().map(|(k, v)| format!(" {k}={v}")).collect::<String>()
                        ));
                    }
                    Mark::Close { name, .. } => out.push_str(&format!("[/{name}]")),
                    Mark::Broken { name, raw } => out.push_str(&format!("[{name}? {raw}]")),
                }
            }
            out.push_str(&found.text[from..]);
            found.text.clear();
        };
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(cut) {
            parser.push(&piece.iter().collect::<String>(), &mut found);
            show(&mut found);
        }
        parser.finish(&mut found);
        show(&mut found);
        out
    }

    #[test]
    fn tags_are_found_at_any_chunking() {
        for (text, expected) in [
            ("x<a>y</a>z", "x[a]y[/a]z"),
            ("<a b=\"1\" c='&lt;2' d>", "[a b=1 c=<2 d=]"),
            ("<a/>", "[a/]"),
            ("<a b=\"/>\" />", "[a/ b=/>]"),
            ("<ab>", "<ab>"),
            ("<n-todo>", "[n-todo]"),
            ("<n->", "[n-]"),
            ("<n>", "<n>"),
            ("<A>", "<A>"),
            ("a < b <a", "a < b <a"),
            ("<<a>>", "<[a]>"),
            ("<a <b>", "<a [b]"),
            ("<a\nb = 'ü'\n>", "[a b=ü]"),
            ("</a >", "[/a]"),
            ("</a b>", "</a b>"),
            ("<a b=c>", "<a b=c>"),
            ("`<a>` <a>", "`<a>` [a]"),
            ("```\n<a>\n```\n<a>", "```\n<a>\n```\n[a]"),
            ("<!-- <a> --><a>", "<!-- <a> -->[a]"),
            ("<![CDATA[<a>]]]><a>", "<![CDATA[<a>]]]>[a]"),
            ("<!- <a>", "<!- [a]"),
            ("<a x=\"never closed <b>", "<a x=\"never closed [b]"),
            ("ä<a>ö", "ä[a]ö"),
            ("<a ö>", "<a ö>"),
        ] {
            for cut in 1..=text.chars().count().max(1) {
                assert_eq!(parse(text, cut), expected, "{text:?} in pieces of {cut}");
            }
        }
    }

    #[test]
    fn a_tag_is_present_where_it_opens_as_a_tag() {
        let exact = Pattern::Exact("plan".into());
        let prefix = Pattern::Prefix("plan-".into());
        for (text, by_name, by_prefix) in [
            ("a <plan> b", true, false),
            ("<plan/>", true, false),
            ("<plan a='1'>x</plan>", true, false),
            ("x</plan>", false, false),
            ("<plans>", false, false),
            ("<Plan>", false, false),
            ("<plan-a>", false, true),
            ("`<plan>`", false, false),
            ("```\n<plan>\n```", false, false),
            ("```\n<plan>\n```\n<plan>", true, false),
            ("<!-- <plan> -->", false, false),
            ("<![CDATA[<plan>]]>", false, false),
            ("<plan", false, false),
            ("<plan a=b>", false, false),
            ("", false, false),
        ] {
            let has = |pattern: &Pattern| opened_tags(text).iter().any(|name| pattern.matches(name));
            assert_eq!((has(&exact), has(&prefix)), (by_name, by_prefix), "{text}");
        }
    }
}
