//! Reads a file in YAML, or the front matter of one, as the same tree with source spans that TOML is read as.
//!
//! Of YAML only what JSON could express as well is read: mappings with scalar keys, sequences and scalars of the core schema. Anchors,
//! aliases, tags, merge keys, null and more than one document are errors, so that a file cannot mean more than it shows.
//! The front matter of rule files is not read here, but by `rules::file`, which takes text literally that is no YAML.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile};

/// Mappings and sequences inside of each other.
const MAX_DEPTH: usize = 48;

/// A scalar or a tree, with its place.
type Node<'a> = Spanned<DeValue<'a>>;

/// Reads the only document of the file, which must be a mapping; an empty file is an empty one.
///
/// # Errors
/// The first syntax error, or with the code `unsupported` the first feature that is not supported.
pub fn read(source: &Arc<SourceFile>, unsupported: Code) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
    let offsets = source.text.char_indices().map(|(at, _)| at).chain([source.text.len()]).collect();
    let mut reader = Reader { source, unsupported, events: Parser::new_from_str(&source.text), offsets };
    let mut root = None;
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => break,
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing, _) => {}
            (_, at) if root.is_some() => return Err(reader.refuse(at, "a second document", "remove it")),
            (event, at) => root = Some(reader.node(event, at, 0)?),
        }
    }
    match root.map(|root| (root.span(), root.into_inner())) {
        None => Ok(Spanned::new(0..0, DeTable::new())),
        Some((at, DeValue::Table(table))) => Ok(Spanned::new(at, table)),
        Some((at, _)) => Err(reader.refuse(at, "a document that is not a mapping", "write `key: value` lines")),
    }
}

struct Reader<'a> {
    source: &'a Arc<SourceFile>,
    /// The code of a feature that is not supported.
    unsupported: Code,
    events: Parser<'a, StrInput<'a>>,
    /// The byte at which each character begins: the parser counts characters.
    offsets: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Range<usize>), Diagnostics> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, self.byte(span.start.index())..self.byte(span.end.index()))),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, self.source.text.len()..self.source.text.len())),
        }
    }

    fn byte(&self, character: usize) -> usize {
        self.offsets.get(character).copied().unwrap_or(self.source.text.len())
    }

    fn syntax(&self, error: &ScanError) -> Diagnostics {
        let at = error.marker().index();
        let place = Location::new(self.source, self.byte(at)..self.byte(at + 1));
        Diagnostic::error(Code::ConfigSyntax, format!("this is not YAML: {}", error.info())).at(place, "").into()
    }

    fn refuse(&self, at: Range<usize>, what: &str, help: &str) -> Diagnostics {
        let message = format!("{what} is not supported in YAML files");
        Diagnostic::error(self.unsupported, message).at(Location::new(self.source, self.line(at)), "").help(help).into()
    }

    fn node(&mut self, event: Event<'a>, at: Range<usize>, depth: usize) -> Result<Node<'a>, Diagnostics> {
        if depth > MAX_DEPTH {
            return Err(self.refuse(at, &format!("more than {MAX_DEPTH} levels of nesting"), "nest less deeply"));
        }
        let (anchor, is_tagged) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            return Err(self.refuse(at, "an anchor", "write the value out where it is used"));
        }
        if is_tagged {
            return Err(self.refuse(at, "a tag", "remove it; put a string in quotes"));
        }
        match event {
            Event::Scalar(text, style, ..) => self.scalar(text, style, at),
            Event::SequenceStart(..) => self.sequence(at, depth),
            Event::MappingStart(..) => self.mapping(at, depth),
            _ => Err(self.refuse(at, "an alias", "write the value out")),
        }
    }

    fn sequence(&mut self, at: Range<usize>, depth: usize) -> Result<Node<'a>, Diagnostics> {
        let mut items = DeArray::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Spanned::new(self.line(at), DeValue::Array(items))),
                (event, place) => items.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, at: Range<usize>, depth: usize) -> Result<Node<'a>, Diagnostics> {
        let mut table = DeTable::new();
        loop {
            let (event, place) = self.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(Spanned::new(self.line(at), DeValue::Table(table))),
                Event::Scalar(key, ..) if key != "<<" => Spanned::new(place.clone(), key),
                Event::Scalar(..) => return Err(self.refuse(place, "a merge key", "write the keys out")),
                _ => return Err(self.refuse(place, "a key that is not a scalar", "write `key: value`")),
            };
            if let Some((first, _)) = table.get_key_value(key.get_ref().as_ref()) {
                let message = format!("`{}` is set twice", key.get_ref().escape_debug());
                let at = |place| Location::new(self.source, place);
                let found = Diagnostic::error(Code::ConfigSyntax, message).at(at(place), rules::AGAIN);
                return Err(found.at(at(first.span()), rules::FIRST).help("keep one of the two").into());
            }
            let (event, place) = self.next()?;
            let value = self.node(event, place, depth + 1)?;
            table.insert(key, value);
        }
    }

    /// The first line of a tree or range: the end of a tree is where the next token begins, which may be far below.
    fn line(&self, at: Range<usize>) -> Range<usize> {
        let rest = self.source.text.get(at.start..).unwrap_or_default();
        let end = at.start + rest.lines().next().unwrap_or_default().len();
        at.start..if at.is_empty() { end } else { end.min(at.end) }
    }

    fn scalar(&self, text: Cow<'a, str>, style: ScalarStyle, at: Range<usize>) -> Result<Node<'a>, Diagnostics> {
        if style != ScalarStyle::Plain {
            return Ok(Spanned::new(at, DeValue::String(text)));
        }
        let value = match text.as_ref() {
            "" | "~" | "null" | "Null" | "NULL" => {
                return Err(self.refuse(at, "null", "remove the key, or give it a value"));
            }
            "true" | "True" | "TRUE" => DeValue::Boolean(true),
            "false" | "False" | "FALSE" => DeValue::Boolean(false),
            word if is_number(word) => {
                let number = self.source.text.get(at.clone()).and_then(|typed| DeValue::parse(typed).ok());
                let number = number.map(Spanned::into_inner).filter(|one| one.is_integer() || one.is_float());
                let help = "write it in decimal without leading zeros, or put a string in quotes";
                number.ok_or_else(|| self.refuse(at.clone(), "this form of a number", help))?
            }
            _ => DeValue::String(text),
        };
        Ok(Spanned::new(at, value))
    }
}

/// Whether a plain scalar is a number of the core schema.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    if let Some(rest) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0o")) {
        return !rest.is_empty() && rest.chars().all(|c| c.is_ascii_hexdigit());
    }
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    (begins(digits) || digits.strip_prefix('.').is_some_and(begins)) && digits.parse::<f64>().is_ok()
}
