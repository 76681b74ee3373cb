//! The files of a workspace, for `@` in the input.

use std::path::Path;
use std::sync::Arc;

use ignore::WalkBuilder;

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

/// Lists the files of a workspace as its owner sees them: without what `.gitignore` and `.ignore` leave out, and without `.git`. Links are not
/// followed. Takes a while in a large tree.
pub(super) fn of(workspace: &Path) -> Found {
    let mut walk = WalkBuilder::new(workspace);
    walk.hidden(false).require_git(false).git_global(false).sort_by_file_name(Ord::cmp);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    let (mut items, mut is_cut) = (Vec::new(), false);
    for (count, entry) in walk.build().enumerate() {
        if count > MOST {
            is_cut = true;
            break;
        }
        // A folder that cannot be read has no files to offer.
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let path = entry.path().strip_prefix(workspace).ok().and_then(Path::to_str);
        items.extend(path.filter(|_| is_file).map(|path| Item::plain(path, "")));
    }
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
        for name in ["src/main.rs", "target/out", "a.log", ".git/config", ".github/ci.yml", "README.md", "two words.md"]
        {
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
