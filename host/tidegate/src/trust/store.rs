//! Which workspaces the user trusts: a file for each, with what was decided about. Another decision about one replaces its file as a whole.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use config::TrustRequest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

/// The most bytes of a record that are read: a file of settings, and what it names.
const MAX_BYTES: u64 = 64 << 20;

/// The decisions of the user about workspaces, in `tidegate/trust` of the state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustStore {
    folder: Option<PathBuf>,
}

/// What the user has decided about a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TrustRecord {
    /// The folder, without links; the record is found by the digest of this path.
    pub workspace: PathBuf,
    /// The digest of what is trusted: see [`TrustRequest::digest`].
    pub digest: String,
    /// What was asked for, as names and values: a changed file is asked about with the difference.
    pub keys: Vec<(String, String)>,
    /// When it was decided, in milliseconds since 1970.
    pub decided_ms: u64,
}

/// Which workspaces are trusted cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The user has no home folder to keep it in.
    #[error("there is no folder to keep which workspaces are trusted in: set HOME or XDG_STATE_HOME")]
    NoFolder,
    /// Whoever writes the workspace could trust it.
    #[error("which workspaces are trusted is kept in {}, which is inside of this workspace; use `--config`, or set XDG_STATE_HOME", .folder.display())]
    Inside {
        /// The folder of the records.
        folder: PathBuf,
    },
    /// A record cannot be read or written.
    #[error("{}: {cause}", .path.display())]
    Record {
        /// The file of the record, or its folder.
        path: PathBuf,
        /// The error of the system, or what is wrong with the file.
        cause: io::Error,
    },
}

impl TrustStore {
    /// The store in the user's folder of state.
    pub fn new() -> Self {
        Self { folder: crate::host::assemble::state_folder().map(|folder| folder.join("trust")) }
    }

    /// Keeps the records in this folder; `None`: nowhere, so that nothing is trusted.
    #[must_use]
    pub fn in_folder(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// What was decided about a workspace; `None`: nothing.
    ///
    /// # Errors
    /// It cannot be found out: then the workspace is not trusted.
    pub fn decided(&self, workspace: &Path) -> Result<Option<TrustRecord>, TrustError> {
        let (_, file) = self.file(workspace)?;
        read(&file)
    }

    /// Trusts what a workspace asks for.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn trust(&self, workspace: &Path, request: &TrustRequest) -> Result<(), TrustError> {
        let (folder, file) = self.file(workspace)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = TrustRecord {
            workspace: real(workspace),
            digest: request.digest.clone(),
            keys: request.keys.iter().map(|key| (key.name.clone(), key.value.clone())).collect(),
            decided_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        };
        // Another process reads the whole record or none: it is renamed into its place, also where a link is there.
        let write = || {
            private(&folder)?;
            let mut new = NamedTempFile::new_in(&folder)?;
            new.write_all(&serde_json::to_vec_pretty(&record)?)?;
            new.as_file().sync_all()?;
            new.persist(&file)?;
            Ok(())
        };
        write().map_err(|cause| TrustError::Record { path: file.clone(), cause })
    }

    /// Forgets what was decided about a workspace. Returns whether anything was.
    ///
    /// # Errors
    /// The record cannot be removed.
    pub fn revoke(&self, workspace: &Path) -> Result<bool, TrustError> {
        let (_, file) = self.file(workspace)?;
        let remove = || if config::is_there(&file)? { fs::remove_file(&file).map(|()| true) } else { Ok(false) };
        remove().map_err(|cause| TrustError::Record { path: file.clone(), cause })
    }

    /// All decisions, sorted by workspace, and what cannot be read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<(Vec<TrustRecord>, Vec<TrustError>), TrustError> {
        let folder = self.folder.as_ref().ok_or(TrustError::NoFolder)?;
        let wrong = |cause| TrustError::Record { path: folder.clone(), cause };
        if !config::is_there(folder).map_err(wrong)? {
            return Ok((Vec::new(), Vec::new()));
        }
        let entries = fs::read_dir(folder).map_err(wrong)?;
        let (mut records, mut problems) = (Vec::new(), Vec::new());
        for entry in entries {
            let read = match entry {
                Ok(entry) if entry.path().extension().is_none_or(|end| end != "json") => continue,
                Ok(entry) => read(&entry.path()),
                Err(cause) => Err(TrustError::Record { path: folder.clone(), cause }),
            };
            match read {
                Ok(record) => records.extend(record),
                Err(problem) => problems.push(problem),
            }
        }
        records.sort_by(|a, b| a.workspace.cmp(&b.workspace));
        Ok((records, problems))
    }

    /// The folder of the records, and the record of a workspace.
    fn file(&self, workspace: &Path) -> Result<(PathBuf, PathBuf), TrustError> {
        let folder = self.folder.clone().ok_or(TrustError::NoFolder)?;
        let workspace = real(workspace);
        if would_be(&folder).starts_with(&workspace) {
            return Err(TrustError::Inside { folder });
        }
        let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = folder.join(format!("{name}.json"));
        Ok((folder, file))
    }
}

impl Default for TrustStore {
    fn default() -> Self {
        Self::new()
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Where a folder really is, also where it is not there yet.
fn would_be(folder: &Path) -> PathBuf {
    let there = folder.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there {
        Some((above, real)) => real.join(folder.strip_prefix(above).unwrap_or(Path::new(""))),
        None => folder.to_owned(),
    }
}

/// Reads a record; `None`: there is none. A link is not followed: this program writes none.
fn read(file: &Path) -> Result<Option<TrustRecord>, TrustError> {
    let wrong = |cause| TrustError::Record { path: file.to_owned(), cause };
    if !config::is_there(file).map_err(wrong)? {
        return Ok(None);
    }
    let about = file.symlink_metadata().map_err(wrong)?;
    if !about.is_file() {
        return Err(wrong(io::Error::other("it is not a file")));
    }
    if about.len() > MAX_BYTES {
        return Err(wrong(io::Error::other(format!("its size exceeds the limit of {MAX_BYTES} bytes"))));
    }
    let bytes = fs::read(file).map_err(wrong)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| wrong(error.into()))
}

/// Creates a folder that only the user can read.
fn private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}
