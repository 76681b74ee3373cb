//! Words of a command as far as their text tells what they are when it runs.

use shuck_ast::{Word as Syntax, WordPart, WordPartNode};

use crate::walk::Walk;

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Exactly this text.
    Text(String),
    /// A pattern of file names, as written: the names of files can be anything.
    Files(String),
    /// What an expansion gives, which is written like this; empty where nothing is written.
    Unknown(String),
}

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    /// Whether it can become no word at all, or several: an expansion outside of quotes, or braces.
    pub(crate) is_elastic: bool,
    /// Whether it has a blank or an operator that is not quoted: a shell would end the word there.
    pub(crate) is_split: bool,
    /// Whether it has a brace that is not quoted.
    pub(crate) has_brace: bool,
}

impl Word {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], ..Self::default() }
    }

    pub(crate) fn unknown() -> Self {
        Self { parts: vec![Part::Unknown(String::new())], is_elastic: true, ..Self::default() }
    }

    /// The text of the word; `None` where a part of it is only known when it runs.
    pub(crate) fn exact(&self) -> Option<String> {
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Files(_) | Part::Unknown(_) => None,
        };
        self.parts.iter().map(text).collect()
    }

    /// As [`Word::exact`], with patterns of file names as they are written.
    pub(crate) fn as_written(&self) -> Option<String> {
        let text = |part: &Part| match part {
            Part::Text(text) | Part::Files(text) => Some(text.clone()),
            Part::Unknown(_) => None,
        };
        self.parts.iter().map(text).collect()
    }

    /// Whether it is one word, whatever its expansions are.
    pub(crate) fn is_one(&self) -> bool {
        !self.is_elastic && !self.parts.iter().any(|part| matches!(part, Part::Files(_)))
    }

    /// The beginning of the word that is known.
    pub(crate) fn start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Files(_) | Part::Unknown(_)) | None => "",
        }
    }

    /// The word after its last `/`: the name of a program without its folder.
    pub(crate) fn without_folder(&self) -> Self {
        let slash = |part: &Part| matches!(part, Part::Text(text) if text.contains('/'));
        let Some(last) = self.parts.iter().rposition(slash) else { return self.clone() };
        let mut parts = self.parts.get(last..).unwrap_or_default().to_vec();
        if let Some(Part::Text(text)) = parts.first_mut() {
            *text = text.rsplit('/').next().unwrap_or_default().to_owned();
        }
        Self { parts, ..*self }
    }

    /// The word as a script: an expansion for what is only known when it runs, a variable by its name.
    pub(crate) fn as_script(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) | Part::Files(text) => text.clone(),
            Part::Unknown(written) if is_variable(written) => written.clone(),
            Part::Unknown(_) => "$_".to_owned(),
        };
        self.parts.iter().map(text).collect()
    }

    /// The word from a byte of its known beginning on; `None`: nothing is left.
    pub(crate) fn from(&self, byte: usize) -> Option<Self> {
        let mut word = self.clone();
        if let Some(Part::Text(text)) = word.parts.first_mut() {
            *text = text.get(byte..).unwrap_or_default().to_owned();
        }
        word.parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        (!word.parts.is_empty()).then_some(word)
    }

    /// What follows the first of these characters in the known beginning of the word.
    pub(crate) fn after(&self, mark: char) -> Option<Self> {
        let at = self.start().find(mark)?;
        Some(self.from(at + mark.len_utf8()).unwrap_or_default())
    }

    /// The name and the value, where the word sets a variable for a command.
    pub(crate) fn assignment(&self) -> Option<(String, Self)> {
        let (name, _) = self.start().split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| (name.to_owned(), self.after('=').unwrap_or_default()))
    }

    /// One word of several, with blanks between them.
    pub(crate) fn joined<'w>(words: impl IntoIterator<Item = &'w Self>) -> Self {
        let mut joined = Self::default();
        for (index, word) in words.into_iter().enumerate() {
            if index > 0 {
                joined.push(" ");
            }
            for part in &word.parts {
                match part {
                    Part::Text(text) => joined.push(text),
                    other => joined.parts.push(other.clone()),
                }
            }
        }
        joined
    }

    /// The word where something is filled in for each `{…}` without blanks, and for each of these texts.
    pub(crate) fn with_places(&self, places: &[String]) -> Self {
        let mut filled = Self { parts: Vec::new(), ..*self };
        for part in &self.parts {
            let Part::Text(text) = part else {
                filled.parts.push(part.clone());
                continue;
            };
            let (mut rest, mut is_first) = (text.as_str(), true);
            while is_first || !rest.is_empty() {
                is_first = false;
                let found = next_place(rest, places).unwrap_or(rest.len()..rest.len());
                filled.push(rest.get(..found.start).unwrap_or_default());
                if found.start < rest.len() {
                    filled.parts.push(Part::Unknown(rest.get(found.clone()).unwrap_or_default().to_owned()));
                }
                rest = rest.get(found.end..).unwrap_or_default();
            }
        }
        filled
    }

    /// Whether a shell that takes the word for the name of a variable runs a command in it: `a[$(rm y)]`.
    pub(crate) fn has_indexed_command(&self) -> bool {
        self.as_script().split_once('[').is_some_and(|(_, index)| has_substitution(index))
    }

    /// Whether it has a command that was quoted, so that it runs only where the text is read again.
    pub(crate) fn has_quoted_command(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Text(text) if has_substitution(text)))
    }

    /// The word as if it were within quotes.
    pub(crate) fn quoted(&self) -> Self {
        Self { is_elastic: false, ..self.clone() }
    }

    /// Adds a part.
    pub(crate) fn add(&mut self, part: Part) {
        match part {
            Part::Text(text) => self.push(&text),
            other => self.parts.push(other),
        }
    }

    /// Makes one part of each pattern for one character out of several, from its bracket on: `r['m'] y`.
    fn close_brackets(&mut self) {
        let is_open = |part: &Part| matches!(part, Part::Files(text) if text == "[");
        let has_end = |part: &Part| matches!(part, Part::Text(text) if text.contains(']'));
        let Some(first) = self.parts.iter().position(is_open) else { return };
        let Some(last) = self.parts.iter().rposition(has_end).filter(|last| *last > first) else { return };
        let mut after = None;
        if let Some(Part::Text(text)) = self.parts.get_mut(last) {
            let end = text.rfind(']').map_or(text.len(), |at| at + 1);
            after = Some(text.split_off(end)).filter(|after| !after.is_empty());
        }
        let inside: Vec<Part> = self.parts.drain(first..=last).collect();
        let is_unknown = inside.iter().any(|part| matches!(part, Part::Unknown(_)));
        let text: String =
            inside.into_iter().map(|(Part::Text(text) | Part::Files(text) | Part::Unknown(text))| text).collect();
        self.parts.insert(first, if is_unknown { Part::Unknown(text) } else { Part::Files(text) });
        after.into_iter().for_each(|after| self.parts.insert(first + 1, Part::Text(after)));
    }

    fn push(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }
}

impl Walk<'_> {
    /// Reads a word; the commands of its substitutions are walked through.
    pub(crate) fn word(&mut self, syntax: &Syntax) -> Word {
        let mut word = Word::default();
        for part in &syntax.parts {
            self.part(part, false, &mut word);
        }
        word.close_brackets();
        let has_braces =
            word.has_brace && self.slice(syntax.span).is_none_or(|text| text.contains(',') || text.contains(".."));
        if has_braces || syntax.brace_syntax.iter().any(|braces| braces.expands()) {
            // Some shells expand braces and others do not.
            let written = self.slice(syntax.span).unwrap_or_default().to_owned();
            word = Word { parts: vec![Part::Unknown(written)], is_split: word.is_split, ..Word::unknown() };
        }
        word
    }

    fn part(&mut self, node: &WordPartNode, is_quoted: bool, word: &mut Word) {
        match &node.kind {
            // What is written, not what the parser made of it: the shell takes its own escapes away.
            WordPart::Literal(text) if is_quoted => word.push(&unescaped(text.syntax_str(self.source, node.span))),
            WordPart::Literal(text) => literal(text.syntax_str(self.source, node.span), word),
            // A shell without this quoting has a dollar sign before the quotes.
            WordPart::SingleQuoted { dollar: true, .. } | WordPart::DoubleQuoted { dollar: true, .. } => {
                self.beyond("it uses quotes that not every shell has");
                self.quoted(node, word);
            }
            WordPart::SingleQuoted { .. } | WordPart::DoubleQuoted { .. } => self.quoted(node, word),
            other => {
                self.expansion(other, node.span);
                word.parts.push(Part::Unknown(self.slice(node.span).unwrap_or_default().to_owned()));
                word.is_elastic |= !is_quoted;
            }
        }
    }

    fn quoted(&mut self, node: &WordPartNode, word: &mut Word) {
        match &node.kind {
            WordPart::SingleQuoted { value, .. } => word.push(value.slice(self.source)),
            WordPart::DoubleQuoted { parts, .. } => {
                // Empty quotes are an empty word, too.
                word.push("");
                for part in parts {
                    self.part(part, true, word);
                }
            }
            _ => {}
        }
    }
}

/// Whether an expansion is a variable and nothing else: `$HOME`, `${HOME}`.
pub(crate) fn is_variable(written: &str) -> bool {
    let name = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or_else(|| written.strip_prefix('$'));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn has_substitution(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

/// The first place where something is filled in.
fn next_place(text: &str, places: &[String]) -> Option<std::ops::Range<usize>> {
    let braces = text.match_indices('{').find_map(|(start, _)| {
        let inner = text.get(start + 1..)?.find(|c: char| c == '{' || c == '}' || c.is_whitespace())?;
        let end = start + 1 + inner;
        text.get(end..)?.starts_with('}').then_some(start..end + 1)
    });
    let named = places.iter().filter(|place| !place.is_empty());
    let named = named.filter_map(|place| text.find(place.as_str()).map(|start| start..start + place.len()));
    named.chain(braces).min_by_key(|range| range.start)
}

/// Adds text outside of quotes.
fn literal(text: &str, word: &mut Word) {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                // The line continues.
                Some('\n') => {}
                Some(escaped) => plain.push(escaped),
                None => plain.push('\\'),
            },
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                word.is_split = true;
                plain.push(c);
            }
            '{' => {
                word.has_brace = true;
                plain.push(c);
            }
            // The name of the command `[`.
            '[' if text == "[" || text == "[[" => plain.push(c),
            '*' | '?' | '[' => {
                if !plain.is_empty() {
                    word.push(&std::mem::take(&mut plain));
                }
                word.parts.push(Part::Files(c.to_string()));
            }
            _ => plain.push(c),
        }
    }
    if !plain.is_empty() {
        word.push(&plain);
    }
}

/// Text without the escapes of double quotes.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        match (c, next) {
            ('\\', Some('\n')) => drop(characters.next()),
            ('\\', Some(escaped @ ('$' | '`' | '"' | '\\'))) => {
                plain.push(escaped);
                characters.next();
            }
            _ => plain.push(c),
        }
    }
    plain
}
