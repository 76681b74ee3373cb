//! Tells a component that is older than the source it was built from: an author who forgot to build runs old code.

use std::path::Path;
use std::time::SystemTime;

use config::{Diagnostic, Plugin};

/// Folders within folders of source that are looked into.
const MAX_DEPTH: u32 = 8;

/// A warning for a plugin whose component is older than its source. What cannot be read is not judged.
pub(crate) fn warning(plugin: &Plugin) -> Option<Diagnostic> {
    let manifest = &plugin.manifest;
    manifest.build.as_ref()?;
    let built = changed(manifest.component.as_ref()?)?;
    let folder = manifest.folder.as_path();
    let newest = newest(&folder.join("src"), MAX_DEPTH).max(changed(&folder.join("Cargo.toml")))?;
    let message = format!("the component of plugin `{}` is older than its source", manifest.id);
    let help = format!("build it with `tidegate plugin build {}`", folder.display());
    (newest > built).then(|| Diagnostic::warning(message).help(help))
}

fn changed(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|about| about.modified()).ok()
}

fn newest(folder: &Path, depth: u32) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?;
    let time = |path: &Path| match path.is_dir() {
        true if depth == 0 => None,
        true => newest(path, depth - 1),
        false => changed(path),
    };
    entries.filter_map(|entry| time(&entry.ok()?.path())).max()
}
