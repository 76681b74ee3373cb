//! Enables and disables a plugin in the text of an operator's file, and changes nothing else of it.

use std::ops::Range;
use std::sync::Arc;

use flow::PluginId;

use crate::document::{Document, steps};
use crate::typed::OperatorFile;
use crate::{Diagnostics, Location, MANIFEST_FILE, Manifest, SourceFile, operator};

/// An operator's file in which a plugin was enabled or disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Switched {
    /// The new text; the same as before where nothing had to change.
    pub text: String,
    /// The entry is `required`: a running program uses the plugin until it is restarted.
    pub required: bool,
}

/// Why a plugin cannot be enabled or disabled in a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The file is not valid, also with the change.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// Only one of several entries can be used, and which one is for the operator to decide.
    #[error("{entries} `[[plugin]]` of the file have the id `{id}`: set `enabled` of one of them yourself")]
    Several {
        /// The id that was given.
        id: PluginId,
        /// The number of its entries.
        entries: usize,
    },
    /// No entry is about the plugin.
    #[error("no `[[plugin]]` of the file has the id `{id}`; {known}")]
    Unknown {
        /// The id that was given.
        id: PluginId,
        /// Which ids there are.
        known: String,
    },
}

/// Sets `enabled` of the entries of the plugin with this id. The ids are read from the manifests; where a manifest cannot be read, the
/// name of its folder counts.
///
/// # Errors
/// See [`SwitchError`].
pub fn switch_plugin(source: &Arc<SourceFile>, id: &PluginId, enabled: bool) -> Result<Switched, SwitchError> {
    let (document, typed) = Document::read::<OperatorFile>(source).map_err(SwitchError::Invalid)?;
    let mut known = Vec::new();
    let mut found = Vec::new();
    for (index, entry) in typed.plugin.iter().enumerate() {
        let folder = operator::plugin_folder(&source.folder().join(&entry.path));
        match Manifest::load(&folder.join(MANIFEST_FILE)) {
            Ok(manifest) if manifest.id == *id => found.push(index),
            // A plugin that cannot be loaded is one that somebody wants to disable.
            Err(_) if folder.file_name().is_some_and(|name| name == id.as_str()) => found.push(index),
            Ok(manifest) => known.push(format!("`{}`", manifest.id)),
            Err(_) => known.push(format!("one that cannot be read in {:?}", entry.path)),
        }
    }
    if enabled && found.len() > 1 {
        return Err(SwitchError::Several { id: id.clone(), entries: found.len() });
    }
    if found.is_empty() {
        let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        return Err(SwitchError::Unknown { id: id.clone(), known });
    }
    let mut text = source.text.clone();
    // From the end: a change leaves the places before it as they are.
    for index in found.iter().rev().filter(|index| typed.plugin[**index].enabled != enabled) {
        let (range, new) = edit(&document, source, *index, enabled);
        text.replace_range(range, &new);
    }
    Document::read::<OperatorFile>(&SourceFile::new(&source.path, text.as_str())).map_err(SwitchError::Invalid)?;
    Ok(Switched { text, required: found.iter().any(|index| typed.plugin[*index].required) })
}

/// What to replace, and by what.
fn edit(document: &Document<'_>, source: &SourceFile, index: usize, enabled: bool) -> (Range<usize>, String) {
    let entry = document.place(&steps!["plugin", index]);
    let value = document.place(&steps!["plugin", index, "enabled"]);
    if value != entry {
        return (span(&value), enabled.to_string());
    }
    let path = span(&document.place(&steps!["plugin", index, "path"]));
    let text = &source.text;
    let is_inline = text[span(&entry)].starts_with('{');
    if is_inline {
        return (path.end..path.end, format!(", enabled = {enabled}"));
    }
    // On a line of its own: a comment behind the value stays on the line of the value.
    match text[path.end..].find('\n').map(|at| path.end + at) {
        Some(end) => {
            let line_end = if text[..end].ends_with('\r') { "\r\n" } else { "\n" };
            (end + 1..end + 1, format!("enabled = {enabled}{line_end}"))
        }
        None => (text.len()..text.len(), format!("\nenabled = {enabled}")),
    }
}

fn span(place: &Location) -> Range<usize> {
    place.span.clone()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::path::Path;

    use super::{SwitchError, switch_plugin};
    use crate::SourceFile;

    fn manifest(folder: &Path, id: &str) {
        let folder = folder.join(id);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "id = {id:?}\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\ntools.avoided_tools = [\"grep\"]\n"
        );
        std::fs::write(folder.join("plugin.toml"), text).unwrap();
    }

    fn switched(text: &str, id: &str, enabled: bool) -> Result<String, SwitchError> {
        let folder = tempfile::tempdir().unwrap();
        ["a", "b"].iter().for_each(|id| manifest(folder.path(), id));
        let source = SourceFile::new(folder.path().join("tidegate.toml"), text);
        switch_plugin(&source, &id.parse().unwrap(), enabled).map(|switched| switched.text)
    }

    #[test]
    fn one_value_changes_and_the_rest_of_the_file_stays() {
        let two = |a: &str, b: &str| {
            format!("# Top.\n[[plugin]]\npath = \"a\" # A.\n{a}grants = []\n\n[[plugin]]\npath = \"b\"{b}\n")
        };
        let cases = [
            (two("", ""), "a", false, two("enabled = false\n", "")),
            (two("", ""), "b", false, two("", "\nenabled = false")),
            (two("enabled = false\n", ""), "a", true, two("enabled = true\n", "")),
            (two("enabled  =  true # Why.\n", ""), "a", false, two("enabled  =  false # Why.\n", "")),
            (two("", ""), "a", true, two("", "")),
            ("plugin = [{ path = \"a\" }]".into(), "a", false, "plugin = [{ path = \"a\", enabled = false }]".into()),
            (
                "[[plugin]]\r\npath = \"a\"\r\n".into(),
                "a",
                false,
                "[[plugin]]\r\npath = \"a\"\r\nenabled = false\r\n".into(),
            ),
            ("[[plugin]]\npath = \"a\"".into(), "a", false, "[[plugin]]\npath = \"a\"\nenabled = false".into()),
            // Each entry of the plugin, and one whose manifest cannot be read.
            (
                "[[plugin]]\npath = \"a\"\n[[plugin]]\npath = \"a\"\nenabled = false\n[[plugin]]\npath = \"a\"\n"
                    .into(),
                "a",
                false,
                "[[plugin]]\npath = \"a\"\nenabled = false\n[[plugin]]\npath = \"a\"\nenabled = false\n\
                 [[plugin]]\npath = \"a\"\nenabled = false\n"
                    .into(),
            ),
            (
                "[[plugin]]\npath = \"gone\"\n".into(),
                "gone",
                false,
                "[[plugin]]\npath = \"gone\"\nenabled = false\n".into(),
            ),
        ];
        for (text, id, enabled, expected) in cases {
            assert_eq!(switched(&text, id, enabled).unwrap(), expected, "{text:?} {id} {enabled}");
        }
    }

    #[test]
    fn an_unknown_id_and_a_broken_file_change_nothing() {
        let unknown = switched("[[plugin]]\npath = \"a\"\n[[plugin]]\npath = \"c\"\n", "b", false).unwrap_err();
        let expected = "no `[[plugin]]` of the file has the id `b`; it has `a`, one that cannot be read in \"c\"";
        assert_eq!(unknown.to_string(), expected);
        assert!(switched("", "b", false).unwrap_err().to_string().ends_with("; it has none"));
        let two = "[[plugin]]\npath = \"a\"\n[[plugin]]\npath = \"a\"\nenabled = false\n";
        assert!(matches!(switched(two, "a", true), Err(SwitchError::Several { entries: 2, .. })));
        assert!(matches!(switched("[[plugin]\n", "a", false), Err(SwitchError::Invalid(_))));
    }
}
