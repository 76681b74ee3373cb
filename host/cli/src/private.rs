//! Files with the text of a conversation: only their owner can read them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Creates or replaces a file that only its owner can read, also where the file it replaces was open to others. The text is written to a
/// new file in the same folder, which then takes the name: nobody can have the new content open through the old file, and a failure leaves
/// the old one as it was. A link is followed and stays; a pipe or a device is written to directly.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    // Links are followed, and stay.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        // A pipe or a device cannot be replaced.
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let mut new = NamedTempFile::with_prefix_in(".tidegate-", folder(path))?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

fn folder(path: &Path) -> PathBuf {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_replaced_and_linked_files_are_readable_by_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.md"), folder.path().join("old.md"));
        let (link, target) = (folder.path().join("link.md"), folder.path().join("target.md"));
        for open in [&old, &target] {
            fs::write(open, "before").unwrap();
            fs::set_permissions(open, fs::Permissions::from_mode(0o666)).unwrap();
        }
        symlink(&target, &link).unwrap();
        let mut reader = fs::File::open(&old).unwrap();
        for path in [&new, &old, &link] {
            write(path, "text").unwrap();
            assert_eq!((fs::read_to_string(path).unwrap().as_str(), mode(path)), ("text", 0o600), "{}", path.display());
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && mode(&target) == 0o600);
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "before", "who had the old file open gets nothing new");
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 4, "nothing is left of the writing");
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_a_device_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(&folder.path().join("no/such.md"), "text").is_err());
        assert!(write(folder.path(), "text").is_err());
        write(Path::new("/dev/null"), "text").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
