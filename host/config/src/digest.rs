//! SHA-256 digests: of what was shown or trusted, and of components that are pinned.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The digest of parts, none of which can pass for a part of another.
#[derive(Debug)]
pub(crate) struct Parts(Sha256);

impl Parts {
    /// `format`: what is hashed and how. It changes with either.
    pub(crate) fn new(format: &str) -> Self {
        Self(Sha256::new_with_prefix(format))
    }

    pub(crate) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Lower-case hexadecimal digits.
    pub(crate) fn digest(self) -> String {
        hex(self.0)
    }
}

/// The SHA-256 of a text as lower-case hexadecimal digits.
pub(crate) fn of_text(text: &str) -> String {
    hex(Sha256::new_with_prefix(text))
}

/// The SHA-256 of a file as lower-case hexadecimal digits.
///
/// # Errors
/// It cannot be read, or is not a file.
pub fn file_digest(path: &Path) -> Result<String> {
    // Reading a pipe waits for somebody who writes.
    if !path.metadata()?.is_file() {
        return Err(Error::other("it is not a file"));
    }
    let (mut file, mut hash, mut part) = (File::open(path)?, Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(hex(hash)),
            Ok(read) => hash.update(part.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
