//! Classes in brackets: brackets and doubled signs within them are themselves, unless a class follows the signs.

use super::PatternError;
use super::escape::{self, Atom};
use super::syntax::{Reader, Text};

/// Names that `[:name:]` may have.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The deepest nesting of classes within classes.
const MAX_DEPTH: u32 = 10;

/// Reads a class from its bracket on.
pub(super) fn read(reader: &mut Reader<'_>, out: &mut Text) -> Result<(), PatternError> {
    class(reader, out, 0)
}

fn class(reader: &mut Reader<'_>, out: &mut Text, depth: u32) -> Result<(), PatternError> {
    let from = reader.at;
    reader.at += 1;
    let negated = reader.peek() == Some('^');
    reader.at += usize::from(negated);
    if depth > MAX_DEPTH {
        return reader.refuse(from, "classes are nested too deep", "");
    }
    if reader.peek() == Some(']') {
        reader.at += 1;
        return empty(reader, out, from, negated);
    }
    out.push(from, if negated { "[^" } else { "[" });
    loop {
        let at = reader.at;
        match reader.peek() {
            None => return reader.refuse(from, "unclosed character class", "write a literal `[` as `\\[`"),
            Some(']') => {
                reader.at += 1;
                out.push(at, "]");
                return Ok(());
            }
            Some('[') => match posix(reader.rest()) {
                Some(len) => {
                    reader.at += len;
                    let text = reader.source[at..reader.at].to_owned();
                    out.push(at, &text);
                }
                None => range(reader, out)?,
            },
            Some(_) => match operator(reader) {
                Some(sign) => {
                    reader.at += 2;
                    out.push(at, sign);
                    class(reader, out, depth + 1)?;
                }
                None => range(reader, out)?,
            },
        }
    }
}

/// `[]` and `[^]`, which close at once where rule files come from.
fn empty(reader: &mut Reader<'_>, out: &mut Text, from: usize, negated: bool) -> Result<(), PatternError> {
    let help = "write a `]` within a class as `\\]`";
    if !negated {
        return reader.refuse(from, "`[]` is an empty class and never matches", help);
    }
    if reader.peek() == Some(']') {
        return reader.refuse(from, "`[^]]` can be read in two ways", "write `[^\\]]`, or `[\\s\\S]\\]`");
    }
    out.push(from, "(?s:.)");
    Ok(())
}

/// A sign between two classes.
fn operator(reader: &Reader<'_>) -> Option<&'static str> {
    ["&&", "--", "~~"]
        .into_iter()
        .find(|sign| reader.rest().strip_prefix(sign).is_some_and(|rest| rest.starts_with('[')))
}

/// One character or set, or two characters with a `-` between.
fn range(reader: &mut Reader<'_>, out: &mut Text) -> Result<(), PatternError> {
    let from = reader.at;
    note_signs(reader);
    let first = atom(reader)?;
    let open = reader.rest().strip_prefix('-').and_then(|rest| rest.chars().next());
    if open.is_none_or(|c| c == ']') || operator(reader).is_some() {
        out.push(from, &spell(&first));
        return Ok(());
    }
    reader.at += 1;
    let second = atom(reader)?;
    match (&first, &second) {
        (Atom::One(low), Atom::One(high)) => {
            out.push(from, &format!("{}-{}", escape::literal(*low), escape::literal(*high)));
        }
        // Beside a set a `-` is itself.
        _ => out.push(from, &format!("{}\\-{}", spell(&first), spell(&second))),
    }
    Ok(())
}

fn atom(reader: &mut Reader<'_>) -> Result<Atom, PatternError> {
    if reader.peek() == Some('\\') {
        return escape::inside(reader);
    }
    let from = reader.at;
    match reader.next() {
        Some(c) => Ok(Atom::One(c)),
        None => reader.refuse(from, "unclosed character class", "write a literal `[` as `\\[`"),
    }
}

fn spell(atom: &Atom) -> String {
    match atom {
        Atom::One(c) => escape::literal(*c),
        Atom::Set(set) => set.clone(),
    }
}

/// Operators between classes in Rust that no class follows.
fn note_signs(reader: &mut Reader<'_>) {
    let from = reader.at;
    let Some(sign) = ["&&", "~~"].into_iter().find(|sign| reader.rest().starts_with(sign)) else { return };
    let message = format!("`{sign}` within this class is read as two characters");
    let help = format!("to combine two classes, write a class after it: `{sign}[…]`");
    reader.notes.push(PatternError::new(from..from + 2, message, &help));
}

/// The length of `[:alpha:]` or `[:^alpha:]` at the beginning of `text`.
fn posix(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("[:")?;
    let (name, _) = inside.split_once(":]")?;
    NAMES.contains(&name.strip_prefix('^').unwrap_or(name)).then_some(name.len() + 4)
}
