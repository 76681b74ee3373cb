//! The files of a workspace, for `@` in the input.

use std::path::Path;
use std::sync::Arc;

use tidegate::tool::files_of;

use super::images::mention;
use super::list::Item;

/// The most files that are listed, and the most places that are looked at for them.
const MOST: usize = if cfg!(test) { 50 } else { 50_000 };

/// The files that were found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) items: Arc<[Item]>,
    /// There are more.
    pub(super) is_cut: bool,
}

/// Lists the files of a workspace that an input can name. Takes a while in a large tree.
pub(super) fn of(workspace: &Path) -> Found {
    let (files, is_cut) = files_of(workspace, MOST);
    let names = files.iter().filter_map(|path| path.to_str()).filter(|path| mention(path).is_some());
    let mut items: Vec<Item> = names.map(|path| Item::plain(path, "")).collect();
    // A file near the root is meant more often than one deep inside.
    items.sort_by_key(|item: &Item| item.value.matches('/').count());
    Found { items: items.into(), is_cut }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_left_out_and_a_large_tree_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".gitignore", "target\n*.log\n");
        for name in [
            "src/main.rs",
            "target/out",
            "a.log",
            ".git/config",
            ".github/ci.yml",
            "README.md",
            "two words.md",
            "no 'name' \"at all\"",
        ] {
            write(name, "");
        }
        let found = of(folder.path());
        let names: Vec<&str> = found.items.iter().map(|item| item.value.as_str()).collect();
        let expected = [".gitignore", "README.md", "two words.md", ".github/ci.yml", "src/main.rs"];
        assert_eq!((names.as_slice(), found.is_cut), (expected.as_slice(), false));
        (0..60).for_each(|number| write(&format!("many/{number}"), ""));
        let found = of(folder.path());
        assert!(found.is_cut && found.items.len() <= MOST, "{}", found.items.len());
        assert!(of(Path::new("/nowhere")).items.is_empty());
    }
}
