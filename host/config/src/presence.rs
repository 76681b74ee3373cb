//! Whether a file that counts is there. What cannot be found out is an error: a configuration that cannot be read is not an empty one.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Whether there is something at a path: a file, a folder, or a link, whatever that leads to.
///
/// # Errors
/// It cannot be found out, or a folder above is a link that leads nowhere.
pub fn is_there(path: &Path) -> Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => dangling(path).map_or(Ok(false), Err),
        Err(error) => Err(error),
    }
}

/// The error where the nearest thing above the path is a link that leads nowhere.
fn dangling(path: &Path) -> Option<Error> {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let nearest = above.into_iter().find(|above| above.symlink_metadata().is_ok())?;
    let message = format!("{} is a link that leads nowhere", nearest.display());
    nearest.metadata().is_err().then(|| Error::new(ErrorKind::NotFound, message))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;

    use super::is_there;

    #[test]
    fn only_what_is_absent_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        write(path("file"), "").unwrap();
        create_dir(path("folder")).unwrap();
        symlink("gone", path("dangling")).unwrap();
        symlink("folder", path("link")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let cases = [
            ("file", Some(true)),
            ("folder", Some(true)),
            ("dangling", Some(true)),
            ("loop", Some(true)),
            ("gone", Some(false)),
            ("gone/deeper/still", Some(false)),
            ("folder/gone", Some(false)),
            ("link/gone", Some(false)),
            ("dangling/x", None),
            ("dangling/deeper/x", None),
            ("loop/x", None),
            ("file/x", None),
        ];
        for (name, expected) in cases {
            assert_eq!(is_there(&path(name)).ok(), expected, "{name}");
        }
    }
}
