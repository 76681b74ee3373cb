//! Which texts of plugins were shown in a workspace: what is new or has changed is shown before the model reads it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use config::prompt_digest;
use flow::{ExtensionPrompt, PluginId, Power, PromptText};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::plugins::host_plugin::LoadedPlugin;

/// The digests of shown texts, by workspace and plugin.
#[derive(Debug)]
pub(crate) struct ShownPrompts {
    /// Where they outlive the process, one file for each workspace.
    folder: Option<PathBuf>,
    workspaces: Mutex<HashMap<PathBuf, BTreeMap<String, String>>>,
}

/// The file of one workspace.
#[derive(Debug, Deserialize, Serialize)]
struct Shown {
    /// Human-readable: the file is found by the digest of this path.
    workspace: PathBuf,
    /// Digests by plugin.
    plugins: BTreeMap<String, String>,
}

impl ShownPrompts {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, workspaces: Mutex::default() }
    }

    /// Returns the texts of these plugins that were not shown in the workspace yet, and counts them as shown. Reads and writes one
    /// small file; one that cannot be read or written is logged, and the texts are shown again in another process.
    pub(crate) fn take_new<'p>(
        &self,
        workspace: &Path,
        plugins: impl Iterator<Item = &'p LoadedPlugin>,
    ) -> Vec<ExtensionPrompt> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let known = workspaces.entry(workspace.to_owned()).or_insert_with(|| self.read(workspace));
        let mut new = Vec::new();
        for plugin in plugins {
            let texts = texts(plugin);
            let Some(digest) = prompt_digest(&texts) else { continue };
            let plugin: &PluginId = plugin.id();
            if known.get(plugin.as_str()) != Some(&digest) {
                let changed = known.insert(plugin.as_str().to_owned(), digest.clone()).is_some();
                new.push(ExtensionPrompt { plugin: plugin.clone(), changed, texts, digest });
            }
        }
        if !new.is_empty() {
            self.write(workspace, known);
        }
        new
    }

    fn file(&self, workspace: &Path) -> Option<PathBuf> {
        let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }

    fn read(&self, workspace: &Path) -> BTreeMap<String, String> {
        let Some(file) = self.file(workspace) else { return BTreeMap::new() };
        let shown = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Shown>(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return BTreeMap::new(),
            Err(error) => Err(error),
        };
        match shown {
            Ok(shown) => shown.plugins,
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "which prompt texts were shown cannot be read; all are shown");
                BTreeMap::new()
            }
        }
    }

    /// Another process reads the whole file or none: it is renamed into its place.
    fn write(&self, workspace: &Path, plugins: &BTreeMap<String, String>) {
        let Some(file) = self.file(workspace) else { return };
        let shown = Shown { workspace: workspace.to_owned(), plugins: plugins.clone() };
        let write = || {
            let folder = file.parent().unwrap_or(Path::new(""));
            fs::create_dir_all(folder)?;
            let mut new = NamedTempFile::new_in(folder)?;
            new.write_all(&serde_json::to_vec_pretty(&shown)?)?;
            new.persist(&file)?;
            Ok::<(), io::Error>(())
        };
        if let Err(error) = write() {
            tracing::warn!(file = %file.display(), %error, "which prompt texts were shown cannot be kept; they are shown again");
        }
    }
}

/// `tidegate/prompts` in the user's state folder. `None` where the user has no home.
pub(crate) fn default_folder() -> Option<PathBuf> {
    crate::host::assemble::state_folder().map(|folder| folder.join("prompts"))
}

/// All that a plugin has the model read: what it adds to the prompt, its guidance on tools, and its tools.
fn texts(plugin: &LoadedPlugin) -> Vec<PromptText> {
    let adds = plugin.plugin.may(Power::Prompt);
    let mut texts = if adds { plugin.plugin.manifest.prompt_texts() } else { Vec::new() };
    texts.extend(plugin.plugin.manifest.guidance_text());
    let tools = plugin.component.iter().flat_map(|component| &component.registration().tools);
    texts.extend(tools.map(|tool| {
        let place = format!("tool {:?}, with the schema of its arguments", tool.spec.name);
        PromptText::new(place, format!("{}\n{}", tool.spec.description, tool.spec.parameters))
    }));
    texts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::path::Path;

    use super::ShownPrompts;

    #[test]
    fn a_file_that_cannot_be_read_or_written_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let shown = ShownPrompts::new(Some(folder.path().join("deeper")));
        let workspace = Path::new("/work");
        shown.write(workspace, &[("a".to_owned(), "1".to_owned())].into());
        assert_eq!(shown.read(workspace)["a"], "1");
        assert!(shown.read(Path::new("/other")).is_empty());
        std::fs::write(shown.file(workspace).unwrap(), "{").unwrap();
        assert!(shown.read(workspace).is_empty());
        std::fs::write(folder.path().join("file"), "").unwrap();
        let nowhere = ShownPrompts::new(Some(folder.path().join("file")));
        nowhere.write(workspace, &[].into());
        assert!(nowhere.read(workspace).is_empty());
    }
}
