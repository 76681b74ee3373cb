//! A name whose value is on the next line, and the section of a file whose values are all secret.

use crate::Found;
use crate::assigned::{self, Judged};
use crate::names::{Strength, strength};

/// Lines without a word of their own, such as the fence of a code block, between a name and its value.
const MOST_BETWEEN: u8 = 2;

/// What the next lines may be the value of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Waiting {
    name: Option<Awaited>,
    section: Section,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Awaited {
    is_password: bool,
    /// The value has a name of its own, `value`, as in a list of variables.
    is_named: bool,
    /// Lines that may still lie between.
    between: u8,
}

/// The section of a file of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Section {
    #[default]
    Other,
    /// A document began, of which the kind is not known.
    Document,
    /// The document is a secret.
    Secret,
    /// Its data; or that of a document of which the kind is not known, where only what is encoded is a secret.
    Data { is_secret: bool },
}

impl Waiting {
    /// The secrets of the next line that earlier lines tell.
    pub(crate) fn take(&mut self, line: &str) -> Option<Found> {
        let of_section = self.section.take(line);
        let awaited = self.name.take();
        let found = awaited.and_then(|awaited| self.value(line, &awaited));
        if self.name.is_none() {
            self.name = awaits(line);
        }
        of_section.or(found)
    }

    fn value(&mut self, line: &str, awaited: &Awaited) -> Option<Found> {
        let strength = if awaited.is_password { Strength::Password } else { Strength::Token };
        if awaited.is_named {
            let at = line.find("value")?;
            let from = at + "value".len() + line[at + "value".len()..].find([':', '='])? + 1;
            return assigned::value_of(line, from, strength, Judged::Assigned);
        }
        let start = behind_marks(line);
        let Some(start) = start else {
            let between = awaited.between.checked_sub(1)?;
            self.name = Some(Awaited { between, ..awaited.clone() });
            return None;
        };
        let word = line[start..].trim_end();
        // The word behind a fence is its language.
        if line[..start].contains("```") {
            self.name = awaited.between.checked_sub(1).map(|between| Awaited { between, ..awaited.clone() });
            return None;
        }
        (!word.contains(char::is_whitespace)).then(|| assigned::value_of(line, start, strength, Judged::Alone))?
    }
}

/// Where a line begins behind marks and tags.
fn behind_marks(line: &str) -> Option<usize> {
    let is_mark = |c: char| matches!(c, ' ' | '\t' | '>' | '|' | '*' | '"' | '\'' | '`' | '+' | '-' | '#');
    let mut at = 0;
    loop {
        at += line[at..].find(|c: char| !is_mark(c))?;
        if !line[at..].starts_with('<') {
            return Some(at);
        }
        at += line[at..].find('>')? + 1;
    }
}

/// Whether a line ends with a name and what joins it with its value.
fn awaits(line: &str) -> Option<Awaited> {
    let text = line.trim_end();
    if let Some(name) = listed(text) {
        return strength(name).filter(|strength| *strength > Strength::Weak).map(|strength| awaited(strength, true));
    }
    // A heading, or a cell of its own, needs nothing more.
    let is_whole =
        text.starts_with('#') || text.ends_with("</dt>") || text.ends_with("</th>") || text.ends_with("</td>");
    let marks = ['*', '_', '`', '"', '\'', ' ', '|', '>', '-', '<', '~'];
    let mut text = text.trim_end_matches(marks);
    while let Some((before, tag)) = text.rsplit_once("</")
        && tag.chars().all(char::is_alphanumeric)
    {
        text = before.trim_end_matches(marks);
    }
    let joined = text.strip_suffix([':', '=']).or_else(|| text.strip_suffix(" is"));
    let name = joined.or(is_whole.then_some(text))?.trim_end_matches(marks);
    let name = name.strip_suffix(" is").unwrap_or(name);
    let start =
        name.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '))).map_or(0, |at| at + 1);
    // Two words at most: `API key`.
    let words: Vec<&str> = name.get(start..)?.split_whitespace().rev().take(2).collect();
    if is_whole && joined.is_none() && name[start..].split_whitespace().count() > 2 {
        return None;
    }
    let phrase = words.iter().rev().copied().collect::<Vec<_>>().join(" ");
    strength(&phrase).filter(|strength| *strength > Strength::Weak).map(|strength| awaited(strength, false))
}

fn awaited(strength: Strength, is_named: bool) -> Awaited {
    Awaited { is_password: strength == Strength::Password, is_named, between: MOST_BETWEEN }
}

/// The name of `- name: DB_PASSWORD` and `"key": "password",`.
fn listed(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t', '-', '"', '\'', '{', '+', '>', '|']);
    let rest = ["name", "key", "Name", "Key"].into_iter().find_map(|word| text.strip_prefix(word))?;
    let rest = rest.trim_start_matches(['"', '\'']).trim_start();
    let value = rest.strip_prefix([':', '='])?.trim();
    let value = value.trim_end_matches(',').trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains(' ')).then_some(value)
}

impl Section {
    fn take(&mut self, line: &str) -> Option<Found> {
        let text = line.trim_end();
        let word = text.trim_start();
        let is_top = word.len() == text.len();
        *self = match (*self, word) {
            (_, "---") => Self::Other,
            (_, "kind: Secret" | "kind: \"Secret\"" | "\"kind\": \"Secret\",") => Self::Secret,
            (_, _) if word.starts_with("apiVersion: ") => Self::Document,
            (Self::Secret, "data:" | "stringData:") => Self::Data { is_secret: true },
            (Self::Document, "data:") => Self::Data { is_secret: false },
            (Self::Data { .. }, "data:" | "stringData:" | "") => *self,
            (Self::Data { is_secret }, _) if is_top => {
                if is_secret {
                    Self::Secret
                } else {
                    Self::Document
                }
            }
            (section, _) => section,
        };
        let Self::Data { is_secret } = *self else { return None };
        let from = text.find(": ")? + 2;
        let judged = if is_secret { Judged::Any } else { Judged::Encoded };
        assigned::value_of(line, from, Strength::Password, judged)
    }
}
