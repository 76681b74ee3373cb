//! Finds a component that is older than the source it was built from: an author who forgot to build runs old code.

use std::path::Path;
use std::time::SystemTime;

use config::ConfiguredPlugin;
use flow::{Diagnostic, DiagnosticCode as Code};

/// Folders within folders of source that are looked into.
const MAX_DEPTH: u32 = 8;

/// A warning for a plugin whose component is older than its source. Unreadable files are ignored.
pub(crate) fn warning(plugin: &ConfiguredPlugin) -> Option<Diagnostic> {
    let manifest = &plugin.manifest;
    manifest.build.as_ref()?;
    let built = changed(manifest.component.as_ref()?)?;
    let folder = manifest.folder.as_path();
    let newest = newest(&folder.join("src"), MAX_DEPTH).max(changed(&folder.join("Cargo.toml")))?;
    let help = format!("build it with `tidegate plugin build {}`", folder.display());
    let warning = Diagnostic::warning(Code::PluginStaleComponent, "its component is older than its source");
    (newest > built).then(|| warning.about_plugin(&manifest.id).help(help))
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs::{File, create_dir_all, remove_dir_all, write};
    use std::time::Duration;

    use config::{Operator, PluginEntry};

    #[test]
    fn a_component_is_held_against_the_newest_of_its_source() {
        let folder = std::env::temp_dir().join(format!("tidegate-stale-{}", std::process::id()));
        create_dir_all(folder.join("src/deep")).unwrap();
        let manifest =
            "id = \"old\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Old.\"\n[build]\nkind = \"rust\"\n";
        for (file, text) in
            [("plugin.toml", manifest), ("src/lib.rs", ""), ("src/deep/more.rs", ""), ("component.wasm", "")]
        {
            write(folder.join(file), text).unwrap();
        }
        let date = |file: &str, seconds: u64| {
            let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
            File::options().write(true).open(folder.join(file)).unwrap().set_modified(time).unwrap();
        };
        let stale = || {
            let plugin = Operator::default().load_plugin(&PluginEntry::of_path(&folder)).unwrap();
            super::warning(&plugin).map(|warning| warning.to_string())
        };
        date("src/lib.rs", 100);
        date("component.wasm", 300);
        date("src/deep/more.rs", 200);
        assert_eq!(stale(), None);
        date("src/deep/more.rs", 400);
        let said = stale().unwrap();
        let expected =
            "warning[plugin-stale-component]: plugin `old`: its component is older than its source; build it";
        assert!(said.starts_with(expected), "{said}");
        remove_dir_all(&folder).unwrap();
    }
}
