//! Reads what a layer says: a file of its own, with its version, and the table of a `tidegate.toml`.

use std::ops::Range;
use std::sync::Arc;

use flow::Severity;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::document::Document;
use crate::layers::{LayerFile, LayerOrigin, Layered};
use crate::schema::TypedFile as _;
use crate::typed::OperatorFile;
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile, check, join, mask};

/// Reads what a layer says, in one file or two. Returns what is to be reported about it, too.
pub(crate) fn read<T: Layered>(layer: &LayerFile) -> Result<(Document<'_>, Vec<Diagnostic>), Diagnostics> {
    let own = layer.own.as_ref().map(|source| read_own::<T>(source, layer.origin)).transpose();
    let table = layer.settings.as_ref().map(read_table::<T>).transpose();
    match (own, table) {
        (Err(own), Err(table)) => Err(Diagnostics([own.0, table.0].concat())),
        (Err(wrong), Ok(_)) | (Ok(_), Err(wrong)) => Err(wrong),
        (Ok(Some((own, mut noted))), Ok(Some(table))) => {
            let (both, twice) = join::joined::<T>(own, table);
            noted.extend(twice);
            Ok((both, noted))
        }
        (Ok(Some(own)), Ok(None)) => Ok(own),
        (Ok(None), Ok(table)) => Ok((Document::stacked(table, |base, over, _| *base = over), Vec::new())),
    }
}

/// Reads a file of its own. Returns what was left out of it, too.
fn read_own<T: Layered>(
    source: &Arc<SourceFile>,
    origin: LayerOrigin,
) -> Result<(Document<'_>, Vec<Diagnostic>), Diagnostics> {
    let mut tree = T::tree(source)?;
    let left_out = match origin {
        LayerOrigin::User | LayerOrigin::Project => Vec::new(),
        LayerOrigin::Foreign => foreign::<T>(source, &mut tree),
    };
    let shown = mask::masked(source, &tree, true);
    let found = check::check(&shown, &tree, T::file_schema().as_value());
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    if let Some(version) = tree.get_mut().remove("schema_version") {
        check_version::<T>(&shown, &version)?;
    }
    let (document, _) = Document::of_shown::<T>((source, shown), tree, T::schema())?;
    Ok((document, left_out))
}

/// Reads the table of a `tidegate.toml`, with the keys that a file of its own has.
pub(crate) fn read_table<T: Layered>(source: &Arc<SourceFile>) -> Result<Document<'_>, Diagnostics> {
    let root = Document::tree(source)?;
    let shown = mask::masked(source, &root, true);
    let span = root.span();
    let (mut all, mut own, mut table) = (root.into_inner(), DeTable::new(), DeTable::new());
    for (_, [name, _]) in T::IN_SETTINGS {
        own.extend(all.remove_entry(*name));
    }
    // Whoever reads all settings has checked it already.
    let own = Spanned::new(span.clone(), own);
    let found = check::check(&shown, &own, OperatorFile::schema().as_value());
    if !found.is_empty() {
        return Err(Diagnostics(found));
    }
    let mut own = own.into_inner();
    for (key, [name, inner]) in T::IN_SETTINGS {
        let Some(DeValue::Table(of)) = own.get_mut(*name).map(Spanned::get_mut) else { continue };
        let entry = of.remove_entry(*inner);
        table.extend(entry.map(|(place, value)| (Spanned::new(place.span(), (*key).into()), value)));
    }
    let (document, _) = Document::of_shown::<T>((source, shown), Spanned::new(span, table), T::schema())?;
    Ok(document)
}

/// Makes a file for another program one for this program: keys that are not known are left out, and a version that is missing is this one.
fn foreign<T: Layered>(source: &Arc<SourceFile>, tree: &mut Spanned<DeTable<'_>>) -> Vec<Diagnostic> {
    let version = Spanned::new(0..0, DeValue::String(T::VERSION.into()));
    tree.get_mut().entry(Spanned::new(0..0, "schema_version".into())).or_insert(version);
    let unknown = check::check(&mask::masked(source, tree, true), tree, T::file_schema().as_value());
    let unknown = unknown.into_iter().filter(|one| one.code == Code::ConfigUnknownKey);
    let mut left_out = Vec::new();
    for one in unknown {
        if one.location().is_some_and(|at| remove_key(tree.get_mut(), &at.span)) {
            left_out.push(as_left_out(one));
        }
    }
    left_out
}

fn as_left_out(mut unknown: Diagnostic) -> Diagnostic {
    (unknown.severity, unknown.help) = (Severity::Warning, None);
    unknown.labels.iter_mut().for_each(|label| "left out".clone_into(&mut label.text));
    unknown
}

/// Removes the key that is written at `span`.
fn remove_key(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    let key = table.keys().find(|key| key.span() == *span).map(|key| key.get_ref().to_string());
    if let Some(key) = key {
        return table.remove(key.as_str()).is_some();
    }
    table.iter_mut().any(|(_, value)| remove_inside(value.get_mut(), span))
}

fn remove_inside(value: &mut DeValue<'_>, span: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove_key(table, span),
        DeValue::Array(items) => items.iter_mut().any(|item| remove_inside(item.get_mut(), span)),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            false
        }
    }
}

/// A file of the same major version and at most our minor version has no key that we do not know.
fn check_version<T: Layered>(shown: &Arc<SourceFile>, version: &Spanned<DeValue<'_>>) -> Result<(), Diagnostics> {
    let text = version.get_ref().as_str().unwrap_or_default();
    let is_known = match (semver::Version::parse(text), semver::Version::parse(T::VERSION)) {
        (Ok(version), Ok(known)) => version.major == known.major && version.minor <= known.minor,
        _ => false,
    };
    if is_known {
        return Ok(());
    }
    let message = format!("the version `{}` of {} is not supported", text.escape_debug(), T::FILES);
    let help = format!("this host reads version `{}`", T::VERSION);
    let place = Location::new(shown, version.span());
    Err(Diagnostic::error(T::VERSION_CODE, message).at(place, "").help(help).into())
}
