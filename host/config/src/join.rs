//! What the two files of one layer say together: the file of its own, and the table of `tidegate.toml` next to it. Where both set a key,
//! the table counts, which is reported with both places.

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::document::Document;
use crate::layers::Layered;
use crate::leaves::quoted;
use crate::{Code, Diagnostic, OPERATOR_FILE};

/// Puts the table on top of the file of its own. Returns what is set in both, too.
pub(crate) fn joined<'a, T: Layered>(own: Document<'a>, table: Document<'a>) -> (Document<'a>, Vec<Diagnostic>) {
    let twice = RefCell::new(Vec::new());
    let both = Document::stacked([own, table], |base, over, sources| {
        let mut note = |path: &[String], lower: Range<usize>, upper: Range<usize>| {
            let message = format!("`{}` is set in two files", name::<T>(path));
            let (counts, idle) = (sources.location(upper), sources.location(lower));
            let help = format!("remove it from `{}`, line {}", idle.file.shown(), idle.line());
            let warning = Diagnostic::warning(Code::ConfigDuplicate, message).help(help);
            let warning = warning.at(counts, format!("`{OPERATOR_FILE}` counts"));
            twice.borrow_mut().push(warning.at(idle, "this has no effect"));
        };
        put(base, over, &mut Vec::new(), &mut note);
    });
    (both, twice.into_inner())
}

/// A path into a file of its own, as `tidegate.toml` has it.
pub(crate) fn name<T: Layered>(path: &[String]) -> String {
    let Some((first, rest)) = path.split_first() else { return String::new() };
    let of = T::IN_SETTINGS.iter().find(|(key, _)| key == first).map(|(_, of)| of.join("."));
    let rest = rest.iter().map(|key| quoted(key));
    std::iter::once(of.unwrap_or_default()).chain(rest).collect::<Vec<_>>().join(".")
}

type Note<'n> = dyn FnMut(&[String], Range<usize>, Range<usize>) + 'n;

/// Merges tables by key, and lists of tables with an `id` by id.
fn put<'a>(base: &mut DeTable<'a>, over: DeTable<'a>, path: &mut Vec<String>, note: &mut Note<'_>) {
    for (key, upper) in over {
        // Inserting under a key that is there would keep the place of the key below.
        let Some((_, lower)) = base.remove_entry(key.get_ref().as_ref()) else {
            base.insert(key, upper);
            continue;
        };
        path.push(key.get_ref().to_string());
        base.insert(key, value(lower, upper, path, note));
        path.pop();
    }
}

fn value<'a>(
    lower: Spanned<DeValue<'a>>,
    upper: Spanned<DeValue<'a>>,
    path: &mut Vec<String>,
    note: &mut Note<'_>,
) -> Spanned<DeValue<'a>> {
    let (below, above) = (lower.span(), upper.span());
    let both = match (lower.into_inner(), upper.into_inner()) {
        (DeValue::Table(mut lower), DeValue::Table(upper)) => {
            put(&mut lower, upper, path, note);
            DeValue::Table(lower)
        }
        (DeValue::Array(lower), DeValue::Array(upper)) if has_ids(&lower) && has_ids(&upper) => {
            DeValue::Array(entries(lower, upper, path, note))
        }
        (_, upper) => {
            // Of an entry, the id is no setting.
            if path.last().is_none_or(|key| key != "id") {
                note(path, below, above.clone());
            }
            upper
        }
    };
    Spanned::new(above, both)
}

/// The entries of both lists. The first one that matches can decide: new ones of the upper list come before those of the lower one.
fn entries<'a>(lower: DeArray<'a>, upper: DeArray<'a>, path: &mut Vec<String>, note: &mut Note<'_>) -> DeArray<'a> {
    let (mut known, mut new): (Vec<_>, Vec<_>) = (lower.into_iter().map(|entry| (false, entry)).collect(), Vec::new());
    for entry in upper {
        // An id that a list has twice is reported by whoever reads the entries.
        let same = known.iter_mut().find(|(is_taken, other)| !*is_taken && id(other) == id(&entry));
        let Some((is_taken, other)) = same else {
            new.push(entry);
            continue;
        };
        *is_taken = true;
        path.push(id(&entry).unwrap_or_default().to_owned());
        *other = value(other.clone(), entry, path, note);
        path.pop();
    }
    new.into_iter().chain(known.into_iter().map(|(_, entry)| entry)).collect()
}

fn id<'e>(entry: &'e Spanned<DeValue<'_>>) -> Option<&'e str> {
    entry.get_ref().get("id")?.get_ref().as_str()
}

fn has_ids(list: &DeArray<'_>) -> bool {
    !list.is_empty() && list.iter().all(|entry| id(entry).is_some())
}
