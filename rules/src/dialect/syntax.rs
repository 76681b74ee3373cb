//! Reads a condition as it is written and spells it in Rust's own syntax; look-around is kept apart for `around`.

use std::ops::Range;

use regex_syntax::hir::Hir;

use super::{PatternError, class, escape};

/// The deepest nesting of groups.
const MAX_DEPTH: u32 = 100;

/// A condition as read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) branches: Branches,
    /// Where the groups `hide` begin.
    pub(super) hides: Vec<Range<usize>>,
    /// Where the first group begins that captures in other dialects.
    pub(super) first_group: Option<Range<usize>>,
    /// What may mean something else than its author thinks.
    pub(super) notes: Vec<PatternError>,
}

/// One alternative, between `|`.
pub(super) type Branches = Vec<Vec<Item>>;

/// A part of a condition.
#[derive(Debug)]
pub(super) enum Item {
    /// Anything without look-around.
    Plain(Text),
    /// `(?i)` and the like, in a condition with look-around.
    Flags(Text),
    /// A group with look-around inside; the flags that it sets, and whether it may be left out.
    Group { flags: String, branches: Branches, optional: bool },
    /// A look-ahead or look-behind group.
    Look { ahead: bool, negated: bool, branches: Branches, span: Range<usize> },
}

/// Text in Rust's syntax with a source map to the condition.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    text: String,
    /// The start of each segment: here, and in the condition.
    places: Vec<(usize, usize)>,
}

impl Text {
    pub(super) fn push(&mut self, from: usize, text: &str) {
        self.places.push((self.text.len(), from));
        self.text.push_str(text);
    }

    pub(super) fn append(&mut self, other: &Self) {
        let shift = self.text.len();
        self.places.extend(other.places.iter().map(|(here, from)| (here + shift, *from)));
        self.text.push_str(&other.text);
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Parses it after `flags`; `len` is the condition's length.
    pub(super) fn parse(&self, flags: &str, len: usize) -> Result<Hir, PatternError> {
        let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
        parser.parse(&format!("{flags}{}", self.text)).map_err(|error| {
            let (message, span) = match &error {
                regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(error.span())),
                regex_syntax::Error::Translate(error) => (error.kind().to_string(), Some(error.span())),
                other => (other.to_string(), None),
            };
            let at = |offset: usize| offset.saturating_sub(flags.len());
            let span = span.map(|span| self.origin(at(span.start.offset)..at(span.end.offset), len));
            let help = if message.starts_with("repetition") {
                "escape a literal `{`, `*`, `+` or `?` with a backslash"
            } else {
                ""
            };
            PatternError::new(span.unwrap_or(0..len), message, help)
        })
    }

    /// The span of a part of it in the condition.
    pub(super) fn origin(&self, part: Range<usize>, len: usize) -> Range<usize> {
        let from = |index: usize| self.places.get(index).map(|(_, from)| *from);
        let last = self.places.partition_point(|(here, _)| *here <= part.start).checked_sub(1);
        let start = last.and_then(from).unwrap_or(0);
        let next = |end: usize| from(self.places.partition_point(|(here, _)| *here < end)).unwrap_or(len);
        start..next(part.end.max(part.start + 1)).max(start)
    }
}

/// Reads a condition.
pub(super) fn read(pattern: &str) -> Result<Read, PatternError> {
    let mut reader = Reader {
        source: pattern,
        at: 0,
        depth: 0,
        extended: false,
        hides: Vec::new(),
        first_group: None,
        notes: Vec::new(),
    };
    let mut branches = reader.branches()?;
    // A bracket that closes nothing: handed on, so that it is named with its place.
    while reader.at < pattern.len() {
        let last = branches.last_mut().map(plain_end);
        if let Some(text) = last {
            text.push(reader.at, ")");
        }
        reader.at += 1;
        let more = reader.branches()?;
        branches.extend(more);
    }
    Ok(Read { branches, hides: reader.hides, first_group: reader.first_group, notes: reader.notes })
}

/// The whole as one text, where nothing looks around.
pub(super) fn plain(branches: &Branches) -> Option<Text> {
    let mut out = Text::default();
    for (number, branch) in branches.iter().enumerate() {
        if number > 0 {
            let from = branch.iter().find_map(|item| match item {
                Item::Plain(text) | Item::Flags(text) => text.places.first().map(|(_, from)| *from),
                _ => None,
            });
            out.push(from.unwrap_or_else(|| out.places.last().map_or(0, |(_, from)| *from)), "|");
        }
        for item in branch {
            match item {
                Item::Plain(text) | Item::Flags(text) => out.append(text),
                Item::Group { .. } | Item::Look { .. } => return None,
            }
        }
    }
    Some(out)
}

/// The whole as one text, in which look-around is a group as any other: for what does not depend on what it matches.
pub(super) fn outline(branches: &Branches) -> Text {
    let mut out = Text::default();
    for (number, branch) in branches.iter().enumerate() {
        let end = out.places.last().map_or(0, |(_, from)| *from);
        out.push(end, if number > 0 { "|" } else { "" });
        for item in branch {
            let (flags, branches) = match item {
                Item::Plain(text) | Item::Flags(text) => {
                    out.append(text);
                    continue;
                }
                Item::Group { flags, branches, .. } => (flags.as_str(), branches),
                Item::Look { branches, .. } => ("", branches),
            };
            let inner = outline(branches);
            let from = inner.places.first().map_or(0, |(_, from)| *from);
            out.push(from, &format!("(?{flags}:"));
            out.append(&inner);
            out.push(inner.places.last().map_or(from, |(_, from)| *from), ")");
        }
    }
    out
}

fn plain_end(seq: &mut Vec<Item>) -> &mut Text {
    if !matches!(seq.last(), Some(Item::Plain(_))) {
        seq.push(Item::Plain(Text::default()));
    }
    match seq.last_mut() {
        Some(Item::Plain(text)) => text,
        _ => unreachable!("the last item was made plain"),
    }
}

/// The place in a condition that is being read.
#[derive(Debug)]
pub(super) struct Reader<'p> {
    pub(super) source: &'p str,
    pub(super) at: usize,
    depth: u32,
    /// Whether the flag `x` is on: blanks and comments are ignored.
    extended: bool,
    hides: Vec<Range<usize>>,
    first_group: Option<Range<usize>>,
    pub(super) notes: Vec<PatternError>,
}

impl Reader<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Passes a character.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn refuse<T>(&self, from: usize, message: impl Into<String>, help: &str) -> Result<T, PatternError> {
        Err(PatternError::new(from..self.at, message, help))
    }

    /// Up to the bracket that closes the group, or the end.
    fn branches(&mut self) -> Result<Branches, PatternError> {
        let mut out: Branches = vec![Vec::new()];
        while let Some(c) = self.peek() {
            let from = self.at;
            match (c, out.last_mut()) {
                (')', _) | (_, None) => break,
                ('|', _) => {
                    self.at += 1;
                    out.push(Vec::new());
                }
                (_, Some(seq)) => {
                    let hides = self.hides.len();
                    self.item(seq)?;
                    self.repetitions(from, hides, seq)?;
                }
            }
        }
        Ok(out)
    }

    fn item(&mut self, seq: &mut Vec<Item>) -> Result<(), PatternError> {
        let from = self.at;
        match self.peek() {
            Some('(') => return self.group(seq),
            Some('[') => return class::read(self, plain_end(seq)),
            Some('\\') => {
                let atom = escape::outside(self)?;
                plain_end(seq).push(from, &atom);
                return Ok(());
            }
            Some('#') if self.extended => {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            }
            // A brace that counts nothing is itself.
            Some(brace @ ('{' | '}' | ']')) if brace != '{' || count(self.rest()).is_none() => {
                if let Some(len) = open_count(self.rest()) {
                    let span = from..from + len;
                    let help = "write `{0,` for \"at most\"";
                    self.notes.push(PatternError::new(
                        span,
                        "a count without its first number is read as literal text",
                        help,
                    ));
                }
                self.at += 1;
                plain_end(seq).push(from, &format!("\\{brace}"));
                return Ok(());
            }
            _ => drop(self.next()),
        }
        plain_end(seq).push(from, &self.source[from..self.at]);
        Ok(())
    }

    /// What repeats the item before it, which begins at `from` and before which there were `hides` groups `hide`.
    fn repetitions(&mut self, from: usize, hides: usize, seq: &mut Vec<Item>) -> Result<(), PatternError> {
        loop {
            let mark = self.at;
            self.at += match self.peek() {
                Some('*' | '+' | '?') => 1,
                Some('{') => match count(self.rest()) {
                    Some(len) => len,
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            if self.peek() == Some('+') {
                self.at += 1;
                let help = "remove the last `+`: a condition only asks whether there is a match";
                return self.refuse(mark, "possessive repetition is not supported", help);
            }
            let is_once = matches!(&self.source[mark..self.at], "{1}" | "{1,1}");
            self.at += usize::from(self.peek() == Some('?'));
            if self.hides.len() > hides && !is_once {
                return Err(super::hide::repeated(mark..self.at));
            }
            match seq.last_mut() {
                Some(Item::Group { optional, .. }) if self.source[mark..].starts_with('?') => *optional = true,
                Some(Item::Group { .. } | Item::Look { .. }) => {
                    let help = "move the look-around out of the repetition, or use `all` and `unless`";
                    return self.refuse(from, "look-around within a repetition is not supported", help);
                }
                _ => {
                    let text = self.source[mark..self.at].to_owned();
                    plain_end(seq).push(mark, &text);
                }
            }
        }
    }

    fn group(&mut self, seq: &mut Vec<Item>) -> Result<(), PatternError> {
        let from = self.at;
        let kind = self.opening()?;
        if let Opening::Flags(flags) = &kind {
            let mut text = Text::default();
            text.push(from, flags);
            seq.push(Item::Flags(text));
            return Ok(());
        }
        if self.depth == MAX_DEPTH {
            return self.refuse(from, format!("groups are nested deeper than {MAX_DEPTH}"), "split the condition");
        }
        if self.first_group.is_none() && captures(&self.source[from..self.at]) {
            self.first_group = Some(from..self.at);
        }
        if matches!(kind, Opening::Hide) {
            self.hides.push(from..self.at);
            plain_end(seq).push(from, super::hide::MARK);
        }
        let (extended, hides) = (self.extended, self.hides.len());
        if let Opening::Plain(flags) = &kind {
            self.extended = sets(flags, 'x').unwrap_or(extended);
        }
        self.depth += 1;
        let branches = self.branches()?;
        (self.depth, self.extended) = (self.depth - 1, extended);
        let closed = self.peek() == Some(')');
        self.at += usize::from(closed);
        match kind {
            Opening::Look { .. } if self.hides.len() > hides => {
                return Err(super::hide::in_look_around(self.hides[hides].clone()));
            }
            Opening::Look { ahead, negated } if closed => {
                let item = Item::Look { ahead, negated, branches, span: from..self.at };
                match half_boundary(&item) {
                    Some(boundary) => plain_end(seq).push(from, boundary),
                    None => seq.push(item),
                }
            }
            Opening::Look { .. } => return self.refuse(from, "unclosed group", ""),
            Opening::Plain(_) | Opening::Hide => match (plain(&branches), kind.flags()) {
                (Some(inner), flags) => {
                    let text = plain_end(seq);
                    text.push(from, &format!("(?{flags}:"));
                    text.append(&inner);
                    if closed {
                        text.push(self.at - 1, ")");
                    }
                }
                (None, flags) if closed => seq.push(Item::Group { flags, branches, optional: false }),
                (None, _) => return self.refuse(from, "unclosed group", ""),
            },
            Opening::Flags(_) => {}
        }
        Ok(())
    }

    /// What a bracket opens. Names of groups but `hide` are dropped: nothing can refer to them.
    fn opening(&mut self) -> Result<Opening, PatternError> {
        let from = self.at;
        self.at += 1;
        let looks = [("?=", true, false), ("?!", true, true), ("?<=", false, false), ("?<!", false, true)];
        for (sign, ahead, negated) in looks {
            if self.rest().starts_with(sign) {
                self.at += sign.len();
                return Ok(Opening::Look { ahead, negated });
            }
        }
        if !self.rest().starts_with('?') {
            return Ok(Opening::Plain(String::new()));
        }
        for (sign, message, help) in REFUSED {
            if self.rest().starts_with(sign) {
                self.at += sign.len();
                return self.refuse(from, *message, help);
            }
        }
        if let Some(name) = ["?<", "?P<"].iter().find(|sign| self.rest().starts_with(**sign)) {
            let Some(end) = self.rest().find('>').filter(|end| *end > name.len()) else {
                self.at += name.len();
                return self.refuse(from, "the name of a group lacks its `>`", "");
            };
            let is_hide = self.rest()[name.len()..end] == *super::hide::NAME;
            self.at += end + 1;
            return Ok(if is_hide { Opening::Hide } else { Opening::Plain(String::new()) });
        }
        let letters = self.rest()[1..].find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(0);
        let flags = self.rest()[1..=letters].to_owned();
        self.at += letters + 1;
        match self.next() {
            Some(')') => {
                self.extended = sets(&flags, 'x').unwrap_or(self.extended);
                Ok(Opening::Flags(format!("(?{flags})")))
            }
            Some(':') => Ok(Opening::Plain(flags)),
            _ => self.refuse(from, "unknown kind of group", "write `(?:…)` for a group without a name"),
        }
    }
}

enum Opening {
    Look {
        ahead: bool,
        negated: bool,
    },
    /// With the flags that it sets for its inside.
    Plain(String),
    /// The group with what must never be shown.
    Hide,
    /// No group: flags for what follows.
    Flags(String),
}

impl Opening {
    fn flags(self) -> String {
        if let Self::Plain(flags) = self { flags } else { String::new() }
    }
}

/// Groups that the dialect does not have.
const REFUSED: &[(&str, &str, &str)] = &[
    ("?>", "an atomic group is not supported", "write `(?:…)`: a condition only asks whether there is a match"),
    ("?#", "a comment within a condition is not supported", "remove it, or put it in the front matter after a `#`"),
    ("?|", "a branch reset is not supported", "write `(?:…)`"),
    ("?(", "a conditional group is not supported", "write both cases out with `|`"),
    ("?P=", BACK, BACK_HELP),
    ("?P>", "recursion is not supported", "write the repeated part out"),
    ("?&", "recursion is not supported", "write the repeated part out"),
    ("?0", "recursion is not supported", "write the repeated part out"),
    ("?1", "recursion is not supported", "write the repeated part out"),
];

pub(super) const BACK: &str = "backreferences are not supported";
pub(super) const BACK_HELP: &str = "a condition cannot refer back to a group: write the repeated text out";

/// Whether what opens a group opens one that captures.
fn captures(opening: &str) -> bool {
    opening == "(" || ["(?<", "(?P<"].iter().any(|sign| opening.starts_with(sign)) && opening.ends_with('>')
}

/// Whether `flags` switch `flag` on or off.
fn sets(flags: &str, flag: char) -> Option<bool> {
    let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
    if off.contains(flag) { Some(false) } else { on.contains(flag).then_some(true) }
}

/// The length of a count (`{2}`, `{2,}`, `{2,5}`) at the beginning of `text`.
fn count(text: &str) -> Option<usize> {
    let (inside, _) = text.strip_prefix('{')?.split_once('}')?;
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    (!low.is_empty() && digits(low) && digits(high)).then_some(inside.len() + 2)
}

/// The length of `{,5}`.
fn open_count(text: &str) -> Option<usize> {
    let (inside, _) = text.strip_prefix("{,")?.split_once('}')?;
    (!inside.is_empty() && inside.chars().all(|c| c.is_ascii_digit())).then_some(inside.len() + 3)
}

/// `(?<!\w)` and `(?!\w)` are assertions of their own.
fn half_boundary(look: &Item) -> Option<&'static str> {
    let Item::Look { ahead, negated: true, branches, .. } = look else { return None };
    let word = plain(branches).is_some_and(|text| matches!(text.as_str(), escape::WORD | "[0-9A-Za-z_]"));
    word.then_some(if *ahead { r"(?-u:\b{end-half})" } else { r"(?-u:\b{start-half})" })
}
