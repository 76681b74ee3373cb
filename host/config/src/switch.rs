//! Enables and disables a plugin in the text of an operator's file, and changes nothing else of it.

use std::ops::Range;
use std::sync::Arc;

use flow::PluginId;

use crate::document::{Document, steps};
use crate::typed::OperatorFile;
use crate::{Diagnostics, Location, MANIFEST_FILE, Manifest, Operator, SourceFile, operator};

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
    /// No entry is about the plugin.
    #[error("no `[[plugin]]` of the file has the id `{id}`; {known}")]
    Unknown {
        /// The id that was given.
        id: PluginId,
        /// Which ids there are.
        known: String,
    },
}

/// Sets `enabled` of the entry of the plugin with this id. The ids are read from the manifests; an entry whose manifest cannot be
/// read is passed over.
///
/// # Errors
/// See [`SwitchError`]. Where several entries have the id, the file is not valid for a host; the first one is changed.
pub fn switch_plugin(source: &Arc<SourceFile>, id: &PluginId, enabled: bool) -> Result<Switched, SwitchError> {
    let (document, typed) = Document::read::<OperatorFile>(source).map_err(SwitchError::Invalid)?;
    let mut known = Vec::new();
    for (index, entry) in typed.plugin.iter().enumerate() {
        let folder = operator::plugin_folder(&source.folder().join(&entry.path));
        match Manifest::load(&folder.join(MANIFEST_FILE)) {
            Ok(manifest) if manifest.id == *id => {
                let mut text = source.text.clone();
                if entry.enabled != enabled {
                    let (range, new) = edit(&document, index, enabled);
                    text.replace_range(range, &new);
                }
                Operator::of_source(&SourceFile::new(&source.path, text.as_str())).map_err(SwitchError::Invalid)?;
                return Ok(Switched { text, required: entry.required });
            }
            Ok(manifest) => known.push(format!("`{}`", manifest.id)),
            Err(_) => known.push(format!("one that cannot be read in {:?}", entry.path)),
        }
    }
    let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    Err(SwitchError::Unknown { id: id.clone(), known })
}

/// What to replace, and by what.
fn edit(document: &Document<'_>, index: usize, enabled: bool) -> (Range<usize>, String) {
    let entry = document.place(&steps!["plugin", index]);
    let value = document.place(&steps!["plugin", index, "enabled"]);
    if value != entry {
        return (span(&value), enabled.to_string());
    }
    let path = span(&document.place(&steps!["plugin", index, "path"]));
    let text = &document.source().text;
    let is_inline = text[span(&entry)].starts_with('{');
    let new = if is_inline { format!(", enabled = {enabled}") } else { format!("\nenabled = {enabled}") };
    // A comment behind the value stays on its line.
    let line_end = text[path.end..].find('\n').map_or(text.len(), |at| path.end + at);
    let line_end = line_end - usize::from(text[..line_end].ends_with('\r'));
    let at = if is_inline { path.end } else { line_end };
    (at..at, new)
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
                "[[plugin]]\r\npath = \"a\"\nenabled = false\r\n".into(),
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
        assert!(matches!(switched("[[plugin]\n", "a", false), Err(SwitchError::Invalid(_))));
    }
}
