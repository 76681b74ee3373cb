//! The file of a component before it is loaded.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::check;
use crate::error::LoadProblem;
use crate::limits::COMPONENT_MAX_BYTES;
use crate::source::ComponentSource;

/// Bytes that are read at a time.
const PART: usize = 64 << 10;
/// How much of a file shows what it is.
const HEAD: usize = 16;

/// A component whose size and header are right. It is known by its digest; its bytes are needed only where nobody has compiled it.
pub(crate) struct Wasm<'a> {
    source: &'a ComponentSource,
    pub(crate) digest: [u8; 32],
    /// What was read of a file that cannot be read twice, such as a pipe.
    kept: Option<Vec<u8>>,
}

impl<'a> Wasm<'a> {
    pub(crate) fn open(source: &'a ComponentSource) -> Result<Self, LoadProblem> {
        let (digest, kept) = match source {
            ComponentSource::Bytes(bytes) => {
                check::size(bytes.len() as u64)?;
                check::header(bytes)?;
                (Sha256::digest(bytes).into(), None)
            }
            ComponentSource::File(path) => digest(path)?,
        };
        Ok(Self { source, digest, kept })
    }

    /// All bytes, which have the digest.
    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>, LoadProblem> {
        let path = match (self.source, &self.kept) {
            (ComponentSource::Bytes(bytes), _) => return Ok(Cow::Borrowed(bytes)),
            (ComponentSource::File(_), Some(bytes)) => return Ok(Cow::Borrowed(bytes)),
            (ComponentSource::File(path), None) => path,
        };
        let read_error = |error| LoadProblem::Read { path: path.clone(), error };
        let mut bytes = Vec::new();
        // Of a file that has grown, one byte more than it may have is enough to see that it has changed.
        let file = File::open(path).map_err(read_error)?;
        file.take(COMPONENT_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(read_error)?;
        if Sha256::digest(&bytes)[..] != self.digest {
            return Err(read_error(io::Error::other("it was changed while it was loaded; load it again")));
        }
        Ok(Cow::Owned(bytes))
    }
}

/// Reads a file part by part, so that one that was compiled before takes no memory. Returns what was read where it cannot be read again.
fn digest(path: &Path) -> Result<([u8; 32], Option<Vec<u8>>), LoadProblem> {
    let read_error = |error| LoadProblem::Read { path: path.to_owned(), error };
    let mut file = File::open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    check::size(metadata.len())?;
    let mut kept = (!metadata.is_file()).then(Vec::new);
    let (mut part, mut all, mut bytes) = (vec![0; PART], Sha256::new(), 0);
    loop {
        let read = full(&mut file, &mut part).map_err(read_error)?;
        let read = part.get(..read).unwrap_or_default();
        if bytes == 0 {
            check::header(read.get(..HEAD).unwrap_or(read))?;
        }
        if read.is_empty() {
            return Ok((all.finalize().into(), kept));
        }
        all.update(read);
        kept.iter_mut().for_each(|kept| kept.extend_from_slice(read));
        // It can grow, and not every file has a size.
        bytes += read.len() as u64;
        check::size(bytes)?;
    }
}

/// Reads until the buffer is full or the file ends.
fn full(file: &mut File, part: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = part.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
